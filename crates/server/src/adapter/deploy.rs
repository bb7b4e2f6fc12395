//! What a request of the adapter does: check, keep, serve.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use penstock_catalog::Api;
use penstock_compile::{Diagnostic, InputKind, Severity};
use penstock_engine::route::ServiceSummary;
use penstock_gateway::{Import, Project, ProjectFile};

use super::store::{self, Kept};
use crate::build::{self, BuildOptions};
use crate::config::{self, Settings};
use crate::load::{self, Loaded};
use crate::log::Log;
use crate::serve::{State, swap};

/// Deploys and undeploys.
pub struct Deployer {
    /// Paths as given on the command line.
    pub paths: Vec<PathBuf>,
    /// How to compile.
    pub options: BuildOptions,
    /// What is served, and how the server behaves.
    pub state: Arc<State>,
    /// Held while what is served changes.
    pub turn: Arc<Mutex<()>>,
}

/// Why a deployment changed nothing.
#[derive(Debug)]
pub(super) enum Refused {
    /// The project has errors, or does not go together with what is served.
    Broken(Vec<Diagnostic>),
    /// The API exists, and `override` is not set.
    Exists(String),
    /// There is no such API.
    Unknown,
    /// It is served from files that were given, and cannot be undeployed.
    Given,
    /// The state folder cannot be used.
    Environment(String),
}

/// Which API is to be undeployed.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) version: String,
    /// Only from these hosts, when there are any.
    pub(super) hosts: Vec<String>,
}

impl Deployer {
    /// How the server behaves now.
    pub fn settings(&self) -> Arc<Settings> {
        self.state.settings()
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log> {
        &self.state.log
    }

    /// Deploys an archive; says what it was.
    pub(super) fn deploy(&self, bytes: Bytes, replace: bool) -> Result<String, Refused> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let api = self.api_of("the archive", bytes.clone())?;
        let name = format!("{}:{}", api.name, api.version);
        let folder = store::folder(&self.settings().adapter.state);
        let file = folder.join(store::file_name(&api.name, &api.version, &api.vhosts));
        let mut kept = self.kept()?;
        match kept.iter_mut().find(|known| known.file == file) {
            Some(_) if !replace => return Err(Refused::Exists(name)),
            Some(known) => known.bytes = bytes.clone(),
            None => kept.push(Kept { file: file.clone(), bytes: bytes.clone() }),
        }
        self.serve(&kept, &format!("{name} is deployed"), || store::keep(&file, &bytes))?;
        Ok(name)
    }

    /// Undeploys an API.
    pub(super) fn undeploy(&self, wanted: &Wanted) -> Result<String, Refused> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept()?;
        let mut removed = Vec::new();
        kept.retain(|known| {
            let fits = self.api_of("", known.bytes.clone()).is_ok_and(|api| wanted.is(&api));
            if fits {
                removed.push(known.file.clone());
            }
            !fits
        });
        if removed.is_empty() {
            let given =
                self.services().iter().any(|service| service.name == wanted.name && service.version == wanted.version);
            return Err(if given { Refused::Given } else { Refused::Unknown });
        }
        let name = format!("{}:{}", wanted.name, wanted.version);
        let remove = || removed.iter().try_for_each(|file| store::remove(file));
        self.serve(&kept, &format!("{name} is undeployed"), remove)?;
        Ok(name)
    }

    /// What is served.
    pub(super) fn services(&self) -> Vec<ServiceSummary> {
        let program = self.state.current.get();
        program.routes.router.as_ref().map(|router| router.services()).unwrap_or_default()
    }

    fn kept(&self) -> Result<Vec<Kept>, Refused> {
        let settings = self.settings();
        let state = &settings.adapter.state;
        store::read(state).map_err(|cause| Refused::Environment(format!("`{}`: {cause}", state.display())))
    }

    /// The API of an archive.
    fn api_of(&self, name: &str, bytes: Bytes) -> Result<Arc<Api>, Refused> {
        let Loaded { inputs, notes, .. } = load::archive(name, bytes);
        if notes.iter().any(|note| note.severity == Severity::Error) {
            return Err(Refused::Broken(notes));
        }
        let files = inputs.into_iter().filter_map(|input| match input.kind {
            InputKind::Api { path, .. } => Some(ProjectFile { file: input.file, path, bytes: input.bytes }),
            _ => None,
        });
        let project = Project { name: name.into(), files: files.collect(), more: None };
        let settings = self.settings();
        let config = settings.gateway.import();
        let mut import = Import::new(&config, &self.options.configurables);
        let imported = import.project(&project);
        imported.and_then(|imported| imported.api).ok_or(Refused::Broken(import.notes))
    }

    /// Compiles everything with these archives, has the change kept, and serves it.
    fn serve(&self, kept: &[Kept], what: &str, keep: impl FnOnce() -> std::io::Result<()>) -> Result<(), Refused> {
        let mut options = self.options.clone();
        options.configurables = config::surroundings(&self.paths).configurables();
        let settings = self.settings();
        let built = build::build_with(&self.paths, kept, &options, &settings)
            .map_err(|error| Refused::Environment(error.to_string()))?;
        let running = self.state.artifacts();
        let new: Vec<Diagnostic> =
            built.diagnostics.iter().filter(|diagnostic| swap::is_new(diagnostic, &running.errors)).cloned().collect();
        if !new.is_empty() {
            return Err(Refused::Broken(new));
        }
        keep().map_err(|cause| Refused::Environment(format!("`{}`: {cause}", settings.adapter.state.display())))?;
        swap::swap(&self.state, &settings, built, "Adapter", what);
        Ok(())
    }
}

impl Wanted {
    fn is(&self, api: &Api) -> bool {
        let on_host = |host: &String| api.vhosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        // An API for every host is undeployed with any host.
        let hosts = self.hosts.is_empty() || api.vhosts.is_empty() || self.hosts.iter().any(on_host);
        *api.name == *self.name && *api.version == *self.version && hosts
    }
}
