//! What nodes say: their own text, and that of all below them.

use std::borrow::Cow;

use super::{Document, NodeId, NodeKind};

impl Document {
    /// The node's own text: of text, attributes, comments and processing instructions; of a namespace node the
    /// namespace. Elements and documents have none; see [`Document::string_value`].
    #[inline]
    pub fn text(&self, id: NodeId) -> &str {
        let node = self.node(id);
        match node.kind() {
            NodeKind::Element | NodeKind::Document => "",
            _ => self.strings.get(node.value()),
        }
    }

    /// The string value of XPath: the text of all descendants for elements and documents. Copies only when there
    /// are several pieces.
    pub fn string_value(&self, id: NodeId) -> Cow<'_, str> {
        let node = self.node(id);
        if !matches!(node.kind(), NodeKind::Element | NodeKind::Document) {
            return Cow::Borrowed(self.strings.get(node.value()));
        }
        let mut texts = self.text_descendants(id);
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        let Some(second) = texts.next() else { return Cow::Borrowed(first) };
        let mut all = String::with_capacity(first.len() + second.len());
        all.push_str(first);
        all.push_str(second);
        texts.for_each(|text| all.push_str(text));
        Cow::Owned(all)
    }

    /// The text nodes below a node, as strings, in document order.
    pub fn text_descendants(&self, id: NodeId) -> impl Iterator<Item = &str> {
        let (first, end) = self.content(id);
        self.nodes[first as usize..(end.max(first)) as usize]
            .iter()
            .filter(|node| node.kind() == NodeKind::Text)
            .map(|node| self.strings.get(node.value()))
    }
}
