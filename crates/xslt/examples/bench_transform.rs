//! One measurement: CPU microseconds per document, bytes in to bytes out, printed as one number.
//!
//! `bench_transform STYLESHEET SOURCE MILLISECONDS` — driven by `tools/bench-xml/transform.py`, which alternates it with
//! the same measurement of other engines.

#[path = "../../../tools/bench-xml/measure.rs"]
mod measure;

use std::sync::Arc;

use penstock_xml::{Document, ParseOptions};
use penstock_xslt::{CompileOptions, Stylesheet, TransformOptions};

use measure::{Outcome, print_cost};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, stylesheet, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_transform STYLESHEET SOURCE MILLISECONDS".into());
    };
    let compiled = Stylesheet::compile(std::fs::read(stylesheet)?, &CompileOptions::default());
    let (stylesheet, _) = compiled.map_err(|errors| format!("{}", errors[0]))?;
    let source = bytes::Bytes::from(std::fs::read(source)?);
    let mut out = Vec::new();
    let options = TransformOptions::default();
    let parse = ParseOptions::default();
    print_cost(milliseconds, || {
        out.clear();
        let document = Arc::new(Document::parse(source.clone(), &parse)?);
        stylesheet.transform(&document, Document::ROOT, &options, &mut out)?;
        Ok(())
    })
}
