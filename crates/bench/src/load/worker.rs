//! One load thread: a runtime, its share of the users, and their common counts.
use super::connection::{Broken, READ_BYTES, ReadBuffer, Stream, open};
use super::pacer::Pacer;
use super::recorder::{Finished, Recorder};
use super::tally::Tally;
use super::threads::Span;
use super::{LoadSpec, Protocol, http2, user};
use crate::error::Error;
use crate::http::request::Template;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// How often a thread looks whether the load is over.
const END_CHECK: Duration = Duration::from_millis(5);

/// How long requests under way at the end are waited for, if the response timeout is longer: a server that hangs
/// must not hold up a matrix of hundreds of combinations.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// What a thread needs to know.
pub struct WorkerTask {
    pub spec: LoadSpec,
    pub template: Template,
    pub address: SocketAddr,
    pub span: Span,
    /// This thread's number among `threads`.
    pub index: usize,
    pub threads: usize,
}

/// What the users of one thread share.
pub struct Shared {
    pub part: WorkerTask,
    pub tls: Option<tokio_rustls::TlsConnector>,
    pub recorder: Recorder,
    pub pacer: Option<Pacer>,
    pub read_buffer: ReadBuffer,
    /// For each user of this thread, when the request under way began.
    in_flight: Vec<Cell<Option<Instant>>>,
    next_token: Cell<usize>,
    pub users_started: Cell<usize>,
}

impl Shared {
    /// The next token for `${token}`; the threads take turns so that no token is used twice in a row.
    pub fn token(&self) -> &str {
        let tokens = &self.part.spec.tokens;
        if tokens.is_empty() {
            return "";
        }
        let index = self.next_token.get();
        self.next_token.set((index + self.part.threads) % tokens.len());
        tokens.get(index % tokens.len()).map_or("", String::as_str)
    }

    /// When the next request starts, or was due: in the closed loop at once, in the open loop at its due time.
    /// `None` when no further request may start.
    pub async fn next_start(&self, now: Instant, user: usize) -> Option<Instant> {
        let start = match &self.pacer {
            None => now,
            Some(pacer) => pacer.next().await?,
        };
        if start >= self.part.span.window_closes || self.part.span.finished.load(Ordering::Relaxed) {
            return None;
        }
        self.set_in_flight(user, Some(start));
        Some(start)
    }

    fn set_in_flight(&self, user: usize, start: Option<Instant>) {
        if let Some(slot) = self.in_flight.get(user / self.part.threads) {
            slot.set(start);
        }
    }

    /// Records the requests of a user; `true` if it may make no more.
    pub fn had_enough(&self, requests: u64) -> bool {
        let enough = self.part.spec.requests_per_user_max.is_some_and(|max| requests >= max);
        if enough {
            self.part.span.finished.store(true, Ordering::Relaxed);
        }
        enough
    }

    /// Counts a finished exchange, keeps it if it is the first that failed, and writes its line.
    pub fn record(&self, exchange: &Finished<'_>) {
        self.set_in_flight(exchange.user, None);
        // Every thread starts its users at the same pace.
        let users = self.users_started.get() * self.part.threads;
        self.recorder.count(exchange);
        self.recorder.write_line(exchange, (users, users), None);
    }

    /// Opens a socket to the target, with the TLS handshake for `https`.
    pub async fn open(&self) -> Result<Stream, Broken> {
        let spec = &self.part.spec;
        open(self.part.address, &spec.request.url.host, self.tls.as_ref(), spec.connect_timeout).await
    }

    /// Counts every request that has no complete response as failed.
    fn fail_unanswered(&self) {
        let now = Instant::now();
        for (place, slot) in self.in_flight.iter().enumerate() {
            let Some(start) = slot.get() else { continue };
            let request = self.part.template.fill("");
            let user = place * self.part.threads + self.part.index;
            self.record(&Finished {
                failure: Some("no complete response when the load ended"),
                request: &request,
                ..Finished::empty(start, now, user)
            });
        }
    }
}

