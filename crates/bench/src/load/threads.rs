//! Threads that put load on a target for a span of time, with a window in which they are measured.
use crate::error::Error;
use crate::observe::process::{CpuTime, thread_cpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Moment;

/// When a load begins, when it is measured, and what ends it.
#[derive(Debug, Clone)]
pub struct Span {
    pub start: Instant,
    pub window_opens: Instant,
    pub window_closes: Instant,
    /// Set when the load is over.
    pub finished: Arc<AtomicBool>,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
    /// Interval at which the controller checks for the end and notifies the observer.
    pub tick: Duration,
}

/// What the threads gave, and what they cost.
pub struct Measured<T> {
    pub parts: Vec<T>,
    /// Length of the measured window.
    pub window: Duration,
    /// CPU time of the threads in the window.
    pub load_cpu: CpuTime,
}

/// Runs each body on a thread of its own until the span is over. The observer is called from this thread.
pub fn run<T: Send + 'static>(
    span: &Span,
    bodies: Vec<Box<dyn FnOnce() -> Result<T, Error> + Send>>,
    observer: &mut dyn FnMut(Moment),
) -> Result<Measured<T>, Error> {
    let (announce, announced) = mpsc::channel();
    let mut handles = Vec::new();
    for (index, body) in bodies.into_iter().enumerate() {
        let announce = announce.clone();
        let body = move || {
            // The thread's entry under /proc, through which its CPU time is read.
            let _ = announce.send(std::fs::read_link("/proc/thread-self").ok());
            drop(announce);
            body()
        };
        let spawned = std::thread::Builder::new().name(format!("load-{index}")).spawn(body);
        handles.push(spawned.map_err(|error| Error::Environment(format!("cannot start a load thread: {error}")))?);
    }
    drop(announce);
    let tasks: Vec<_> = announced.iter().flatten().map(|task| std::path::Path::new("/proc").join(task)).collect();
    let load_cpu = || tasks.iter().fold(CpuTime::default(), |sum, task| sum + thread_cpu(task));

    let warm = wait_until(span.window_opens, span, observer);
    observer(Moment::WindowOpens);
    let (cpu_before, opened) = (load_cpu(), Instant::now());
    let whole = warm && wait_until(span.window_closes, span, observer);
    observer(Moment::WindowCloses);
    let (cpu_after, closed) = (load_cpu(), Instant::now());
    span.finished.store(true, Ordering::Relaxed);
    let mut parts = Vec::new();
    for handle in handles {
        let part = handle.join().map_err(|_| Error::Environment("a load thread panicked".to_owned()))?;
        parts.push(part?);
    }
    let planned = span.window_closes.saturating_duration_since(span.window_opens);
    let window = if whole { planned } else { closed.duration_since(opened) };
    Ok(Measured { parts, window, load_cpu: cpu_after - cpu_before })
}

/// Sleeps until the moment, ticking; `false` if stopped or finished before.
fn wait_until(moment: Instant, span: &Span, observer: &mut dyn FnMut(Moment)) -> bool {
    loop {
        let now = Instant::now();
        if now >= moment {
            return true;
        }
        if span.stop.load(Ordering::Relaxed) || span.finished.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep((moment - now).min(span.tick));
        observer(Moment::Tick(span.start.elapsed()));
    }
}
