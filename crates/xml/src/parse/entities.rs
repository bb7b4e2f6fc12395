//! Entities in content.

use std::sync::Arc;

use super::Parse;
use crate::dtd::{Dtd, Entity};
use crate::entity::{Failure, charge};
use crate::error::{XmlError, XmlErrorKind};
use crate::reader::Reader;
use crate::text::OWNED;

impl Parse<'_> {
    /// Replaces a reference to an entity by its text.
    pub(super) fn entity(&mut self, reader: &mut Reader<'_>, start: u32, end: u32) -> Result<(), Box<XmlError>> {
        let name = reader.piece(start, end);
        let at = reader.offset();
        let Some(dtd) = reader.dtd().cloned() else {
            let message = format!("the entity `{name}` is not declared");
            return Err(Box::new(reader.error(XmlErrorKind::Entity, at, &message)));
        };
        let limits = &self.options.limits;
        if self.entities.iter().any(|open| **open == *name) || self.entities.len() >= limits.entity_depth_max {
            let message = format!("the entity `{name}` contains itself, or is nested too deeply");
            return Err(Box::new(reader.error(XmlErrorKind::Entity, at, &message)));
        }
        let failed = |failure: Failure| Box::new(reader.error(failure.kind, at, &failure.message));
        let stored = self.entity_text(&dtd, name).map_err(failed)?;
        let Some((text, base)) = stored else { return Ok(()) };
        charge(&reader.state.used, text.len(), limits).map_err(failed)?;
        if !text.contains(['<', '&', ']', '\r']) {
            self.made_text(&text, at as u32);
            return Ok(());
        }
        self.entities.push(name.into());
        let result = self.fragment(reader, &text, base, dtd);
        self.entities.pop();
        result.map_err(|error| {
            let message = format!("in the entity `{name}`: {}", error.message);
            Box::new(reader.error(error.kind, at, &message))
        })
    }

    /// The text of an entity and where it is stored. Nothing when it is external and not read.
    fn entity_text(&mut self, dtd: &Dtd, name: &str) -> Result<Option<(Arc<str>, u32)>, Failure> {
        let owned = &mut self.builder.document.strings.owned;
        let mut store = |text: &Arc<str>| {
            let base = owned.len() as u32 | OWNED;
            owned.push_str(text);
            (text.clone(), base)
        };
        if self.texts.is_empty() {
            let internal = dtd.entities.iter().filter_map(|(name, entity)| match entity {
                Entity::Internal(text) => Some((name.clone(), store(text))),
                _ => None,
            });
            self.texts.extend(internal);
        }
        if let Some(stored) = self.texts.get(name) {
            return Ok(Some(stored.clone()));
        }
        let Some(text) = dtd.replacement(name, self.options)? else { return Ok(None) };
        let stored = store(&text);
        self.texts.insert(name.into(), stored.clone());
        Ok(Some(stored))
    }

    fn fragment(&mut self, reader: &mut Reader<'_>, text: &str, base: u32, dtd: Arc<Dtd>) -> Result<(), Box<XmlError>> {
        let mut inner = Reader::fragment(text, Some(dtd), self.options);
        inner.state.used.set(reader.state.used.get());
        inner.state.seen.next = reader.state.seen.next;
        inner.state.options.limits.depth_max = reader.state.options.limits.depth_max.saturating_sub(reader.depth());
        let first = self.builder.document.nodes.len() as u32;
        let result = self.run(&mut inner, base);
        reader.state.used.set(inner.state.used.get());
        reader.state.seen.next = inner.state.seen.next;
        if self.entities.len() == 1 {
            let place = reader.offset() as u32;
            let made = first..self.builder.document.nodes.len() as u32;
            self.builder.document.places.extend(made.map(|node| (node, place)));
        }
        result
    }
}
