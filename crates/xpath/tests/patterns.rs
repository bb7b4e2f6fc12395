//! Patterns: which nodes they match, their priorities, and what can be dispatched on.
#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod common;

use std::fmt::Write;

use common::{context, parse};
use penstock_xpath::{DynamicContext, Node, Pattern, Session, Version};

/// Names of the nodes that match, in document order.
fn matching(pattern: &str) -> String {
    let context = context(Version::One);
    let pattern = match Pattern::compile(pattern, &context) {
        Ok(pattern) => pattern,
        Err(error) => return format!("{} {:?}", error.code(), error.span()),
    };
    let (session, root) = Session::with_document(parse(common::ORDERS));
    let all = penstock_xpath::XPath::compile("/ | //node() | //@*", &context).unwrap();
    let cx = DynamicContext::new(&session, &common::TestHost).with_node(root);
    let mut nodes = Vec::new();
    all.nodes_into(&cx, &mut nodes).unwrap();
    let mut shown = String::new();
    for node in nodes {
        if pattern.matches(node, &cx).unwrap() {
            let _ = write!(shown, "{} ", label(&session, node));
        }
    }
    shown.trim_end().to_string()
}

fn label(session: &Session, node: Node) -> String {
    let document = session.document_of(node);
    let name = document.name(node.id).to_string();
    let id = document.attribute(node.id, "", "id").unwrap_or_default();
    match document.kind(node.id) {
        penstock_xml::NodeKind::Document => "/".to_string(),
        penstock_xml::NodeKind::Attribute => format!("@{name}={}", document.text(node.id)),
        penstock_xml::NodeKind::Text => format!("'{}'", document.text(node.id).trim()),
        penstock_xml::NodeKind::Element => format!("{name}{id}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn matches() {
    for (pattern, expected) in [
        ("/", "/"),
        ("symbol", "symbol symbol symbol symbol"),
        ("order[@rush]", "ordera1"),
        ("order[1]", "ordera1 orderb1 orderb2"),
        ("order[2]", "ordera2"),
        ("order[last()]", "ordera3 orderb1 orderb2"),
        ("order[position() > 1]", "ordera2 ordera3"),
        ("order[symbol][2]", "ordera2"),
        ("order[2][symbol]", "ordera2"),
        ("orders/order", "ordera1 ordera2 ordera3"),
        ("group/order", "orderb1 orderb2"),
        ("/orders/order[qty > 2]", "ordera1 ordera3"),
        ("/order", ""),
        ("//group", "group group"),
        ("orders//order/symbol/text()", "'IBM' 'SUN' 'WSO2' 'HP'"),
        ("group//order", "orderb1 orderb2"),
        ("group//group/order", "orderb2"),
        ("/orders//b", "b"),
        ("@rush", "@rush=yes"),
        ("order/@rush", "@rush=yes"),
        ("symbol/@rush", ""),
        ("@*", "@xml:lang=en-GB @id=a1 @rush=yes @id=a2 @id=a3 @id=b1 @id=b2"),
        ("p:*", "p:note"),
        ("p:note/b", "b"),
        ("comment()", "Comment"),
        ("processing-instruction()", "ProcessingInstruction"),
        ("processing-instruction('sort')", "ProcessingInstruction"),
        ("processing-instruction('x')", ""),
        ("symbol | price[. > 20]", "symbol symbol price symbol price symbol"),
        ("id('a1')", "ordera1"),
        ("id('a1 a2')/symbol", "symbol symbol"),
        ("id('a1')//text()", "'IBM' '10.5' '3'"),
        ("b/text()", "'all'"),
        ("child::b", "b"),
        ("attribute::rush", "@rush=yes"),
        ("order[current()/@rush]", "ordera1"),
        ("..", "XTSE0340 0..2"),
        ("ancestor::a", "XTSE0340 0..11"),
        ("a | 1", "XTSE0340 4..5"),
        ("concat('a', 'b')", "XTSE0340 0..16"),
        ("a/", "XPST0003 2..2"),
        ("descendant::a", "XTSE0340 0..13"),
    ] {
        assert_eq!(matching(pattern), expected, "{pattern}");
    }
    assert_eq!(
        matching("node()").split(' ').count(),
        matching("* | text() | comment() | processing-instruction()").split(' ').count()
    );
}

#[test]
fn priorities_and_keys() {
    let context = context(Version::One);
    for (pattern, expected) in [
        ("a", "0 Element key"),
        ("p:a", "0 Element key"),
        ("@a", "0 Attribute key"),
        ("*", "-0.5 AnyElement key"),
        ("@*", "-0.5 AnyAttribute key"),
        ("p:*", "-0.25 AnyElement"),
        ("text()", "-0.5 Text key"),
        ("node()", "-0.5 AnyChild key"),
        ("@node()", "-0.5 AnyAttribute key"),
        ("comment()", "-0.5 Comment key"),
        ("processing-instruction()", "-0.5 ProcessingInstruction key"),
        ("processing-instruction('a')", "0 ProcessingInstruction"),
        ("/", "0.5 Document key"),
        ("a/b", "0.5 Element"),
        ("a[1]", "0.5 Element"),
        ("/a", "0.5 Element"),
        ("//a", "0.5 Element"),
        ("id('a')", "0.5 Anything"),
        ("id('a')/b", "0.5 Element"),
    ] {
        let compiled = Pattern::compile(pattern, &context).unwrap();
        let alternative = &compiled.alternatives()[0];
        let key = format!("{:?}", alternative.key());
        let key = key.split('(').next().unwrap();
        let only = if alternative.is_key_only() { " key" } else { "" };
        assert_eq!(format!("{} {key}{only}", alternative.default_priority()), expected, "{pattern}");
    }
}
