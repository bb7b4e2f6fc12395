//! One measurement: CPU microseconds to validate a document that is parsed already, printed as one number.
//!
//! `bench_validate SCHEMA SOURCE MILLISECONDS`, driven by `tools/bench-xml/validate.py`, which alternates it with the
//! same measurement of libxml2.

#[path = "../../../tools/bench-xml/measure.rs"]
mod measure;

use std::hint::black_box;

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{NoResolver, Schema, SchemaSource};

use measure::{Outcome, print_cost};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, schema, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_validate SCHEMA SOURCE MILLISECONDS".into());
    };
    let schema = Schema::compile(&[SchemaSource::new(schema.as_str(), std::fs::read(schema)?)], &NoResolver);
    let schema = schema.map_err(|errors| errors[0].to_string())?;
    let document = Document::parse(std::fs::read(source)?, &ParseOptions::default())?;
    let root = document.root_element().ok_or("no element")?;
    let once = || -> Outcome {
        match black_box(schema.validate(&document, root)).first() {
            Some(violation) => Err(violation.to_string().into()),
            None => Ok(()),
        }
    };
    print_cost(milliseconds, once)
}
