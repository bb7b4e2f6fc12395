//! One measurement: CPU microseconds to validate a document that is parsed already, printed as one number.
//!
//! `bench_validate SCHEMA SOURCE MILLISECONDS`, driven by `tools/bench-xml/validate.py`, which alternates it with the
//! same measurement of libxml2.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{NoResolver, Schema, Source};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs between two looks at the clock.
const BATCH: u32 = 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, schema, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_validate SCHEMA SOURCE MILLISECONDS".into());
    };
    let schema = Schema::compile(&[Source::new(schema.as_str(), std::fs::read(schema)?)], &NoResolver);
    let schema = schema.map_err(|errors| errors[0].to_string())?;
    let document = Document::parse(std::fs::read(source)?, &ParseOptions::default())?;
    let root = document.root_element().ok_or("no element")?;
    let limit = Duration::from_millis(milliseconds.parse()?);
    let once = || -> Outcome<()> {
        match black_box(schema.validate(&document, root)).first() {
            Some(violation) => Err(violation.to_string().into()),
            None => Ok(()),
        }
    };
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
fn cpu_seconds() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}
