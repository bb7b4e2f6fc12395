//! One thread of the data path: a runtime, the listeners, a sender, the engine's view of the program.

use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use penstock_engine::database::Databases;
use penstock_engine::ports::{Environment, Service};
use penstock_engine::{Core, Current, Dispatcher, Metrics};
use penstock_transports::http::tls::TlsClient;
use penstock_transports::http::{AccessLog, HttpListener, HttpSender, PerCore, SenderConfig, Shutdown};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::UnboundedReceiver;

use super::state::{CoreCounters, State};
use crate::command::Failure;
use crate::config::{Opening, Settings};
use crate::log::{Access, Log, Writer};

/// What a worker gets from the others.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) tls: Arc<TlsClient>,
    pub(super) log: Arc<Log>,
    pub(super) access: Option<Writer>,
    pub(super) environment: Arc<Environment>,
    pub(super) current: Arc<Current>,
    pub(super) databases: Arc<dyn Databases>,
    pub(super) state: Arc<State>,
    pub(super) stop: Shutdown,
    /// Listeners that are opened later.
    pub(super) more: UnboundedReceiver<HttpListener>,
}

/// Starts a worker. It ends when it was told to stop and everything is drained.
pub(super) fn start(index: usize, listeners: Vec<HttpListener>, shared: Shared) -> Result<JoinHandle<()>, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    /// Looking names up is all that blocks; a thousand connections to one backend need not ask a thousand times at once.
    const BLOCKING_THREADS_MAX: usize = 4;
    // A local runtime is made on its own thread; a failure there ends the worker, which the others notice.
    let log = shared.log.clone();
    let run = move || match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build_local(LocalOptions::default())
    {
        Ok(runtime) => runtime.block_on(work(listeners, shared)),
        Err(cause) => log.say(penstock_engine::ports::Level::Fatal, "Server", &format!("no runtime: {cause}")),
    };
    std::thread::Builder::new().name(format!("core-{index}")).spawn(run).map_err(cannot)
}

async fn work(listeners: Vec<HttpListener>, shared: Shared) {
    let Shared { settings, tls, log, access, environment, current, databases, state, stop, mut more } = shared;
    let per_core = PerCore::start();
    let config = SenderConfig { limits: settings.limits, timeouts: settings.timeouts, tls, ..SenderConfig::default() };
    let sender = Rc::new(HttpSender::new(&per_core, config));
    let metrics = Arc::new(Metrics::default());
    state.add_core(CoreCounters { metrics: metrics.clone(), http: per_core.counters.clone() });
    let core = Core::new(sender, log.clone(), environment, metrics, current);
    core.set_databases(databases);
    let service: Rc<dyn Service> = Dispatcher::new(core);
    let access: Option<Rc<dyn AccessLog>> = access.map(|writer| {
        let managed = settings.gateway_opening != Opening::Never;
        Rc::new(Access::new(writer, settings.log_format, managed)) as Rc<dyn AccessLog>
    });
    let mut serving = tokio::task::JoinSet::new();
    for listener in listeners {
        serving.spawn_local(listener.serve(per_core.clone(), service.clone(), access.clone(), stop.clone()));
    }
    loop {
        let ended = tokio::select! {
            ended = serving.join_next() => ended,
            Some(listener) = more.recv() => {
                serving.spawn_local(listener.serve(per_core.clone(), service.clone(), access.clone(), stop.clone()));
                continue;
            }
        };
        match ended {
            None => break,
            Some(Ok(Err(cause))) => {
                let text = format!("a listener ended: {cause}");
                log.say(penstock_engine::ports::Level::Error, "Server", &text);
            }
            Some(_) => {}
        }
    }
}
