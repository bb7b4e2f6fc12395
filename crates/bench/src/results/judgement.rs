//! Whether a row is a result: what makes it invalid, and what a reader must know before trusting it.
use super::Row;
use crate::figures::{Figures, Metric};

/// A row with a larger share of failed requests is not a result.
const ERROR_PERCENT_MAX: f64 = 1.0;
/// Users that spend more than this share of their time outside of requests make response times doubtful.
const LITTLES_LAW_TOLERANCE_PERCENT: f64 = 5.0;
/// Load threads that are busier than this send requests late.
const LOAD_BUSY_PERCENT_MAX: f64 = 80.0;
/// Other programs that use more of the machine than this take it from what is measured.
const FOREIGN_CPU_PERCENT_MAX: f64 = 10.0;
/// Throughput that changes more than this between the first and the last third of the measured time had not settled.
/// Managed runtimes compile what runs often, and take minutes for it.
const DRIFT_PERCENT_MAX: f64 = 10.0;
/// A delay of the back-end may be this much longer than its label: timers have a resolution of a millisecond.
const DELAY_TOLERANCE: (f64, f64) = (0.05, 1.5);

/// The requests under way on average compared with the users, in percent of the users.
pub fn littles_law_off(in_system: f64, users: usize) -> f64 {
    100.0 * (in_system / users.max(1) as f64 - 1.0)
}

/// Whether Little's law holds.
pub fn littles_law_holds(in_system: f64, users: usize) -> bool {
    littles_law_off(in_system, users).abs() <= LITTLES_LAW_TOLERANCE_PERCENT
}

/// What is doubtful about one load, in a few words each.
pub fn warnings(figures: &Figures, closed_loop_users: Option<usize>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let (Some(users), Some(in_system)) = (closed_loop_users, figures.get(Metric::UsersInSystem))
        && !littles_law_holds(in_system, users)
    {
        warnings.push(format!("Little's law off by {:+.1} %", littles_law_off(in_system, users)));
    }
    let above = |metric, limit| figures.get(metric).filter(|value| value.abs() > limit);
    if let Some(busy) = above(Metric::LoadBusy, LOAD_BUSY_PERCENT_MAX) {
        warnings.push(format!("load threads {busy:.0} % busy"));
    }
    if let Some(foreign) = above(Metric::ForeignCpu, FOREIGN_CPU_PERCENT_MAX) {
        warnings.push(format!("other programs used {foreign:.0} % of the CPU"));
    }
    if let Some(drift) = above(Metric::Drift, DRIFT_PERCENT_MAX) {
        warnings.push(format!("throughput drifted by {drift:+.0} %"));
    }
    warnings
}

impl Row {
    /// Why the row is no result, round by round; empty if it is one.
    pub fn invalid(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        for (round, figures) in &self.rounds {
            let figure = |metric| figures.get(metric).unwrap_or(0.0);
            let mut add = |why: String| reasons.push(format!("round {round}: {why}"));
            if figure(Metric::ErrorPercent) >= ERROR_PERCENT_MAX {
                add(format!("{} % of the requests failed", figures.text(Metric::ErrorPercent)));
            }
            if figure(Metric::Unsent) > 0.0 {
                add(format!("{} requests were not sent", figures.text(Metric::Unsent)));
            }
            if figure(Metric::BackendMismatches) > 0.0 {
                let count = figures.text(Metric::BackendMismatches);
                add(format!("{count} requests reached the backend in another form than expected"));
            }
            if figure(Metric::Unconfirmed) > 0.0 {
                let count = figures.text(Metric::Unconfirmed);
                add(format!("{count} requests succeeded without reaching the backend"));
            }
            let least_ms = figures.get(Metric::Minimum).unwrap_or(f64::INFINITY);
            if least_ms < self.cell.backend_delay_ms as f64 {
                add(format!("a response came after {least_ms:.3} ms, before the back-end's delay"));
            }
            if figures.get(Metric::UsersStarted).is_some_and(|users| users < self.cell.users as f64) {
                add(format!("only {} users had started", figures.text(Metric::UsersStarted)));
            }
        }
        reasons
    }

