//! The expressions of published artifacts.

use penstock_xpath::ast::Name;
use penstock_xpath::{FunctionRef, Resolver, ResultKind, StaticContext, VariablePolicy, XPath, underline};

/// The functions that mediation adds.
struct Mediation;

impl Resolver for Mediation {
    fn function(&self, name: &Name, _: usize) -> Option<FunctionRef> {
        let known = ["get-property", "url-encode", "base64Encode", "base64Decode", "json-eval", "vault-lookup"];
        known.contains(&&*name.local).then_some(FunctionRef { index: 0, result: ResultKind::Any })
    }
}

/// The fields of one line of a table separated by commas.
fn fields(line: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let last = found.len() - 1;
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                found[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            _ => found[last].push(c),
        }
    }
    found
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_expressions_compile() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/mi/expressions.csv");
    let table = std::fs::read_to_string(path).unwrap();
    let context = StaticContext::new()
        .variables(VariablePolicy::Any)
        .allow_undeclared_prefixes(true)
        .alias("body", "/*/*[local-name() = 'Body']")
        .alias("header", "/*/*[local-name() = 'Header']")
        .alias("env", "/*")
        .resolver(&Mediation);
    let (mut compiled, mut refused) = (0, Vec::new());
    for line in table.lines().skip(1) {
        let fields = fields(line);
        let [_, _, expression, kind, ..] = fields.as_slice() else { continue };
        if kind != "xpath" {
            continue;
        }
        match XPath::compile(expression, &context) {
            Ok(_) => compiled += 1,
            Err(error) => {
                assert!(error.span().end <= expression.len());
                refused.push(format!("{error}\n{}", underline(expression, &error)));
            }
        }
    }
    eprintln!("{compiled} compiled, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(compiled > 700, "{compiled} compiled");
    assert!(refused.len() <= REFUSED_MAX, "{} refused", refused.len());
}

/// Wrong in the table itself: an empty one, a missing axis, misspelt functions, and three calls of a function that its
/// project brings along.
const REFUSED_MAX: usize = 7;
