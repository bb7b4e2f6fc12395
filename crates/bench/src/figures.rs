//! The figures of one run, under the column names of the published tables.
use crate::load::LoadOutcome;
use crate::observe::process::CpuTime;

/// One figure. The order is the order of columns in `summary.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is described by its title below")]
pub enum Metric {
    Samples,
    Errors,
    ErrorPercent,
    Throughput,
    Average,
    UsersInSystem,
    StandardDeviation,
    Minimum,
    Maximum,
    P50,
    P75,
    P90,
    P95,
    P98,
    P99,
    P999,
    Received,
    Sent,
    TargetCpuUser,
    TargetCpuSystem,
    TargetCpu,
    TargetMemoryPeak,
    TargetMemoryAverage,
    TargetContextSwitches,
    TargetThreads,
    LoadCpu,
    BackendCpu,
    LoadAverage,
    Unsent,
    Connections,
    Seconds,
    Reconnects,
    Late,
    UsersStarted,
    LoadBusy,
    BackendRequests,
    BackendMismatches,
    BackendDelay,
    Confirmed,
    ForeignCpu,
    Drift,
    Unconfirmed,
}

use Metric as M;

/// Metric, its column title as published where it was published, and decimals to show.
const COLUMNS: [(Metric, &str, usize); 42] = [
    (M::Samples, "# Samples", 0),
    (M::Errors, "Error Count", 0),
    (M::ErrorPercent, "Error %", 2),
    (M::Throughput, "Throughput (Requests/sec)", 2),
    (M::Average, "Average Response Time (ms)", 2),
    (M::UsersInSystem, "Average Users in the System", 2),
    (M::StandardDeviation, "Standard Deviation of Response Time (ms)", 2),
    (M::Minimum, "Minimum Response Time (ms)", 3),
    (M::Maximum, "Maximum Response Time (ms)", 2),
    (M::P50, "50th Percentile of Response Time (ms)", 2),
    (M::P75, "75th Percentile of Response Time (ms)", 2),
    (M::P90, "90th Percentile of Response Time (ms)", 2),
    (M::P95, "95th Percentile of Response Time (ms)", 2),
    (M::P98, "98th Percentile of Response Time (ms)", 2),
    (M::P99, "99th Percentile of Response Time (ms)", 2),
    (M::P999, "99.9th Percentile of Response Time (ms)", 2),
    (M::Received, "Received (KB/sec)", 2),
    (M::Sent, "Sent (KB/sec)", 2),
    (M::TargetCpuUser, "Gateway CPU User (µs/request)", 2),
    (M::TargetCpuSystem, "Gateway CPU System (µs/request)", 2),
    (M::TargetCpu, "Gateway CPU (µs/request)", 2),
    (M::TargetMemoryPeak, "Gateway Peak Memory (MB)", 1),
    (M::TargetMemoryAverage, "Gateway Average Memory (MB)", 1),
    (M::TargetContextSwitches, "Gateway Context Switches (1/request)", 3),
    (M::TargetThreads, "Gateway Threads", 0),
    (M::LoadCpu, "Load Side CPU (µs/request)", 2),
    (M::BackendCpu, "Back-end CPU (µs/request)", 2),
    (M::LoadAverage, "Load Average - Last 1 minute", 2),
    (M::Unsent, "Requests Never Sent", 0),
    (M::Connections, "Connections Opened", 0),
    (M::Seconds, "Measured Time (s)", 2),
    (M::Reconnects, "Reconnects", 0),
    (M::Late, "Under Way at the End", 0),
    (M::UsersStarted, "Users Started", 0),
    (M::LoadBusy, "Load Threads Busy (%)", 1),
    (M::BackendRequests, "Back-end Requests", 0),
    (M::BackendMismatches, "Back-end Mismatches", 0),
    (M::BackendDelay, "Measured Back-end Delay (ms)", 2),
    (M::Confirmed, "Confirmed by the Back-end", 0),
    (M::ForeignCpu, "CPU of Other Programs (%)", 1),
    (M::Drift, "Drift of Throughput (%)", 1),
    (M::Unconfirmed, "Responses without a Back-end Request", 0),
];

