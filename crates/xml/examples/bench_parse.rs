//! One measurement: CPU microseconds per document, printed as one number.
//!
//! `bench_parse tree|events|write SOURCE MILLISECONDS`, driven by `tools/bench-xml/parse.py`, which alternates it with
//! the same measurement of libxml2.

#[path = "../../../tools/bench-xml/measure.rs"]
mod measure;

use std::hint::black_box;

use penstock_xml::{Document, ParseOptions, Reader, Token, WriteOptions, write_to};

use measure::{Outcome, print_cost};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_parse tree|events|write SOURCE MILLISECONDS".into());
    };
    let source = bytes::Bytes::from(std::fs::read(source)?);
    let options = ParseOptions::default();
    let once: Box<dyn FnMut() -> Outcome> = match what.as_str() {
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
    print_cost(milliseconds, once)
}
