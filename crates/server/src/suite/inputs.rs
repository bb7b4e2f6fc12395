//! What a suite needs beside itself: artifacts, resources, connectors, mock services, and sequences for its assertions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Input, InputKind};

use super::mock::{self, Mock};
use super::parse::{self, Reference, Suite};
use super::{Runner, case};
use crate::load;

impl Runner<'_> {
    pub(super) fn inputs(&mut self, suite: &Suite) -> Vec<Input> {
        let mut inputs = Vec::new();
        self.report.artifact = self.artifact(&suite.artifact, &mut inputs);
        for reference in &suite.supportive {
            self.artifact(reference, &mut inputs);
        }
        for resource in &suite.resources {
            if let Some(path) = self.locate(&resource.file, &|_| true)
                && let Some(bytes) = self.read(&path)
            {
                let file = path.display().to_string();
                let (collection, name) = (&resource.collection, &resource.name);
                inputs.extend(load::resource(&file, bytes, collection, name, resource.media_type.clone()));
            }
        }
        for connector in &suite.connectors {
            if let Some(path) = self.locate(connector, &|_| true) {
                match load::load(&[path]) {
                    Ok(loaded) => {
                        inputs.extend(loaded.inputs);
                        self.report.broken.extend(loaded.notes.iter().map(ToString::to_string));
                    }
                    Err(error) => self.report.broken.push(error.to_string()),
                }
            }
        }
        for case in &suite.cases {
            for (index, assertion) in case.assertions.iter().enumerate() {
                if case::needs_probe(&assertion.actual) {
                    inputs.push(probe(&case::probe_name(&case.name, index), &assertion.actual));
                }
            }
        }
        inputs
    }

    fn artifact(&mut self, reference: &Reference, inputs: &mut Vec<Input>) -> Option<PathBuf> {
        let kinds = kinds_of(&reference.path);
        let suits = |path: &Path| {
            std::fs::read(path)
                .is_ok_and(|bytes| penstock_xml::root_name(&bytes).is_some_and(|root| kinds.contains(&root.as_str())))
        };
        let path = self.locate(reference, &suits)?;
        let bytes = self.read(&path)?;
        let file: Arc<str> = path.display().to_string().into();
        inputs.push(Input { file, bytes, kind: InputKind::Artifact });
        Some(path)
    }

    fn locate(&mut self, reference: &Reference, suits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        let found = self.finder.find(&reference.path, suits);
        if found.is_none() {
            self.report.missing.push(format!("{}: `{}` does not exist", reference.at, reference.path));
        }
        found
    }

    fn read(&mut self, path: &Path) -> Option<Bytes> {
        match std::fs::read(path) {
            Ok(bytes) => Some(Bytes::from(bytes)),
            Err(cause) => {
                self.report.broken.push(format!("{}: cannot be read: {cause}", path.display()));
                None
            }
        }
    }

    pub(super) fn mocks(&mut self, suite: &Suite) -> Vec<Mock> {
        let suits = |path: &Path| {
            std::fs::read(path).is_ok_and(|bytes| penstock_xml::root_name(&bytes).as_deref() == Some("mock-service"))
        };
        let mut paths = self.options.mocks.clone();
        paths.extend(suite.mocks.iter().filter_map(|reference| self.locate(reference, &suits)));
        let mut mocks = Vec::new();
        for path in paths {
            let Some(bytes) = self.read(&path) else { continue };
            match parse::source(&path, bytes).and_then(|source| mock::mock(&source)) {
                Ok(mock) => mocks.push(mock),
                Err((at, message)) => self.report.broken.push(format!("{at}: {message}")),
            }
        }
        mocks
    }
}

/// Root elements of the artifacts in a folder of a project; any when the folder says nothing.
fn kinds_of(path: &str) -> &'static [&'static str] {
    const FOLDERS: [(&str, &[&str]); 6] = [
        ("api", &["api"]),
        ("endpoint", &["endpoint"]),
        ("sequence", &["sequence"]),
        ("proxy", &["proxy"]),
        ("local-entr", &["localEntry"]),
        ("template", &["template"]),
    ];
    const ANY: &[&str] = &["api", "endpoint", "sequence", "proxy", "localEntry", "template", "definitions"];
    let folder = path.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    FOLDERS.iter().find(|(start, _)| folder.starts_with(start)).map_or(ANY, |(_, kinds)| kinds)
}

/// Where sequences that evaluate assertions stand.
pub(super) const PROBES: &str = "<assertions>";

/// A sequence that leaves the value of an expression in a property.
fn probe(name: &str, expression: &str) -> Input {
    let escaped = |text: &str| {
        let mut out = Vec::new();
        penstock_xml::escape_attribute(&mut out, text);
        String::from_utf8_lossy(&out).into_owned()
    };
    let text = format!(
        "<sequence xmlns=\"{}\" name=\"{}\"><property name=\"{}\" expression=\"{}\"/></sequence>",
        penstock_compile::SYNAPSE,
        escaped(name),
        case::PROBE,
        escaped(expression)
    );
    Input { file: PROBES.into(), bytes: text.into(), kind: InputKind::Artifact }
}
