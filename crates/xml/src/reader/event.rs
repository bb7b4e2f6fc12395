//! Events, and the names and texts in them.

use std::borrow::Cow;

/// What the reader came across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A start tag; its attributes are at [`Reader::attributes`](super::Reader::attributes) until the next event. When `empty`, it is an
    /// empty-element tag and no end follows.
    StartElement {
        /// The name as written.
        name: RawName<'a>,
        /// Whether the element ended in the same tag.
        empty: bool,
    },
    /// An end tag.
    EndElement {
        /// The name as written.
        name: RawName<'a>,
    },
    /// Text. Text around references and CDATA sections may arrive in several pieces.
    Text(RawText<'a>),
    /// A CDATA section.
    CData(RawText<'a>),
    /// A comment.
    Comment(&'a str),
    /// A processing instruction.
    ProcessingInstruction {
        /// The target.
        target: &'a str,
        /// What follows the target.
        data: &'a str,
    },
    /// The document type declaration, after it was read.
    Doctype,
    /// A reference in content to an entity that the document declares; its text is not expanded.
    EntityReference(&'a str),
    /// The input ends before the event does, and more may come: [`Reader::suspend`](super::Reader::suspend), then [`Reader::resume`](super::Reader::resume).
    NeedMore,
    /// The document has ended.
    End,
}

/// A name as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawName<'a> {
    pub(super) text: &'a str,
    pub(super) colon: usize,
}

impl<'a> RawName<'a> {
    /// The whole name.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// The part before the colon, empty when there is none.
    #[inline]
    pub fn prefix(&self) -> &'a str {
        &self.text[..self.colon]
    }

    /// The part after the colon.
    #[inline]
    pub fn local(&self) -> &'a str {
        if self.colon == 0 { self.text } else { &self.text[self.colon + 1..] }
    }
}

/// Text as written, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawText<'a> {
    pub(super) raw: &'a str,
    pub(super) verbatim: bool,
    pub(super) references: bool,
}

impl<'a> RawText<'a> {
    /// The text as written.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The text that is meant: references replaced, line ends normalised. Copies only when they differ.
    pub fn value(&self) -> Cow<'a, str> {
        if self.verbatim {
            return self.raw.into();
        }
        let mut out = String::with_capacity(self.raw.len());
        crate::entity::decode_text(self.raw, self.references, &mut out);
        out.into()
    }
}