impl Metric {
    /// All metrics in column order.
    pub fn all() -> impl Iterator<Item = Metric> {
        COLUMNS.iter().map(|(metric, ..)| *metric)
    }

    /// The column title.
    pub fn title(self) -> &'static str {
        COLUMNS[self as usize].1
    }

    /// Decimals to show.
    pub fn decimals(self) -> usize {
        COLUMNS[self as usize].2
    }
}

/// Percentiles at which the distribution of response times is kept for charts.
pub const DISTRIBUTION: [f64; 22] = [
    0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.5, 98.0, 99.0, 99.5,
    99.9, 99.99, 100.0,
];

/// The figures of one run. A figure that was not measured is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    values: [Option<f64>; COLUMNS.len()],
    /// Response times in milliseconds at the percentiles of [`DISTRIBUTION`]; empty if unknown.
    pub distribution: Vec<f64>,
}

impl Default for Figures {
    fn default() -> Self {
        Figures { values: [None; COLUMNS.len()], distribution: Vec::new() }
    }
}

/// What the watcher of the target saw in the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TargetUse {
    /// CPU time.
    pub cpu: CpuTime,
    /// Largest resident memory seen, in bytes.
    pub resident_bytes_max: u64,
    /// Mean of the resident memory, in bytes.
    pub resident_bytes_average: f64,
    /// Context switches.
    pub context_switches: u64,
    /// Most threads seen.
    pub threads: u64,
}

impl Figures {
    /// A figure, if it was measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }

    /// Sets a figure; what is not a number is not a figure.
    pub fn set(&mut self, metric: Metric, value: f64) {
        self.values[metric as usize] = value.is_finite().then_some(value);
    }

    /// Removes a figure that means nothing for this run.
    pub fn clear(&mut self, metric: Metric) {
        self.values[metric as usize] = None;
    }

    /// The figure as text with the metric's decimals; empty if it was not measured.
    pub fn text(&self, metric: Metric) -> String {
        self.get(metric).map(|value| format!("{value:.*}", metric.decimals())).unwrap_or_default()
    }

    /// What the load side alone knows.
    pub fn of_load(outcome: &LoadOutcome) -> Figures {
        let mut figures = Figures::of_tally(&outcome.tally, outcome.window.as_secs_f64());
        let samples = number(outcome.tally.samples());
        figures.set(M::LoadCpu, outcome.load_cpu.total_us() / samples);
        figures.set(M::Unsent, number(outcome.tally.unsent));
        figures.set(M::Connections, number(outcome.tally.connections));
        figures.set(M::Reconnects, number(outcome.tally.reconnects));
        figures.set(M::Late, number(outcome.tally.late.samples));
        figures.set(M::UsersStarted, outcome.users_started as f64);
        let available_us = outcome.window.as_secs_f64() * 1e6 * outcome.threads as f64;
        figures.set(M::LoadBusy, 100.0 * outcome.load_cpu.total_us() / available_us);
        if let Some(drift) = outcome.tally.drift() {
            figures.set(M::Drift, 100.0 * drift);
        }
        figures
    }

