//! Documents of one thread share their names; none may see that.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use penstock_xml::{Document, NameId, NodeId, ParseOptions, Reader, Token, TreeBuilder, WriteOptions, to_vec};

/// Everything that can be seen of the names of a document.
fn seen(document: &Document) -> Vec<String> {
    let mut nodes: Vec<NodeId> = vec![Document::ROOT];
    for element in document.descendants(Document::ROOT) {
        nodes.push(element);
        nodes.extend(document.namespace_declarations(element));
        nodes.extend(document.attributes(element));
    }
    let mut first: HashMap<NameId, usize> = HashMap::new();
    let names = nodes.iter().enumerate().map(|(index, &node)| {
        let (name, id) = (document.name(node), document.name_id(node));
        assert_eq!(document.find_name(name.namespace, name.local), Some(id), "{name:?}");
        // Which names are equal, not by which number.
        let alike = *first.entry(id).or_insert(index);
        format!("{:?} {name:?} {:?} {alike}", document.kind(node), document.text(node))
    });
    let written = String::from_utf8(to_vec(document, Document::ROOT, &WriteOptions::default())).unwrap();
    names.collect::<Vec<_>>().into_iter().chain([written]).collect()
}

fn alone<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(work).join().unwrap()
}

fn parse(text: &str) -> Document {
    Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).unwrap()
}

/// Documents with the same names in other places, other prefixes for one namespace, other namespaces for one prefix.
fn documents() -> Vec<String> {
    let mut documents = Vec::new();
    for round in 0..40 {
        let (one, two) = (round % 3, round % 5);
        documents.push(format!("<a x='1' p{one}:x='2' xmlns:p{one}='u{two}'><p{one}:a/><b{round}><a/></b{round}></a>"));
        documents.push(format!("<p{two}:a xmlns:p{two}='u{one}'><x xmlns='u{two}'><a xmlns=''/></x></p{two}:a>"));
        documents.push(format!(
            "<!DOCTYPE a [<!ENTITY e '<n{round}>t</n{round}>'><!ATTLIST a d CDATA 'v'>]><a>&e;<n{one}/><?pi{two} x?></a>"
        ));
    }
    // More names than are kept.
    let many: String = (0..400).map(|number| format!("<m{number} k{number}='v'/>")).collect();
    documents.insert(60, format!("<many xmlns='u1'>{many}</many>"));
    documents
}

#[test]
fn a_document_is_the_same_after_others() {
    for text in documents() {
        let copy = text.clone();
        assert_eq!(seen(&parse(&text)), alone(move || seen(&parse(&copy))), "{text}");
    }
}

#[test]
fn documents_that_live_side_by_side_keep_their_names() {
    let kept: Vec<_> = documents().into_iter().map(|text| (parse(&text), text)).collect();
    for (document, text) in kept {
        assert_eq!(seen(&document), alone(move || seen(&parse(&text))));
    }
}

#[test]
fn what_was_built_and_what_broke_leave_nothing_wrong_behind() {
    for (round, text) in documents().into_iter().enumerate() {
        let mut builder = TreeBuilder::new();
        builder.start_element("p1", &format!("built{round}"), "u2");
        builder.attribute("p1", "a", "u1", "v");
        builder.append_parsed(text.clone(), &ParseOptions::default()).unwrap();
        builder.start_element("", &format!("later{round}"), "");
        let built = builder.finish();
        let copy = to_vec(&built, Document::ROOT, &WriteOptions::default());
        let again = String::from_utf8(copy).unwrap();
        assert!(again.contains(&format!("<later{round}")), "{again}");
        assert!(Document::parse(text.as_bytes()[..text.len() - 4].to_vec(), &ParseOptions::default()).is_err());
        let mut reader = Reader::new(text.as_bytes(), &ParseOptions::default());
        while reader.advance().unwrap() != Token::EndOfInput {}
        let copy = text.clone();
        assert_eq!(seen(&parse(&text)), alone(move || seen(&parse(&copy))), "{text}");
    }
}

/// What a declaration declared in the document before says nothing about one that only looks the same.
#[test]
fn declarations_are_those_of_the_document() {
    let namespace = |text: &str| {
        let document = Document::parse(text.to_owned(), &ParseOptions::default()).ok()?;
        let root = document.root_element()?;
        let first = document.children(root).next().unwrap_or(root);
        Some(document.namespace(first).to_owned())
    };
    for (text, expected) in [
        ("<p:a xmlns:p='u'/>", Some("u")),
        ("<p:a xmlns:p='v'/>", Some("v")),
        ("<p:a xmlns:p='u'/>", Some("u")),
        ("<p:a xmlns:p=''/>", None),
        ("<p:a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", None),
        ("<a xmlns='u'><a/></a>", Some("u")),
        ("<a xmlns='u'><a xmlns=''/></a>", Some("")),
        ("<p:a xmlns:p='u'><p:a xmlns:p='v'/></p:a>", Some("v")),
        ("<p:a xmlns:p='u'><b xmlns:p='v'/></p:a>", Some("")),
        ("<xmlns:p xmlns:p='u'/>", None),
        (
            "<a xml:lang='x'><xml:a xmlns:xml='http://www.w3.org/XML/1998/namespace'/></a>",
            Some("http://www.w3.org/XML/1998/namespace"),
        ),
        ("<a xmlns:xml='u'/>", None),
        ("<p:a xmlns:p='u&#x31;'/>", Some("u1")),
    ] {
        for _ in 0..2 {
            assert_eq!(namespace(text).as_deref(), expected, "{text}");
        }
    }
}
