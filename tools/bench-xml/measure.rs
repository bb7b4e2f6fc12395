//! How a `bench_*` example measures: included by those of several crates.

use std::io::Write;
use std::time::{Duration, Instant};

/// What one run comes to.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs between two looks at the clock.
const BATCH: u32 = 20;

/// Runs `once` for so many milliseconds and prints the CPU microseconds that one run took.
pub fn print_cost(milliseconds: &str, mut once: impl FnMut() -> Outcome) -> Outcome {
    let limit = Duration::from_millis(milliseconds.parse()?);
    for _ in 0..BATCH {
        once()?;
    }
    let started = Instant::now();
    let before = cpu_seconds()?;
    let mut runs = 0;
    while started.elapsed() < limit {
        for _ in 0..BATCH {
            once()?;
        }
        runs += BATCH;
    }
    writeln!(std::io::stdout(), "{:.3}", (cpu_seconds()? - before) * 1e6 / f64::from(runs))?;
    Ok(())
}

/// CPU time of this process, from the scheduler's own count of nanoseconds.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}
