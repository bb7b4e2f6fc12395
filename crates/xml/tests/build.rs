//! Building and querying trees.

use penstock_xml::{Document, NodeId, NodeKind, ParseOptions, TreeBuilder, WriteOptions, to_vec};

fn parse(text: &str) -> Document {
    Document::parse(text.to_owned(), &ParseOptions::default()).expect("a well-formed document")
}

fn text(document: &Document, id: NodeId) -> String {
    String::from_utf8(to_vec(document, id, &WriteOptions::default())).expect("what is written is UTF-8")
}

fn built(steps: impl FnOnce(&mut TreeBuilder)) -> String {
    let mut builder = TreeBuilder::new();
    steps(&mut builder);
    text(&builder.finish(), Document::ROOT)
}

#[test]
fn namespaces_are_declared_where_they_are_needed() {
    let found = built(|b| {
        b.start_element("p", "a", "urn:p");
        b.attribute("p", "x", "urn:p", "1");
        b.attribute("p", "y", "urn:q", "2");
        b.attribute("", "z", "urn:q", "3");
        b.start_element("", "b", "");
        b.start_element("", "c", "urn:c");
        b.start_element("", "d", "");
    });
    let expected = "<p:a xmlns:p=\"urn:p\" xmlns:ns0=\"urn:q\" p:x=\"1\" ns0:y=\"2\" ns0:z=\"3\">\
                    <b><c xmlns=\"urn:c\"><d xmlns=\"\"/></c></b></p:a>";
    assert_eq!(found, expected);
}

#[test]
fn text_and_attributes_come_together() {
    let found = built(|b| {
        b.start_element("", "a", "");
        b.attribute("", "x", "", "1");
        b.attribute("", "x", "", "2");
        b.text("1");
        b.text("");
        b.text("<2");
        b.attribute("", "late", "", "ignored");
        b.comment("c");
        b.processing_instruction("t", "d");
        b.end_element();
        b.end_element();
    });
    assert_eq!(found, "<a x=\"2\">1&lt;2<!--c--><?t d?></a>");
}

#[test]
fn copies_keep_their_namespaces() {
    let from = parse("<p:a xmlns:p='urn:p' xmlns='urn:d' xmlns:q='urn:q'><p:b q:x='1'><c/></p:b></p:a>");
    let root = from.root_element().expect("an element");
    let inner = from.first_child(root).expect("a child");
    let found = built(|b| {
        b.start_element("", "new", "");
        b.copy(&from, inner);
    });
    assert_eq!(found, "<new><p:b xmlns:p=\"urn:p\" xmlns=\"urn:d\" xmlns:q=\"urn:q\" q:x=\"1\"><c/></p:b></new>");
    assert_eq!(
        text(&from, inner),
        "<p:b xmlns:p=\"urn:p\" xmlns=\"urn:d\" xmlns:q=\"urn:q\" q:x=\"1\"><c/></p:b>",
        "a subtree is written with what is in scope"
    );
}

#[test]
fn a_document_is_parsed_into_another() {
    let mut builder = TreeBuilder::new();
    builder.start_element("s", "Envelope", "urn:s");
    builder.start_element("s", "Body", "urn:s");
    builder
        .append_parsed("<?xml version='1.0'?><a xmlns:s='urn:other'><s:b>x&amp;y</s:b></a>", &ParseOptions::default())
        .expect("well-formed");
    builder.append_parsed("<second/>", &ParseOptions::default()).expect("well-formed");
    let error = builder.append_parsed("<s:c/>", &ParseOptions::default()).expect_err("its own document");
    assert_eq!(error.to_string(), "1:2: the prefix `s` is not declared");
    builder.end_element();
    let document = builder.finish();
    assert_eq!(
        text(&document, Document::ROOT),
        "<s:Envelope xmlns:s=\"urn:s\"><s:Body><a xmlns:s=\"urn:other\"><s:b>x&amp;y</s:b></a><second/></s:Body></s:Envelope>"
    );
}

