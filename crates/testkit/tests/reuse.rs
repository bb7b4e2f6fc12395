//! What a program takes from the one before when only some artifacts or projects changed.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "reuse/artifacts.rs"]
mod artifacts;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use penstock_compile::{ApiFiles, CompileOptions, FileSource, Input, InputKind, compile_with};
use penstock_engine::Program;
use penstock_gateway::{Gateway, GatewayConfig, GatewayState};

/// A definition whose readings are counted.
struct Definition {
    text: String,
    stamp: u64,
    readings: Arc<AtomicUsize>,
}

impl FileSource for Definition {
    fn paths(&self) -> Vec<String> {
        vec![String::new()]
    }

    fn read(&self, path: &str) -> Option<Result<(Arc<str>, Bytes), String>> {
        self.readings.fetch_add(1, Ordering::Relaxed);
        path.is_empty().then(|| Ok(("api.yaml".into(), self.text.clone().into())))
    }

    fn stamp(&self, path: &str) -> Option<u64> {
        path.is_empty().then_some(self.stamp)
    }
}

struct Projects {
    gateway: Gateway,
    readings: Arc<AtomicUsize>,
}

impl Projects {
    /// Compiles APIs by name, with the version of their file and the title they have in it.
    fn compile(&self, apis: &[(&str, u64, &str)]) -> (Program, Vec<String>) {
        let inputs: Vec<Input> = apis
            .iter()
            .map(|(name, stamp, title)| {
                let text = format!(
                    "openapi: 3.0.1\ninfo: {{title: {title}, version: 1.0.0}}\nx-wso2-basePath: /{name}\n\
                     servers: [{{url: 'http://localhost:1'}}]\npaths:\n  /a: {{get: {{}}, post: {{}}}}\n  \
                     /b/{{id}}: {{get: {{}}, delete: {{x-wso2-disable-security: true}}}}\n"
                );
                let source = Definition { text, stamp: *stamp, readings: self.readings.clone() };
                let kind = InputKind::ApiFiles(ApiFiles(Arc::new(source)));
                Input { file: (*name).into(), bytes: Bytes::new(), kind }
            })
            .collect();
        let options = CompileOptions::default();
        let compiled = compile_with(&inputs, &penstock_mediators::REGISTRY, &options, &[&self.gateway]);
        assert!(!compiled.has_errors(), "{:?}", compiled.diagnostics);
        let services = compiled.program.routes.router.as_ref().unwrap().services();
        let mut names: Vec<String> =
            services.into_iter().map(|service| format!("{} {}", service.path, service.name)).collect();
        names.sort();
        (compiled.program, names)
    }
}

#[test]
fn only_projects_that_changed_are_read_and_compiled_again() {
    let gateway = Gateway::new(Arc::new(GatewayConfig::default()), Arc::<GatewayState>::default());
    let projects = Projects { gateway, readings: Arc::default() };
    let (first, names) = projects.compile(&[("one", 1, "One"), ("two", 1, "Two"), ("three", 1, "Three")]);
    assert_eq!(names, ["/one One", "/three Three", "/two Two"]);
    assert_eq!(projects.readings.load(Ordering::Relaxed), 3);
    let (second, names) = projects.compile(&[("one", 1, "One"), ("two", 2, "Changed"), ("four", 1, "Four")]);
    assert_eq!(names, ["/four Four", "/one One", "/two Changed"]);
    assert_eq!(projects.readings.load(Ordering::Relaxed), 5);
    let held = |program: &Program, unit: usize| program.units[unit].clone().unwrap();
    // Projects have even numbers, and number 1 stands first.
    assert!(Arc::ptr_eq(&held(&first, 1), &held(&second, 1)));
    let (before, after) = (held(&first, 3), held(&second, 3));
    assert!(!Arc::ptr_eq(&before, &after));
    // Faults; requests and answers of protected and of open operations; the same of OPTIONS on both paths.
    assert_eq!(after.sequences.len(), 1 + 2 * 2 + 2 * 2);
    assert_eq!(second.units.iter().flatten().count(), 3);
}

#[test]
fn another_configuration_compiles_everything_again() {
    let state = Arc::<GatewayState>::default();
    let gateway = || Gateway::new(Arc::new(GatewayConfig::default()), state.clone());
    let readings = Arc::<AtomicUsize>::default();
    for times in 1..3 {
        let projects = Projects { gateway: gateway(), readings: readings.clone() };
        projects.compile(&[("one", 1, "One")]);
        assert_eq!(readings.load(Ordering::Relaxed), times);
    }
}
