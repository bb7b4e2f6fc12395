//! Passing over what cannot matter to the caller: most of a document, when one place in it is looked for.

use memchr::memmem;

use super::{Reader, Stage, Token};
use crate::error::XmlError;
use crate::names::same_bytes;
use crate::scan::{find_name_end, find_text_end};

/// Bytes passed over in the time of one step.
const BYTES_PER_STEP: usize = 64;

/// Bytes passed over between two counts of steps: some tens of microseconds.
const BYTES_AT_ONCE: usize = 64 << 10;

impl Reader<'_> {
    /// The next token that may matter: a start tag for which `is_boring` does not hold, the end of the element that is
    /// innermost now, or what is neither a tag nor text, a comment or a processing instruction.
    ///
    /// `is_boring` is given [`Reader::name_number`] and whether the element stands deeper than the children of the one
    /// that is innermost now. What is passed over is checked as [`Reader::advance`] checks it, and remembered as far as
    /// later tokens depend on it: which elements are open, and what prefixes mean.
    #[inline]
    pub fn skim(&mut self, is_boring: impl Fn(u32, bool) -> bool) -> Result<Token, Box<XmlError>> {
        let depth_before = self.depth();
        loop {
            let before = self.state.at;
            if self.state.stage == Stage::Content
                && let Some(token) = self.skim_plain(depth_before, &is_boring)
            {
                return Ok(token);
            }
            penstock_budget::steps(1 + (self.state.at - before) / BYTES_PER_STEP);
            let token = self.advance()?;
            let depth = self.depth();
            match token {
                Token::Start if is_boring(self.name_number(), depth > depth_before + 1) => {}
                Token::Empty if depth > 0 && is_boring(self.name_number(), depth > depth_before) => {}
                Token::End if depth >= depth_before => {}
                Token::Verbatim | Token::Text | Token::CData | Token::Comment | Token::Instruction => {}
                other => return Ok(other),
            }
        }
    }

    /// Passes over boring elements and text as long as they are plain: names that were checked before, tags without
    /// attributes, text without references. A plain start tag that is not boring is the token it ends with; it stops in
    /// front of anything else, which the ordinary way then takes, so that mistakes are reported there.
    #[inline]
    fn skim_plain(&mut self, depth_before: usize, is_boring: &impl Fn(u32, bool) -> bool) -> Option<Token> {
        self.drop_bindings();
        let bytes = self.text.as_bytes();
        let bracket = self.contents.bracket;
        let depth_max = self.state.options.limits.depth_max;
        // The document element is left to the ordinary way: after its end other things are allowed.
        let depth_min = depth_before.max(1);
        let mut at = self.state.at;
        let end_max = at + BYTES_AT_ONCE;
        let mut text_end = find_text_end(bytes, at);
        loop {
            if text_end > end_max {
                break;
            }
            if bytes.get(text_end) != Some(&b'<') || (bracket && memmem::find(&bytes[at..text_end], b"]]>").is_some()) {
                break;
            }
            at = text_end;
            let start = at + 1;
            if bytes.get(start) == Some(&b'/') {
                if self.state.open.len() <= depth_min {
                    break;
                }
                let Some(&(open, len)) = self.state.open.last() else { break };
                let name = &bytes[open as usize..(open + len) as usize];
                let Some(after) = end_of_end_tag(bytes, at, name) else { break };
                self.state.open.pop();
                self.drop_bindings();
                at = after;
                text_end = find_text_end(bytes, at);
                continue;
            }
            let (seen, end) = match self.state.seen.expected(bytes, start) {
                Some(found) => found,
                None => {
                    let end = find_name_end(bytes, start);
                    if end == bytes.len() {
                        break;
                    }
                    let Some(seen) = self.state.seen.find(bytes, start, end) else { break };
                    (seen, end)
                }
            };
            let (is_empty, after) = match bytes.get(end..) {
                Some([b'>', ..]) => (false, end + 1),
                Some([b'/', b'>', ..]) => (true, end + 2),
                _ => break,
            };
            let depth = self.state.open.len();
            if depth >= depth_max {
                break;
            }
            if !is_boring(seen.number, depth > depth_before) {
                self.state.token_start = at;
                self.state.at = after;
                self.state.name = seen.token(start, end);
                self.state.attributes.clear();
                if is_empty {
                    return Some(Token::Empty);
                }
                self.state.open.push((start as u32, (end - start) as u32));
                return Some(Token::Start);
            }
            at = after;
            text_end = find_text_end(bytes, at);
            if is_empty {
                continue;
            }
            // An element with nothing but text in it need not be opened.
            match end_of_end_tag(bytes, text_end, &bytes[start..end]) {
                Some(after) if !bracket => {
                    at = after;
                    text_end = find_text_end(bytes, at);
                }
                _ => self.state.open.push((start as u32, (end - start) as u32)),
            }
        }
        self.state.at = at;
        None
    }
}

/// Where the end tag at `at` ends, if it is one for this name and is written without white space.
#[inline]
fn end_of_end_tag(bytes: &[u8], at: usize, name: &[u8]) -> Option<usize> {
    let from = at + "</".len();
    let after = from + name.len();
    let tag = bytes.get(at..=after)?;
    let is_it = tag.starts_with(b"</") && tag.ends_with(b">") && same_bytes(&bytes[from..after], name);
    is_it.then_some(after + 1)
}
