//! One measurement: CPU microseconds per routing decision, from bytes, printed as one number.
//!
//! `bench_stream stream|tree|pass EXPRESSION SOURCE MILLISECONDS`, driven by `tools/bench-xml/parse.py`. `stream`
//! answers from the reader, `tree` parses first, `pass` only reads the document from end to end.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_xml::{Document, ParseOptions, Reader, Token};
use penstock_xpath::stream::{Stream, Surroundings, Want};
use penstock_xpath::{DynamicContext, NoHost, Session, StaticContext, XPath};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Runs between two looks at the clock.
const BATCH: u32 = 20;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, expression, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_stream stream|tree|pass EXPRESSION SOURCE MILLISECONDS".into());
    };
    let source = Document::parse(std::fs::read(source)?, &ParseOptions::default())?.source().clone();
    let limit = Duration::from_millis(milliseconds.parse()?);
    let expression = XPath::compile(expression, &StaticContext::new())?;
    let stream = Stream::compile(&expression, Want::Text)?;
    let (surroundings, options) = (Surroundings::default(), ParseOptions::default());
    let once = || -> Outcome {
        match what.as_str() {
            "stream" => {
                black_box(stream.answer(&source, &surroundings)?);
            }
            "tree" => {
                let document = Document::parse(source.clone(), &options)?;
                let (session, root) = Session::with_document(Arc::new(document));
                let cx = DynamicContext::new(&session, &NoHost).with_node(root);
                black_box(expression.evaluate_string(&cx)?);
            }
            _ => {
                let mut reader = Reader::new(&source, &options);
                while black_box(reader.advance()?) != Token::EndOfInput {}
            }
        }
        Ok(())
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
