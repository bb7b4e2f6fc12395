//! From paths to a program that can be served, with everything there is to say about it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use penstock_compile::{
    ArtifactStatus, CompileOptions, CompiledArtifacts, Diagnostic, Input, InputKind, Severity, compile_with,
};
use penstock_engine::{Place, Program};
use penstock_gateway::Gateway;

use crate::adapter::store::{self, Kept};
use crate::config::Settings;
use crate::load::{self, Application, Connector, KnownFiles, LoadError, Loaded};
use crate::registry::REGISTRY;

/// What is needed besides the files.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// A name that nothing defines is an error.
    pub strict: bool,
    /// Values for `$SYSTEM:NAME`, `$FILE:NAME` and `${configs.NAME}`.
    pub configurables: HashMap<String, String>,
    /// What files are, which later builds need not look up again.
    pub known_files: KnownFiles,
    /// APIs of the control plane.
    pub managed: Managed,
    /// Artifacts as they were compiled, which later builds take where nothing changed.
    pub compiled: Option<Arc<CompiledArtifacts>>,
}

/// The files of the APIs that the control plane deployed. All copies share them.
#[derive(Debug, Clone, Default)]
pub struct Managed(Arc<Mutex<Arc<Vec<Input>>>>);

impl Managed {
    /// Replaces them.
    pub fn replace(&self, inputs: Vec<Input>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(inputs);
    }

    /// Replaces them by those of another one.
    pub fn take(&self, other: &Managed) {
        let inputs = other.get();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = inputs;
    }

    fn get(&self) -> Arc<Vec<Input>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A compiled configuration.
pub struct Built {
    /// What can be served.
    pub program: Program,
    /// Everything there is to say, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// What became of each artifact.
    pub artifacts: Vec<ArtifactStatus>,
    /// Where the artifacts come from.
    pub origin: Origin,
    /// How long loading and compiling took.
    pub took: Duration,
}

/// What the artifacts of a program were compiled from.
#[derive(Debug, Default)]
pub struct Origin {
    /// Files with artifacts.
    pub inputs: Vec<Input>,
    /// Carbon applications.
    pub applications: Vec<Application>,
    /// Connectors.
    pub connectors: Vec<Connector>,
}

impl Built {
    /// How many diagnostics are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// Artifacts of a kind that can be served.
    pub fn good(&self, kind: &str) -> usize {
        self.artifacts.iter().filter(|artifact| artifact.good && artifact.kind == kind).count()
    }
}

/// Loads and compiles everything under the paths.
pub fn build(paths: &[PathBuf], options: &BuildOptions, settings: &Settings) -> Result<Built, LoadError> {
    let state = &settings.adapter.state;
    let kept = match settings.adapter.enabled {
        true => store::read(state).map_err(|cause| LoadError { path: state.clone(), cause })?,
        false => Vec::new(),
    };
    build_with(paths, &kept, options, settings)
}

/// Loads and compiles everything under the paths, and these deployed APIs.
pub fn build_with(
    paths: &[PathBuf],
    kept: &[Kept],
    options: &BuildOptions,
    settings: &Settings,
) -> Result<Built, LoadError> {
    let started = Instant::now();
    let mut loaded = load::load_with(paths, kept, &options.known_files)?;
    loaded.inputs.extend(options.managed.get().iter().cloned());
    Ok(compile(loaded, options, settings, started))
}

/// Compiles what was loaded.
pub fn compile(loaded: Loaded, options: &BuildOptions, settings: &Settings, started: Instant) -> Built {
    let mut unreadable = Vec::new();
    let compile_options = CompileOptions {
        strict: options.strict,
        configurables: options.configurables.clone(),
        without_users: settings.users.is_empty(),
        modules: modules(settings, &mut unreadable),
        message_keys: crate::config::read_message_keys(settings),
        serve_unprotected: settings.security.serve_unprotected.clone(),
        compiled: options.compiled.clone(),
    };
    let gateway = Gateway::new(settings.gateway.clone(), settings.gateway_state.clone());
    let compilation = compile_with(&loaded.inputs, &REGISTRY, &compile_options, &[&gateway]);
    let mut program = compilation.program;
    program.conversion = settings.conversion.clone();
    program.limits = settings.flow.clone();
    let databases = remarks_on_databases(&program, settings, options.strict);
    let mut diagnostics = loaded.notes;
    diagnostics.extend(databases);
    diagnostics.extend(unreadable);
    diagnostics.extend(compilation.diagnostics);
    diagnostics.sort_by(|left, right| {
        let key = |diagnostic: &Diagnostic| (diagnostic.at.file.clone(), diagnostic.at.line, diagnostic.at.column);
        key(left).cmp(&key(right))
    });
    diagnostics.dedup();
    let is_artifact = |input: &Input| input.kind == InputKind::Artifact;
    let origin = Origin {
        inputs: loaded.inputs.into_iter().filter(is_artifact).collect(),
        applications: loaded.applications,
        connectors: loaded.connectors,
    };
    Built { program, diagnostics, artifacts: compilation.artifacts, origin, took: started.elapsed() }
}

/// Reads the WebAssembly modules that stand for classes.
fn modules(settings: &Settings, unreadable: &mut Vec<Diagnostic>) -> HashMap<String, Bytes> {
    let mut modules = HashMap::new();
    for (class, file) in &settings.classes {
        match std::fs::read(file) {
            Ok(bytes) => drop(modules.insert(class.clone(), Bytes::from(bytes))),
            Err(error) => {
                let at = Place { file: shown(file).into(), line: 1, column: 1 };
                let message = format!("the module of the class `{class}` cannot be read: {error}");
                unreadable.push(Diagnostic { severity: Severity::Error, at, message });
            }
        }
    }
    modules
}

/// What there is to say about databases that are not what the configuration calls them, once for each.
fn remarks_on_databases(program: &Program, settings: &Settings, strict: bool) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (at, source) in &program.data_sources {
        let Some(remark) = settings.databases.remark(source) else { continue };
        if found.iter().all(|known| known.message != remark.text) {
            let severity = if strict { Severity::Error } else { Severity::Warning };
            found.push(Diagnostic { severity, at: at.clone(), message: remark.text });
        }
    }
    found
}

/// Paths as messages show them: relative to the working directory when they are below it.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}
