//! The cursor over an artifact's elements. It records what was read; what was not read
//! is reported when the element is finished.

use std::cell::RefCell;
use std::sync::Arc;

use penstock_engine::Place;
use penstock_xml::{Document, NodeId, NodeKind};

use crate::Compiler;
use crate::diagnostic::suggestion;

/// The namespace of Synapse configuration.
pub const SYNAPSE: &str = "http://ws.apache.org/ns/synapse";

/// One artifact's text, parsed.
pub struct SourceDocument {
    /// The file, `archive!entry` inside an archive.
    pub file: Arc<str>,
    /// The tree.
    pub document: Arc<Document>,
    /// Which nodes were read, by index.
    seen: RefCell<Vec<bool>>,
    /// Offsets at which lines begin: every mediator keeps its place, and a search from the top for
    /// each would be quadratic.
    lines: Vec<u32>,
    /// Where the text begins in its file, 0-based: a text may be a part of a file.
    start: (u32, u32),
}

impl SourceDocument {
    /// Wraps a parsed artifact.
    pub fn new(file: Arc<str>, document: Arc<Document>) -> SourceDocument {
        let seen = RefCell::new(vec![false; document.node_count()]);
        let text = document.source();
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index as u32 + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        SourceDocument { file, document, seen, lines, start: (0, 0) }
    }

    /// Wraps a parsed text that stands behind `before_bytes` on its first line; places count from its own beginning.
    pub fn within(file: Arc<str>, document: Arc<Document>, before_bytes: usize) -> SourceDocument {
        let mut source = SourceDocument::new(file, document);
        if let Some(first) = source.lines.first_mut() {
            *first = before_bytes as u32;
        }
        source
    }

    /// Wraps a parsed text that is the part of a file that begins at `at`.
    pub fn embedded(at: &Place, document: Arc<Document>) -> SourceDocument {
        let start = (at.line.saturating_sub(1), at.column.saturating_sub(1));
        SourceDocument { start, ..SourceDocument::new(at.file.clone(), document) }
    }

    /// The root element.
    pub fn root(&self) -> Option<Element<'_>> {
        Some(Element { source: self, node: self.document.root_element()? })
    }

    fn mark(&self, node: NodeId) {
        if let Some(flag) = self.seen.borrow_mut().get_mut(node.index()) {
            *flag = true;
        }
    }

    fn is_marked(&self, node: NodeId) -> bool {
        self.seen.borrow().get(node.index()).copied().unwrap_or(true)
    }

    /// Where a node stands.
    pub fn place(&self, node: NodeId) -> Place {
        self.place_at(self.document.span(node).start)
    }

    fn place_at(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|start| *start as usize <= offset);
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index)).map_or(0, |start| *start as usize);
        let before = self.document.source().get(start..offset).unwrap_or_default();
        let column = before.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32 + 1;
        let line = line.max(1) as u32;
        let (lines_before, columns_before) = self.start;
        let column = if line == 1 { column + columns_before } else { column };
        Place { file: self.file.clone(), line: line + lines_before, column }
    }
}

/// An element of an artifact.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    /// The artifact.
    pub source: &'a SourceDocument,
    /// The element.
    pub node: NodeId,
}

