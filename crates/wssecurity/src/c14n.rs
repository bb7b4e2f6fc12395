//! Canonical XML 1.0 and Exclusive XML Canonicalization 1.0, of one element and everything in it.

use std::collections::HashMap;

use penstock_xml::{Document, NodeId, NodeKind, XML_NAMESPACE};

use crate::names;

/// How an element becomes octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonicalization {
    /// Only the namespaces that names use, in place of all in scope.
    pub exclusive: bool,
    /// Comments are kept.
    pub comments: bool,
    /// Prefixes whose namespaces count although no name uses them (`InclusiveNamespaces`); empty for the default one.
    pub prefixes: Vec<String>,
}

impl Canonicalization {
    /// Exclusive, without comments: what WS-Security recommends.
    pub const EXCLUSIVE: Canonicalization = Canonicalization { exclusive: true, comments: false, prefixes: Vec::new() };

    /// The method of an algorithm identifier.
    pub fn from_algorithm(algorithm: &str) -> Option<Canonicalization> {
        let (exclusive, comments) = match algorithm {
            names::EXCLUSIVE_C14N => (true, false),
            names::EXCLUSIVE_C14N_WITH_COMMENTS => (true, true),
            names::C14N => (false, false),
            names::C14N_WITH_COMMENTS => (false, true),
            _ => return None,
        };
        Some(Canonicalization { exclusive, comments, prefixes: Vec::new() })
    }
}

/// The canonical octets of an element with everything in it.
pub fn canonicalize(document: &Document, element: NodeId, method: &Canonicalization) -> Vec<u8> {
    let mut writer = Writer { document, method, out: Vec::with_capacity(256), rendered: HashMap::new() };
    writer.element_tree(element);
    writer.out
}

struct Writer<'d> {
    document: &'d Document,
    method: &'d Canonicalization,
    out: Vec<u8>,
    /// The namespace that the output has for a prefix at this point.
    rendered: HashMap<&'d str, &'d str>,
}

/// An open element: where it ends, its name, and what its declarations replaced.
struct Open<'d> {
    end: usize,
    element: NodeId,
    replaced: Vec<(&'d str, Option<&'d str>)>,
}

impl<'d> Writer<'d> {
    fn element_tree(&mut self, apex: NodeId) {
        let mut open: Vec<Open<'d>> = Vec::new();
        self.start(apex, true, &mut open);
        // Descendants come in document order, so an element ends where its subtree does.
        for node in self.document.descendants(apex) {
            self.close_before(node.index(), &mut open);
            match self.document.kind(node) {
                NodeKind::Element => self.start(node, false, &mut open),
                NodeKind::Text => escape(&mut self.out, self.document.text(node), false),
                NodeKind::Comment if self.method.comments => {
                    self.push(&["<!--", self.document.text(node), "-->"]);
                }
                NodeKind::ProcessingInstruction => {
                    let data = self.document.text(node);
                    let blank = if data.is_empty() { "" } else { " " };
                    self.push(&["<?", self.document.local_name(node), blank, data, "?>"]);
                }
                _ => {}
            }
        }
        self.close_before(usize::MAX, &mut open);
    }

    fn close_before(&mut self, index: usize, open: &mut Vec<Open<'d>>) {
        while open.last().is_some_and(|last| last.end <= index) {
            let Some(Open { element, replaced, .. }) = open.pop() else { return };
            self.out.extend_from_slice(b"</");
            self.name(element);
            self.out.push(b'>');
            for (prefix, before) in replaced.into_iter().rev() {
                match before {
                    Some(namespace) => self.rendered.insert(prefix, namespace),
                    None => self.rendered.remove(prefix),
                };
            }
        }
    }

