//! From a program to a running server: threads, ports, probes, reload, the end.
//!
//! One thread per core serves, each with its own runtime, listeners, sender and counters; what they share is the current
//! program and the log. Background services and what managed APIs do by themselves have the management runtime. Probes and
//! metrics have a thread of their own, so that a busy core cannot make the server look dead. The main thread waits for
//! signals.
//!
//! Start reading at [`serve`].

mod admin;
mod banner;
mod certificates;
mod descriptors;
mod end;
mod entrances;
mod facilities;
mod management;
mod memory;
mod metrics;
mod notify;
mod ports;
mod process;
pub mod registry;
mod reload;
mod renew;
mod security;
pub mod service_states;
mod signals;
pub mod state;
mod subscriptions;
pub mod swap;
mod worker;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use penstock_compile::Severity;
use penstock_engine::ports::{Environment, Level};
use penstock_engine::{Current, Logins, Users};
use penstock_transports::SharedClients;
use penstock_transports::http::shutdown;
use penstock_transports::store::MessageStores;
use tokio::sync::mpsc::unbounded_channel;

use crate::adapter::{self, Deployer};
use crate::build::{BuildOptions, Built};
use crate::command::Failure;
use crate::config::{Settings, Surroundings};
use crate::control::{ControlPlane, Running};
use crate::databases;
use crate::log::Logs;
use crate::management::{Operators, Switches};
pub use banner::write as say;
use facilities::Facilities;
use ports::Ports;
use renew::Renewal;
pub use renew::Reread;
pub use security::kept_key;
pub use signals::Event;
pub use signals::Signals;
pub use state::{Artifacts, State};

/// What is to be served and how.
pub struct Plan {
    /// Paths as given.
    pub paths: Vec<PathBuf>,
    /// How the server behaves.
    pub settings: Settings,
    /// Values for flows and configuration.
    pub surroundings: Surroundings,
    /// Whether any error refuses the start.
    pub build: BuildOptions,
    /// When the process began.
    pub started: Instant,
    /// The program, compiled.
    pub built: Built,
    /// The signals of the process.
    pub signals: Signals,
    /// Reads the configuration again; without it a reload opens log files again and nothing else.
    pub reread: Option<Reread>,
    /// The control plane, when it is served.
    pub control: Option<ControlPlane>,
    /// Printed under the banner once everything is served.
    pub epilogue: Option<Epilogue>,
}

impl Plan {
    /// A plan without paths that are watched, whose configuration is read once.
    pub fn new(
        settings: Settings,
        surroundings: Surroundings,
        build: BuildOptions,
        started: Instant,
        built: Built,
        signals: Signals,
    ) -> Plan {
        let paths = Vec::new();
        Plan {
            paths,
            settings,
            surroundings,
            build,
            started,
            built,
            signals,
            reread: None,
            control: None,
            epilogue: None,
        }
    }
}

/// Makes a text of the ports that are served.
pub type Epilogue = Box<dyn Fn(&Served) -> String>;

/// The ports that are served.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// HTTP.
    pub http: u16,
    /// HTTPS, when it is served.
    pub https: Option<u16>,
    /// Probes and metrics.
    pub admin: u16,
    /// The management API, when it is served.
    pub management: Option<u16>,
}

