//! Running a plan: its users are spread over the load threads, and each goes through the steps of its group.
mod user;

use super::context::Properties;
use super::script::{Phase, Script};
use crate::error::Error;
use crate::jtl::{JtlSink, Names};
use crate::load::connection::{READ_BYTES, ReadBuffer};
use crate::load::recorder::{Finished, Recorder};
use crate::load::tally::Tally;
use crate::load::threads::{self, Span};
use crate::load::worker::DRAIN_TIME_MAX;
use crate::load::{LoadOutcome, Moment};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// A plan without an end runs until Ctrl-C; a year is longer than any test.
const ENDLESS: Duration = Duration::from_secs(31_536_000);
/// How often a thread looks whether the load is over.
const END_CHECK: Duration = Duration::from_millis(5);

/// How to run a plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Values of `-Jname=value`.
    pub properties: Arc<Properties>,
    /// Load threads.
    pub threads: usize,
    /// The first part of the time, which is not measured.
    pub warm_up: Duration,
    /// The longest time of the main thread groups.
    pub duration: Option<Duration>,
    /// Where to write one line per sample.
    pub jtl: Option<Arc<JtlSink>>,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// Requests of one name, or transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LabelCount {
    /// All of them.
    pub samples: u64,
    /// Those that failed.
    pub errors: u64,
    sum_ms: f64,
    /// Longest time in milliseconds.
    pub maximum_ms: f64,
}

impl LabelCount {
    fn add(&mut self, elapsed: Duration, failed: bool) {
        let elapsed_ms = elapsed.as_secs_f64() * 1e3;
        self.samples += 1;
        self.errors += u64::from(failed);
        self.sum_ms += elapsed_ms;
        self.maximum_ms = self.maximum_ms.max(elapsed_ms);
    }

    fn merge(&mut self, other: &LabelCount) {
        self.samples += other.samples;
        self.errors += other.errors;
        self.sum_ms += other.sum_ms;
        self.maximum_ms = self.maximum_ms.max(other.maximum_ms);
    }

    /// Average time in milliseconds.
    pub fn average_ms(&self) -> f64 {
        if self.samples == 0 { 0.0 } else { self.sum_ms / self.samples as f64 }
    }
}

/// What a plan gave.
#[derive(Debug)]
pub struct ScriptOutcome {
    /// The main thread groups.
    pub load: LoadOutcome,
    /// Requests by name, in the order of the plan; those of the warm-up are not counted.
    pub requests: Vec<(String, LabelCount)>,
    /// Transactions by name.
    pub transactions: Vec<(String, LabelCount)>,
    /// The setUp and tearDown groups.
    pub around: Tally,
}

/// Runs a plan: setUp groups, main groups, tearDown groups.
pub fn run(
    script: &Arc<Script>,
    options: &RunOptions,
    observer: &mut dyn FnMut(Moment),
) -> Result<ScriptOutcome, Error> {
    let mut around = Tally::default();
    let before = run_phase(script, Phase::SetUp, options, &mut |_| {})?;
    around.merge(before.load.tally);
    let mut outcome = run_phase(script, Phase::Main, options, observer)?;
    let stopped = options.stop.load(Ordering::Relaxed);
    if !stopped || script.tear_down_after_stop {
        let options = RunOptions { stop: Arc::default(), ..options.clone() };
        around.merge(run_phase(script, Phase::TearDown, &options, &mut |_| {})?.load.tally);
    }
    outcome.around = around;
    Ok(outcome)
}

/// What the threads of a phase share.
struct PhasePlan {
    script: Arc<Script>,
    options: RunOptions,
    span: Span,
    /// Groups of the phase.
    groups: Vec<usize>,
    /// Users that have not ended, of all groups and by group.
    left: AtomicUsize,
    left_of_group: Vec<AtomicUsize>,
    /// Users that are active, by group.
    active: Vec<AtomicUsize>,
}

