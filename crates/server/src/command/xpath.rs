//! `penstock xpath EXPRESSION [SOURCE]`: evaluates an expression over a document.

use std::cell::RefCell;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_xml::{Document, ParseOptions};
use penstock_xpath::ast::Name;
use penstock_xpath::{
    Atomic, DynamicContext, Host, Item, Node, Sequence, Session, StaticContext, VariablePolicy, Version, XPath,
    XPathError,
};
use penstock_xslt::Resolver;
use penstock_xslt::command::FileResolver;

use super::Failure;

pub(super) fn command() -> Command {
    Command::new("xpath")
        .about("Evaluates an XPath expression over a document and prints one item a line")
        .arg(Arg::new("expression").value_name("EXPRESSION").required(true).help("For example //order[1]/symbol"))
        .arg(Arg::new("source").value_name("SOURCE").help("The document; standard input if omitted or -"))
        .arg(
            Arg::new("namespace")
                .short('n')
                .long("namespace")
                .value_name("PREFIX=URI")
                .action(ArgAction::Append)
                .help("Binds a prefix of the expression"),
        )
        .arg(
            Arg::new("file")
                .short('f')
                .long("file")
                .action(ArgAction::SetTrue)
                .help("EXPRESSION is the name of a file that holds the expression"),
        )
        .arg(
            Arg::new("variable")
                .short('v')
                .long("variable")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Sets a variable to a text"),
        )
        .arg(
            Arg::new("typed-variable")
                .long("variable-expr")
                .value_name("NAME=EXPRESSION")
                .action(ArgAction::Append)
                .help("Sets a variable to the value of an expression over the document"),
        )
        .arg(Arg::new("base-uri").long("base-uri").value_name("URI").help(
            "Base URI of doc() and static-base-uri() [default: the file of the expression, or the working directory]",
        ))
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
    let given = matches.get_one::<String>("expression").map(String::as_str).unwrap_or_default();
    let texts = super::xslt::pairs(matches, "variable", "-v")?;
    let expressions = super::xslt::pairs(matches, "typed-variable", "--variable-expr")?;
    let from_file = matches.get_flag("file");
    let text = match from_file {
        true => String::from_utf8(super::read(given)?).map_err(|_| Failure::input(format!("{given}: not UTF-8")))?,
        false => given.to_owned(),
    };
    let text = &*text;
    let version = if matches.get_one::<String>("version").is_some_and(|version| version == "2.0") {
        Version::Two
    } else {
        Version::One
    };
    let of_file = from_file.then(|| given.to_owned());
    let mut context = StaticContext::new().version(version).variables(VariablePolicy::Any);
    if let Some(base) = matches.get_one::<String>("base-uri").cloned().or(of_file) {
        context = context.base_uri(base);
    }
    for binding in matches.get_many::<String>("namespace").into_iter().flatten() {
        let Some((prefix, uri)) = binding.split_once('=') else {
            return Err(Failure::usage(format!("`-n {binding}` must have the form PREFIX=URI")));
        };
        context = context.namespace(prefix, uri);
    }
    let wrong = |error: &XPathError| Failure::input(format!("{error}\n{}", penstock_xpath::underline(text, error)));
    let expression = XPath::compile(text, &context).map_err(|error| wrong(&error))?;
    let source = matches.get_one::<String>("source").map_or("-", String::as_str);
    let document = Arc::new(parse(source)?);
    let (session, root) = Session::with_document(document);
    let mut host = Files::default();
    for (name, value) in texts {
        host.variables.insert(name, Sequence::from(Item::Atomic(Atomic::Untyped(value.into()))));
    }
    for (name, value) in expressions {
        let invalid = |error: XPathError| Failure::input(format!("the variable `{name}`: {error}"));
        let compiled = XPath::compile(&value, &context).map_err(invalid)?;
        let cx = DynamicContext::new(&session, &host).with_node(root);
        let value = compiled.evaluate(&cx).map_err(invalid)?;
        host.variables.insert(name, value);
    }
    for variable in expression.variables() {
        if !host.variables.contains_key(&variable.lexical()) {
            return Err(Failure::input(format!("unknown variable `${}`: set it with -v", variable.lexical())));
        }
    }
    let cx = DynamicContext::new(&session, &host).with_node(root);
    let found = expression.evaluate(&cx).map_err(|error| wrong(&error))?;
    let mut out = String::new();
    for line in penstock_xpath::render(&found, &session, version == Version::One) {
        out.push_str(&line);
        out.push('\n');
    }
    super::print(&out);
    Ok(ExitCode::SUCCESS)
}

/// The variables of the command line, and files for `doc()`. Nothing is fetched from a network.
#[derive(Default)]
struct Files {
    variables: HashMap<String, Sequence>,
    /// A document that is named twice is one document.
    documents: RefCell<HashMap<String, Node>>,
}

impl Host for Files {
    fn variable(&self, name: &Name, _session: &Session) -> penstock_xpath::Result<Sequence> {
        let unknown = || XPathError::new("XPST0008", format!("unknown variable `${}`", name.lexical()));
        self.variables.get(&name.lexical()).cloned().ok_or_else(unknown)
    }

    fn document(&self, uri: &str, base: Option<&str>, session: &Session) -> penstock_xpath::Result<Node> {
        let unavailable = |message| XPathError::new("FODC0002", message);
        let found = FileResolver.resolve(uri, base.unwrap_or_default()).map_err(unavailable)?;
        if let Some(known) = self.documents.borrow().get(&found.uri) {
            return Ok(*known);
        }
        let options = ParseOptions { base_uri: Some(found.uri.clone().into()), ..ParseOptions::default() };
        let document =
            Document::parse(found.content, &options).map_err(|error| unavailable(format!("{}:{error}", found.uri)))?;
        let root = session.add(Arc::new(document));
        self.documents.borrow_mut().insert(found.uri, root);
        Ok(root)
    }
}

/// Reads and parses a document; `-` is standard input.
fn parse(source: &str) -> Result<Document, Failure> {
    let bytes = super::read(source)?;
    let base_uri = (source != "-").then(|| source.into());
    Document::parse(bytes, &ParseOptions { base_uri, ..ParseOptions::default() }).map_err(|error| {
        let name = if source == "-" { "<stdin>" } else { source };
        Failure::input(format!("{name}:{}:{}: {}", error.position.line, error.position.column, error.message))
    })
}
