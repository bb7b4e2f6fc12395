//! Signals: which end the server, which make it read its configuration again, and that no other ends it.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::command::Failure;

/// The action of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Finish what runs, then end.
    End(&'static str),
    /// Read configuration, certificates and artifacts again, and open log files again.
    Reload,
    /// Nothing.
    Ignored(i32),
}

/// Signals that would end the process if nothing received them: SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGSTKFLT,
/// SIGXCPU, SIGXFSZ (a write then fails at the limit of a file's size), SIGVTALRM, SIGPROF, SIGIO, SIGPWR, and below the
/// real-time signals. Those that report a defect of the process (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP)
/// keep ending it.
const IGNORED: [i32; 12] = [3, 10, 12, 13, 14, 16, 24, 25, 26, 27, 29, 30];

/// The real-time signals that the C library leaves to programs.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

/// The signals of the process, from the moment of [`Signals::receive`] on.
pub struct Signals {
    received: Receiver<Event>,
    events: Sender<Event>,
}

impl Signals {
    /// Begins to receive them. A second signal that ends the server ends it at once.
    pub fn receive() -> Result<Signals, Failure> {
        let cannot = |cause: std::io::Error| Failure::environment(format!("signals cannot be received: {cause}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (events, received) = channel();
        let mut sources = Vec::new();
        {
            let _guard = runtime.enter();
            let mut add = |kind, event| signal(kind).map(|signal| sources.push((signal, event)));
            add(SignalKind::terminate(), Event::End("SIGTERM")).map_err(cannot)?;
            add(SignalKind::interrupt(), Event::End("SIGINT")).map_err(cannot)?;
            add(SignalKind::hangup(), Event::Reload).map_err(cannot)?;
            for number in IGNORED.into_iter().chain(REAL_TIME) {
                // A signal that this system does not have ends nothing either.
                let _ = add(SignalKind::from_raw(number), Event::Ignored(number));
            }
        }
        let forwarded = events.clone();
        let run = move || runtime.block_on(forward_all(sources, forwarded));
        std::thread::Builder::new().name("signals".to_owned()).spawn(run).map_err(cannot)?;
        Ok(Signals { received, events })
    }

    /// What the management API sends events by, which count like signals.
    pub(super) fn events(&self) -> Sender<Event> {
        self.events.clone()
    }

    /// Waits for the next.
    pub(super) fn next(&self) -> Event {
        // The thread lives as long as the process; if it ends, so must the wait.
        self.received.recv().unwrap_or(Event::End("signals cannot be received"))
    }
}

async fn forward_all(sources: Vec<(Signal, Event)>, events: Sender<Event>) {
    let ending = std::rc::Rc::new(std::cell::Cell::new(false));
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async move {
            let mut forwarding = JoinSet::new();
            for (mut signal, event) in sources {
                let (events, ending) = (events.clone(), ending.clone());
                forwarding.spawn_local(async move {
                    while signal.recv().await.is_some() {
                        if matches!(event, Event::End(_)) && ending.replace(true) {
                            std::process::exit(EXIT_AT_ONCE);
                        }
                        let _ = events.send(event);
                    }
                });
            }
            while forwarding.join_next().await.is_some() {}
        })
        .await;
}

/// The status of a process that a second signal ended.
const EXIT_AT_ONCE: i32 = 130;
