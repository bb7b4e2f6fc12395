//! Passing over what cannot matter: most of a document, most of the time.

use penstock_xml::{Reader, Token, XmlError};

use super::matcher::Matcher;

impl Matcher<'_> {
    /// The next token that may change anything. Elements that no step can match, and what is in them as far as no step
    /// can match that either, are counted and not looked at.
    #[inline]
    pub(super) fn next_of_interest(&mut self, reader: &mut Reader<'_>) -> Result<Token, Box<XmlError>> {
        let Some((children, deeper)) = self.steps_to_skim_for() else { return reader.advance() };
        let depth = reader.depth();
        let token = reader.skim(|number, nested| self.misses.cover(number, if nested { deeper } else { children }))?;
        // Its own element counts for a start tag, and no longer for an end tag.
        let passed_over = (reader.depth() - usize::from(token == Token::Start)).saturating_sub(depth);
        for _ in 0..passed_over {
            self.open_unmatched();
        }
        Ok(token)
    }
}
