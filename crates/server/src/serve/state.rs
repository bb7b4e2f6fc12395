//! What the threads of the server share besides the program: counters of every core, artifacts, whether it drains.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use penstock_compile::{ArtifactStatus, Diagnostic, Severity};
use penstock_engine::background::ServiceTable;
use penstock_engine::{Current, Logins, Metrics};
use penstock_gateway::{GatewayPorts, GatewayState};
use penstock_transports::http::Counters;
use tokio::sync::mpsc::UnboundedSender;

use super::Served;
use super::entrances::LateListener;
use super::ports::Opener;
use crate::build::Origin;
use crate::command::Failure;
use crate::config::Settings;
use crate::log::Log;
use crate::management::Switches;

/// The state of the server.
pub struct State {
    /// The program that new requests get.
    pub current: Arc<Current>,
    /// The log.
    pub log: Arc<Log>,
    /// The name clients know this server by.
    pub hostname: String,
    /// The ports.
    pub served: Served,
    /// How the server behaves; a reload replaces it.
    settings: RwLock<Arc<Settings>>,
    /// Failed logins.
    pub logins: Arc<Logins>,
    /// How often a changed configuration was applied, and rejected.
    pub reloads: AtomicU64,
    /// See `reloads`.
    pub reloads_refused: AtomicU64,
    /// Background services and how they fare.
    pub services: Arc<ServiceTable>,
    /// What operators switched on and off.
    pub switches: Switches,
    /// Opens the ports of managed APIs.
    gateway: Mutex<Option<Opener>>,
    /// What managed APIs keep across reloads.
    gateway_state: Arc<GatewayState>,
    /// Where the workers take listeners that are opened later.
    workers: Mutex<Vec<UnboundedSender<LateListener>>>,
    draining: AtomicBool,
    artifacts: Mutex<Arc<Artifacts>>,
    cores: Mutex<Vec<CoreCounters>>,
}

/// What is deployed.
pub struct Artifacts {
    /// What became of each artifact.
    pub statuses: Vec<ArtifactStatus>,
    /// The errors of the running configuration.
    pub errors: Vec<Diagnostic>,
    /// What they were compiled from.
    pub origin: Origin,
}

/// Counters of one core.
#[derive(Clone)]
pub struct CoreCounters {
    /// Services.
    pub metrics: Arc<Metrics>,
    /// Connections and bytes.
    pub http: Arc<Counters>,
}

impl Artifacts {
    /// The artifacts of a program.
    pub fn new(statuses: Vec<ArtifactStatus>, diagnostics: Vec<Diagnostic>, origin: Origin) -> Arc<Artifacts> {
        let errors = diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error).collect();
        Arc::new(Artifacts { statuses, errors, origin })
    }

    /// Artifacts that cannot be served.
    pub fn faulty(&self) -> impl Iterator<Item = &ArtifactStatus> {
        self.statuses.iter().filter(|artifact| !artifact.good)
    }
}

impl State {
    /// The state of a server that is about to serve.
    pub fn new(
        current: Arc<Current>,
        artifacts: Arc<Artifacts>,
        switches: Switches,
        log: Arc<Log>,
        settings: &Settings,
        served: Served,
        logins: Arc<Logins>,
    ) -> State {
        State {
            current,
            log,
            hostname: settings.hostname.clone(),
            served,
            settings: RwLock::new(Arc::new(settings.clone())),
            logins,
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            services: Arc::default(),
            gateway: Mutex::default(),
            gateway_state: settings.gateway_state.clone(),
            workers: Mutex::default(),
            draining: AtomicBool::new(false),
            artifacts: Mutex::new(artifacts),
            switches,
            cores: Mutex::default(),
        }
    }

    /// How the server behaves now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings.
    pub fn replace_settings(&self, settings: Arc<Settings>) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// What is deployed now.
    pub fn artifacts(&self) -> Arc<Artifacts> {
        self.artifacts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another configuration is served from now on.
    pub fn replace(&self, artifacts: Arc<Artifacts>) {
        *self.artifacts.lock().unwrap_or_else(PoisonError::into_inner) = artifacts;
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Says how the ports of managed APIs are opened, and who serves what comes in by them.
    pub(super) fn may_open(&self, opener: Opener, workers: Vec<UnboundedSender<LateListener>>) {
        *self.gateway.lock().unwrap_or_else(PoisonError::into_inner) = Some(opener);
        *self.workers.lock().unwrap_or_else(PoisonError::into_inner) = workers;
    }

    /// Where each worker takes listeners that are opened later.
    pub(super) fn workers(&self) -> Vec<UnboundedSender<LateListener>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the ports of managed APIs, unless they are open. Says which they are when it was this call that opened them.
    pub(super) fn open_gateway(&self) -> Result<Option<GatewayPorts>, Failure> {
        let mut opener = self.gateway.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = opener.as_ref() else { return Ok(None) };
        let (ports, listeners) = found.open()?;
        // Before the first request: by it the router knows which ports are its own.
        let _ = self.gateway_state.ports.set(ports);
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for (worker, listeners) in workers.iter().zip(listeners) {
            for listener in listeners {
                // A worker that ended needs no listener.
                let _ = worker.send(listener.into());
            }
        }
        *opener = None;
        Ok(Some(ports))
    }

    /// What managed APIs keep across deployments.
    pub fn gateway_state(&self) -> &Arc<GatewayState> {
        &self.gateway_state
    }

    /// The ports of managed APIs, when they are open.
    pub fn gateway_ports(&self) -> Option<GatewayPorts> {
        self.gateway_state.ports.get().copied()
    }

    /// Adds the counters of a core.
    pub fn add_core(&self, counters: CoreCounters) {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner).push(counters);
    }

    /// The counters of every core.
    pub fn cores(&self) -> Vec<CoreCounters> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No new requests are wanted from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the server is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
