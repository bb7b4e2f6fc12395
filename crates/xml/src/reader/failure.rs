//! What is not right, and what is said about it.

use super::{NameToken, Reader, Stage, Step, Stop, Token};
use crate::error::{Position, XmlError, XmlErrorKind};

impl Reader<'_> {
    /// What to do about a token that could not be read; nothing means to try again.
    #[cold]
    pub(super) fn stopped(&mut self, stop: Stop) -> Result<Option<Token>, Box<XmlError>> {
        if stop == Stop::Wrong {
            return Err(self.failure());
        }
        self.state.at = self.state.token_start;
        if self.widen()? {
            return Ok(None);
        }
        if self.complete { Err(Box::new(self.unexpected_end())) } else { Ok(Some(Token::NeedMore)) }
    }

    /// The error behind a [`Stop::Wrong`].
    fn failure(&self) -> Box<XmlError> {
        let unknown =
            || Box::new(self.error(XmlErrorKind::Malformed, self.state.at, "the document is not well-formed"));
        self.state.failure.take().unwrap_or_else(unknown)
    }

    #[cold]
    fn unexpected_end(&self) -> XmlError {
        let end = self.input.len();
        let message = match self.state.open.last() {
            Some(&(start, len)) => {
                let name = &self.text[start as usize..(start + len) as usize];
                format!("the document ends inside `<{name}>`, which is never closed")
            }
            None if self.state.stage == Stage::Prolog || self.state.stage == Stage::Start => {
                "the document ends before its first element".to_owned()
            }
            None => "the document ends unexpectedly".to_owned(),
        };
        self.error(XmlErrorKind::UnexpectedEnd, end, &message)
    }

    #[cold]
    pub(crate) fn error(&self, kind: XmlErrorKind, offset: usize, message: &str) -> XmlError {
        XmlError { kind, position: Position::locate(self.input, offset), message: message.into() }
    }

    #[cold]
    pub(crate) fn fail<T>(&self, kind: XmlErrorKind, offset: usize, message: &str) -> Step<T> {
        self.state.failure.set(Some(Box::new(self.error(kind, offset, message))));
        Err(Stop::Wrong)
    }

    #[cold]
    pub(crate) fn wrong<T>(&self, offset: usize, message: &str) -> Step<T> {
        self.fail(XmlErrorKind::Malformed, offset, message)
    }

    #[cold]
    pub(super) fn no_name(&self, at: usize) -> Step<NameToken> {
        let found = self.text.get(at..).and_then(|rest| rest.chars().next());
        match found {
            Some(c) => self.wrong(at, &format!("a name is expected here, it cannot begin with `{}`", c.escape_debug())),
            None => self.wrong(at, "a name is expected here"),
        }
    }

    #[cold]
    pub(super) fn stray_end(&self, at: usize) -> Step<Token> {
        self.wrong(at, "an end tag without a start tag")
    }

    #[cold]
    pub(super) fn wrong_end(&self, at: usize) -> Step<Token> {
        let name = self.checked_name(at + 2)?;
        let written = self.raw_name(name).as_str();
        let expected =
            self.state.open.last().map_or("", |&(start, len)| &self.text[start as usize..(start + len) as usize]);
        if written == expected {
            return self.wrong(name.end(), "this end tag is not closed with `>`");
        }
        self.wrong(at, &format!("`</{written}>` does not match `<{expected}>`"))
    }
}
