//! The management runtime: a thread with its own core, for work that no client waits for. Background services run here,
//! the management API, and what managed APIs do by themselves (delivery of events, health checks, export of traces,
//! revocations).
//!
//! It is neither a core of the data path, whose requests it must not delay, nor the thread of probes, which must look alive
//! whatever happens here.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use penstock_control::Control;
use penstock_engine::background::{BackgroundService, Supervisor};
use penstock_engine::entrance::Entrances;
use penstock_engine::ports::Level;
use penstock_transports::http::{HttpListener, PerCore, Shutdown, shutdown};
use tokio::runtime::LocalOptions;
use tokio::sync::watch;

use super::facilities::Facilities;
use super::service_states::RegistryStates;
use super::state::State;
use crate::command::Failure;
use crate::control::listen;
use crate::databases;
use crate::management::Operators;

/// The management runtime. It stops when [`Management::stop`] is called.
pub(super) struct Management {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Management {
    /// Stops the services; the thread ends with them, at the latest after the drain time.
    pub(super) fn stop(self) -> JoinHandle<()> {
        self.stop.send_replace(true);
        self.thread
    }
}

/// How long the server waits for ports of inbound endpoints before it is ready without them.
const PORTS_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it looks.
const PORTS_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until the ports of inbound endpoints are open, or cannot be opened at present.
pub(super) fn wait_for_ports(state: &State) {
    let end = Instant::now() + PORTS_TIMEOUT;
    let program = state.current.get();
    let is_open = |service: &BackgroundService| {
        state.services.get(service.kind, &service.name).is_some_and(|status| status.has_settled())
    };
    while !program.services.iter().filter(|service| service.runner.opens_port()).all(is_open) && Instant::now() < end {
        std::thread::sleep(PORTS_INTERVAL);
    }
}

/// Starts the thread.
pub(super) fn start(
    facilities: Facilities,
    entrances: Arc<dyn Entrances>,
    operators: Option<Operators>,
    control: Option<ControlPort>,
) -> Result<Management, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    let (stop, stopping) = watch::channel(false);
    let log = facilities.log.clone();
    let run =
        move || match tokio::runtime::Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime.block_on(work(facilities, entrances, operators, control, stopping)),
            Err(cause) => log.say(Level::Fatal, "Server", &format!("no management runtime: {cause}")),
        };
    let thread = std::thread::Builder::new().name("management".to_owned()).spawn(run).map_err(cannot)?;
    Ok(Management { stop, thread })
}

/// The port of the control plane.
pub(super) struct ControlPort {
    pub(super) listener: HttpListener,
    pub(super) control: Arc<Control>,
    pub(super) stop: Shutdown,
}

async fn work(
    facilities: Facilities,
    entrances: Arc<dyn Entrances>,
    operators: Option<Operators>,
    control: Option<ControlPort>,
    mut stopping: watch::Receiver<bool>,
) {
    let per_core = PerCore::start();
    let (core, sender) = facilities.core(&per_core);
    core.set_entrances(entrances);
    if let Some(ControlPort { listener, control, stop }) = control {
        tokio::task::spawn_local(listen(listener, control, facilities.log.clone(), stop));
    }
    let Facilities { settings, environment, current, state, databases: all_databases, .. } = facilities;
    let gateway = state.gateway_state().clone();
    let gateway_sender = sender.clone();
    tokio::task::spawn_local(async move { gateway.run_background(gateway_sender).await });
    let (trigger, stop) = shutdown();
    if let Some(operators) = operators {
        tokio::task::spawn_local(operators.serve(core.clone(), sender, stop));
    }
    let states = Arc::new(RegistryStates::new(environment.registry.clone()));
    let mut supervisor = Supervisor::new(core, state.services.clone(), states, settings.timeouts.drain);
    if let Some(coordination) = databases::coordination(&settings, all_databases) {
        supervisor.coordinate(coordination);
    }
    let mut programs = current.changes();
    loop {
        programs.borrow_and_update();
        supervisor.apply(&current.get().services);
        tokio::select! {
            changed = programs.changed() => if changed.is_err() { break },
            _ = stopping.wait_for(|stopping| *stopping) => break,
        }
    }
    trigger.stop();
    supervisor.stop_all().await;
}
