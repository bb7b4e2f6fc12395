//! What is not well-formed is refused, with the place and a hint.

use std::sync::Arc;

use bytes::Bytes;
use penstock_xml::{DoctypePolicy, Document, ExternalPolicy, Limits, ParseOptions, Resolver, XmlError, XmlErrorKind};

fn parse(text: &str, options: &ParseOptions) -> Result<Document, XmlError> {
    Document::parse(text.to_owned(), options)
}

fn check(text: &str, expected: &str) {
    let error = parse(text, &ParseOptions::default()).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn tags() {
    check("", "1:1: the document ends before its first element");
    check("  x<a/>", "1:3: text before the document element");
    check("<a/>x", "1:5: text after the end of the document element");
    check("<a/><b/>", "1:5: a second element at the top of the document");
    check("</a>", "1:1: an end tag without a start tag");
    check("<a></b>", "1:4: `</b>` does not match `<a>`");
    check("<a></a b>", "1:7: this end tag is not closed with `>`");
    check("<a></ab>", "1:4: `</ab>` does not match `<a>`");
    check("< a/>", "1:2: a name is expected here, it cannot begin with ` `");
    check("<1/>", "1:2: a name is expected here, it cannot begin with `1`");
    check("<a<b/></a>", "1:3: this tag is not closed with `>`");
    check("<a/ >", "1:3: this start tag is not closed with `>`");
    check("<a:/>", "1:2: `a:` is not a prefix, one colon and a name");
    check("<:a/>", "1:2: `:a` is not a prefix, one colon and a name");
    check("<a:b:c/>", "1:2: `a:b:c` is not a prefix, one colon and a name");
    check("<a:1/>", "1:2: `a:1` is not a prefix, one colon and a name");
    check("<a×/>", "1:2: `a×` is not a name");
}

#[test]
fn attributes() {
    check("<a b/>", "1:4: the attribute `b` has no value");
    check("<a b=1/>", "1:6: the value of an attribute must stand in quotes");
    check("<a b='1'c='2'/>", "1:9: white space is missing before this attribute");
    check("<a b='<'/>", "1:7: `<` may not stand in the value of an attribute, write `&lt;`");
    check("<a b='&x;'/>", "1:8: the entity `x` is not declared");
    check("<a b='1'\n c='2' b='3'/>", "2:8: the attribute `b` is given twice");
    check(
        "<a xmlns:p='u' xmlns:q='u' p:b='' q:b=''/>",
        "1:1: two attributes of this element have the same namespace and name",
    );
}

#[test]
fn text() {
    check("<a>x & y</a>", "1:6: `&` must begin a reference, write `&amp;` for the character itself");
    check("<a>&lt</a>", "1:4: a reference must end with `;`; write `&amp;` for the character `&` itself");
    check("<a>&nbsp;</a>", "1:4: the entity `nbsp` is not declared");
    check("<a>&#0;</a>", "1:4: this character reference names no character that XML allows");
    check("<a>&#xD800;</a>", "1:4: this character reference names no character that XML allows");
    check("<a>&#99999999999;</a>", "1:4: this character reference names no character that XML allows");
    check("<a>&#x;</a>", "1:4: a character reference is `&#` with decimal or `&#x` with hexadecimal digits, then `;`");
    check("<a>x]]>y</a>", "1:5: `]]>` may not stand in text, write `]]&gt;`");
    check("<a><!-- -- --></a>", "1:9: `--` may not stand inside a comment");
    check("<a><![CDATA[x</a>", "1:18: the document ends inside `<a>`, which is never closed");
    check("<a><?xml version='1.0'?></a>", "1:4: an XML declaration may only stand at the very beginning of a document");
    check("<a><!x></a>", "1:4: `<!` begins neither a comment nor a CDATA section nor a document type declaration");
}

#[test]
fn namespaces() {
    check("<a p:b=''/>", "1:4: the prefix `p` is not declared");
    check("<a xmlns:p=''/>", "1:4: the prefix `p` cannot be undeclared");
    check("<a xmlns:xmlns='u'/>", "1:4: the prefix `xmlns` may not be declared");
    check("<a xmlns:xml='u'/>", "1:4: the prefix `xml` is bound to its own namespace and to no other");
    check(
        "<a xmlns='http://www.w3.org/2000/xmlns/'/>",
        "1:4: no prefix may be bound to `http://www.w3.org/2000/xmlns/`",
    );
    check("<a><b xmlns:p='u'/><p:c/></a>", "1:21: the prefix `p` is not declared");
}

#[test]
fn declarations() {
    check("<?xml version='2.0'?><a/>", "1:1: this is not XML 1.0");
    check("<?xml encoding='UTF-8'?><a/>", "1:1: the XML declaration has no version");
    check("<!DOCTYPE a [<!ENTITY e 'x'><a/>", "1:29: a declaration is expected here");
    check("<!DOCTYPE a [<!ELEMENT a (b,c|d)>]><a/>", "1:30: `|` and `,` may not be mixed in one group");
    check("<!DOCTYPE a [<!ATTLIST a b WRONG #IMPLIED>]><a/>", "1:33: `WRONG` is not a type of attribute");
    check("<!DOCTYPE a [%p;]><a/>", "1:14: the parameter entity `p` is not declared");
    check("<a/><!DOCTYPE a>", "1:5: a document type declaration may only stand once, before the document element");
    check(
        "<!DOCTYPE a [<!ENTITY e '<b>'>]><a>&e;</a>",
        "1:36: in the entity `e`: the document ends inside `<b>`, which is never closed",
    );
    check("<!DOCTYPE a [<!ENTITY e '</a>'>]><a>&e;</a>", "1:37: in the entity `e`: an end tag without a start tag");
    check(
        "<!DOCTYPE a [<!ENTITY e '<'>]><a b='&e;'/>",
        "1:37: the value of an attribute contains `<` through an entity, which is not allowed",
    );
}

fn limited(change: impl Fn(&mut Limits), text: &str) -> XmlErrorKind {
    let mut limits = Limits::DEFAULT;
    change(&mut limits);
    parse(text, &ParseOptions::with_limits(limits)).expect_err(text).kind
}

#[test]
fn limits_hold() {
    let limit = XmlErrorKind::Limit;
    assert_eq!(limited(|limits| limits.depth_max = 2, "<a><b><c/></b></a>"), limit);
    assert_eq!(limited(|limits| limits.attributes_max = 1, "<a b='' c=''/>"), limit);
    assert_eq!(limited(|limits| limits.name_bytes_max = 3, "<abcd/>"), limit);
    assert_eq!(limited(|limits| limits.nodes_max = 5, "<a>1<b/>2<b/>3</a>"), XmlErrorKind::TooManyNodes { limit: 5 });
    assert_eq!(limited(|limits| limits.source_bytes_max = 3, "<a/>"), limit);
}

#[test]
fn entities_cannot_explode() {
    let mut laughs = String::from("<!DOCTYPE a [<!ENTITY e0 'ha'>");
    for level in 1..12 {
        laughs += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
    }
    let in_text = format!("{laughs}]><a>&e11;</a>");
    let in_value = format!("{laughs}]><a b='&e11;'/>");
    let quadratic = format!("<!DOCTYPE a [<!ENTITY e '{}'>]><a>{}</a>", "x".repeat(50_000), "&e;".repeat(50_000));
    for text in [&in_text, &in_value, &quadratic] {
        let error = parse(text, &ParseOptions::default()).expect_err("a limit");
        assert_eq!(error.kind, XmlErrorKind::Limit, "{error}");
    }
}

#[test]
fn a_doctype_may_be_refused() {
    let options = ParseOptions { doctype: DoctypePolicy::Refuse, ..ParseOptions::default() };
    assert_eq!(parse("<!DOCTYPE a><a/>", &options).expect_err("refused").kind, XmlErrorKind::DoctypeRefused);
}

struct Files;

impl Resolver for Files {
    fn resolve(&self, _: Option<&str>, system: &str, base: Option<&str>) -> Result<Option<Bytes>, String> {
        assert_eq!(base, Some("memory:/a.xml"));
        match system {
            "text.xml" => Ok(Some("<?xml encoding='UTF-8'?>x<b/>".into())),
            "some.dtd" => Ok(Some(
                "<!ENTITY % on 'INCLUDE'><!ENTITY % type 'CDATA'><![%on;[<!ATTLIST a c %type; 'd'>]]><![IGNORE[<]]>\
                 <!ENTITY % part 'y'><!ENTITY e 'x%part;z'>"
                    .into(),
            )),
            "error" => Err("it is on fire".into()),
            _ => Ok(None),
        }
    }
}

#[test]
fn nothing_outside_is_read_without_a_resolver() {
    let external = "<!DOCTYPE a [<!ENTITY e SYSTEM 'text.xml'>]><a>1&e;2</a>";
    let document = parse(external, &ParseOptions::default()).expect("the reference is left out");
    assert_eq!(document.string_value(Document::ROOT), "12");
    let strict = ParseOptions { external: ExternalPolicy::Error, ..ParseOptions::default() };
    assert_eq!(
        parse(external, &strict).expect_err("an error").to_string(),
        "1:49: `text.xml` is outside the document and is not read"
    );
    let options = ParseOptions {
        resolver: Some(Arc::new(Files)),
        base_uri: Some("memory:/a.xml".into()),
        ..ParseOptions::default()
    };
    let document = parse(external, &options).expect("a document");
    assert_eq!(document.string_value(Document::ROOT), "1x2");
    let root = document.root_element().expect("an element");
    assert_eq!(document.children(root).count(), 3);
    let document = parse("<!DOCTYPE a SYSTEM 'some.dtd'><a>&e;</a>", &options).expect("a document");
    let root = document.root_element().expect("an element");
    assert_eq!((document.attribute(root, "", "c"), &*document.string_value(root)), (Some("d"), "xyz"));
    assert_eq!(
        parse("<!DOCTYPE a [<!ENTITY e SYSTEM 'error'>]><a>&e;</a>", &options).expect_err("an error").to_string(),
        "1:45: `error` cannot be read: it is on fire"
    );
}

/// Malformed files are rejected with a place.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_of_malformed_files_is_rejected() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi/malformed");
    let entries = std::fs::read_dir(&folder).expect("the folder of malformed files");
    let mut tried = 0;
    for entry in entries.flatten() {
        let bytes = std::fs::read(entry.path()).expect("a readable file");
        if let Err(error) = Document::parse(bytes, &ParseOptions::default()) {
            assert!(error.position.line > 0, "{}: {error}", entry.path().display());
            tried += 1;
        }
    }
    assert!(tried > 0, "none of them is broken");
}
