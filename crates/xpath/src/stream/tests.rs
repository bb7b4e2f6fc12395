//! The stream must give what the tree gives.

use std::sync::Arc;

use penstock_xml::{Document, ParseOptions};

use super::{Answer, Stream, Surroundings, Virtual, Want};
use crate::{DynamicContext, NoHost, Session, StaticContext, XPath};

const ORDERS: &str = "<?xml version='1.0'?><o:orders xmlns:o='urn:o' n='1'>\
    <order id='a'><symbol>IBM</symbol><price>12</price></order>\
    <order id='b' o:id='z'><price>30</price><symbol>SU<![CDATA[N]]>&amp;Co</symbol><order><symbol>in</symbol></order></order>\
    <o:note>x<b>y</b><!-- c -->z</o:note><empty/></o:orders>";

fn context() -> StaticContext<'static> {
    StaticContext::new().namespace("o", "urn:o").namespace("s", "urn:soap").alias("body", "/s:Envelope/s:Body")
}

/// The answer from the tree.
fn from_tree(expression: &XPath, want: Want, document: &str) -> Answer {
    let document = Document::parse(document.to_owned(), &ParseOptions::default()).expect("a well-formed document");
    let (session, root) = Session::with_document(Arc::new(document));
    let cx = DynamicContext::new(&session, &NoHost).with_node(root);
    match want {
        Want::Text => Answer::Text(expression.evaluate_string(&cx).expect("a value").into_owned()),
        Want::Boolean => Answer::Boolean(expression.evaluate_boolean(&cx).expect("a value")),
        Want::Number => Answer::Number(expression.evaluate_number(&cx).expect("a value")),
    }
}

fn compile(text: &str) -> XPath {
    XPath::compile(text, &context()).expect("an expression")
}

/// The answer when the document arrives in pieces of this many bytes.
fn in_pieces(stream: &Stream, document: &str, size: usize) -> Answer {
    let mut run = stream.start(&Surroundings::default());
    let mut end = 0;
    loop {
        end = (end + size).min(document.len());
        match run.feed(&document.as_bytes()[..end], end == document.len()).expect("a well-formed document") {
            Answer::NeedMore => assert!(end < document.len(), "all of it has arrived"),
            answer => return answer,
        }
    }
}

fn same(left: &Answer, right: &Answer) -> bool {
    matches!((left, right), (Answer::Number(a), Answer::Number(b)) if a.is_nan() && b.is_nan()) || left == right
}

fn check_document(text: &str, document: &str) {
    let expression = compile(text);
    for want in [Want::Text, Want::Boolean, Want::Number] {
        let stream = Stream::compile(&expression, want).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = from_tree(&expression, want, document);
        for size in [1, 7, 64, 100_000] {
            let found = in_pieces(&stream, document, size);
            assert!(same(&found, &expected), "{text} as {want:?} in pieces of {size}: {found:?}, not {expected:?}");
        }
    }
}

#[test]
fn streams_and_trees_agree() {
    for text in [
        "//order[1]/symbol",
        "//order[2]/symbol",
        "//order[symbol='in']/symbol",
        "//symbol",
        "/o:orders/order/price",
        "/o:orders/order[2]/price",
        "/o:orders/order[position() > 1]/@id",
        "o:orders/@n",
        "//@id",
        "//@o:id",
        "//@*",
        "//order[@id='b']/symbol",
        "//order[@id != 'a']/symbol",
        "//order[not(@id)]/symbol",
        "//order[symbol='IBM']/price",
        "//order[price > 20]/symbol",
        "//order[price > 20 and @id]/@id",
        "//order[symbol][2]/price",
        "//order[order/symbol='in']/price",
        "//*[local-name()='order'][2]/symbol",
        "//*[starts-with(local-name(), 'no')]",
        "//o:note",
        "//o:*",
        "//note",
        "//o:note/text()",
        "//o:note//text()",
        "//b/text()",
        "//empty",
        "//empty/text()",
        "//nothing",
        "//nothing | //price",
        "//price | //symbol",
        "(//symbol)[1]",
        "//symbol[1] = 'in'",
        "//price = 30",
        "//price > 40",
        "'IBM' = //symbol",
        "//price != 12",
        "count(//symbol)",
        "count(//order | //price)",
        "count(//symbol) > 2",
        "not(//order)",
        "//order and //nothing",
        "//order or //nothing",
        "string(//order[1])",
        "concat('[', //symbol, '|', //@id, ']')",
        "number(//price) = 12",
        "contains(//symbol, 'B')",
        "normalize-space(//o:note)",
        "string-length(//symbol)",
        "descendant::order/symbol",
        "/descendant::price",
        "//order/.//symbol",
        "boolean(//price)",
        "'constant'",
    ] {
        check_document(text, ORDERS);
    }
}

