//! Parameter entities inside declarations, and the values of entities.

use super::Parser;
use crate::chars::{is_name_char, is_name_start};
use crate::entity::{Failure, Reference, scan_reference};
use crate::error::XmlErrorKind;

impl Parser<'_> {
    /// Where the declaration that begins here ends, its `>` included.
    pub(super) fn declaration_end(&self) -> Result<usize, Failure> {
        let mut quote = None;
        for (offset, byte) in self.rest().bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => return Ok(self.at + offset + 1),
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                _ => {}
            }
        }
        Err(self.short())
    }

    /// A piece of the text with the parameter entities outside quotes replaced, as XML 1.0 §4.4.8 says: with a blank
    /// on either side.
    pub(super) fn expand(&mut self, start: usize, end: usize) -> Result<String, Failure> {
        let text = self.text;
        let piece = &text[start..end];
        let mut out = String::with_capacity(piece.len());
        let mut quote = None;
        let mut skip_to = 0;
        for (offset, c) in piece.char_indices() {
            if offset < skip_to {
                continue;
            }
            if c == '%' && quote.is_none() && piece[offset + 1..].starts_with(is_name_start) {
                let name = parameter_name(&piece[offset + 1..]);
                if piece.as_bytes().get(offset + 1 + name.len()) != Some(&b';') {
                    return Err(Failure::new(XmlErrorKind::Malformed, start + offset, "a reference must end with `;`"));
                }
                skip_to = offset + 1 + name.len() + 1;
                if let Some((replacement, _)) = self.parameter(name, start + offset)? {
                    // What comes in may refer to further entities.
                    let place = |failure| Failure { offset: start + offset, ..failure };
                    let expanded = self.inside(&replacement, true).expand(0, replacement.len()).map_err(place)?;
                    out.push(' ');
                    out.push_str(&expanded);
                    out.push(' ');
                }
                continue;
            }
            match quote {
                None if c == '"' || c == '\'' => quote = Some(c),
                Some(open) if open == c => quote = None,
                _ => {}
            }
            out.push(c);
        }
        Ok(out)
    }

    /// The value of an entity: references to characters and parameter entities are replaced now, those to
    /// general entities when the entity is used (XML 1.0 §4.5).
    pub(super) fn entity_value(&mut self, raw: &str) -> Result<String, Failure> {
        let mut out = String::with_capacity(raw.len());
        let mut at = 0;
        while let Some(found) = raw[at..].find(['&', '%', '\r']) {
            let special = at + found;
            out.push_str(&raw[at..special]);
            at = match raw.as_bytes()[special] {
                b'\r' => {
                    if !raw[special + 1..].starts_with('\n') {
                        out.push('\n');
                    }
                    special + 1
                }
                b'%' => self.parameter_in_value(raw, special, &mut out)?,
                _ => self.reference_in_value(raw, special, &mut out)?,
            };
        }
        out.push_str(&raw[at..]);
        Ok(out)
    }

    fn reference_in_value(&self, raw: &str, at: usize, out: &mut String) -> Result<usize, Failure> {
        let is_char_reference = raw[at..].starts_with("&#");
        match scan_reference(raw, at) {
            Ok((Reference::Char(c), after)) if is_char_reference => {
                out.push(c);
                Ok(after)
            }
            Ok((_, after)) => {
                out.push_str(&raw[at..after]);
                Ok(after)
            }
            Err("") => Err(self.fail("a reference in the value of an entity is cut off")),
            Err(message) => Err(self.fail(message)),
        }
    }

    fn parameter_in_value(&mut self, raw: &str, at: usize, out: &mut String) -> Result<usize, Failure> {
        if !self.external {
            let message = "a parameter entity may not stand inside a declaration of the internal subset";
            return Err(self.fail(message));
        }
        let name = parameter_name(&raw[at + 1..]);
        let after = at + 1 + name.len();
        if name.is_empty() || raw.as_bytes().get(after) != Some(&b';') {
            return Err(self.fail("`%` must begin a reference here"));
        }
        let place = self.at;
        if let Some((text, _)) = self.parameter(name, place)? {
            let value =
                self.inside(&text, true).entity_value(&text).map_err(|failure| Failure { offset: place, ..failure })?;
            out.push_str(&value);
        }
        Ok(after + 1)
    }
}

fn parameter_name(text: &str) -> &str {
    let end = text.char_indices().find(|&(_, c)| !is_name_char(c)).map_or(text.len(), |(offset, _)| offset);
    &text[..end]
}
