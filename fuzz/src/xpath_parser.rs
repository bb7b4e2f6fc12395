//! The XPath parser, compiler and evaluator: any text compiles or is refused with a place inside it, and evaluation
//! ends in a value or an error, the same by every way of asking.

use std::sync::{Arc, OnceLock};

use penstock_xml::{Document, ParseOptions};
use penstock_xpath::{
    DynamicContext, NoHost, Pattern, Session, StaticContext, VariablePolicy, Version, XPath, XPathError,
};

/// What expressions are made of.
pub const DICTIONARY: &[&str] = &[
    "/",
    "//",
    "..",
    ".",
    "@",
    "::",
    "[",
    "]",
    "(",
    ")",
    ",",
    "|",
    "||",
    "!",
    "*",
    "+",
    "-",
    "=",
    "!=",
    "<",
    "<<",
    ">=",
    "$",
    "$x",
    "'",
    "\"",
    "(:",
    ":)",
    "1",
    "0.5",
    "1e3",
    " div ",
    " idiv ",
    " mod ",
    " and ",
    " or ",
    " to ",
    " eq ",
    " is ",
    " union ",
    " intersect ",
    " except ",
    " instance of xs:integer?",
    " cast as xs:date",
    " castable as xs:double",
    "for $x in ",
    " return ",
    "some $x in ",
    " satisfies ",
    "if (",
    ") then ",
    " else ",
    "let $x := ",
    "child::",
    "descendant::",
    "preceding::",
    "ancestor-or-self::",
    "namespace::",
    "following-sibling::",
    "text()",
    "node()",
    "element(a)",
    "position()",
    "last()",
    "count(",
    "string(",
    "concat(",
    "substring(",
    "translate(",
    "matches(",
    "replace(",
    "tokenize(",
    "format-number(",
    "format-date(",
    "xs:dateTime('2026-01-31T08:00:00Z')",
    "xs:dayTimeDuration('PT1H')",
    "sum(",
    "max(",
    "distinct-values(",
    "deep-equal(",
    "id('a')",
    "p:",
    "*:",
    "é",
    "round(",
    "normalize-space(",
    "reverse(",
];

/// Work one input may do; enough to reach everything, little enough to go on soon.
const FUEL: u64 = 100_000;

fn document() -> Arc<Document> {
    static DOCUMENT: OnceLock<Arc<Document>> = OnceLock::new();
    let source = "<!DOCTYPE r [<!ATTLIST a id ID #IMPLIED>]><r xmlns:p='urn:p' xml:lang='en'><a id='a'>1<b/>2</a><!--c-->\
                  <?t d?><p:a x='3' y='é'>t<a id='b'><a/>5</a></p:a> </r>";
    let parse = || Document::parse(source.as_bytes().to_vec(), &ParseOptions::default());
    Arc::clone(DOCUMENT.get_or_init(|| Arc::new(parse().expect("the document is well-formed"))))
}

/// Compiles and evaluates.
pub fn parser(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for version in [Version::One, Version::Two] {
        let context = StaticContext::new()
            .version(version)
            .namespace("p", "urn:p")
            .variables(VariablePolicy::Any)
            .alias("body", "/*/*[2]");
        match XPath::compile(text, &context) {
            Ok(compiled) => evaluate(&compiled),
            Err(error) => check_place(&error, text),
        }
        match Pattern::compile(text, &context) {
            Ok(pattern) => match_all(&pattern),
            Err(error) => check_place(&error, text),
        }
    }
}

fn check_place(error: &XPathError, text: &str) {
    assert!(text.get(error.span()).is_some(), "{error:?} points outside");
    assert!(!error.code().is_empty() && !error.message().is_empty());
}

fn evaluate(compiled: &XPath) {
    let (session, root) = Session::with_document(document());
    let cx = DynamicContext::new(&session, &NoHost).with_node(root);
    session.set_fuel(FUEL);
    let value = compiled.evaluate(&cx);
    if let Err(error) = &value
        && !matches!(error.code(), "FOER0000")
    {
        check_place(error, compiled.text());
    }
    session.set_fuel(FUEL);
    let boolean = compiled.evaluate_boolean(&cx);
    session.set_fuel(FUEL);
    let _ = compiled.evaluate_number(&cx);
    session.set_fuel(FUEL);
    let _ = compiled.evaluate_string(&cx);
    let Some(nodes) = value.as_ref().ok().and_then(penstock_xpath::Sequence::nodes) else { return };
    session.set_fuel(FUEL);
    let mut found = Vec::new();
    if compiled.nodes_into(&cx, &mut found).is_ok() {
        assert_eq!(found, nodes);
    }
    session.set_fuel(FUEL);
    if let Ok(first) = compiled.first_node(&cx) {
        assert_eq!(first, nodes.first().copied());
    }
    if let Ok(boolean) = boolean {
        assert_eq!(boolean, !nodes.is_empty());
    }
}

/// A node matches a pattern when the pattern, as an expression from some ancestor, selects it (XSLT 1.0 §5.2).
fn match_all(pattern: &Pattern) {
    let (session, root) = Session::with_document(document());
    let cx = DynamicContext::new(&session, &NoHost).with_node(root);
    let all = XPath::compile("/ | //node() | //@*", &StaticContext::new()).expect("a correct expression");
    let mut nodes = Vec::new();
    all.nodes_into(&cx, &mut nodes).expect("few nodes");
    for node in nodes {
        session.set_fuel(FUEL);
        let _ = pattern.matches(node, &cx);
    }
}
