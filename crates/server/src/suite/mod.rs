//! Unit-test suites of the original: artifacts, mock services, cases.
//!
//! A suite runs in this process and opens no port: its requests go straight to the engine, what it sends goes to its mock
//! services, to its own services, or out.
//!
//! Start reading at [`run`], then `parse.rs` (what a suite says), `find.rs` (where its files are), `case.rs` (one case),
//! `report.rs` (what is told).

mod case;
mod compare;
mod coverage;
mod find;
mod mock;
mod outbound;
mod parse;
mod report;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use penstock_compile::{Diagnostic, Input, InputKind, Severity};
use penstock_engine::endpoint::{Endpoint, EndpointKind};
use penstock_engine::ports::Environment;
use penstock_engine::{Current, Program};
use penstock_transports::sql::Sql;

use crate::build::{self, BuildOptions, Built};
use crate::config::{Settings, Surroundings};
use crate::load::{self, Loaded};
use case::{Bench, CaseReport, Tested};
use coverage::Coverage;
use find::Finder;
use mock::{Mock, Redirected};
use parse::{Reference, Suite};

pub use report::{junit, terminal};

/// How suites are run.
pub struct SuiteOptions {
    /// Folders that artifacts and mock services are looked for in.
    pub folders: Vec<PathBuf>,
    /// Mock services for every suite besides its own.
    pub mocks: Vec<PathBuf>,
    /// Only cases whose name contains this.
    pub only: Option<String>,
    /// The configuration.
    pub settings: Settings,
    /// Values of the environment.
    pub surroundings: Surroundings,
}

/// What became of a suite.
pub struct SuiteReport {
    /// Its file.
    pub file: PathBuf,
    /// The file of the artifact under test.
    pub artifact: Option<PathBuf>,
    /// The cases that ran.
    pub cases: Vec<CaseReport>,
    /// Why it could not run.
    pub broken: Vec<String>,
    /// Files it names that are nowhere.
    pub missing: Vec<String>,
    /// What the compiler says about its artifacts.
    pub notes: Vec<Diagnostic>,
    /// Mediators of the artifact that were reached.
    pub coverage: Coverage,
    /// How long it took.
    pub took: Duration,
}

impl SuiteReport {
    /// Whether everything holds.
    pub fn passed(&self) -> bool {
        self.broken.is_empty() && self.missing.is_empty() && self.cases.iter().all(|case| case.failures.is_empty())
    }
}

/// Runs one suite.
pub fn run(file: &Path, options: &SuiteOptions) -> Result<SuiteReport, load::LoadError> {
    let started = Instant::now();
    let bytes = std::fs::read(file).map_err(|cause| load::LoadError { path: file.to_owned(), cause })?;
    let mut report = SuiteReport {
        file: file.to_owned(),
        artifact: None,
        cases: Vec::new(),
        broken: Vec::new(),
        missing: Vec::new(),
        notes: Vec::new(),
        coverage: Coverage::default(),
        took: Duration::ZERO,
    };
    let parsed = parse::source(file, Bytes::from(bytes)).and_then(|source| parse::suite(&source));
    match parsed {
        Ok(suite) => Runner { options, finder: Finder::new(file, &options.folders), report: &mut report }.run(&suite),
        Err((at, message)) => report.broken.push(format!("{at}: {message}")),
    }
    report.took = started.elapsed();
    Ok(report)
}

/// The state of one suite while it runs.
struct Runner<'r> {
    options: &'r SuiteOptions,
    finder: Finder,
    report: &'r mut SuiteReport,
}

