//! Mediators written without a root: the definition of an operation policy.

use std::sync::Arc;

use penstock_engine::{Place, SequenceId};
use penstock_xml::{Document, ParseOptions};

use crate::{Compiler, Element, SourceDocument};

/// What a fragment is put into. It stands before the first character, so that places count from there.
const BEFORE: &str = "<sequence xmlns=\"http://ws.apache.org/ns/synapse\">";
const AFTER: &str = "</sequence>";

impl Compiler<'_> {
    /// Compiles mediators that have no root to a sequence. `None` when there is an error in them, which was reported
    /// with its place in `text`.
    pub fn fragment(&mut self, file: &Arc<str>, text: &str) -> Option<SequenceId> {
        let errors = self.errors_so_far();
        let text = text.trim_start_matches('\u{feff}');
        let text = match text.trim_start().strip_prefix("<?xml") {
            Some(rest) => rest.split_once("?>").map_or(text, |(_, rest)| rest),
            None => text,
        };
        let whole: Vec<u8> = [BEFORE, text, AFTER].concat().into_bytes();
        let document = match Document::parse(whole, &ParseOptions::default()) {
            Ok(document) => document,
            Err(error) => {
                let (line, column) = (error.position.line, error.position.column);
                let column = if line == 1 { column.saturating_sub(BEFORE.len() as u32).max(1) } else { column };
                let at = Place { file: file.clone(), line, column };
                self.error(at, format!("not well-formed XML: {}", error.message));
                return None;
            }
        };
        let source = SourceDocument::within(file.clone(), Arc::new(document), BEFORE.len());
        let root = source.root()?;
        let mut children: Vec<Element<'_>> = root.children().collect();
        // A definition may bring the sequence itself.
        if let [only] = children.as_slice()
            && only.name() == "sequence"
            && only.attribute("key").is_none()
        {
            only.attribute("name");
            let inner: Vec<Element<'_>> = only.children().collect();
            children = inner;
        }
        let id = self.sequence_of_all(&children);
        (self.errors_so_far() == errors).then_some(id)
    }
}