    fn start(&mut self, element: NodeId, is_apex: bool, open: &mut Vec<Open<'d>>) {
        let document = self.document;
        self.out.push(b'<');
        self.name(element);
        let mut wanted: Vec<(&'d str, &'d str)> = match self.method.exclusive {
            true => self.visibly_used(element, is_apex),
            false => self.in_scope(element, is_apex),
        };
        wanted.sort_unstable();
        wanted.dedup();
        let mut replaced = Vec::new();
        for (prefix, namespace) in wanted {
            let before = self.rendered.get(prefix).copied();
            // What is not declared anywhere is as good as declared empty.
            if before.unwrap_or_default() == namespace || prefix == "xml" {
                continue;
            }
            replaced.push((prefix, before));
            self.rendered.insert(prefix, namespace);
            match prefix {
                "" => self.push(&[" xmlns=\""]),
                prefix => self.push(&[" xmlns:", prefix, "=\""]),
            }
            escape(&mut self.out, namespace, true);
            self.out.push(b'"');
        }
        let mut attributes: Vec<NodeId> = document.attributes(element).collect();
        if is_apex && !self.method.exclusive {
            self.add_xml_attributes(element, &mut attributes);
        }
        attributes.sort_by_key(|attribute| (document.namespace(*attribute), document.local_name(*attribute)));
        for attribute in attributes {
            self.out.push(b' ');
            self.name(attribute);
            self.out.extend_from_slice(b"=\"");
            escape(&mut self.out, document.text(attribute), true);
            self.out.push(b'"');
        }
        self.out.push(b'>');
        open.push(Open { end: document.subtree(element).end, element, replaced });
    }

    /// Exclusive C14N §3: the prefixes of the element and its attributes, and those of the list.
    fn visibly_used(&self, element: NodeId, is_apex: bool) -> Vec<(&'d str, &'d str)> {
        let document = self.document;
        let mut found = vec![(document.prefix(element), document.namespace(element))];
        let attributes = document.attributes(element).filter(|attribute| !document.prefix(*attribute).is_empty());
        found.extend(attributes.map(|attribute| (document.prefix(attribute), document.namespace(attribute))));
        for listed in &self.method.prefixes {
            if is_apex {
                let in_scope = document.in_scope_namespaces(element);
                found.extend(
                    in_scope
                        .map(|node| (document.local_name(node), document.text(node)))
                        .filter(|(prefix, _)| *prefix == listed.as_str()),
                );
            } else {
                let declared = document.namespace_declarations(element);
                found.extend(
                    declared
                        .map(|node| (document.local_name(node), document.text(node)))
                        .filter(|(prefix, _)| *prefix == listed.as_str()),
                );
            }
        }
        found
    }

    /// Canonical XML §2.3: every namespace in scope; below the apex those that an element declares make the difference.
    fn in_scope(&self, element: NodeId, is_apex: bool) -> Vec<(&'d str, &'d str)> {
        let document = self.document;
        let pair = |node: NodeId| (document.local_name(node), document.text(node));
        match is_apex {
            true => document.in_scope_namespaces(element).map(pair).collect(),
            false => document.namespace_declarations(element).map(pair).collect(),
        }
    }

    /// Canonical XML §2.4: the apex inherits the attributes of the namespace `xml`.
    fn add_xml_attributes(&self, apex: NodeId, attributes: &mut Vec<NodeId>) {
        let document = self.document;
        for ancestor in document.ancestors(apex).filter(|ancestor| document.is_element(*ancestor)) {
            for attribute in document.attributes(ancestor) {
                let name = document.local_name(attribute);
                let is_new = attributes
                    .iter()
                    .all(|known| document.namespace(*known) != XML_NAMESPACE || document.local_name(*known) != name);
                if document.namespace(attribute) == XML_NAMESPACE && is_new {
                    attributes.push(attribute);
                }
            }
        }
    }

    fn name(&mut self, node: NodeId) {
        let (prefix, local) = (self.document.prefix(node), self.document.local_name(node));
        match prefix {
            "" => self.push(&[local]),
            prefix => self.push(&[prefix, ":", local]),
        }
    }

    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
    }
}

