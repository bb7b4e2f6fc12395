//! Where nodes stand in the source.

use std::ops::Range;

use super::{Document, NodeId, NodeKind};
use crate::error::Position;
use crate::text::OWNED;

impl Document {
    fn offset(&self, id: NodeId) -> Option<usize> {
        let node = self.node(id);
        let source = self.strings.source.as_str().as_bytes();
        let start = match node.kind() {
            NodeKind::Document => return if source.is_empty() { None } else { Some(0) },
            _ if node.start & OWNED == 0 && (node.kind() == NodeKind::Element || node.start != 0) => {
                node.start as usize
            }
            _ => {
                let found = self.places.binary_search_by_key(&id.0, |&(node, _)| node).ok()?;
                return Some(self.places[found].1 as usize);
            }
        };
        Some(match node.kind() {
            // The value was found right after the name, so the name is found right before the value.
            NodeKind::Attribute | NodeKind::Namespace => name_before_value(source, start),
            NodeKind::Comment => start.saturating_sub("<!--".len()),
            NodeKind::ProcessingInstruction => memchr::memmem::rfind(&source[..start], b"<?").unwrap_or(start),
            _ => start,
        })
    }

    /// Where the node stands in the source: an element's `<`, an attribute's name, a text's first character.
    pub fn position(&self, id: NodeId) -> Position {
        match self.offset(id) {
            Some(offset) => Position::locate(self.strings.source.as_str().as_bytes(), offset),
            None => Position::UNKNOWN,
        }
    }

    /// The bytes of the source that the node is written with; empty for a node that is not written there.
    pub fn span(&self, id: NodeId) -> Range<usize> {
        let Some(start) = self.offset(id) else { return 0..0 };
        start..crate::span::end_of(self, id, start)
    }
}

fn name_before_value(source: &[u8], value: usize) -> usize {
    let before = |mut at: usize, skip: fn(u8) -> bool| {
        while at > 0 && skip(source[at - 1]) {
            at -= 1;
        }
        at
    };
    let after_name = before(value, |byte| matches!(byte, b'"' | b'\'' | b'=' | b' ' | b'\t' | b'\r' | b'\n'));
    before(after_name, |byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'<'))
}