impl<'a> Element<'a> {
    fn document(&self) -> &'a Document {
        &self.source.document
    }

    /// The local name.
    pub fn name(&self) -> &'a str {
        self.document().local_name(self.node)
    }

    /// Whether it is in the Synapse namespace or in none: old artifacts leave it out.
    pub fn is_synapse(&self) -> bool {
        matches!(self.document().namespace(self.node), SYNAPSE | "")
    }

    /// Its namespace, empty for none.
    pub(crate) fn namespace(&self) -> &'a str {
        self.document().namespace(self.node)
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.source.place(self.node)
    }

    /// An attribute without a namespace. Empty values are values.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        let node = self.document().attribute_node(self.node, "", name)?;
        self.source.mark(node);
        Some(self.document().text(node))
    }

    /// Where an attribute stands; the element's place when it has none of that name.
    pub fn attribute_place(&self, name: &str) -> Place {
        let node = self.document().attribute_node(self.node, "", name).unwrap_or(self.node);
        self.source.place(node)
    }

    /// Where an attribute's value begins: mistakes inside it are counted from there.
    pub fn value_place(&self, name: &str) -> Place {
        let Some(node) = self.document().attribute_node(self.node, "", name) else { return self.place() };
        let span = self.document().span(node);
        let text = self.document().source().get(span.clone()).unwrap_or_default();
        let quote = text.iter().position(|byte| matches!(byte, b'"' | b'\'')).map_or(0, |index| index + 1);
        self.source.place_at(span.start + quote)
    }

    /// An attribute that must be there; its absence is an error.
    pub fn required(&self, cx: &mut Compiler<'_>, name: &str) -> Option<&'a str> {
        let value = self.attribute(name);
        if value.is_none() {
            cx.error(self.place(), format!("<{}> needs the attribute `{name}`", self.name()));
        }
        value
    }

    /// Whether an attribute says `true`, `default` when it is not there.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.attribute(name).map_or(default, |value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Every child element, marked as read.
    pub fn children(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let source = self.source;
        self.document().children(self.node).filter(move |child| source.document.is_element(*child)).map(move |node| {
            source.mark(node);
            Element { source, node }
        })
    }

    /// Child elements of that local name.
    pub fn elements(&self, name: &'a str) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let source = self.source;
        self.document()
            .children(self.node)
            .filter(move |child| source.document.is_element(*child) && source.document.local_name(*child) == name)
            .map(move |node| {
                source.mark(node);
                Element { source, node }
            })
    }

    /// The first child element of that local name.
    pub fn child(&self, name: &'a str) -> Option<Element<'a>> {
        self.elements(name).next()
    }

    /// The text directly inside, surrounding white space removed.
    pub fn text(&self) -> String {
        let document = self.document();
        let mut text = String::new();
        for child in document.children(self.node).filter(|child| document.kind(*child) == NodeKind::Text) {
            text.push_str(document.text(child));
        }
        text.trim().to_owned()
    }

    /// The text of a child element.
    pub fn child_text(&self, name: &'a str) -> Option<String> {
        self.child(name).map(|child| child.text())
    }

    /// The namespace a prefix is bound to here.
    pub fn namespace_of(&self, prefix: &str) -> Option<&'a str> {
        self.document().lookup_namespace(self.node, prefix)
    }

    /// All prefixes in scope with their namespaces.
    pub fn namespaces(&self) -> Vec<(String, String)> {
        let document = self.document();
        document
            .in_scope_namespaces(self.node)
            .map(|node| (document.local_name(node).to_owned(), document.text(node).to_owned()))
            .collect()
    }

    /// Serializes the element with the namespaces in scope. The default namespace of the artifact
    /// around it is left out when no element inside is in it: it belongs to the configuration, not
    /// to what is configured.
    pub fn to_xml(&self) -> Vec<u8> {
        self.accept_all();
        let document = self.document();
        let mut written = penstock_xml::to_vec(document, self.node, &penstock_xml::WriteOptions::default());
        let declared_here = document.namespace_declarations(self.node).any(|node| document.local_name(node).is_empty());
        let in_default = |node: NodeId| {
            document.is_element(node) && document.prefix(node).is_empty() && document.namespace(node) == SYNAPSE
        };
        if !declared_here && !in_default(self.node) && !document.descendants(self.node).any(in_default) {
            let inherited = format!(" xmlns=\"{SYNAPSE}\"");
            let tag_end = written.iter().position(|byte| *byte == b'>').unwrap_or(written.len());
            if let Some(at) = written[..tag_end].windows(inherited.len()).position(|part| part == inherited.as_bytes())
            {
                written.drain(at..at + inherited.len());
            }
        }
        written
    }

    /// Marks everything inside as read: content that is data, not configuration.
    pub fn accept_all(&self) {
        for node in self.document().descendants(self.node) {
            self.source.mark(node);
            for attribute in self.document().attributes(node) {
                self.source.mark(attribute);
            }
        }
        for attribute in self.document().attributes(self.node) {
            self.source.mark(attribute);
        }
    }

    /// Reports attributes and child elements that were not read.
    pub fn finish(&self, cx: &mut Compiler<'_>) {
        self.finish_knowing(cx, &[]);
    }

    /// The same; mistyped child elements get a suggestion from these names.
    pub fn finish_knowing(&self, cx: &mut Compiler<'_>, elements: &[&str]) {
        // Editors write these everywhere; they say nothing about how a message runs.
        for editors_own in ["description", "mediatorid", "statistics", "trace"] {
            self.attribute(editors_own);
        }
        let document = self.document();
        for attribute in document.attributes(self.node) {
            if !self.source.is_marked(attribute) && document.namespace(attribute).is_empty() {
                let message =
                    format!("<{}> does not know the attribute `{}`", self.name(), document.local_name(attribute));
                cx.warn(self.source.place(attribute), message);
            }
        }
        for child in document.children(self.node).filter(|child| document.is_element(*child)) {
            if !self.source.is_marked(child) && document.local_name(child) != "description" {
                let name = document.local_name(child);
                let meant = suggestion(name, elements.iter().copied());
                let hint = meant.map_or_else(String::new, |meant| format!(", did you mean <{meant}>?"));
                let message = format!("<{}> does not know the element <{name}>{hint}", self.name());
                cx.warn(self.source.place(child), message);
            }
        }
    }
}
