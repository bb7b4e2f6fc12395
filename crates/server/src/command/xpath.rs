//! `penstock xpath EXPRESSION [SOURCE]`: evaluates an expression over a document.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_xml::{Document, ParseOptions};
use penstock_xpath::{DynamicContext, NoHost, Session, StaticContext, Version, XPath};

use super::Failure;

pub(super) fn command() -> Command {
    Command::new("xpath")
        .about("Evaluates an XPath expression over a document and prints one item a line")
        .arg(Arg::new("expression").value_name("EXPRESSION").required(true).help("For example //order[1]/symbol"))
        .arg(Arg::new("source").value_name("SOURCE").help("The document; standard input when it is left out or -"))
        .arg(
            Arg::new("namespace")
                .short('n')
                .long("namespace")
                .value_name("PREFIX=URI")
                .action(ArgAction::Append)
                .help("Binds a prefix of the expression"),
        )
        .arg(
            Arg::new("version")
                .long("xpath-version")
                .value_name("VERSION")
                .value_parser(["1.0", "2.0"])
                .default_value("1.0")
                .help("Whose rules apply"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = matches.get_one::<String>("expression").map(String::as_str).unwrap_or_default();
    let version = if matches.get_one::<String>("version").is_some_and(|version| version == "2.0") {
        Version::Two
    } else {
        Version::One
    };
    let mut context = StaticContext::new().version(version);
    for binding in matches.get_many::<String>("namespace").into_iter().flatten() {
        let Some((prefix, uri)) = binding.split_once('=') else {
            return Err(Failure::usage(format!("`-n {binding}` must have the form PREFIX=URI")));
        };
        context = context.namespace(prefix, uri);
    }
    let wrong = |error: &penstock_xpath::XPathError| {
        Failure::input(format!("{error}\n{}", penstock_xpath::underline(text, error)))
    };
    let expression = XPath::compile(text, &context).map_err(|error| wrong(&error))?;
    let source = matches.get_one::<String>("source").map_or("-", String::as_str);
    let document = Arc::new(parse(source)?);
    let (session, root) = Session::with_document(document);
    let cx = DynamicContext::new(&session, &NoHost).with_node(root);
    let found = expression.evaluate(&cx).map_err(|error| wrong(&error))?;
    let mut out = String::new();
    for line in penstock_xpath::render(&found, &session, version == Version::One) {
        out.push_str(&line);
        out.push('\n');
    }
    super::print(&out);
    Ok(ExitCode::SUCCESS)
}

/// Reads and parses a document; `-` is standard input.
fn parse(source: &str) -> Result<Document, Failure> {
    let bytes = read(source)?;
    Document::parse(bytes, &ParseOptions::default()).map_err(|error| {
        let name = if source == "-" { "<stdin>" } else { source };
        Failure::input(format!("{name}:{}:{}: {}", error.position.line, error.position.column, error.message))
    })
}

/// The bytes of a file; `-` is standard input.
pub(super) fn read(source: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if source == "-" {
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|cause| Failure::environment(format!("standard input: {cause}")))?;
    } else {
        let cannot = |cause| Failure::from(crate::load::LoadError { path: Path::new(source).to_owned(), cause });
        bytes = std::fs::read(source).map_err(cannot)?;
    }
    Ok(bytes)
}
