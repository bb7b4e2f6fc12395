//! What one load thread counts, and how the threads' counts are put together.
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum response time of the histogram: an hour. Longer ones count as an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Three significant digits: every percentile is exact to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// One failing exchange, kept for the person who has to find out why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedExchange {
    /// When it happened, after the start of the load.
    pub after: Duration,
    /// Why it counts as a failure.
    pub reason: String,
    /// The request: its head and the beginning of the body.
    pub request: String,
    /// The response as far as it came.
    pub response: String,
}

/// Exchanges that were under way when the measured window ended. Their response times and errors are counted with the
/// others; they are not throughput of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Late {
    /// All of them.
    pub samples: u64,
    /// Those that failed, or had no complete response when the wait was over.
    pub errors: u64,
    sum_ns: f64,
}

/// Counts of the measured window. Response times are in nanoseconds.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Response times of all samples, failed ones included, as JMeter counts them.
    pub latency: Histogram<u64>,
    /// Sum of response times.
    sum_ns: f64,
    /// Sum of squared response times.
    sum_of_squares: f64,
    /// Failed samples.
    pub errors: u64,
    /// Failed samples by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Bytes written, heads included.
    pub sent_bytes: u64,
    /// Bytes read, heads included.
    pub received_bytes: u64,
    /// Connections opened in the window.
    pub connections: u64,
    /// Kept connections that the server had closed before a request was written, and that were opened anew.
    pub reconnects: u64,
    /// Exchanges under way at the end of the window.
    pub late: Late,
    /// Samples that succeeded in the whole load, before and after the window too.
    pub succeeded_at_all: u64,
    /// Samples that succeeded in each part of the window.
    parts: [u64; WINDOW_PARTS],
    /// Open loop: requests that came due and were not sent because no connection was free.
    pub unsent: u64,
    /// The first failure of the whole run, warm-up included.
    pub first_failure: Option<FailedExchange>,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            latency: Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
                .expect("constant bounds are within what the histogram accepts"),
            sum_ns: 0.0,
            sum_of_squares: 0.0,
            errors: 0,
            reasons: BTreeMap::new(),
            sent_bytes: 0,
            received_bytes: 0,
            connections: 0,
            reconnects: 0,
            late: Late::default(),
            succeeded_at_all: 0,
            parts: [0; WINDOW_PARTS],
            unsent: 0,
            first_failure: None,
        }
    }
}

/// Parts of the measured window in which successes are counted apart, to notice a gateway that is still warming up.
pub const WINDOW_PARTS: usize = 9;
/// Fewer successes than this in the window say nothing about a drift: their scatter alone would look like one.
const DRIFT_SAMPLES_MIN: u64 = 900;

/// Reasons are counted apart up to this many; a server that words every error differently must not fill the memory.
const REASONS_MAX: usize = 32;