    /// What is doubtful about the row, in a few words each: each kind once, from the round in which it is worst.
    pub fn warnings(&self) -> Vec<String> {
        let users = (!self.open_loop).then_some(self.cell.users);
        let mut worst = self.figures.clone();
        let distance = |metric, value: f64| match (metric, users) {
            (Metric::UsersInSystem, Some(users)) => littles_law_off(value, users).abs(),
            _ => value.abs(),
        };
        for metric in [Metric::UsersInSystem, Metric::LoadBusy, Metric::ForeignCpu, Metric::Drift] {
            let values = self.rounds.iter().filter_map(|(_, figures)| figures.get(metric));
            if let Some(value) = values.max_by(|a, b| distance(metric, *a).total_cmp(&distance(metric, *b))) {
                worst.set(metric, value);
            }
        }
        let mut warnings = warnings(&worst, users);
        let label_ms = self.cell.backend_delay_ms as f64;
        let allowed_ms = label_ms * (1.0 + DELAY_TOLERANCE.0) + DELAY_TOLERANCE.1;
        if let Some(delay_ms) = self.figures.get(Metric::BackendDelay).filter(|delay_ms| *delay_ms > allowed_ms) {
            warnings.push(format!("the back-end took {delay_ms:.1} ms instead of {label_ms:.0} ms"));
        }
        if !self.confirmed() {
            warnings.push("not confirmed by the back-end".to_owned());
        }
        warnings
    }

    /// Whether the back-end confirmed every round, or no back-end is needed.
    pub fn confirmed(&self) -> bool {
        self.rounds.iter().all(|(_, figures)| figures.get(Metric::Confirmed).is_some_and(|confirmed| confirmed > 0.0))
    }

    /// Whether the row may be compared with others.
    pub fn comparable(&self) -> bool {
        self.confirmed() && self.invalid().is_empty()
    }

    /// The configured delay of the back-end in milliseconds, with the one that was measured.
    pub fn delay_text(&self) -> String {
        let label = self.cell.backend_delay_ms;
        match self.figures.get(Metric::BackendDelay) {
            Some(measured) if label > 0 => format!("{label} ({measured:.1})"),
            _ => label.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;
    use crate::results::tests::run;

    fn row(change: impl Fn(&mut Figures)) -> Row {
        let mut run = run("a", 100, 1, 500.0);
        run.cell.backend_delay_ms = 30;
        for (metric, value) in [
            (Metric::Minimum, 31.0),
            (Metric::UsersInSystem, 99.0),
            (Metric::Unconfirmed, 0.0),
            (Metric::BackendDelay, 31.1),
        ] {
            run.figures.set(metric, value);
        }
        change(&mut run.figures);
        Results { about: Vec::new(), runs: vec![run] }.rows().remove(0)
    }

    #[test]
    fn a_row_without_faults_has_no_remarks() {
        let row = row(|_| {});
        assert_eq!((row.invalid(), row.warnings(), row.comparable()), (Vec::new(), Vec::new(), true));
        assert_eq!(row.delay_text(), "30 (31.1)");
    }

    #[test]
    fn every_fault_makes_a_row_invalid() {
        for (metric, value, expected) in [
            (Metric::ErrorPercent, 1.0, "1.00 % of the requests failed"),
            (Metric::Unsent, 3.0, "3 requests were not sent"),
            (Metric::BackendMismatches, 1.0, "1 requests reached the backend in another form than expected"),
            (Metric::Unconfirmed, 7.0, "7 requests succeeded without reaching the backend"),
            (Metric::Minimum, 29.0, "a response came after 29.000 ms, before the back-end's delay"),
            (Metric::UsersStarted, 10.0, "only 10 users had started"),
        ] {
            let row = row(|figures| figures.set(metric, value));
            assert_eq!(row.invalid(), [format!("round 1: {expected}")]);
            assert!(!row.comparable());
        }
    }

    #[test]
    fn what_is_doubtful_is_a_warning() {
        for (metric, value, expected) in [
            (Metric::UsersInSystem, 90.0, "Little's law off by -10.0 %"),
            (Metric::LoadBusy, 95.0, "load threads 95 % busy"),
            (Metric::ForeignCpu, 34.0, "other programs used 34 % of the CPU"),
            (Metric::Drift, -14.0, "throughput drifted by -14 %"),
            (Metric::BackendDelay, 45.0, "the back-end took 45.0 ms instead of 30 ms"),
            (Metric::Confirmed, 0.0, "not confirmed by the back-end"),
        ] {
            let row = row(|figures| figures.set(metric, value));
            assert_eq!(row.warnings(), [expected]);
            assert_eq!(row.comparable(), metric != Metric::Confirmed);
        }
    }
}