/// Runs one thread's users until the load is over and answers what they counted.
pub fn run(part: WorkerTask) -> Result<Tally, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Environment(format!("cannot start a runtime: {error}")))?;
    let shared = Rc::new(shared(part)?);
    let local = LocalSet::new();
    runtime.block_on(local.run_until(drive(shared.clone())))?;
    // A load that Ctrl-C ended does not wait, so what was under way is no failure of the server.
    if !shared.part.spec.stop.load(Ordering::Relaxed) {
        shared.fail_unanswered();
    }
    drop(local);
    let shared = Rc::into_inner(shared).ok_or_else(|| Error::Environment("a user outlived its thread".to_owned()))?;
    let mut tally = shared.recorder.finish()?;
    tally.unsent = shared.pacer.map_or(0, |pacer| pacer.backlog());
    Ok(tally)
}

fn shared(part: WorkerTask) -> Result<Shared, Error> {
    let protocols: &[&str] = match part.spec.protocol {
        Protocol::Http1 => &["http/1.1"],
        Protocol::Http2 { .. } => &["h2"],
    };
    let tls = match part.spec.request.url.tls {
        true => Some(tokio_rustls::TlsConnector::from(crate::tls::client_config(protocols)?)),
        false => None,
    };
    let pacer = match part.spec.rate {
        None => None,
        Some(rate) if rate.is_finite() && rate > 0.0 => {
            let threads = part.threads as f64;
            // The threads' moments are interleaved so that together they are evenly spaced.
            let offset = part.index as f64 / rate;
            Some(Pacer::new(part.span.start + Duration::from_secs_f64(offset), Duration::from_secs_f64(threads / rate)))
        }
        Some(rate) => return Err(Error::Input(format!("`{rate}` is not a rate in requests per second"))),
    };
    Ok(Shared {
        tls,
        recorder: Recorder::new(part.span.clone(), part.spec.jtl.clone()),
        pacer,
        read_buffer: RefCell::new(vec![0; READ_BYTES]),
        in_flight: vec![Cell::new(None); part.spec.users.div_ceil(part.threads)],
        next_token: Cell::new(part.index),
        users_started: Cell::new(0),
        part,
    })
}

async fn drive(shared: Rc<Shared>) -> Result<(), Error> {
    match shared.part.spec.protocol {
        Protocol::Http1 => {
            for number in users_of(&shared.part) {
                tokio::task::spawn_local(user::run(shared.clone(), number));
            }
        }
        Protocol::Http2 { users_per_connection } => {
            let numbers: Vec<usize> = users_of(&shared.part).collect();
            for group in numbers.chunks(users_per_connection.max(1)) {
                tokio::task::spawn_local(http2::run_group(shared.clone(), group.to_vec()));
            }
        }
    }
    let clock = async {
        match &shared.pacer {
            Some(pacer) => pacer.run(shared.part.span.window_closes).await,
            None => std::future::pending().await,
        }
    };
    // The thread stays until its CPU time has been read: with it would go its entry under /proc.
    let end = async {
        while !shared.part.span.finished.load(Ordering::Relaxed) {
            tokio::time::sleep(END_CHECK).await;
        }
        let deadline = Instant::now() + shared.part.spec.response_timeout.min(DRAIN_TIME_MAX);
        let under_way = || shared.in_flight.iter().any(|slot| slot.get().is_some());
        while under_way() && !shared.part.spec.stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            tokio::time::sleep(END_CHECK).await;
        }
        Ok(())
    };
    tokio::pin!(clock, end);
    std::future::poll_fn(|cx| match end.as_mut().poll(cx) {
        std::task::Poll::Pending => clock.as_mut().poll(cx),
        ready => ready,
    })
    .await
}

/// The numbers of this thread's users: every `threads`-th one, so that the ramp-up is even on all threads.
fn users_of(part: &WorkerTask) -> impl Iterator<Item = usize> + use<> {
    (part.index..part.spec.users).step_by(part.threads)
}
