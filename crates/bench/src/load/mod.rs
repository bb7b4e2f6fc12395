//! The load side: many users who send one request after another, or requests at a fixed rate.
//!
//! Users are tasks on one current-thread runtime per load thread; nothing is shared between threads while they run.
//! Start reading at [`run`]; then `worker` for a thread, `user` for a user, `connection` for one exchange.
pub(crate) mod connection;
pub mod expect;
mod http2;
mod pacer;
pub(crate) mod recorder;
pub mod tally;
pub(crate) mod threads;
pub(crate) mod user;
pub(crate) mod worker;

use crate::error::Error;
use crate::http::request::{Request, TOKEN};
use crate::jtl::JtlSink;
use crate::observe::process::CpuTime;
use expect::Expect;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally::Tally;
use threads::Span;

/// How often the controller looks at the stop flag and reports that time passes.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The same for a load that ends after a number of requests, usually at once.
pub(crate) const SHORT_TICK: Duration = Duration::from_millis(5);

/// What travels between the users and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one connection per user.
    Http1,
    /// HTTP/2; by ALPN over TLS, with prior knowledge otherwise.
    Http2 {
        /// Users that share one connection.
        users_per_connection: usize,
    },
}

/// A load and how long it lasts.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    /// What every user sends.
    pub request: Request,
    /// What the response must look like.
    pub expect: Expect,
    /// Values for `${token}`, handed out in turn. May be empty if the request holds no token.
    pub tokens: Arc<[String]>,
    /// Concurrent users; in the open loop, the most requests that may be under way at once.
    pub users: usize,
    /// Time over which the users start, evenly spread.
    pub ramp_up: Duration,
    /// The whole time, ramp-up and warm-up included, as in a JMeter thread group.
    pub duration: Duration,
    /// The first part of the time, which is not measured.
    pub warm_up: Duration,
    /// Ends the load when a user has made this many requests, however much time is left.
    pub requests_per_user_max: Option<u64>,
    /// Requests per second of the open loop; `None` is the closed loop.
    pub rate: Option<f64>,
    /// HTTP/1.1 or HTTP/2.
    pub protocol: Protocol,
    /// Load threads.
    pub threads: usize,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long a response may take.
    pub response_timeout: Duration,
    /// Where to write one line per sample.
    pub jtl: Option<Arc<JtlSink>>,
    /// Set by Ctrl-C: what was measured so far is kept.
    pub stop: Arc<AtomicBool>,
}

/// Notifications for the observer of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The measured window begins.
    WindowOpens,
    /// Time passes; so much of the whole duration is over.
    Tick(Duration),
    /// The measured window ends.
    WindowCloses,
}

/// What a load gave.
#[derive(Debug, Clone)]
pub struct LoadOutcome {
    /// Counts of the measured window.
    pub tally: Tally,
    /// Length of the measured window.
    pub window: Duration,
    /// CPU time of the load threads in the window.
    pub load_cpu: CpuTime,
    /// Whether it was stopped before its time.
    pub stopped: bool,
    /// Users that had started when the measured window began.
    pub users_started: usize,
    /// Load threads.
    pub threads: usize,
}

impl LoadSpec {
    /// Users that have started when the measured window begins. Fewer than `users` if the ramp-up is longer than the
    /// warm-up.
    pub fn users_started_at_window(&self) -> usize {
        if self.ramp_up <= self.warm_up {
            return self.users;
        }
        let share = self.warm_up.as_secs_f64() / self.ramp_up.as_secs_f64();
        // The first user starts at once, and a share of a user is a user that has started.
        ((self.users as f64 * share) as usize + 1).min(self.users)
    }
}

/// Runs a load to its end. The observer is called from this thread.
pub fn run(spec: &LoadSpec, observer: &mut dyn FnMut(Moment)) -> Result<LoadOutcome, Error> {
    let template = spec.request.template()?;
    if template.wants_token() && spec.tokens.is_empty() {
        return Err(Error::Input(format!("the request holds `{TOKEN}`, but no tokens are given")));
    }
    let address = reachable_address(spec)?;
    let threads = spec.threads.clamp(1, spec.users.max(1));
    let start = Instant::now();
    let span = Span {
        start,
        window_opens: start + spec.warm_up.min(spec.duration),
        window_closes: start + spec.duration,
        finished: Arc::default(),
        stop: spec.stop.clone(),
        tick: if spec.requests_per_user_max.is_some() { SHORT_TICK } else { TICK },
    };
    let body = |index| -> Box<dyn FnOnce() -> Result<Tally, Error> + Send> {
        let (spec, template, span) = (spec.clone(), template.clone(), span.clone());
        Box::new(move || worker::run(worker::WorkerTask { spec, template, address, span, index, threads }))
    };
    let measured = threads::run(&span, (0..threads).map(body).collect(), observer)?;
    let mut tally = Tally::default();
    measured.parts.into_iter().for_each(|part| tally.merge(part));
    Ok(LoadOutcome {
        tally,
        window: measured.window,
        load_cpu: measured.load_cpu,
        stopped: spec.stop.load(Ordering::Relaxed),
        users_started: spec.users_started_at_window(),
        threads,
    })
}

/// The first address of the host that accepts a connection, so that `localhost` works for servers
/// that listen on IPv4 only or on IPv6 only.
fn reachable_address(spec: &LoadSpec) -> Result<SocketAddr, Error> {
    let url = &spec.request.url;
    let place = format!("{}:{}", url.host, url.port);
    let addresses = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .map_err(|error| Error::Environment(format!("cannot find the host `{}`: {error}", url.host)))?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, spec.connect_timeout) {
            Ok(_) => return Ok(address),
            Err(error) => last = Some(error),
        }
    }
    let why = last.map_or_else(|| "it has no address".to_owned(), |error| error.to_string());
    Err(Error::Environment(format!("cannot connect to `{place}`: {why}")))
}
