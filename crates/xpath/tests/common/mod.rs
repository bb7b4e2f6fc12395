//! What the tables of tests share: one document, and a way to ask it.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test program uses its own part of this, and a panic is the report"
)]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_xml::{Document, ParseOptions};
use penstock_xpath::ast::Name;
use penstock_xpath::{
    DynamicContext, FunctionRef, Host, HostCall, Node, Resolver, Result, ResultKind, Sequence, Session, StaticContext,
    Version, XPath, render,
};

pub const ORDERS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE orders [<!ATTLIST order id ID #IMPLIED>]>
<orders xmlns:p="urn:p" xml:lang="en-GB">
 <order id="a1" rush="yes"><symbol>IBM</symbol><price>10.5</price><qty>3</qty></order>
 <order id="a2"><symbol>SUN</symbol><price>25</price><qty>1</qty><!-- note --></order>
 <?sort by="price"?>
 <order id="a3"><symbol>WSO2</symbol><price>30</price><qty>7</qty><p:note>über <b>all</b></p:note></order>
 <group><order id="b1"><symbol>HP</symbol><price>n/a</price></order><group><order id="b2"/></group></group>
</orders>"#;

pub fn parse(source: &str) -> Arc<Document> {
    Arc::new(Document::parse(source.as_bytes().to_vec(), &ParseOptions::default()).unwrap())
}

/// A host with two variables, one function and a clock that stands still.
pub struct TestHost;

impl Host for TestHost {
    fn variable(&self, name: &Name, _: &Session) -> Result<Sequence> {
        Ok(match &*name.lexical() {
            "ctx:id" => Sequence::from("a2"),
            "n" => Sequence::from(2.0),
            "empty" => Sequence::Empty,
            other => Sequence::from(format!("<{other}>")),
        })
    }

    fn call(&self, call: &HostCall<'_>) -> Result<Sequence> {
        let arguments: Vec<String> = (0..call.arguments.len()).map(|index| call.string(index)).collect();
        Ok(Sequence::from(format!("{}({})", call.name.lexical(), arguments.join(","))))
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(1_779_021_296_789)
    }
}

pub struct TestResolver;

impl Resolver for TestResolver {
    fn function(&self, name: &Name, _: usize) -> Option<FunctionRef> {
        (&*name.local == "get-property").then_some(FunctionRef { index: 7, result: ResultKind::String })
    }
}

pub fn context(version: Version) -> StaticContext<'static> {
    StaticContext::new()
        .version(version)
        .namespace("p", "urn:p")
        .variables(penstock_xpath::VariablePolicy::Any)
        .alias("body", "/orders")
        .resolver(&TestResolver)
}

/// The value as text, items separated by ` | `, or the code of the error.
pub fn ask(expression: &str, version: Version) -> String {
    let (session, root) = Session::with_document(parse(ORDERS));
    ask_at(expression, &context(version), &session, root)
}

pub fn ask_at(expression: &str, context: &StaticContext<'_>, session: &Session, node: Node) -> String {
    let compiled = match XPath::compile(expression, context) {
        Ok(compiled) => compiled,
        Err(error) => return format!("static {}", error.code()),
    };
    let cx = DynamicContext::new(session, &TestHost).with_node(node);
    let answer = match compiled.evaluate(&cx) {
        Ok(value) => render(&value, session, true).join(" | "),
        Err(error) => return error.code().to_string(),
    };
    agree(&compiled, &cx);
    answer
}

/// The short ways must give what the long way gives.
fn agree(compiled: &XPath, cx: &DynamicContext<'_>) {
    let Ok(value) = compiled.evaluate(cx) else { return };
    let text = compiled.text();
    if let (Ok(short), Some(first)) = (compiled.evaluate_string(cx), value.first()) {
        let long = match first {
            penstock_xpath::ItemRef::Node(node) => cx.session.string_value(node).into_owned(),
            penstock_xpath::ItemRef::Atomic(atomic) => atomic.to_text(short != atomic.to_text(false)).into_owned(),
        };
        assert_eq!(short, long, "evaluate_string of {text}");
    }
    if let Some(nodes) = value.nodes()
        && !value.is_empty()
    {
        let mut found = Vec::new();
        compiled.nodes_into(cx, &mut found).unwrap();
        assert_eq!(found, nodes, "nodes_into of {text}");
        assert_eq!(compiled.first_node(cx).unwrap(), nodes.first().copied(), "first_node of {text}");
        assert!(compiled.evaluate_boolean(cx).unwrap(), "evaluate_boolean of {text}");
    }
}

#[track_caller]
pub fn check_all(version: Version, table: &[(&str, &str)]) {
    let failures: Vec<String> = table
        .iter()
        .filter_map(|(expression, expected)| {
            let found = ask(expression, version);
            (found != *expected).then(|| format!("{expression}\n   expected {expected}\n   found    {found}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} wrong:\n{}", failures.len(), table.len(), failures.join("\n"));
}