impl Tally {
    /// Counts one sample.
    pub fn record(&mut self, elapsed: Duration, sent_bytes: u64, received_bytes: u64) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).clamp(1, LATENCY_NS_MAX);
        self.latency.saturating_record(elapsed_ns);
        let ns = elapsed_ns as f64;
        self.sum_ns += ns;
        self.sum_of_squares += ns * ns;
        self.sent_bytes += sent_bytes;
        self.received_bytes += received_bytes;
    }

    /// Counts a sample that was under way when the window ended. Its bytes are not those of the window.
    pub fn record_late(&mut self, elapsed: Duration, failed: bool) {
        let sum_before = self.sum_ns;
        self.record(elapsed, 0, 0);
        self.late.samples += 1;
        self.late.errors += u64::from(failed);
        self.late.sum_ns += self.sum_ns - sum_before;
    }

    /// Counts a success in the part of the window in which it ended; `share` of the window was over then.
    pub fn record_part(&mut self, share: f64) {
        let part = (share * WINDOW_PARTS as f64) as usize;
        self.parts[part.min(WINDOW_PARTS - 1)] += 1;
    }

    /// How much more was done in the last third of the window than in the first, as a share of the first.
    pub fn drift(&self) -> Option<f64> {
        let third = WINDOW_PARTS / 3;
        let sum = |parts: &[u64]| count(parts.iter().sum());
        let (first, last) = (sum(&self.parts[..third]), sum(&self.parts[WINDOW_PARTS - third..]));
        let enough = self.parts.iter().sum::<u64>() >= DRIFT_SAMPLES_MIN && first > 0.0;
        enough.then(|| last / first - 1.0)
    }

    /// Samples that succeeded within the window: what counts as throughput.
    pub fn succeeded_in_window(&self) -> u64 {
        (self.samples() - self.late.samples).saturating_sub(self.errors - self.late.errors)
    }

    /// Time that the samples of the window took together, in nanoseconds.
    pub fn window_sum_ns(&self) -> f64 {
        self.sum_ns - self.late.sum_ns
    }

    /// Marks the sample just recorded as failed.
    pub fn record_failure(&mut self, reason: &str) {
        self.errors += 1;
        if let Some(count) = self.reasons.get_mut(reason) {
            *count += 1;
        } else if self.reasons.len() < REASONS_MAX {
            self.reasons.insert(reason.to_owned(), 1);
        }
    }

    /// Samples counted.
    pub fn samples(&self) -> u64 {
        self.latency.len()
    }

    /// Mean response time in nanoseconds; 0 without samples.
    pub fn mean_ns(&self) -> f64 {
        if self.samples() == 0 { 0.0 } else { self.sum_ns / count(self.samples()) }
    }

    /// Standard deviation of the population, as JMeter computes it.
    pub fn standard_deviation_ns(&self) -> f64 {
        if self.samples() == 0 {
            return 0.0;
        }
        let mean = self.mean_ns();
        (self.sum_of_squares / count(self.samples()) - mean * mean).max(0.0).sqrt()
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: Tally) {
        self.latency.add(other.latency).expect("all tallies have the same bounds");
        self.sum_ns += other.sum_ns;
        self.sum_of_squares += other.sum_of_squares;
        self.errors += other.errors;
        for (reason, times) in other.reasons {
            *self.reasons.entry(reason).or_default() += times;
        }
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.connections += other.connections;
        self.unsent += other.unsent;
        self.succeeded_at_all += other.succeeded_at_all;
        for (part, count) in self.parts.iter_mut().zip(other.parts) {
            *part += count;
        }
        self.reconnects += other.reconnects;
        self.late.samples += other.late.samples;
        self.late.errors += other.late.errors;
        self.late.sum_ns += other.late.sum_ns;
        self.first_failure = match (self.first_failure.take(), other.first_failure) {
            (Some(a), Some(b)) => Some(if b.after < a.after { b } else { a }),
            (a, b) => a.or(b),
        };
    }
}

fn count(samples: u64) -> f64 {
    samples as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(milliseconds: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for value in milliseconds {
            tally.record(Duration::from_millis(*value), 10, 20);
        }
        tally
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_population() {
        let tally = tally(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert!((tally.mean_ns() - 5e6).abs() < 1.0);
        assert!((tally.standard_deviation_ns() - 2e6).abs() < 1.0);
        assert_eq!((tally.sent_bytes, tally.received_bytes), (80, 160));
    }

    #[test]
    fn percentiles_keep_three_digits() {
        let tally = tally(&(1..=1000).collect::<Vec<_>>());
        for (quantile, expected_ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.999, 999.0)] {
            let seen = tally.latency.value_at_quantile(quantile) as f64 / 1e6;
            assert!((seen / expected_ms - 1.0).abs() < 0.001, "{quantile}: {seen}");
        }
    }

    #[test]
    fn threads_add_up_and_the_earliest_failure_is_kept() {
        let failure = |after| Some(FailedExchange { after: Duration::from_millis(after), ..FailedExchange::default() });
        let mut one = tally(&[1, 3]);
        one.first_failure = failure(20);
        one.record_failure("status 500");
        let mut other = tally(&[5]);
        other.first_failure = failure(10);
        other.record_failure("status 500");
        one.merge(other);
        assert_eq!((one.samples(), one.errors, one.reasons["status 500"]), (3, 2, 2));
        assert!((one.mean_ns() - 3e6).abs() < 1.0);
        assert_eq!(one.first_failure.unwrap().after, Duration::from_millis(10));
    }

    #[test]
    fn a_drift_is_that_of_the_last_third_against_the_first() {
        let mut tally = Tally::default();
        for number in 0..1000 {
            // As many in the first half of the window as in the quarter after it.
            let share = f64::from(number) / 1000.0;
            tally.record_part(if share < 0.5 { share } else { 0.5 + (share - 0.5) / 2.0 });
        }
        assert!(tally.drift().unwrap() < -0.5, "the load ends at three quarters of the window: {:?}", tally.drift());
        let mut even = Tally::default();
        (0..1000).for_each(|number| even.record_part(f64::from(number) / 1000.0));
        assert!(even.drift().unwrap().abs() < 0.02);
        assert_eq!(Tally::default().drift(), None);
    }

    #[test]
    fn nothing_measured_is_zero_not_a_panic() {
        let tally = Tally::default();
        assert_eq!((tally.mean_ns(), tally.standard_deviation_ns()), (0.0, 0.0));
    }
}
