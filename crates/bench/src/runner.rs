//! Runs a plan: starts what is needed, goes through the matrix, keeps every run.

mod matrix;
mod start;

use crate::echo::EchoServer;
use crate::echo::arrivals::ArrivalCounts;
use crate::error::Error;
use crate::figures::{Figures, Metric};
use crate::http::request::TOKEN;
use crate::load::expect::Expect;
use crate::load::tally::{FailedExchange, Tally};
use crate::load::{self, LoadSpec, Moment};
use crate::observe::machine::{MachineCpu, load_average};
use crate::observe::process::CpuTime;
use crate::observe::watch::Watch;
use crate::plan::{Plan, Scenario};
use crate::progress::Progress;
use crate::report::terminal;
use crate::results::{Cell, ResultsDirectory, Run};
use crate::target::Running;
use matrix::describe_cell;
use start::file_name;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long one request may take that tries a scenario before it is measured. A gateway may compile on its first one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// A plan with everything the command line added.
pub struct Session<'a> {
    /// The plan, already made quick and overridden.
    pub plan: &'a Plan,
    /// Directory of the plan's file, for `{plan}` and body files.
    pub plan_directory: PathBuf,
    /// Values for `${token}`.
    pub tokens: Arc<[String]>,
    /// Load threads.
    pub threads: usize,
    /// Where results go.
    pub directory: &'a ResultsDirectory,
    /// Runs that are there already and are not made again.
    pub done: Vec<Run>,
    /// Program that `{penstock}` stands for.
    pub penstock: String,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// What a run through the matrix gave besides the runs themselves.
#[derive(Debug, Default)]
pub struct Report {
    /// Gateways and how they were started.
    pub gateways: Vec<(String, String)>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// The first failing exchange of each gateway and scenario.
    pub failures: Vec<(String, FailedExchange)>,
    /// Whether Ctrl-C ended it.
    pub stopped: bool,
}

/// A directory below the system's temporary one that goes away with this value.
struct Kit(PathBuf);

