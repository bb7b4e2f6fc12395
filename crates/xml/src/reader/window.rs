//! The part of the input that was checked to be characters.

use super::Reader;
use crate::chars::{Contents, forbidden_char};
use crate::error::{XmlError, XmlErrorKind};

/// Bytes checked ahead at first. The routing element of most messages stands within them.
const FIRST_WINDOW: usize = 512;

impl Reader<'_> {
    /// Checks a larger part of the input; false when all of it was.
    #[cold]
    pub(super) fn widen(&mut self) -> Result<bool, Box<XmlError>> {
        let checked = self.text.len();
        if checked == self.input.len() {
            return Ok(false);
        }
        let wanted = (checked * 4).max(self.state.at + FIRST_WINDOW).min(self.input.len());
        if wanted > self.state.options.limits.source_bytes_max {
            return Err(Box::new(self.error(XmlErrorKind::Limit, checked, "the document is too large")));
        }
        let window = &self.input[..wanted];
        let text = match std::str::from_utf8(window) {
            Ok(text) => text,
            // The window, or what has arrived, ends within a character.
            Err(error) if error.error_len().is_none() && (wanted < self.input.len() || !self.complete) => {
                std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => {
                let offset = error.valid_up_to();
                return Err(Box::new(self.error(XmlErrorKind::Encoding, offset, "these bytes are not UTF-8")));
            }
        };
        if text.len() <= checked {
            return Ok(false);
        }
        let added = Contents::scan(&text.as_bytes()[checked..]);
        self.contents = self.contents.and(added);
        if self.contents.control || self.contents.non_ascii {
            check_chars(text, self.contents).map_err(|offset| self.forbidden(text, offset))?;
        }
        self.text = text;
        Ok(true)
    }

    fn forbidden(&self, text: &str, offset: usize) -> XmlError {
        let code = text[offset..].chars().next().map_or(0, u32::from);
        self.error(XmlErrorKind::Malformed, offset, &format!("the character U+{code:04X} is not allowed in XML"))
    }

    /// The checks of a window for text that was made a `str` elsewhere.
    pub(crate) fn check_all(&self) -> Result<(), XmlError> {
        check_chars(self.text, self.contents).map_err(|offset| self.forbidden(self.text, offset))
    }
}

fn check_chars(text: &str, contents: Contents) -> Result<(), usize> {
    // U+FFFE and U+FFFF are the only forbidden characters that are not control characters.
    let suspicious =
        contents.control || (contents.non_ascii && memchr::memmem::find(text.as_bytes(), b"\xEF\xBF").is_some());
    match suspicious.then(|| forbidden_char(text)).flatten() {
        Some(offset) => Err(offset),
        None => Ok(()),
    }
}
