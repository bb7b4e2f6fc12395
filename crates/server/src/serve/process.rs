//! What the system says of this process.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock ticks of `/proc/self/stat` in a second; fixed on Linux for every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

static START: LazyLock<f64> =
    LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));

/// Figures of the process. Zero where the system has none.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Process {
    pub(super) resident_bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) open_files: u64,
    pub(super) threads: u64,
    pub(super) start_seconds: f64,
}

/// Notes the start; later reads say it.
pub(super) fn mark_start() {
    LazyLock::force(&START);
}

/// Reads the figures.
pub(super) fn read() -> Process {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program stands in brackets and may hold anything; fields are counted behind it.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Process {
        resident_bytes: field("VmRSS:").unwrap_or_default() * 1024,
        cpu_seconds: ticks / TICKS_PER_SECOND,
        open_files: std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64),
        threads: field("Threads:").unwrap_or_default(),
        start_seconds: *START,
    }
}
