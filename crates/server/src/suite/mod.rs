//! Unit-test suites of Micro Integrator: artifacts, mock services, cases.
//!
//! A suite runs in this process and opens no port: its requests go straight to the engine, what it sends goes to its mock
//! services, to its own services, or out.
//!
//! Start reading at [`run`], then `parse.rs` (what a suite says), `find.rs` (where its files are), `case.rs` (one case),
//! `report.rs` (the report).

mod case;
mod compare;
mod coverage;
mod find;
mod inputs;
mod mock;
mod outbound;
mod parse;
mod report;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_compile::{Diagnostic, Severity};
use penstock_engine::endpoint::{Endpoint, EndpointKind};
use penstock_engine::ports::Environment;
use penstock_engine::{Current, Program, Users};

use crate::build::{self, BuildOptions, Built};
use crate::config::{Settings, Surroundings};
use crate::databases;
use crate::load::{self, Loaded};
use case::{Bench, CaseReport, Tested};
use coverage::Coverage;
use find::Finder;
use inputs::PROBES;
use mock::{Mock, Redirected};
use parse::Suite;

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
    let bytes =
        load::standard_input::read_file(file).map_err(|cause| load::LoadError { path: file.to_owned(), cause })?;
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
    let parsed = parse::source(file, bytes).and_then(|source| parse::suite(&source));
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
        let loaded = Loaded { inputs, ..Loaded::default() };
        let configurables = self.options.surroundings.configurables();
        let build_options = BuildOptions { configurables, ..BuildOptions::default() };
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
            databases: databases::open(&self.options.settings, Arc::default()),
        };
        self.cases(suite, &bench);
    }

    fn environment(&self) -> Environment {
        Environment {
            variables: self.options.surroundings.variables.clone(),
            file: self.options.surroundings.file.clone(),
            users: Users::new(self.options.settings.users.iter().cloned().collect(), Arc::default())
                .with_roles(self.options.settings.roles.clone()),
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
}

/// Sends what goes to an endpoint of a mock service's name there.
fn redirect(program: &mut Program, mocks: &[Mock]) {
    for slot in program.endpoints_mut() {
        let Some(mock) = mocks.iter().find(|mock| slot.name.as_deref() == Some(mock.name.as_str())) else { continue };
        // The endpoints of a program that is not served yet have one owner.
        let Some(endpoint) = Arc::get_mut(slot) else { continue };
        let Endpoint { kind, .. } = endpoint;
        let unresolved = EndpointKind::Recipients { members: Vec::new(), computed: None };
        *kind = match std::mem::replace(kind, unresolved) {
            EndpointKind::Leaf(leaf) => EndpointKind::Leaf(Box::new(Redirected::new(leaf, mock))),
            other => other,
        };
    }
}
