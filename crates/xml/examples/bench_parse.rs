//! One measurement: CPU microseconds per document, printed as one number.
//!
//! `bench_parse tree|events|write SOURCE MILLISECONDS`, driven by `tools/bench-xml/parse.py`, which alternates it with
//! the same measurement of libxml2.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use penstock_xml::{Document, ParseOptions, Reader, Token, WriteOptions, write_to};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs between two looks at the clock.
const BATCH: u32 = 20;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_parse tree|events|write SOURCE MILLISECONDS".into());
    };
    let source = bytes::Bytes::from(std::fs::read(source)?);
    let limit = Duration::from_millis(milliseconds.parse()?);
    let options = ParseOptions::default();
    let mut once: Box<dyn FnMut() -> Outcome> = match what.as_str() {
        "tree" => Box::new(|| {
            black_box(Document::parse(source.clone(), &options)?);
            Ok(())
        }),
        "events" => Box::new(|| {
            let mut reader = Reader::new(&source, &options);
            while black_box(reader.advance()?) != Token::EndOfInput {}
            Ok(())
        }),
        "write" => {
            let document = Document::parse(source.clone(), &options)?;
            let mut out = Vec::new();
            Box::new(move || {
                out.clear();
                write_to(&mut out, &document, Document::ROOT, &WriteOptions::default());
                black_box(&out);
                Ok(())
            })
        }
        other => return Err(format!("`{other}` is not measured here").into()),
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
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}