impl Runner<'_> {
    fn run(&mut self, suite: &Suite) {
        let inputs = self.inputs(suite);
        let mocks = self.mocks(suite);
        if !self.report.missing.is_empty() || !self.report.broken.is_empty() {
            return;
        }
        let artifact = self.report.artifact.clone().unwrap_or_default();
        let file = artifact.display().to_string();
        let loaded = Loaded { inputs, notes: Vec::new() };
        let configurables = self.options.surroundings.configurables();
        let build_options = BuildOptions { strict: false, configurables };
        let built = build::compile(loaded, &build_options, &self.options.settings, Instant::now());
        let tested = self.tested(&built, &file);
        let Built { mut program, diagnostics, .. } = built;
        self.report.notes = diagnostics.into_iter().filter(|note| !note.at.file.starts_with(PROBES)).collect();
        let Some(tested) = tested else { return };
        redirect(&mut program, &mocks);
        self.report.coverage = Coverage::watch(&mut program, &file);
        let bench = Bench {
            current: Current::new(Arc::new(program)),
            tested,
            mocks: Rc::new(mocks),
            environment: Arc::new(self.environment()),
            databases: Arc::new(Sql::new(self.options.settings.databases.clone(), Arc::default())),
        };
        self.cases(suite, &bench);
    }

    fn environment(&self) -> Environment {
        Environment {
            variables: self.options.surroundings.variables.clone(),
            file: self.options.surroundings.file.clone(),
            users: self.options.settings.users.iter().cloned().collect(),
            secrets: self.options.settings.secrets.clone(),
            host: "localhost".into(),
            http_port: 8290,
            https_port: 8253,
            ..Environment::default()
        }
    }

    fn cases(&mut self, suite: &Suite, bench: &Bench) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(cause) => return self.report.broken.push(format!("no runtime: {cause}")),
        };
        for case in &suite.cases {
            if self.options.only.as_ref().is_some_and(|only| !case.name.contains(only.as_str())) {
                continue;
            }
            let tasks = tokio::task::LocalSet::new();
            let report = tasks.block_on(&runtime, case::run(case, bench));
            self.report.cases.push(report);
            runtime.block_on(case::settle(tasks));
        }
    }

    /// What the suite is about, when it can be served.
    fn tested(&mut self, built: &Built, file: &str) -> Option<Tested> {
        let status = built.artifacts.iter().find(|artifact| &*artifact.at.file == file);
        let Some(status) = status else {
            self.report.broken.push(format!("{file}: is no artifact that can be tested"));
            return None;
        };
        if !status.good {
            let errors = built.diagnostics.iter().filter(|note| note.severity == Severity::Error);
            let own = errors.filter(|note| &*note.at.file == file).map(|note| format!("{}: {}", note.at, note.message));
            self.report.broken.extend(own);
            return None;
        }
        match status.kind {
            "sequence" => Some(Tested::Sequence(status.name.clone())),
            "proxy" => Some(Tested::Proxy(status.name.clone())),
            "api" => {
                let found = built.program.routes.apis().iter().find(|api| &*api.at.file == file);
                found.map(|api| Tested::Api(api.context.trim_end_matches('/').to_owned()))
            }
            other => {
                self.report
                    .broken
                    .push(format!("{file}: a <{other}> cannot be tested; sequences, proxies and APIs can"));
                None
            }
        }
    }

    fn inputs(&mut self, suite: &Suite) -> Vec<Input> {
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
                .is_ok_and(|bytes| load::root_element(&bytes).is_some_and(|root| kinds.contains(&root.as_str())))
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
            self.report.missing.push(format!("{}: `{}` is nowhere", reference.at, reference.path));
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

    fn mocks(&mut self, suite: &Suite) -> Vec<Mock> {
        let suits = |path: &Path| {
            std::fs::read(path).is_ok_and(|bytes| load::root_element(&bytes).as_deref() == Some("mock-service"))
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
const PROBES: &str = "<assertions>";

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

/// Sends what goes to an endpoint of a mock service's name there.
fn redirect(program: &mut Program, mocks: &[Mock]) {
    for slot in &mut program.endpoints {
        let Some(mock) = mocks.iter().find(|mock| slot.name.as_deref() == Some(mock.name.as_str())) else { continue };
        // Nobody else holds the endpoints of a program that was not yet served.
        let Some(endpoint) = Arc::get_mut(slot) else { continue };
        let Endpoint { kind, .. } = endpoint;
        let unresolved = EndpointKind::Recipients { members: Vec::new(), computed: None };
        *kind = match std::mem::replace(kind, unresolved) {
            EndpointKind::Leaf(leaf) => EndpointKind::Leaf(Box::new(Redirected::new(leaf, mock))),
            other => other,
        };
    }
}
