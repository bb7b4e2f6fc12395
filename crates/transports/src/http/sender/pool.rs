//! Idle backend connections of this core, most recently used first.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use penstock_engine::ports::TlsProfile;

use super::multiplexed::Multiplexed;
use super::url::Url;
use crate::http::http1::{SharedWire, Socket, Wire};
use crate::http::{HttpLimits, HttpTimeouts, PerCore, SenderConfig};

/// How often connections that rested too long are closed.
const SWEEP: Duration = Duration::from_secs(1);

pub(crate) struct Pool {
    core: Rc<PerCore>,
    idle_max: usize,
    rest_max: Duration,
    backends: RefCell<Vec<Rc<Backend>>>,
    by_host: RefCell<HashMap<String, Vec<Rc<Backend>>>>,
    last: RefCell<Option<Rc<Backend>>>,
}

/// One backend and its idle connections, the most recent last.
pub(crate) struct Backend {
    secure: bool,
    port: u16,
    host: String,
    /// Whom to trust there, when that is not what the sender trusts.
    pub(super) tls: Option<Arc<TlsProfile>>,
    idle: RefCell<Vec<Idle>>,
    /// Connections that speak HTTP/2.
    pub(super) multiplexed: Rc<Multiplexed>,
}

struct Idle {
    wire: SharedWire,
    since_ticks: u64,
}

impl Pool {
    pub(crate) fn new(core: &Rc<PerCore>, config: &SenderConfig) -> Rc<Pool> {
        let pool = Rc::new(Pool {
            core: core.clone(),
            idle_max: config.idle_per_backend_max,
            rest_max: config.timeouts.pool_idle,
            backends: RefCell::default(),
            by_host: RefCell::default(),
            last: RefCell::default(),
        });
        tokio::task::spawn_local(sweep(Rc::downgrade(&pool)));
        pool
    }

    /// The backend of an address, made when it is new.
    pub(crate) fn backend(&self, url: &Url<'_>, tls: Option<&Arc<TlsProfile>>) -> Rc<Backend> {
        let (secure, port, host) = url.key();
        // A connection without TLS is the same whomever one would trust.
        let tls = tls.filter(|_| secure);
        // Consecutive requests often go to the same backend.
        if let Some(last) = &*self.last.borrow()
            && last.port == port
            && last.secure == secure
            && last.host == host
            && last.trusts(tls)
        {
            return last.clone();
        }
        let backend = self.find_or_make(secure, port, host, tls);
        *self.last.borrow_mut() = Some(backend.clone());
        backend
    }

    fn find_or_make(&self, secure: bool, port: u16, host: &str, tls: Option<&Arc<TlsProfile>>) -> Rc<Backend> {
        let mut by_host = self.by_host.borrow_mut();
        if let Some(backends) = by_host.get(host)
            && let Some(backend) =
                backends.iter().find(|backend| backend.port == port && backend.secure == secure && backend.trusts(tls))
        {
            return backend.clone();
        }
        let backend = Rc::new(Backend {
            secure,
            port,
            host: host.to_owned(),
            tls: tls.cloned(),
            idle: RefCell::default(),
            multiplexed: Rc::default(),
        });
        by_host.entry(host.to_owned()).or_default().push(backend.clone());
        self.backends.borrow_mut().push(backend.clone());
        backend
    }

    /// A fresh wire to a backend.
    pub(crate) fn wire(&self, socket: Socket, limits: &Rc<HttpLimits>, timeouts: &HttpTimeouts) -> SharedWire {
        let mut wire = Wire::new(socket, &self.core, limits, timeouts.reply_body, timeouts.write);
        wire.quiet_timeout = timeouts.stream_idle;
        Rc::new(RefCell::new(wire))
    }

    /// An idle connection that still looks open, and how long it has rested.
    pub(crate) fn take(&self, backend: &Backend) -> Option<(SharedWire, Duration)> {
        loop {
            let idle = backend.idle.borrow_mut().pop()?;
            let rest = self.core.since(idle.since_ticks);
            if rest < self.rest_max && looks_open(&idle.wire) {
                return Some((idle.wire, rest));
            }
        }
    }

    /// Keeps a connection whose exchange is over.
    pub(crate) fn give(&self, backend: &Backend, wire: SharedWire) {
        let mut idle = backend.idle.borrow_mut();
        if idle.len() < self.idle_max {
            idle.push(Idle { wire, since_ticks: self.core.now_ticks() });
        }
    }

    fn sweep(&self) {
        for backend in self.backends.borrow().iter() {
            backend.idle.borrow_mut().retain(|idle| self.core.since(idle.since_ticks) < self.rest_max);
        }
    }
}

impl Backend {
    fn trusts(&self, tls: Option<&Arc<TlsProfile>>) -> bool {
        match (&self.tls, tls) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other) || own.is_like(other),
            _ => false,
        }
    }
}

/// Checks without a system call: the runtime has marked the socket readable when the backend closed it or sent
/// unsolicited data.
fn looks_open(wire: &SharedWire) -> bool {
    let mut wire = wire.borrow_mut();
    let mut cx = Context::from_waker(Waker::noop());
    match wire.socket().tcp().poll_read_ready(&mut cx) {
        Poll::Pending => true,
        Poll::Ready(_) => wire.poll_fill(&mut cx).is_pending(),
    }
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match pool.upgrade() {
            Some(pool) => pool.sweep(),
            None => return,
        }
    }
}
