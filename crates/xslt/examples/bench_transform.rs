//! One measurement: CPU microseconds per document, bytes in to bytes out, printed as one number.
//!
//! `bench_transform STYLESHEET SOURCE MILLISECONDS` — driven by `tools/bench-xml/transform.py`, which alternates it with
//! the same measurement of other engines.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_xml::{Document, ParseOptions};
use penstock_xslt::{CompileOptions, Stylesheet, TransformOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, stylesheet, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_transform STYLESHEET SOURCE MILLISECONDS".into());
    };
    let compiled = Stylesheet::compile(std::fs::read(stylesheet)?, &CompileOptions::default());
    let (stylesheet, _) = compiled.map_err(|errors| format!("{}", errors[0]))?;
    let source = bytes::Bytes::from(std::fs::read(source)?);
    let limit = Duration::from_millis(milliseconds.parse()?);
    let mut out = Vec::new();
    let options = TransformOptions::default();
    let parse = ParseOptions::default();
    let once = |out: &mut Vec<u8>| -> Result<(), Box<dyn std::error::Error>> {
        out.clear();
        let document = Arc::new(Document::parse(source.clone(), &parse)?);
        stylesheet.transform(&document, Document::ROOT, &options, out)?;
        Ok(())
    };
    for _ in 0..20 {
        once(&mut out)?;
    }
    let started = Instant::now();
    let before = cpu_ticks()?;
    let mut runs = 0u32;
    while started.elapsed() < limit {
        for _ in 0..20 {
            once(&mut out)?;
        }
        runs += 20;
    }
    let seconds = cpu_ticks()? - before;
    writeln!(std::io::stdout(), "{:.3}", seconds * 1e6 / f64::from(runs))?;
    Ok(())
}

/// CPU time of this process in seconds, from the scheduler's own count of nanoseconds.
fn cpu_ticks() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}