/// Serves until a signal ends it.
pub fn serve(plan: Plan) -> Result<(), Failure> {
    let Plan { paths, settings, surroundings, build, started, built, signals, reread, control, epilogue } = plan;
    penstock_budget::set_process_limit(settings.total_memory.unwrap_or_else(memory::default_limit));
    let cannot_log = |(path, cause): (PathBuf, std::io::Error)| {
        Failure::environment(format!("the log `{}` cannot be written: {cause}", path.display()))
    };
    let logs = Logs::open(&settings).map_err(cannot_log)?;
    let tell = |text: &str| banner::tell(text, &settings, &logs.log);
    tell(&banner::diagnostics(&built.diagnostics));
    if build.strict && built.count(Severity::Error) > 0 {
        logs.flush();
        return Err(Failure::input("not started: the artifacts have errors, and `--strict` allows none"));
    }
    let revoked = security::prepare(&settings, &logs.log)?;
    if let Some(plane) = &control {
        plane.control.publish_access().map_err(Failure::environment)?;
    }
    subscriptions::prepare(&settings, &logs.log)?;
    let ports = Ports::bind(&settings, descriptors::prepare(&settings, &logs.log))?;
    let served = ports.served();
    let watched: &[PathBuf] = if settings.watch { &paths } else { &[] };
    let logins = Arc::<Logins>::default();
    let environment = Arc::new(Environment {
        variables: surroundings.variables.clone(),
        file: surroundings.file.clone(),
        system: std::sync::RwLock::default(),
        users: Users::new(settings.users.iter().cloned().collect(), logins.clone()).with_roles(settings.roles.clone()),
        secrets: settings.secrets.clone(),
        registry: Arc::new(registry::open(settings.registry_folder.as_deref(), watched)?),
        connection_factories: settings.connection_factories.clone(),
        services_hidden: !settings.list_services,
        host: settings.hostname.clone(),
        http_port: served.http,
        https_port: served.https.unwrap_or_default(),
    });
    let mut banner = banner::Banner::new(&built, &settings, &surroundings, &ports);
    let wants_gateway = settings.opens_gateway(built.good("managed-api") > 0);
    let Built { program, diagnostics, artifacts, origin, .. } = built;
    let artifacts = Artifacts::new(artifacts, diagnostics, origin);
    let switches = Switches::new(environment.registry.clone());
    switches.apply(&program);
    let current = Current::new(Arc::new(program));
    let state = Arc::new(State::new(current.clone(), artifacts, switches, logs.log.clone(), &settings, served, logins));
    let (trigger, stop) = shutdown();
    let channels = (0..settings.worker_count()).map(|_| unbounded_channel());
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
    state.may_open(ports.gateway.clone(), senders);
    if wants_gateway {
        state.open_gateway()?;
    }
    banner.add_gateway(state.gateway_ports(), &settings);
    if let Some(listener) = &ports.adapter {
        banner.add_adapter(listener.local_addr().port(), &settings);
    }
    banner.add_management(&ports, &settings);
    let Ports { workers, admin, adapter, management: operators_port, control: control_listener, live, .. } = ports;
    let databases = databases::open(&settings, live.tls.client.clone());
    let stores = MessageStores::new(databases.clone(), &settings.connection_factories);
    let stores = Arc::new(stores.keep_memory_in(settings.in_memory_database.as_deref().map(databases::source)));
    let facilities = Facilities {
        settings: settings.clone(),
        tls: live.tls.client.clone(),
        descriptors_max: live.descriptors.connections_max,
        log: logs.log.clone(),
        environment: environment.clone(),
        current,
        databases,
        stores,
        clients: Arc::new(SharedClients::new(&environment.connection_factories)),
        state: state.clone(),
    };
    let mut threads = Vec::new();
    for (index, (listeners, more)) in workers.into_iter().zip(receivers).enumerate() {
        let shared =
            worker::Shared { facilities: facilities.clone(), access: logs.access.clone(), stop: stop.clone(), more };
        threads.push(worker::start(index, listeners, shared)?);
    }
    let entrances = Arc::new(entrances::InboundPorts { state: state.clone(), live: live.clone() });
    let turn = Arc::new(Mutex::new(()));
    let operators = operators_port.map(|listener| {
        let (paths, options) = (paths.clone(), build.clone());
        let deployer = Deployer { paths, options, state: state.clone(), turn: turn.clone() };
        Operators { listener, deployer, registry: environment.registry.clone(), events: signals.events() }
    });
    if let Some(plane) = &control {
        let (state, turn) = (state.clone(), turn.clone());
        let tls = live.tls.client.clone();
        plane.host.attach(Running { state, paths: paths.clone(), options: build.clone(), turn, tls });
    }
    let control_port = control_listener.zip(control.as_ref()).map(|(listener, plane)| management::ControlPort {
        listener,
        control: plane.control.clone(),
        stop: stop.clone(),
    });
    let management = management::start(facilities, entrances, operators, control_port)?;
    management::wait_for_ports(&state);
    // Probes outlive the workers: while the server drains they report it.
    let admin = admin::start(admin, state.clone())?;
    // Before the banner: a file that changes after it is a change.
    let watcher = settings
        .watch
        .then(|| reload::start(paths.clone(), build.clone(), state.clone(), live.tls.clone(), turn.clone()))
        .flatten();
    tell(&banner.text(started.elapsed()));
    if let Some(epilogue) = epilogue {
        tell(&epilogue(&served));
    }
    let adapter = match adapter {
        Some(listener) => {
            let (paths, options) = (paths.clone(), build.clone());
            Some(adapter::start(listener, Deployer { paths, options, state: state.clone(), turn: turn.clone() })?)
        }
        None => None,
    };
    let mut renewal = Renewal { reread, paths, build, state: state.clone(), environment, live, turn, control };
    let signal = loop {
        match signals.next() {
            Event::End(signal) => break signal,
            Event::Reload => renewal.run(&logs),
            Event::Ignored(number) => {
                logs.log.say(Level::Info, "Server", &format!("signal {number}: ignored"));
            }
        }
    };
    let settings = state.settings();
    logs.log.say(
        Level::Info,
        "Server",
        &format!("{signal}: requests that are running get {} s", settings.timeouts.drain.as_secs()),
    );
    state.drain();
    drop((watcher, revoked, adapter));
    trigger.stop();
    threads.push(management.stop());
    end::join(threads, settings.timeouts.drain);
    drop(admin);
    logs.log.say(Level::Info, "Server", "stopped");
    logs.flush();
    Ok(())
}
