//! Ports of inbound endpoints: opened on every worker while the server runs, closed when the endpoint stops.

use std::net::SocketAddr;
use std::sync::Arc;

use penstock_engine::background::ServiceError;
use penstock_engine::entrance::{Entrance, Entrances, OpenEntrance, Opening};
use penstock_engine::ports::LocalFuture;
use penstock_transports::http::tls::TlsServer;
use penstock_transports::http::{HttpListener, ListenError, LiveConfig, Shutdown, ShutdownTrigger, shutdown};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::ports::Live;
use super::state::State;

/// A listener that a worker gets while it runs.
pub struct LateListener {
    pub(super) listener: HttpListener,
    /// The inbound endpoint it belongs to; without one it serves what the other ports serve.
    pub(super) inbound: Option<Inbound>,
}

/// What a worker knows of the inbound endpoint of a listener.
pub(super) struct Inbound {
    pub(super) entrance: Arc<Entrance>,
    pub(super) stop: Shutdown,
    /// Dropped when the listener is closed and its last request has ended.
    pub(super) open: Sender<()>,
}

impl From<HttpListener> for LateListener {
    fn from(listener: HttpListener) -> LateListener {
        LateListener { listener, inbound: None }
    }
}

/// Opens ports of inbound endpoints.
pub(super) struct InboundPorts {
    pub(super) state: Arc<State>,
    pub(super) live: Live,
}

struct Open {
    port: u16,
    trigger: ShutdownTrigger,
    closed: Receiver<()>,
}

impl Entrances for InboundPorts {
    fn open(&self, opening: Opening) -> Result<Box<dyn OpenEntrance>, ServiceError> {
        let Opening { port, entrance, tls } = opening;
        let refused = |error: ListenError| ServiceError::temporary(error.to_string());
        let mut address = SocketAddr::new(self.state.settings().host, port);
        if port != 0 {
            HttpListener::check_free(address).map_err(refused)?;
        }
        let mut config = self.live.integrations();
        if let Some(tls) = tls {
            let tls = tls.downcast::<TlsServer>().map_err(|_| ServiceError::lasting("no TLS configuration"))?;
            let with_tls = penstock_transports::http::ListenerConfig { tls: Some(tls), ..config.get() };
            config = Arc::<LiveConfig>::from(with_tls);
        }
        let (trigger, stop) = shutdown();
        let (open, closed) = channel(1);
        for worker in self.state.workers() {
            let listener = HttpListener::bind(address, config.clone()).map_err(refused)?;
            // A port of 0 is chosen once; the other workers share it.
            address = listener.local_addr();
            let inbound = Inbound { entrance: entrance.clone(), stop: stop.clone(), open: open.clone() };
            // A worker that ended needs no listener.
            let _ = worker.send(LateListener { listener, inbound: Some(inbound) });
        }
        Ok(Box::new(Open { port: address.port(), trigger, closed }))
    }
}

impl OpenEntrance for Open {
    fn port(&self) -> u16 {
        self.port
    }

    fn close(self: Box<Self>) -> LocalFuture<'static, ()> {
        let Open { trigger, mut closed, .. } = *self;
        trigger.stop();
        Box::pin(async move {
            // Nothing is ever sent: the channel ends with the last listener.
            let _ = closed.recv().await;
        })
    }
}
