//! Reading the small pieces declarations are made of.

use super::{ExternalId, Parser};
use crate::chars::{is_name_char, is_name_start, is_space};
use crate::entity::Failure;
use crate::error::XmlErrorKind;

impl<'p> Parser<'p> {
    pub(super) fn fail(&self, message: impl Into<String>) -> Failure {
        Failure::new(XmlErrorKind::Malformed, self.at, message)
    }

    pub(super) fn short(&self) -> Failure {
        let message = "the document type declaration is not closed".to_owned();
        Failure { kind: XmlErrorKind::UnexpectedEnd, offset: self.text.len(), message }
    }

    pub(super) fn rest(&self) -> &'p str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space; true when there was some.
    pub(super) fn space(&mut self) -> bool {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(|&byte| is_space(byte)) {
            self.at += 1;
        }
        self.at > start
    }

    pub(super) fn required_space(&mut self) -> Result<(), Failure> {
        match self.space() {
            true => Ok(()),
            false if self.at >= self.text.len() => Err(self.short()),
            false => Err(self.fail("white space is missing here")),
        }
    }

    /// Skips `word` if it stands here.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let here = self.rest().starts_with(word);
        if here {
            self.at += word.len();
        }
        here
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), Failure> {
        match self.eat(word) {
            true => Ok(()),
            false if word.starts_with(self.rest()) => Err(self.short()),
            false => Err(self.fail(format!("`{word}` is expected here"))),
        }
    }

    /// A name of XML 1.0; colons are not looked at.
    pub(super) fn name(&mut self) -> Result<&'p str, Failure> {
        let rest = self.rest();
        if !rest.is_empty() && !rest.starts_with(is_name_start) {
            return Err(self.fail("a name is expected here"));
        }
        self.token()
    }

    /// Like a name, but any of its characters may come first.
    pub(super) fn token(&mut self) -> Result<&'p str, Failure> {
        let rest = self.rest();
        match rest.char_indices().find(|&(_, c)| !is_name_char(c)) {
            None => Err(self.short()),
            Some((0, _)) => Err(self.fail("a name is expected here")),
            Some((length, _)) if length > self.options.limits.name_bytes_max => {
                Err(Failure::new(XmlErrorKind::Limit, self.at, "this name is too long"))
            }
            Some((length, _)) => {
                self.at += length;
                Ok(&rest[..length])
            }
        }
    }

    /// A string in either kind of quotes, without them.
    pub(super) fn quoted(&mut self) -> Result<&'p str, Failure> {
        let rest = self.rest();
        let quote = match rest.bytes().next() {
            Some(quote @ (b'"' | b'\'')) => char::from(quote),
            None => return Err(self.short()),
            Some(_) => return Err(self.fail("a string in quotes is expected here")),
        };
        let Some(length) = rest[1..].find(quote) else { return Err(self.short()) };
        self.at += length + 2;
        Ok(&rest[1..=length])
    }

    /// `SYSTEM` or `PUBLIC` with their identifiers, if one of the words stands here. A notation may do without the
    /// system identifier.
    pub(super) fn external_id(&mut self, system_required: bool) -> Result<Option<ExternalId>, Failure> {
        if self.eat("SYSTEM") {
            self.required_space()?;
            return Ok(Some(ExternalId { public: None, system: self.quoted()?.into() }));
        }
        if !self.eat("PUBLIC") {
            let rest = self.rest();
            let cut = !rest.is_empty() && ("SYSTEM".starts_with(rest) || "PUBLIC".starts_with(rest));
            return if cut { Err(self.short()) } else { Ok(None) };
        }
        self.required_space()?;
        let public = self.quoted()?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || " \r\n-'()+,./:=?;!*#@$_%".contains(c);
        if !public.chars().all(allowed) {
            return Err(self.fail("the public identifier contains a character it may not"));
        }
        let public: Vec<&str> = public.split_ascii_whitespace().collect();
        let had_space = self.space();
        let quote_follows = self.rest().starts_with(['"', '\'']);
        if !quote_follows && !system_required {
            return Ok(Some(ExternalId { public: Some(public.join(" ").into()), system: "".into() }));
        }
        if !had_space && quote_follows {
            return Err(self.fail("white space is missing here"));
        }
        Ok(Some(ExternalId { public: Some(public.join(" ").into()), system: self.quoted()?.into() }))
    }

    pub(super) fn comment(&mut self) -> Result<(), Failure> {
        self.expect("<!--")?;
        let Some(length) = self.rest().find("--") else { return Err(self.short()) };
        self.at += length;
        match self.rest().as_bytes().get(2) {
            Some(b'>') => {
                self.at += 3;
                Ok(())
            }
            Some(_) => Err(self.fail("`--` may not stand inside a comment")),
            None => Err(self.short()),
        }
    }

    pub(super) fn instruction(&mut self) -> Result<(), Failure> {
        self.expect("<?")?;
        let target = self.name()?;
        if target.eq_ignore_ascii_case("xml") {
            return Err(self.fail("an XML declaration may only stand at the very beginning of a document"));
        }
        if !self.rest().starts_with("?>") {
            self.required_space()?;
        }
        let Some(length) = self.rest().find("?>") else { return Err(self.short()) };
        self.at += length + 2;
        Ok(())
    }
}