    /// What counts and response times give.
    pub fn of_tally(tally: &crate::load::tally::Tally, seconds: f64) -> Figures {
        let mut figures = Figures::default();
        let samples = number(tally.samples());
        let quantile_ms = |percentile: f64| number(tally.latency.value_at_quantile(percentile / 100.0)) / 1e6;
        figures.set(M::Samples, samples);
        figures.set(M::Errors, number(tally.errors));
        figures.set(M::ErrorPercent, if samples > 0.0 { 100.0 * number(tally.errors) / samples } else { 0.0 });
        figures.set(M::Throughput, number(tally.succeeded_in_window()) / seconds);
        figures.set(M::Seconds, seconds);
        figures.set(M::Received, number(tally.received_bytes) / 1024.0 / seconds);
        figures.set(M::Sent, number(tally.sent_bytes) / 1024.0 / seconds);
        if tally.samples() == 0 {
            return figures;
        }
        figures.set(M::Average, tally.mean_ns() / 1e6);
        // Little's law: requests in the system = arrivals per second x time each of them spends there.
        figures.set(M::UsersInSystem, tally.window_sum_ns() / 1e9 / seconds);
        figures.set(M::StandardDeviation, tally.standard_deviation_ns() / 1e6);
        figures.set(M::Minimum, number(tally.latency.min()) / 1e6);
        figures.set(M::Maximum, number(tally.latency.max()) / 1e6);
        for (metric, percentile) in [
            (M::P50, 50.0),
            (M::P75, 75.0),
            (M::P90, 90.0),
            (M::P95, 95.0),
            (M::P98, 98.0),
            (M::P99, 99.0),
            (M::P999, 99.9),
        ] {
            figures.set(metric, quantile_ms(percentile));
        }
        figures.distribution = DISTRIBUTION.iter().map(|percentile| quantile_ms(*percentile)).collect();
        figures
    }

    /// Adds what was seen of the target.
    pub fn add_target(&mut self, target: &TargetUse) {
        let samples = self.get(M::Samples).unwrap_or(0.0);
        let (user, system) = target.cpu.user_and_system_us();
        self.set(M::TargetCpuUser, user / samples);
        self.set(M::TargetCpuSystem, system / samples);
        self.set(M::TargetCpu, (user + system) / samples);
        self.set(M::TargetMemoryPeak, number(target.resident_bytes_max) / 1e6);
        self.set(M::TargetMemoryAverage, target.resident_bytes_average / 1e6);
        self.set(M::TargetContextSwitches, number(target.context_switches) / samples);
        self.set(M::TargetThreads, number(target.threads));
    }

    /// The median of each figure over several runs; counts are medians too, so that columns of a row belong together.
    pub fn median(runs: &[&Figures]) -> Figures {
        let mut figures = Figures::default();
        for metric in Metric::all() {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(metric)).collect();
            if let Some(value) = median(values) {
                figures.set(metric, value);
            }
        }
        figures.distribution = (0..DISTRIBUTION.len())
            .filter_map(|index| median(runs.iter().filter_map(|run| run.distribution.get(index).copied()).collect()))
            .collect();
        figures
    }
}

/// The middle value; of an even number of values, the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => values.get(middle).copied(),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tally::Tally;
    use std::time::Duration;

    #[test]
    fn every_metric_finds_its_own_column() {
        for (index, (metric, ..)) in COLUMNS.iter().enumerate() {
            assert_eq!(*metric as usize, index);
        }
    }

    #[test]
    fn figures_follow_from_counts() {
        let mut tally = Tally::default();
        for milliseconds in 1..=100 {
            tally.record(Duration::from_millis(milliseconds), 1024, 2048);
        }
        tally.record_failure("status 500");
        let figures = Figures::of_tally(&tally, 2.0);
        for (metric, expected) in [
            (M::Throughput, "49.50"),
            (M::Average, "50.50"),
            (M::ErrorPercent, "1.00"),
            (M::Sent, "50.00"),
            (M::Received, "100.00"),
            (M::UsersInSystem, "2.52"),
            (M::TargetCpu, ""),
        ] {
            assert_eq!(figures.text(metric), expected, "{metric:?}");
        }
        assert!((figures.get(M::P99).unwrap() / 99.0 - 1.0).abs() < 0.002);
    }

    #[test]
    fn no_samples_give_no_response_times() {
        let figures = Figures::of_tally(&Tally::default(), 1.0);
        assert_eq!((figures.get(M::Throughput), figures.get(M::Average)), (Some(0.0), None));
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
