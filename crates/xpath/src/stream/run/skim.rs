//! Passing over what cannot matter: most of a document, most of the time.

use penstock_xml::{Reader, Token, XmlError};

use super::matcher::Matcher;

impl Matcher<'_> {
    /// The next token that may change anything. Elements that no step can match, and what is in them as far as no step
    /// can match that either, are counted and not looked at.
    #[inline]
    pub(super) fn next_of_interest(&mut self, reader: &mut Reader<'_>) -> Result<Token, Box<XmlError>> {
        let skimming = self.steps_to_skim_for();
        let mut passed_over = 0_usize;
        let token = loop {
            // The one call of it, so that it becomes part of the loop.
            let token = reader.advance()?;
            let Some((children, deeper)) = skimming else { return Ok(token) };
            let applying = if passed_over == 0 { children } else { deeper };
            match token {
                Token::Start if self.is_hopeless(reader, applying) => passed_over += 1,
                Token::Empty if reader.depth() > 0 && self.is_hopeless(reader, applying) => {}
                Token::End if passed_over > 0 => passed_over -= 1,
                Token::Verbatim | Token::Text | Token::CData | Token::Comment | Token::Instruction => {}
                other => break other,
            }
        };
        for _ in 0..passed_over {
            self.open_unmatched();
        }
        Ok(token)
    }
}
