//! Where a node ends in the source, found by reading it again.

use std::sync::Arc;

use crate::dtd::Dtd;
use crate::options::ParseOptions;
use crate::reader::{Reader, Token};
use crate::tree::{Document, NodeId, NodeKind};

pub(crate) fn end_of(document: &Document, id: NodeId, start: usize) -> usize {
    let text = document.strings.source.as_str();
    let after = |end: &str| text[start..].find(end).map_or(text.len(), |found| start + found + end.len());
    if text[start..].starts_with('&') && document.kind(id) != NodeKind::Text {
        return after(";");
    }
    match document.kind(id) {
        NodeKind::Document => text.len(),
        NodeKind::Comment => after("-->"),
        NodeKind::ProcessingInstruction => after("?>"),
        NodeKind::Attribute | NodeKind::Namespace => match text[start..].find(['"', '\'']) {
            Some(open) => {
                let quote = &text[start + open..start + open + 1];
                text[start + open + 1..].find(quote).map_or(text.len(), |length| start + open + length + 2)
            }
            None => start,
        },
        NodeKind::Element | NodeKind::Text => start + content_length(&text[start..], document.kind(id)),
    }
}

/// The length of the element or of the text that begins here.
fn content_length(text: &str, kind: NodeKind) -> usize {
    // The document was well-formed once; references to its entities are passed without knowing them.
    let unknown = Arc::new(Dtd { incomplete: true, ..Dtd::default() });
    let mut reader = Reader::fragment(text, Some(unknown), &ParseOptions::default());
    loop {
        match (reader.advance(), kind) {
            (Ok(Token::Verbatim | Token::Text | Token::CData | Token::Reference), _) => {}
            (Ok(Token::NeedMore | Token::EndOfInput) | Err(_), _) => return reader.offset(),
            (Ok(_), NodeKind::Text) => return reader.offset(),
            (Ok(_), _) if reader.depth() == 0 => return reader.next_offset(),
            (Ok(_), _) => {}
        }
    }
}
