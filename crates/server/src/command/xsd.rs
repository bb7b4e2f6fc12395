//! `penstock xsd SCHEMA [DOCUMENT]…`: validates documents against a schema.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{Resolver, Schema, SchemaSource};
use penstock_xslt::command::FileResolver;

use super::Failure;

pub(super) fn command() -> Command {
    Command::new("xsd")
        .about("Validates documents against an XML Schema 1.0 and prints one violation a line")
        .arg(Arg::new("schema").value_name("SCHEMA").required(true).help("The schema document"))
        .arg(
            Arg::new("document")
                .value_name("DOCUMENT")
                .action(ArgAction::Append)
                .help("Documents to validate, - for standard input; omit to check the schema only"),
        )
        .arg(
            Arg::new("schema-document")
                .short('s')
                .long("schema")
                .value_name("FILE")
                .action(ArgAction::Append)
                .help("Another schema document, for example of a namespace that SCHEMA does not import"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let texts = |name: &str| matches.get_many::<String>(name).into_iter().flatten();
    let mut sources = Vec::new();
    for file in texts("schema").chain(texts("schema-document")) {
        sources.push(SchemaSource::new(file.as_str(), super::read(file)?));
    }
    let schema = Schema::compile(&sources, &Files).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::input(lines.join("\nerror: "))
    })?;
    let mut out = String::new();
    for note in schema.notes() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "warning: {note}");
    }
    let mut valid = true;
    for file in texts("document") {
        valid &= validate(&schema, file, &mut out)?;
    }
    super::print(&out);
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Writes a line for each violation, or one for a valid document.
fn validate(schema: &Schema, file: &str, out: &mut String) -> Result<bool, Failure> {
    let content = super::read(file)?;
    let name = if file == "-" { "<stdin>" } else { file };
    let document = match Document::parse(content, &ParseOptions::default()) {
        Ok(document) => document,
        Err(error) => {
            let _ = writeln!(out, "{name}:{error}");
            return Ok(false);
        }
    };
    let Some(root) = document.root_element() else { return Ok(false) };
    let violations = schema.validate(&document, root);
    for violation in &violations {
        let _ = writeln!(out, "{name}:{violation}");
    }
    if violations.is_empty() {
        let _ = writeln!(out, "{name}: valid");
    }
    Ok(violations.is_empty())
}

/// Schema documents that others include, import or redefine. Nothing is fetched from a network.
struct Files;

impl Resolver for Files {
    fn resolve(&self, location: &str, base: &str, _namespace: Option<&str>) -> Option<SchemaSource> {
        let found = penstock_xslt::Resolver::resolve(&FileResolver, location, base).ok()?;
        Some(SchemaSource::new(found.uri, found.content))
    }
}
