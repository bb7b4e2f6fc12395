//! The XML reader and everything made from what it reads.

use penstock_xml::{Document, Limits, NodeKind, ParseOptions, Reader, Token, TreeBuilder, WriteOptions, to_vec};

/// What XML is made of.
pub const DICTIONARY: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "<a>",
    "</a>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "?>",
    "<?xml version='1.0'?>",
    "&",
    "&amp;",
    "&#x41;",
    "&#0;",
    "&e;",
    "%p;",
    "<!DOCTYPE a [",
    "]>",
    "<!ENTITY e '",
    "<!ENTITY % p '",
    "<!ATTLIST a b ",
    "<!ELEMENT a ",
    "CDATA",
    "ID",
    "NMTOKENS",
    "#IMPLIED",
    "#FIXED",
    " xmlns='u'",
    " xmlns:p='u'",
    " xmlns=''",
    "p:",
    "xml:space='preserve'",
    "='",
    "=\"",
    "\r\n",
    "\t",
    "\u{FEFF}",
    "\u{E9}",
    "\u{FFFE}",
    " encoding='UTF-16'",
    " encoding='ISO-8859-1'",
    "SYSTEM 's'",
    "PUBLIC 'p' 's'",
    "NDATA n",
];

/// Small enough that no input is slow, large enough that every limit is reached by some.
pub const LIMITS: Limits = Limits {
    source_bytes_max: 1 << 20,
    depth_max: 64,
    attributes_max: 64,
    name_bytes_max: 256,
    entity_bytes_max: 1 << 16,
    entity_depth_max: 8,
    nodes_max: 1 << 16,
};

/// Parsing ends, in a document or in an error with a place. A document is consistent, survives being written and read
/// again, and gives the same tokens however it arrives.
pub fn reader(data: &[u8]) {
    let options = ParseOptions::with_limits(LIMITS);
    tokens_in_pieces(data, &options);
    let Ok(document) = Document::parse(data.to_vec(), &options) else { return };
    consistent(&document);
    let written = to_vec(&document, Document::ROOT, &WriteOptions::default());
    let again = match Document::parse(written.clone(), &ParseOptions::default()) {
        Ok(again) => again,
        Err(error) => panic!("what was written is not well-formed: {error}\n{}", String::from_utf8_lossy(&written)),
    };
    let twice = to_vec(&again, Document::ROOT, &WriteOptions::default());
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&twice), "writing is stable");
    let mut copy = TreeBuilder::new();
    copy.copy(&document, Document::ROOT);
    same_content(&document, &copy.finish());
    inside_another(data, &options, &written);
}

/// All but declarations is the same: a copy leaves out those that repeat what is in scope.
fn same_content(document: &Document, copy: &Document) {
    let content = |document: &Document| -> Vec<String> {
        let describe = |id| {
            let name = document.name(id);
            format!("{:?} {{{}}}{} {}", document.kind(id), name.namespace, name.local, document.text(id))
        };
        let nodes = document.descendants(Document::ROOT);
        nodes.flat_map(|id| std::iter::once(id).chain(document.attributes(id))).map(describe).collect()
    };
    assert_eq!(content(document), content(copy), "a copy has the same content");
}

/// A document put into an element with a namespace of its own keeps its meaning.
fn inside_another(data: &[u8], options: &ParseOptions, written: &[u8]) {
    let mut outer = TreeBuilder::new();
    outer.start_element("", "outer", "urn:outer");
    outer.declare_namespace("p", "urn:other");
    outer.append_parsed(data.to_vec(), options).expect("it was parsed before");
    let outer = outer.finish();
    consistent(&outer);
    let root = outer.root_element().expect("it was started above");
    let inner = outer.children(root).find(|&child| outer.is_element(child)).expect("a document has an element");
    let alone = Document::parse(written.to_vec(), &ParseOptions::default()).expect("it was parsed before");
    let element = alone.root_element().expect("a document has an element");
    assert_eq!(outer.namespace(inner), alone.namespace(element), "its name means the same inside");
    assert_eq!(outer.string_value(inner), alone.string_value(element), "its text is the same inside");
}

fn consistent(document: &Document) {
    for index in document.subtree(Document::ROOT) {
        let Some(id) = document.descendants(Document::ROOT).find(|id| id.index() >= index) else { break };
        if id.index() != index {
            continue;
        }
        let span = document.span(id);
        assert!(span.start <= span.end && span.end <= document.source().len(), "a span lies in the source");
        let _ = (document.position(id), document.name(id), document.string_value(id));
        if let Some(next) = document.next_sibling(id) {
            assert_eq!(document.previous_sibling(next), Some(id), "siblings agree");
        }
        if let Some(last) = document.last_child(id) {
            assert_eq!(document.next_sibling(last), None, "the last child is the last");
            assert_eq!(document.children(id).last(), Some(last), "the last child is among the children");
        }
        if document.kind(id) == NodeKind::Element {
            assert!(document.in_scope_namespaces(id).count() > 0, "the prefix `xml` is always in scope");
            document.attributes(id).for_each(|attribute| {
                let _ = (document.position(attribute), document.span(attribute));
            });
        }
        // The check above is quadratic; a prefix of a large document is enough.
        if index > 300 {
            break;
        }
    }
}

/// However the input is cut, the tokens are the same.
fn tokens_in_pieces(data: &[u8], options: &ParseOptions) {
    if data.len() > 4096 {
        return;
    }
    let whole = tokens(data, data.len().max(1), options);
    let step = 1 + usize::from(data.first().copied().unwrap_or(0) % 13);
    let pieces = tokens(data, step, options);
    assert_eq!(whole, pieces, "the same tokens in pieces of {step}");
}

fn tokens(data: &[u8], step: usize, options: &ParseOptions) -> Vec<(Token, String)> {
    let mut found = Vec::new();
    let mut end = step.min(data.len());
    let mut reader =
        if end == data.len() { Reader::new(data, options) } else { Reader::partial(&data[..end], options) };
    loop {
        match reader.advance() {
            Ok(Token::NeedMore) => {
                end = (end + step).min(data.len());
                reader = Reader::resume(reader.suspend(), &data[..end], end == data.len());
            }
            Ok(Token::EndOfInput) => return found,
            Ok(token) => {
                let text = match token {
                    Token::Start | Token::Empty => reader.element_name().as_str().to_owned(),
                    Token::Doctype => String::new(),
                    _ => reader.content().to_owned(),
                };
                found.push((token, text));
            }
            Err(error) => {
                // The place of a forbidden character is noticed a window ahead, so only the fact is compared.
                let _ = error.to_string();
                found.clear();
                return found;
            }
        }
    }
}
