//! Leaving out white space that the caller does not want.

use super::Parse;
use crate::chars::is_blank;
use crate::names::NAMESPACE_XML;
use crate::tree::{Document, NodeId, NodeKind};

impl Parse<'_> {
    /// Removes the last node if it is white space that the caller does not want.
    pub(super) fn strip_last(&mut self) {
        let parent = self.builder.current();
        let document = &mut self.builder.document;
        let Some(strips) = &self.options.strip_space else { return };
        let Some(last) = document.nodes.last() else { return };
        let blank =
            last.kind() == NodeKind::Text && last.parent == parent && is_blank(document.strings.get(last.value()));
        if !blank || parent == 0 {
            return;
        }
        let element = NodeId(parent);
        if !strips.strips(document.namespace(element), document.local_name(element)) {
            return;
        }
        if self.space_seen && preserves_space(document, parent) {
            return;
        }
        document.nodes.pop();
        let length = document.nodes.len() as u32;
        if document.places.last().is_some_and(|&(node, _)| node == length) {
            document.places.pop();
        }
    }
}

/// The value of the nearest `xml:space`.
fn preserves_space(document: &Document, element: u32) -> bool {
    let mut at = element;
    while at != 0 {
        let mut attributes = document.nodes[at as usize + 1..]
            .iter()
            .take_while(|node| node.parent == at && matches!(node.kind(), NodeKind::Attribute | NodeKind::Namespace));
        let found = attributes.find(|node| {
            let names = &document.names;
            names.qnames[node.name() as usize].namespace == NAMESPACE_XML && names.local(node.name()) == "space"
        });
        if let Some(node) = found {
            return document.strings.get(node.value()) == "preserve";
        }
        at = document.nodes[at as usize].parent;
    }
    false
}
