//! One thread of the data path: a runtime, the listeners, a sender, the engine's view of the program.

use std::rc::Rc;
use std::thread::JoinHandle;

use penstock_engine::Dispatcher;
use penstock_engine::entrance::EntranceService;
use penstock_engine::ports::Service;
use penstock_transports::http::{AccessLog, HttpListener, PerCore, Shutdown};
use tokio::runtime::LocalOptions;
use tokio::sync::mpsc::UnboundedReceiver;

use super::entrances::{Inbound, LateListener};
use super::facilities::Facilities;
use crate::command::Failure;
use crate::config::Opening;
use crate::log::{Access, Writer};

/// What a worker gets from the others.
pub(super) struct Shared {
    pub(super) facilities: Facilities,
    pub(super) access: Option<Writer>,
    pub(super) stop: Shutdown,
    /// Listeners that are opened later.
    pub(super) more: UnboundedReceiver<LateListener>,
}

/// Starts a worker. It ends after a stop and drain.
pub(super) fn start(index: usize, listeners: Vec<HttpListener>, shared: Shared) -> Result<JoinHandle<()>, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    /// Looking names up is all that blocks; a thousand connections to one backend need not ask a thousand times at once.
    const BLOCKING_THREADS_MAX: usize = 4;
    // A local runtime is made on its own thread; a failure there ends the worker, which the others notice.
    let log = shared.facilities.log.clone();
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
    let Shared { facilities, access, stop, mut more } = shared;
    let per_core = PerCore::start();
    let (core, _) = facilities.core(&per_core);
    let Facilities { settings, log, .. } = facilities;
    let service: Rc<dyn Service> = Dispatcher::new(core.clone());
    let access: Option<Rc<dyn AccessLog>> = access.map(|writer| {
        let managed = settings.gateway_opening != Opening::Never;
        Rc::new(Access::new(writer, log.clone(), managed)) as Rc<dyn AccessLog>
    });
    let mut serving = tokio::task::JoinSet::new();
    for listener in listeners {
        serving.spawn_local(listener.serve(per_core.clone(), service.clone(), access.clone(), stop.clone()));
    }
    loop {
        let ended = tokio::select! {
            ended = serving.join_next() => ended,
            Some(LateListener { listener, inbound }) = more.recv() => {
                let (per_core, access) = (per_core.clone(), access.clone());
                match inbound {
                    None => serving.spawn_local(listener.serve(per_core, service.clone(), access, stop.clone())),
                    Some(Inbound { entrance, stop, open }) => {
                        let service = EntranceService::new(core.clone(), entrance);
                        let serve = listener.serve(per_core, service, access, stop);
                        serving.spawn_local(async move {
                            let ended = serve.await;
                            drop(open);
                            ended
                        })
                    }
                };
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
