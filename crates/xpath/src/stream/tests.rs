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

/// What is passed over without a closer look must still be read for what it is.
#[test]
fn what_is_skipped_does_not_change_the_answer() {
    const EXPRESSIONS: [&str; 12] = [
        "//last/symbol",
        "//o:last/symbol",
        "/a/last/symbol",
        "/o:a/last/symbol",
        "//last/@n",
        "//last[2]/symbol",
        "//last[@n='1']/symbol",
        "//last[symbol='in']/symbol",
        "count(//last)",
        "//last/text()",
        "//symbol",
        "count(//*)",
    ];
    const LAST: &str = "<last n='1'>text<symbol>in</symbol></last>";
    for skipped in [
        "",
        "text",
        "<x/>",
        "<x />",
        "<x></x>",
        "<x>text</x >",
        "<x><x><x><y/>text</x></x></x>",
        "<x>a &lt; b &#65; <y>c &amp; d</y></x>",
        "<x a='&lt;last>&amp;&#x3c;/x>' b=\"'\">t</x>",
        "<x a='>/>' b='\"'/>",
        "<x a='1>2'>t</x>",
        "<x><![CDATA[<last><symbol>no</symbol></last>]]></x>",
        "<x><![CDATA[</x>]]><![CDATA[]]>]</x>",
        "<x>]] ></x><x>]</x>",
        "<!-- <last><symbol>no</symbol></last> > --><x><!----></x>",
        "<?pi <last><symbol>no</symbol></last> ?><x><?p?></x>",
        "<x xmlns='urn:o'><last><symbol>no</symbol></last></x>",
        "<x xmlns='urn:o'><y/><last/></x>",
        "<x xmlns='urn:o'><y><z/></y></x><last n='2'/>",
        "<x xmlns='urn:o' xmlns:q='urn:q'><y xmlns=''><last n='3'><symbol>plain</symbol></last></y><q:last/></x>",
        "<x xmlns='urn:o'><y/></x><x><last/></x>",
        "<x xmlns='urn:o'/><last><symbol>plain</symbol></last>",
        "<q:x xmlns:q='urn:o'><q:last><symbol>prefixed</symbol></q:last></q:x>",
        "<o:x xmlns:o='urn:other'><o:last><symbol>other</symbol></o:last></o:x>",
        "<x\u{E4}>\u{2028}</x\u{E4}><x.-\u{B7}/>",
        "<x>\r\n</x\r\n>",
        "<x><lastx><symbol>no</symbol></lastx><las><symbol/></las></x>",
        "<last><x/></last>",
        "<symbol>early</symbol>",
    ] {
        for text in EXPRESSIONS {
            check_document(text, &format!("<a>{skipped}{LAST}</a>"));
            check_document(text, &format!("<a xmlns='urn:o'><b xmlns=''>{skipped}</b>{skipped}{LAST}{skipped}</a>"));
            check_document(
                text,
                &format!("<?xml version='1.0'?><!-- c --><a xmlns:o='urn:o'>{skipped}<o:last/></a><?p?>"),
            );
        }
    }
}

/// What the tree refuses before the place of the answer, the stream does not answer for.
#[test]
fn what_is_skipped_is_checked() {
    let stream = Stream::compile(&compile("//last/symbol"), Want::Text).expect("streamable");
    let gives_up = |answer: &Result<Answer, _>| matches!(answer, Err(_) | Ok(Answer::Unsuitable(_)));
    let refused = |document: &[u8]| {
        assert!(Document::parse(document.to_vec(), &ParseOptions::default()).is_err(), "{}", document.escape_ascii());
        // The names were seen before, so that the quick way is the one that is tried.
        let whole = [b"<a><x>1</x><y/>", document, b"</a>"].concat();
        let answer = stream.answer(&whole, &Surroundings::default());
        assert!(gives_up(&answer), "{}: {answer:?}", document.escape_ascii());
        let mut run = stream.start(&Surroundings::default());
        let mut ends = (1..=whole.len()).step_by(1 + whole.len() / 100).chain([whole.len()]);
        let in_pieces = ends.any(|end| gives_up(&run.feed(&whole[..end], end == whole.len())));
        assert!(in_pieces, "{} in pieces", document.escape_ascii());
    };
    for document in [
        "<x>1</y>",
        "<x>1</x",
        "<x><y></x></y>",
        "<x>1</xx>",
        "<x>1</ x>",
        "<x>]]></x>",
        "<x><y/>]]></x>",
        "<x>&nothing;</x>",
        "<x>&#0;</x>",
        "<x>a & b</x>",
        "<x a=1/>",
        "<x a='1' a='2'/>",
        "<x a='<'/>",
        "<x a='1'b='2'/>",
        "<x/ >",
        "<1/>",
        "<x><></></x>",
        "<x><!-- -- --></x>",
        "<x><?xml version='1.0'?></x>",
        "<x>\u{1}</x>",
        "<x>\u{FFFF}</x>",
        "<x:y:z/>",
    ] {
        refused(document.as_bytes());
    }
    refused(b"<x>\xFF</x>");
    refused(b"<x\xC3>1</x\xC3>");
    let deep = "<x>".repeat(100_000);
    refused(deep.as_bytes());
}

#[test]
fn other_encodings_and_document_types_are_left_to_the_tree() {
    let stream = Stream::compile(&compile("//last/symbol"), Want::Text).expect("streamable");
    let document = "<a><x/><last><symbol>in</symbol></last></a>";
    let little: Vec<u8> = "\u{FEFF}".chars().chain(document.chars()).flat_map(|c| (c as u16).to_le_bytes()).collect();
    let big: Vec<u8> = "\u{FEFF}".chars().chain(document.chars()).flat_map(|c| (c as u16).to_be_bytes()).collect();
    for bytes in [little, big, format!("<?xml version='1.0' encoding='ISO-8859-1'?>{document}").into()] {
        assert!(stream.answer(&bytes, &Surroundings::default()).is_err(), "{}", bytes.escape_ascii());
    }
    for subset in
        ["<!ENTITY e 'x'>", "<!ATTLIST last n CDATA '1'>", "<!ENTITY e '<last><symbol>no</symbol></last>'>", ""]
    {
        let document = format!("<!DOCTYPE a [{subset}]>{document}");
        let answer = stream.answer(document.as_bytes(), &Surroundings::default()).expect("well-formed");
        assert_eq!(answer, Answer::Unsuitable("it has a document type declaration"), "{subset}");
    }
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