#[test]
fn namespaces_follow_their_scope() {
    let document = "<a xmlns='urn:o'><b xmlns=''><c/>1</b><b>2</b><o:b xmlns:o='urn:x'>3</o:b></a>";
    for text in ["//b", "//o:b", "//o:a/b", "/o:a/o:b", "//*[namespace-uri()='urn:x']"] {
        check_document(text, document);
    }
}

#[test]
fn reasons_are_given() {
    let check = |text: &str, expected: &str| {
        let error = Stream::compile(&compile(text), Want::Text).expect_err("not streamable");
        assert_eq!(error.message(), expected, "{text}");
        assert!(!error.span().is_empty(), "{text} has a place");
    };
    check("//order[last()]", "`last()` is not known to the stream");
    check("//order/..", "the axis of this step (Parent) is not a forward one");
    check("//a/following-sibling::b", "the axis of this step (FollowingSibling) is not a forward one");
    check("//a = //b", "a comparison of nodes with nodes needs all of both");
    check("(//a)[2]", "a predicate on all nodes of an expression needs all of them");
    check("sum(//a)", "`sum()` is not known to the stream");
    check("//a[count(b)]", "a predicate with a computed number is not streamed");
    check(".", "the value of the context node as a whole needs all of it");
}

#[test]
fn a_plain_body_is_seen_inside_an_envelope() {
    let open = |local: &str| Virtual::Open { namespace: "urn:soap".into(), local: local.into() };
    let header = Virtual::Empty { namespace: "urn:soap".into(), local: "Header".into() };
    let surroundings = Surroundings {
        around: vec![open("Envelope"), header, open("Body")],
        context_depth: 1,
        ..Surroundings::default()
    };
    let check = |text: &str, expected: &str| {
        let stream = Stream::compile(&compile(text), Want::Text).expect("streamable");
        let answer = stream.answer(b"<order><symbol>IBM</symbol></order>", &surroundings).expect("well-formed");
        assert_eq!(answer, Answer::Text(expected.into()), "{text}");
    };
    check("$body/order/symbol", "IBM");
    check("$body/child::*[position()=1]", "IBM");
    check("s:Body/order[1]", "IBM");
    check("/s:Envelope/s:Body", "IBM");
    check("/s:Envelope/*[2]/order", "IBM");
    check("/s:Envelope/*[1]", "");
    check("count(//*)", "5");
}

#[test]
fn nothing_is_read_beyond_the_answer() {
    let stream = Stream::compile(&compile("//order[1]/symbol"), Want::Text).expect("streamable");
    let broken = format!("<orders><order><symbol>IBM</symbol></order>{}<<<", " ".repeat(5_000));
    let answer = stream.answer(broken.as_bytes(), &Surroundings::default()).expect("no mistake before the answer");
    assert_eq!(answer, Answer::Text("IBM".into()));
}

#[test]
fn documents_with_entities_are_left_to_the_tree() {
    let stream = Stream::compile(&compile("//a"), Want::Text).expect("streamable");
    let document = b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>";
    let answer = stream.answer(document, &Surroundings::default()).expect("well-formed");
    assert_eq!(answer, Answer::Unsuitable("it has a document type declaration"));
}