#[test]
fn axes() {
    let document = parse("<a b='1' xmlns:p='urn:p'>t<c><d/>u</c><!--e--><?f g?></a>");
    let root = document.root_element().expect("an element");
    let kinds: Vec<NodeKind> = document.children(root).map(|id| document.kind(id)).collect();
    use NodeKind::{Comment, Element, ProcessingInstruction, Text};
    assert_eq!(kinds, [Text, Element, Comment, ProcessingInstruction]);
    let backwards: Vec<NodeId> =
        std::iter::successors(document.last_child(root), |&id| document.previous_sibling(id)).collect();
    let mut forwards: Vec<NodeId> = document.children(root).collect();
    forwards.reverse();
    assert_eq!(backwards, forwards);
    let names: Vec<&str> = document.descendants(root).map(|id| document.local_name(id)).collect();
    assert_eq!(names, ["", "c", "d", "", "", "f"]);
    let deepest = document.descendants(root).nth(2).expect("an element");
    let ancestors: Vec<&str> = document.ancestors(deepest).map(|id| document.local_name(id)).collect();
    assert_eq!(ancestors, ["c", "a", ""]);
    let attribute = document.attribute_node(root, "", "b").expect("an attribute");
    assert_eq!((document.parent(attribute), document.next_sibling(attribute)), (Some(root), None));
    assert_eq!(document.in_scope_namespaces(deepest).count(), 2);
    assert_eq!(document.lookup_namespace(deepest, "p"), Some("urn:p"));
    assert_eq!(document.lookup_prefix(deepest, "urn:p"), Some("p"));
    assert!(root < attribute && attribute < deepest, "the order of ids is document order");
    assert_eq!(document.find_name("", "d"), Some(document.name_id(deepest)));
    assert_eq!(document.find_name("", "nothing"), None);
}

#[test]
fn every_node_has_its_place() {
    let source = "<?xml version='1.0'?>\n<a  b = '1'\n c=\"x&amp;y\">t&lt;<![CDATA[u]]><d>v</d\n><!--e--><?f g?></a>";
    let document = parse(source);
    let place = |id: NodeId| {
        let position = document.position(id);
        format!("{} {}", position, &source[document.span(id)])
    };
    let root = document.root_element().expect("an element");
    assert_eq!(document.position(root).to_string(), "2:1");
    assert_eq!(document.span(root).end, source.len());
    let attributes: Vec<String> = document.attributes(root).map(place).collect();
    assert_eq!(attributes, ["2:5 b = '1'", "3:2 c=\"x&amp;y\""]);
    let children: Vec<String> = document.children(root).map(place).collect();
    assert_eq!(children, ["3:14 t&lt;<![CDATA[u]]>", "3:32 <d>v</d\n>", "4:2 <!--e-->", "4:10 <?f g?>"]);
}

#[test]
fn declared_attributes_and_ids() {
    let document = parse(
        "<!DOCTYPE a [<!ATTLIST b i ID #REQUIRED t NMTOKENS ' p  q '><!NOTATION n SYSTEM 'n'>\
         <!ENTITY u PUBLIC 'pub' 'file:u' NDATA n>]><a><b i=' one '/><b i='two' t='x'/></a>",
    );
    let found = document.element_by_id("two").expect("an element");
    assert_eq!(document.attribute(found, "", "t"), Some("x"));
    let first = document.element_by_id("one").expect("an element");
    assert_eq!(document.attribute(first, "", "t"), Some("p q"));
    let entity = document.doctype().and_then(|doctype| doctype.unparsed_entity("u")).expect("an entity");
    assert_eq!((entity.public.as_deref(), &*entity.system, &*entity.notation), (Some("pub"), "file:u", "n"));
}

struct Strip;

impl penstock_xml::StripSpace for Strip {
    fn strips(&self, _: &str, local: &str) -> bool {
        local != "keep"
    }
}

#[test]
fn white_space_may_be_left_out() {
    let options = ParseOptions { strip_space: Some(std::sync::Arc::new(Strip)), ..ParseOptions::default() };
    let source =
        "<a>\n <b> x </b>\n <keep> </keep> <c xml:space='preserve'> <d> </d></c>\n<e>&#32;<![CDATA[ ]]></e></a>";
    let document = Document::parse(source, &options).expect("well-formed");
    assert_eq!(
        text(&document, Document::ROOT),
        "<a><b> x </b><keep> </keep><c xml:space=\"preserve\"> <d> </d></c><e/></a>"
    );
}
