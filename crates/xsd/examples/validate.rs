//! `validate SCHEMA DOCUMENT…`: one line per violation, for comparing with other validators.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{Resolver, Schema, SchemaSource};

struct Files;

impl Resolver for Files {
    fn resolve(&self, location: &str, base: &str, _namespace: Option<&str>) -> Option<SchemaSource> {
        let path: PathBuf = Path::new(base).parent()?.join(location);
        Some(SchemaSource::new(path.to_string_lossy(), std::fs::read(&path).ok()?))
    }
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(schema) = arguments.next() else { return ExitCode::from(2) };
    let Ok(content) = std::fs::read(&schema) else { return ExitCode::from(3) };
    let schema = match Schema::compile(&[SchemaSource::new(&*schema, content)], &Files) {
        Ok(schema) => schema,
        Err(errors) => {
            for error in errors {
                println!("schema {error}");
            }
            return ExitCode::from(4);
        }
    };
    let mut valid = true;
    for path in arguments {
        let Ok(content) = std::fs::read(&path) else { return ExitCode::from(3) };
        match Document::parse(content, &ParseOptions::default()) {
            Err(error) => println!("{path}:{error}"),
            Ok(document) => {
                let Some(root) = document.root_element() else { continue };
                let violations = schema.validate(&document, root);
                valid &= violations.is_empty();
                println!("{path}: {}", if violations.is_empty() { "valid" } else { "invalid" });
                for violation in violations {
                    println!("{path}:{violation}");
                }
            }
        }
    }
    if valid { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