impl Drop for Kit {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Session<'_> {
    /// Starts everything, measures, and ends everything. The report is filled as far as it came.
    pub fn run(&self, report: &mut Report) -> Result<(), Error> {
        let kit = Kit(std::env::temp_dir().join(format!("penstock-bench-{}", std::process::id())));
        let backend = self.start_backend()?;
        let backend_port = backend.as_ref().map_or(8688, EchoServer::port);
        self.write_kit(&kit.0, backend_port)?;
        let mut running = self.start_targets(&kit.0, backend_port, report)?;
        let broken = self.probe(&mut running, backend.as_ref(), report)?;
        self.measure_all(&mut running, backend.as_ref(), &broken, report)?;
        report.stopped = self.stopped();
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tries every scenario once on every gateway, so that a mistake shows in a second and not after an hour.
    fn probe(
        &self,
        running: &mut [Running],
        backend: Option<&EchoServer>,
        report: &mut Report,
    ) -> Result<Vec<(String, String)>, Error> {
        let mut broken = Vec::new();
        if let Some(backend) = backend {
            backend.set_delay(Duration::ZERO);
        }
        for target in running.iter_mut() {
            for scenario in self.plan.scenarios.iter().filter(|scenario| target.can_do(&scenario.name)) {
                if self.stopped() {
                    return Ok(broken);
                }
                let bytes = self.plan.matrix.message_bytes.iter().copied().max().unwrap_or(0);
                let spec = probe_spec(self.load_spec(scenario, target, bytes, 1)?);
                let key = format!("{} · {}", target.name, scenario.name);
                if let Some(failure) = self.probe_one(scenario, spec, backend)? {
                    report.left_out.push(format!("{key}: it fails: {}", failure.reason));
                    report.failures.push((key, failure));
                    broken.push((target.name.clone(), scenario.name.clone()));
                }
            }
        }
        Ok(broken)
    }

    /// Why a scenario does not work on a gateway, if it does not.
    fn probe_one(
        &self,
        scenario: &Scenario,
        spec: LoadSpec,
        backend: Option<&EchoServer>,
    ) -> Result<Option<FailedExchange>, Error> {
        if let Some(backend) = backend {
            backend.arrivals().expect(scenario.arrivals.clone().unwrap_or_default());
        }
        let (tally, _) = self.load(&spec, None, None, &mut |_| {})?;
        let unproved = || backend.filter(|_| scenario.arrivals.is_some()).and_then(unproved);
        let failure = tally.first_failure.or_else(unproved);
        let (None, Some(status)) = (&failure, scenario.without_token) else { return Ok(failure) };
        let mut spec = spec;
        spec.request.headers.retain(|(_, value)| !value.contains(TOKEN));
        spec.expect = Expect { status: Some(status), ..Expect::default() };
        if let Some(backend) = backend {
            backend.arrivals().expect(Vec::new());
        }
        let (tally, _) = self.load(&spec, None, None, &mut |_| {})?;
        let arrived = backend.is_some_and(|backend| backend.arrivals().counts().requests > 0);
        let let_through =
            || FailedExchange { reason: "it reached the backend".to_owned(), ..FailedExchange::default() };
        let failure = tally.first_failure.or_else(|| arrived.then(let_through));
        Ok(failure.map(|failure| FailedExchange { reason: format!("without a token: {}", failure.reason), ..failure }))
    }

    fn measure_all(
        &self,
        running: &mut [Running],
        backend: Option<&EchoServer>,
        broken: &[(String, String)],
        report: &mut Report,
    ) -> Result<(), Error> {
        let works = |target: &Running, scenario: &str| {
            target.can_do(scenario) && !broken.iter().any(|(name, other)| *name == target.name && other == scenario)
        };
        let cells = self.cells();
        let missing = |target: &Running, cell: &Cell, round: u32| {
            let same = |run: &&Run| run.target == target.name && run.cell == *cell && run.round == round;
            works(target, &cell.scenario) && !self.done.iter().any(|run| same(&run))
        };
        let rounds = self.plan.timing.rounds;
        let mut count = 0;
        for (cell, round) in cells.iter().flat_map(|cell| (1..=rounds).map(move |round| (cell, round))) {
            count += running.iter().filter(|target| missing(target, cell, round)).count();
        }
        let duration = self.plan.timing.duration;
        let mut progress = Progress::start(duration * u32::try_from(count).unwrap_or(u32::MAX));
        let mut number = 0;
        for cell in &cells {
            for round in 1..=rounds {
                // Gateways take turns within a round, and a different one begins each round.
                let order: Vec<usize> =
                    (0..running.len()).map(|place| (place + round as usize - 1) % running.len()).collect();
                for index in order {
                    let target = &mut running[index];
                    if !missing(target, cell, round) {
                        continue;
                    }
                    if self.stopped() {
                        progress.clear();
                        return Ok(());
                    }
                    number += 1;
                    let what = format!("{number}/{count}  {} · {}", target.name, describe_cell(cell, round, rounds));
                    self.measure_one(target, backend, (cell, round), (&what, &mut progress), report)?;
                    progress.finish_part(duration);
                }
            }
        }
        progress.clear();
        Ok(())
    }

    fn measure_one(
        &self,
        target: &mut Running,
        backend: Option<&EchoServer>,
        (cell, round): (&Cell, u32),
        (what, progress): (&str, &mut Progress),
        report: &mut Report,
    ) -> Result<(), Error> {
        let Some(scenario) = self.plan.scenarios.iter().find(|scenario| scenario.name == cell.scenario) else {
            return Ok(());
        };
        if !target.alive() {
            progress.clear();
            let log = self.directory.file(&format!("{}.log", file_name(&target.name)));
            return Err(Error::Environment(format!(
                "target `{}` has ended; its output is in {}",
                target.name,
                log.display()
            )));
        }
        if let Some(backend) = backend {
            backend.set_delay(Duration::from_millis(cell.backend_delay_ms));
            backend.arrivals().expect(scenario.arrivals.clone().unwrap_or_default());
        }
        let spec = self.load_spec(scenario, target, cell.message_bytes, cell.users)?;
        let (mut tally, mut figures) =
            self.load(&spec, target.pid, backend, &mut |elapsed| progress.show(what, elapsed))?;
        // What the backend got is judged only where the scenario says what it must get.
        let backend = backend.filter(|_| scenario.arrivals.is_some());
        let confirmed = backend.is_some() || scenario.arrivals.is_none();
        figures.set(Metric::Confirmed, f64::from(u8::from(confirmed)));
        if backend.is_none() {
            figures.clear(Metric::BackendRequests);
            figures.clear(Metric::Unconfirmed);
        }
        if let Some(backend) = backend
            && let Some(failure) = unproved(backend)
        {
            tally.first_failure.get_or_insert(failure);
        }
        if self.stopped() {
            // A test that was cut short is made again when the run is resumed.
            return Ok(());
        }
        progress.note(&format!("{what:<70} {}", terminal::brief(&figures)));
        if let Some(failure) = tally.first_failure {
            let key = format!("{} · {}", target.name, cell.scenario);
            if !report.failures.iter().any(|(other, _)| *other == key) {
                report.failures.push((key, failure));
            }
        }
        self.directory.append(&Run { target: target.name.clone(), cell: cell.clone(), round, figures })
    }

    fn load(
        &self,
        spec: &LoadSpec,
        pid: Option<u32>,
        backend: Option<&EchoServer>,
        show: &mut dyn FnMut(Duration),
    ) -> Result<(Tally, Figures), Error> {
        let mut watch = pid.map(Watch::new);
        let (mut arrived_before, mut arrived) = (ArrivalCounts::default(), ArrivalCounts::default());
        let (mut backend_before, mut backend_used) = (CpuTime::default(), CpuTime::default());
        let (mut machine_before, mut machine_after) = (MachineCpu::default(), MachineCpu::default());
        let outcome = load::run(spec, &mut |moment| {
            if let Some(watch) = &mut watch {
                watch.at(moment);
            }
            match moment {
                Moment::WindowOpens => machine_before = MachineCpu::read(),
                Moment::WindowCloses => machine_after = MachineCpu::read(),
                Moment::Tick(_) => {}
            }
            match (moment, backend) {
                (Moment::Tick(elapsed), _) => show(elapsed),
                (Moment::WindowOpens, Some(backend)) => {
                    (backend_before, arrived_before) = (backend.cpu(), backend.arrivals().counts());
                }
                (Moment::WindowCloses, Some(backend)) => {
                    (backend_used, arrived) = (backend.cpu() - backend_before, backend.arrivals().counts());
                }
                _ => {}
            }
        })?;
        let mut figures = Figures::of_load(&outcome);
        if let Some(seen) = watch.and_then(Watch::finish) {
            figures.add_target(&seen);
            let known_us = seen.cpu.total_us() + outcome.load_cpu.total_us() + backend_used.total_us();
            if let Some(share) = machine_after.foreign_share(&machine_before, known_us) {
                figures.set(Metric::ForeignCpu, 100.0 * share);
            }
        }
        if let (Some(backend), Some(samples)) = (backend, figures.get(Metric::Samples)) {
            // Over the whole load the counts are exact; around the window, requests under way would blur them.
            let unconfirmed = outcome.tally.succeeded_at_all.saturating_sub(backend.arrivals().counts().complete());
            figures.set(Metric::Unconfirmed, unconfirmed as f64);
            let arrived = arrived.since(&arrived_before);
            figures.set(Metric::BackendCpu, backend_used.total_us() / samples);
            figures.set(Metric::BackendRequests, arrived.complete() as f64);
            figures.set(Metric::BackendMismatches, arrived.mismatches as f64);
            if arrived.requests > 0 {
                figures.set(Metric::BackendDelay, arrived.delay_ms());
            }
        }
        figures.set(Metric::LoadAverage, load_average());
        Ok((outcome.tally, figures))
    }
}

/// A load as a single request.
fn probe_spec(mut spec: LoadSpec) -> LoadSpec {
    spec.requests_per_user_max = Some(1);
    spec.response_timeout = spec.response_timeout.min(PROBE_TIMEOUT);
    spec.duration = spec.response_timeout + spec.connect_timeout;
    spec.warm_up = Duration::ZERO;
    spec.ramp_up = Duration::ZERO;
    spec.rate = None;
    spec
}

/// Why what reached the backend does not prove the scenario's work, if it does not.
fn unproved(backend: &EchoServer) -> Option<FailedExchange> {
    let reason = backend.arrivals().unproved()?;
    Some(FailedExchange { reason, ..FailedExchange::default() })
}