impl PhasePlan {
    fn active_users(&self) -> usize {
        self.active.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// What a thread counted.
#[derive(Default)]
struct ThreadTally {
    tally: Tally,
    requests: Vec<LabelCount>,
    transactions: Vec<LabelCount>,
    last_end: Option<Instant>,
}

fn run_phase(
    script: &Arc<Script>,
    phase: Phase,
    options: &RunOptions,
    observer: &mut dyn FnMut(Moment),
) -> Result<ScriptOutcome, Error> {
    let groups: Vec<usize> =
        script.groups.iter().enumerate().filter(|(_, group)| group.phase == phase).map(|(index, _)| index).collect();
    let users: usize = groups.iter().map(|index| script.groups[*index].users).sum();
    let main = phase == Phase::Main;
    let ends = groups.iter().map(|index| {
        let group = &script.groups[*index];
        group.duration.map_or(ENDLESS, |duration| group.delay + duration)
    });
    let length = if script.serial { ends.sum::<Duration>().min(ENDLESS) } else { ends.max().unwrap_or_default() };
    let length = options.duration.filter(|_| main).map_or(length, |duration| duration.min(length));
    let start = Instant::now();
    let warm_up = if main { options.warm_up } else { Duration::ZERO };
    let span = Span {
        start,
        window_opens: start + warm_up,
        window_closes: start + length,
        finished: Arc::new(AtomicBool::new(users == 0)),
        stop: options.stop.clone(),
        tick: crate::load::SHORT_TICK,
    };
    let count = |_| AtomicUsize::new(0);
    let plan = Arc::new(PhasePlan {
        script: script.clone(),
        options: options.clone(),
        span: span.clone(),
        left: AtomicUsize::new(users),
        left_of_group: script.groups.iter().map(|group| AtomicUsize::new(group.users)).collect(),
        active: (0..script.groups.len()).map(count).collect(),
        groups,
    });
    let threads = options.threads.clamp(1, users.max(1));
    let body = |index| -> Box<dyn FnOnce() -> Result<ThreadTally, Error> + Send> {
        let plan = plan.clone();
        Box::new(move || run_thread(&plan, index, threads))
    };
    let measured = threads::run(&span, (0..threads).map(body).collect(), observer)?;
    let mut whole = ThreadTally::default();
    for part in measured.parts {
        whole.tally.merge(part.tally);
        merge(&mut whole.requests, &part.requests);
        merge(&mut whole.transactions, &part.transactions);
        whole.last_end = whole.last_end.max(part.last_end);
    }
    let stopped = options.stop.load(Ordering::Relaxed);
    let early = !stopped && measured.window < length.saturating_sub(warm_up);
    // A plan that ends by itself was measured until its last response.
    let until_last = whole.last_end.filter(|_| early).map(|end| end.saturating_duration_since(span.window_opens));
    let named = |counts: Vec<LabelCount>| {
        let named = script.labels.iter().cloned().zip(counts);
        named.filter(|(_, count)| count.samples > 0).collect()
    };
    Ok(ScriptOutcome {
        load: LoadOutcome {
            tally: whole.tally,
            window: until_last.map_or(measured.window, |until_last| measured.window.min(until_last)),
            load_cpu: measured.load_cpu,
            stopped,
            users_started: users_started(script, &plan.groups, warm_up),
            threads,
        },
        requests: named(whole.requests),
        transactions: named(whole.transactions),
        around: Tally::default(),
    })
}

fn merge(counts: &mut Vec<LabelCount>, others: &[LabelCount]) {
    counts.resize(counts.len().max(others.len()), LabelCount::default());
    counts.iter_mut().zip(others).for_each(|(count, other)| count.merge(other));
}

/// Users that have started when so much time has passed.
fn users_started(script: &Script, groups: &[usize], passed: Duration) -> usize {
    let of_group = |index: &usize| {
        let group = &script.groups[*index];
        let begun =
            (0..group.users).take_while(|user| start_of(group.ramp_up, *user, group.users) + group.delay <= passed);
        begun.count()
    };
    groups.iter().map(of_group).sum()
}

/// When a user of a group starts, after the group.
fn start_of(ramp_up: Duration, user: usize, users: usize) -> Duration {
    ramp_up.mul_f64(user as f64 / users.max(1) as f64)
}

/// A request under way.
#[derive(Clone, Copy)]
struct UnderWay {
    start: Instant,
    user: usize,
    label: usize,
}

/// What the users of one thread share.
struct Thread {
    plan: Arc<PhasePlan>,
    recorder: Recorder,
    tls: tokio_rustls::TlsConnector,
    read_buffer: ReadBuffer,
    requests: RefCell<Vec<LabelCount>>,
    transactions: RefCell<Vec<LabelCount>>,
    last_end: Cell<Option<Instant>>,
    under_way: RefCell<Vec<Option<UnderWay>>>,
    users_left: Cell<usize>,
}

impl Thread {
    fn is_over(&self) -> bool {
        self.plan.span.finished.load(Ordering::Relaxed) || self.plan.span.stop.load(Ordering::Relaxed)
    }

    /// Counts a request, and writes its line unless a transaction stands for it.
    fn record(&self, exchange: &Finished<'_>, group: usize, label: usize, names: Option<Names<'_>>) {
        self.recorder.count(exchange);
        let span = &self.plan.span;
        if exchange.end >= span.window_opens {
            add(&self.requests, label, exchange);
            if exchange.end < span.window_closes {
                self.last_end.set(self.last_end.get().max(Some(exchange.end)));
            }
        }
        if names.is_some() {
            self.recorder.write_line(exchange, self.users(group), names);
        }
    }

    fn record_transaction(&self, exchange: &Finished<'_>, group: usize, label: usize, names: Names<'_>) {
        if exchange.end >= self.plan.span.window_opens {
            add(&self.transactions, label, exchange);
        }
        self.recorder.write_line(exchange, self.users(group), Some(names));
    }

    fn users(&self, group: usize) -> (usize, usize) {
        (self.plan.active[group].load(Ordering::Relaxed), self.plan.active_users())
    }

    /// Counts every request that has no complete response as failed.
    fn fail_unanswered(&self) {
        let now = Instant::now();
        for under_way in self.under_way.borrow().iter().flatten() {
            let reason = Some("no complete response when the load ended");
            let exchange = Finished { failure: reason, ..Finished::empty(under_way.start, now, under_way.user) };
            self.recorder.count(&exchange);
            add(&self.requests, under_way.label, &exchange);
        }
    }
}

fn add(counts: &RefCell<Vec<LabelCount>>, label: usize, exchange: &Finished<'_>) {
    if let Some(count) = counts.borrow_mut().get_mut(label) {
        count.add(exchange.end.saturating_duration_since(exchange.start), exchange.failure.is_some());
    }
}

/// Runs one thread's users until all of them have ended or the load is over.
fn run_thread(plan: &Arc<PhasePlan>, index: usize, threads: usize) -> Result<ThreadTally, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Environment(format!("cannot start a runtime: {error}")))?;
    let users = plan.groups.iter().flat_map(|group| (0..plan.script.groups[*group].users).map(|user| (*group, user)));
    let users: Vec<(usize, usize)> = users.skip(index).step_by(threads).collect();
    let labels = vec![LabelCount::default(); plan.script.labels.len()];
    let thread = Rc::new(Thread {
        plan: plan.clone(),
        recorder: Recorder::new(plan.span.clone(), plan.options.jtl.clone()),
        tls: tokio_rustls::TlsConnector::from(crate::tls::client_config(&["http/1.1"])?),
        read_buffer: RefCell::new(vec![0; READ_BYTES]),
        requests: RefCell::new(labels.clone()),
        transactions: RefCell::new(labels),
        last_end: Cell::new(None),
        under_way: RefCell::new(vec![None; users.len()]),
        users_left: Cell::new(users.len()),
    });
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        for (place, (group, user)) in users.into_iter().enumerate() {
            tokio::task::spawn_local(user::run(thread.clone(), group, user, place));
        }
        until_over(&thread).await;
    }));
    if !plan.span.stop.load(Ordering::Relaxed) {
        thread.fail_unanswered();
    }
    drop(local);
    // The runtime ends the tasks that look for hosts.
    runtime.shutdown_background();
    let thread = Rc::into_inner(thread).ok_or_else(|| Error::Environment("a user outlived its thread".to_owned()))?;
    Ok(ThreadTally {
        tally: thread.recorder.finish()?,
        requests: thread.requests.into_inner(),
        transactions: thread.transactions.into_inner(),
        last_end: thread.last_end.get(),
    })
}

/// Waits until the load is over. The thread stays until its CPU time has been read: with it would go its entry under /proc.
async fn until_over(thread: &Thread) {
    let span = &thread.plan.span;
    while !span.finished.load(Ordering::Relaxed) {
        tokio::time::sleep(END_CHECK).await;
    }
    let deadline = Instant::now() + DRAIN_TIME_MAX;
    while thread.users_left.get() > 0
        && thread.under_way.borrow().iter().any(Option::is_some)
        && !span.stop.load(Ordering::Relaxed)
        && Instant::now() < deadline
    {
        tokio::time::sleep(END_CHECK).await;
    }
}
