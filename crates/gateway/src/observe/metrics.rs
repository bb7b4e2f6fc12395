//! Requests and latencies by operation and class of status. Every core counts for itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use penstock_catalog::{Api, Operation};

/// Operations counted by themselves. Those beyond are counted together, because metric stores charge by series.
const OPERATIONS_MAX: usize = 5_000;

/// Upper bounds of the latency buckets, in milliseconds.
const BOUNDS_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

/// What is counted of one operation and class of status.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    buckets: [u64; BOUNDS_MS.len() + 1],
    micros: u64,
}

type OfOperation = [Counts; 5];

/// The counters of one core, by index. Only the core writes, so the lock is only ever waited for by a reader.
type OfCore = Mutex<Vec<OfOperation>>;

/// All counters.
#[derive(Debug)]
pub(crate) struct OperationMetrics {
    id: u64,
    names: Mutex<Names>,
    cores: Mutex<Vec<Arc<OfCore>>>,
}

#[derive(Debug)]
struct Names {
    index: HashMap<Arc<str>, usize>,
    /// Labels, by index.
    labels: Vec<Arc<str>>,
}

thread_local! {
    static OWN: RefCell<Option<(u64, Arc<OfCore>)>> = const { RefCell::new(None) };
}

impl Default for OperationMetrics {
    fn default() -> OperationMetrics {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // The first place is for what has none of its own.
        let names =
            Names { index: HashMap::new(), labels: vec!["api=\"\",version=\"\",method=\"\",path=\"other\"".into()] };
        OperationMetrics { id: NEXT.fetch_add(1, Ordering::Relaxed), names: Mutex::new(names), cores: Mutex::default() }
    }
}

impl OperationMetrics {
    /// The place of an operation; the same one after a reload.
    pub(crate) fn index_of(&self, api: &Api, operation: &Operation) -> usize {
        let labels: Arc<str> = format!(
            "api=\"{}\",version=\"{}\",method=\"{}\",path=\"{}\"",
            escaped(&api.name),
            escaped(&api.version),
            escaped(&operation.method),
            escaped(&operation.path)
        )
        .into();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = names.index.get(&labels) {
            return *index;
        }
        let index = names.labels.len();
        if index > OPERATIONS_MAX {
            return 0;
        }
        names.labels.push(labels.clone());
        names.index.insert(labels, index);
        index
    }

    /// Counts a request.
    pub(super) fn count(&self, index: usize, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        let millis = took.as_millis() as u64;
        let bucket = BOUNDS_MS.iter().position(|bound| millis < *bound).unwrap_or(BOUNDS_MS.len());
        OWN.with_borrow_mut(|own| {
            if own.as_ref().is_none_or(|(id, _)| *id != self.id) {
                let counts: Arc<OfCore> = Arc::default();
                self.cores.lock().unwrap_or_else(PoisonError::into_inner).push(counts.clone());
                *own = Some((self.id, counts));
            }
            if let Some((_, counts)) = own {
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                if counts.len() <= index {
                    counts.resize(index + 1, OfOperation::default());
                }
                let counts = &mut counts[index][class];
                counts.buckets[bucket] += 1;
                counts.micros += took.as_micros() as u64;
            }
        });
    }

    fn sum(&self) -> Vec<OfOperation> {
        let mut sum: Vec<OfOperation> = Vec::new();
        let cores = self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        for core in cores.iter() {
            let counts = core.lock().unwrap_or_else(PoisonError::into_inner);
            sum.resize(sum.len().max(counts.len()), OfOperation::default());
            for (total, counts) in sum.iter_mut().flatten().zip(counts.iter().flatten()) {
                total.micros += counts.micros;
                for (total, count) in total.buckets.iter_mut().zip(counts.buckets) {
                    *total += count;
                }
            }
        }
        sum
    }

    /// Writes everything in the text format of Prometheus.
    pub(crate) fn write(&self, page: &mut String) {
        let sum = self.sum();
        let labels = self.names.lock().unwrap_or_else(PoisonError::into_inner).labels.clone();
        let name = "penstock_gateway_request_seconds";
        // Writing to a `String` cannot fail.
        let _ = writeln!(page, "# HELP {name} Time a request to a managed API took.\n# TYPE {name} histogram");
        for (labels, classes) in labels.iter().zip(&sum) {
            for (class, counts) in classes.iter().enumerate() {
                let count: u64 = counts.buckets.iter().sum();
                if count == 0 {
                    continue;
                }
                let labels = format!("{labels},class=\"{}xx\"", class + 1);
                let mut below = 0;
                for (bound, in_bucket) in BOUNDS_MS.iter().zip(counts.buckets) {
                    below += in_bucket;
                    let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{}\"}} {below}", *bound as f64 / 1e3);
                }
                let _ = writeln!(page, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
                let _ = writeln!(page, "{name}_sum{{{labels}}} {}", counts.micros as f64 / 1e6);
                let _ = writeln!(page, "{name}_count{{{labels}}} {count}");
            }
        }
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_summed_and_classes_kept_apart() {
        let metrics = OperationMetrics::default();
        std::thread::scope(|scope| {
            for core in 0..2 {
                let metrics = &metrics;
                scope.spawn(move || {
                    metrics.count(0, 200, Duration::from_millis(core));
                    metrics.count(0, 503, Duration::from_secs(9));
                });
            }
        });
        let mut page = String::new();
        metrics.write(&mut page);
        for line in [
            "path=\"other\",class=\"2xx\",le=\"0.001\"} 1",
            "path=\"other\",class=\"2xx\",le=\"0.002\"} 2",
            "path=\"other\",class=\"5xx\",le=\"5\"} 0",
            "path=\"other\",class=\"5xx\",le=\"+Inf\"} 2",
            "class=\"5xx\"} 18",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        assert!(!page.contains("4xx"));
    }
}