fn escape(out: &mut Vec<u8>, text: &str, is_attribute: bool) {
    for byte in text.bytes() {
        let escaped: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'\r' => b"&#xD;",
            b'>' if !is_attribute => b"&gt;",
            b'"' if is_attribute => b"&quot;",
            b'\t' if is_attribute => b"&#x9;",
            b'\n' if is_attribute => b"&#xA;",
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(escaped);
    }
}

#[cfg(test)]
mod tests {
    use penstock_xml::ParseOptions;

    use super::*;

    fn check(source: &'static str, name: &str, method: &Canonicalization, expected: &str) {
        let document = Document::parse(source, &ParseOptions::default()).expect("well-formed");
        let element = std::iter::once(document.root_element().expect("a root"))
            .chain(document.descendants(Document::ROOT))
            .find(|node| document.is_element(*node) && document.local_name(*node) == name)
            .expect("the element");
        assert_eq!(String::from_utf8_lossy(&canonicalize(&document, element, method)), expected, "{source}");
    }

    fn inclusive() -> Canonicalization {
        Canonicalization { exclusive: false, ..Canonicalization::EXCLUSIVE }
    }

    #[test]
    fn exclusive_writes_the_namespaces_that_names_use() {
        let source =
            "<a:x xmlns:a='urn:a' xmlns:b='urn:b' xmlns='urn:d'><y b:z='1' c='2'><a:w/><v xmlns=''/></y></a:x>";
        check(
            source,
            "y",
            &Canonicalization::EXCLUSIVE,
            "<y xmlns=\"urn:d\" xmlns:b=\"urn:b\" c=\"2\" b:z=\"1\"><a:w xmlns:a=\"urn:a\"></a:w><v xmlns=\"\"></v></y>",
        );
        let listed = Canonicalization { prefixes: vec!["a".to_owned()], ..Canonicalization::EXCLUSIVE };
        check(
            source,
            "y",
            &listed,
            "<y xmlns=\"urn:d\" xmlns:a=\"urn:a\" xmlns:b=\"urn:b\" c=\"2\" b:z=\"1\"><a:w></a:w><v xmlns=\"\"></v></y>",
        );
    }

    #[test]
    fn inclusive_writes_the_namespaces_in_scope() {
        check(
            "<a:x xmlns:a='urn:a' xmlns:b='urn:b' xml:lang='en'><y xmlns:b='urn:b'><a:w xmlns:b='urn:c'/></y></a:x>",
            "y",
            &inclusive(),
            "<y xmlns:a=\"urn:a\" xmlns:b=\"urn:b\" xml:lang=\"en\"><a:w xmlns:b=\"urn:c\"></a:w></y>",
        );
    }

    #[test]
    fn text_attributes_comments_and_instructions() {
        let source =
            "<x b='&quot;&#9;&#10;&#13;&lt;>' a=\"'\">&amp;&lt;&gt;&#13;<![CDATA[<c>]]><!-- n --><?p d?><?q?></x>";
        let rest = "&amp;&lt;&gt;&#xD;&lt;c&gt;";
        let start = "<x a=\"'\" b=\"&quot;&#x9;&#xA;&#xD;&lt;>\">";
        check(source, "x", &Canonicalization::EXCLUSIVE, &format!("{start}{rest}<?p d?><?q?></x>"));
        let comments = Canonicalization { comments: true, ..Canonicalization::EXCLUSIVE };
        check(source, "x", &comments, &format!("{start}{rest}<!-- n --><?p d?><?q?></x>"));
    }

    #[test]
    fn a_prefix_that_changes_its_namespace_is_written_again() {
        check(
            "<p:x xmlns:p='urn:1'><p:y xmlns:p='urn:2'><p:z xmlns:p='urn:1'/></p:y><p:w/></p:x>",
            "x",
            &Canonicalization::EXCLUSIVE,
            "<p:x xmlns:p=\"urn:1\"><p:y xmlns:p=\"urn:2\"><p:z xmlns:p=\"urn:1\"></p:z></p:y><p:w></p:w></p:x>",
        );
    }
}
