//! One token: text, tags are in [`super::tag`], comments, instructions, the document type declaration.

use std::sync::Arc;

use memchr::memmem;

use super::{Reader, Stage, Step, Stop};
use crate::chars::is_space;
use crate::dtd::Dtd;
use crate::entity::{Reference, scan_reference};
use crate::error::XmlErrorKind;
use crate::options::DoctypePolicy;
use crate::scan::find_text_end;

/// What the reader came across; the reader has the details. See [`Reader::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A start tag: [`Reader::element_name`], [`Reader::attributes`].
    Start,
    /// An empty-element tag; no end tag follows.
    Empty,
    /// An end tag.
    End,
    /// Text or a CDATA section that means what is written: [`Reader::content`].
    Verbatim,
    /// Text with references or carriage returns: [`Reader::text_value`].
    Text,
    /// A CDATA section with carriage returns.
    CData,
    /// A comment: [`Reader::content`].
    Comment,
    /// A processing instruction.
    Instruction,
    /// The document type declaration, after it was read.
    Doctype,
    /// A reference in content to an entity that the document declares: [`Reader::content`] is its name.
    Reference,
    /// The input ends before the token does, and more may come.
    NeedMore,
    /// The document has ended.
    EndOfInput,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn token(&mut self) -> Step<Token> {
        self.drop_bindings();
        if self.state.stage != Stage::Content {
            return self.token_outside();
        }
        let bytes = self.text.as_bytes();
        let at = self.state.at;
        match bytes.get(at) {
            Some(b'<') => self.markup(at),
            Some(_) => self.text_run(at),
            None if self.state.fragment && self.at_true_end() && self.state.open.is_empty() => Ok(Token::EndOfInput),
            None => Err(Stop::Short),
        }
    }

    #[inline]
    fn markup(&mut self, at: usize) -> Step<Token> {
        match self.text.as_bytes().get(at + 1) {
            Some(b'/') => self.end_tag(at),
            Some(b'!') => self.declaration(at),
            Some(b'?') => self.instruction(at),
            Some(_) => self.start_tag(at),
            None => Err(Stop::Short),
        }
    }

    #[inline]
    fn text_run(&mut self, start: usize) -> Step<Token> {
        let text: &'a str = self.text;
        let bytes = text.as_bytes();
        let mut end = find_text_end(bytes, start);
        let mut verbatim = true;
        while bytes.get(end) == Some(&b'&') {
            match self.reference(end)? {
                (Reference::Char(_), after) => {
                    verbatim = false;
                    end = find_text_end(bytes, after);
                }
                (Reference::Entity { .. }, _) if end > start => break,
                (Reference::Entity { start, end }, after) => {
                    self.state.at = after;
                    return Ok(self.with_content(Token::Reference, start, end));
                }
            }
        }
        if end == bytes.len() && !(self.state.fragment && self.at_true_end()) {
            return Err(Stop::Short);
        }
        if (self.contents.bracket || self.contents.carriage_return) && self.has_oddities(start, end)? {
            verbatim = false;
        }
        self.state.at = end;
        Ok(self.with_content(if verbatim { Token::Verbatim } else { Token::Text }, start, end))
    }

    #[inline]
    pub(super) fn with_content(&mut self, token: Token, start: usize, end: usize) -> Token {
        self.state.content = (start as u32, end as u32);
        token
    }

    /// Looks for what the quick scan does not: `]]>`, which is forbidden, and carriage returns, reported as true.
    #[cold]
    fn has_oddities(&self, start: usize, end: usize) -> Step<bool> {
        let run = &self.text.as_bytes()[start..end];
        if self.contents.bracket
            && let Some(found) = memmem::find(run, b"]]>")
        {
            return self.wrong(start + found, "`]]>` may not stand in text, write `]]&gt;`");
        }
        Ok(self.contents.carriage_return && run.contains(&b'\r'))
    }

    pub(super) fn reference(&self, at: usize) -> Step<(Reference, usize)> {
        match scan_reference(self.text, at) {
            Ok(found) => Ok(found),
            Err("") => Err(Stop::Short),
            Err(message) => self.wrong(at, message),
        }
    }

    /// Before and after the document element.
    #[cold]
    fn token_outside(&mut self) -> Step<Token> {
        if self.state.stage == Stage::Start {
            self.begin()?;
        }
        let bytes = self.text.as_bytes();
        let at = self.skip_space(self.state.at);
        self.state.token_start = at;
        match bytes.get(at) {
            None if self.at_true_end() && self.state.stage == Stage::Epilog => {
                self.state.at = at;
                Ok(Token::EndOfInput)
            }
            None => Err(Stop::Short),
            Some(b'<') => {
                let tag = bytes.get(at + 1).is_some_and(|&byte| !matches!(byte, b'!' | b'?' | b'/'));
                if tag && self.state.stage == Stage::Epilog {
                    return self.wrong(at, "a second element at the top of the document");
                }
                let token = self.markup(at)?;
                if tag {
                    let ended = token == Token::Empty;
                    self.state.stage = if ended { Stage::Epilog } else { Stage::Content };
                }
                Ok(token)
            }
            Some(_) if self.state.stage == Stage::Epilog => {
                self.wrong(at, "text after the end of the document element")
            }
            Some(_) => self.wrong(at, "text before the document element"),
        }
    }

    /// The byte order mark and the XML declaration.
    fn begin(&mut self) -> Step<()> {
        let bytes = self.text.as_bytes();
        let start = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let head = &bytes[start..];
        const DECLARATION: &[u8] = b"<?xml";
        if head.len() <= DECLARATION.len() && !self.at_true_end() {
            return Err(Stop::Short);
        }
        let mut after = start;
        if head.starts_with(DECLARATION) && head.get(DECLARATION.len()).is_some_and(|&byte| is_space(byte)) {
            let Some(length) = memmem::find(head, b"?>") else { return Err(Stop::Short) };
            let body = &self.text[start + DECLARATION.len()..start + length];
            match crate::encoding::parse_declaration(body, false) {
                Ok(declaration) => self.accept_declaration(&declaration, start)?,
                Err(message) => return self.wrong(start, message),
            }
            after = start + length + "?>".len();
        }
        self.state.at = after;
        self.state.token_start = after;
        self.state.stage = Stage::Prolog;
        Ok(())
    }

    fn accept_declaration(&mut self, declaration: &crate::encoding::Declaration<'_>, at: usize) -> Step<()> {
        let Some(name) = declaration.encoding else { return Ok(()) };
        // The tree decodes first. Here the bytes are the document's own, and so must be what they claim.
        let decoded = !self.state.track_namespaces || self.state.options.encoding.is_some();
        let readable =
            decoded || ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|known| known.eq_ignore_ascii_case(name));
        if readable {
            return Ok(());
        }
        let message = format!("the encoding `{name}` is not read here, only UTF-8");
        self.fail(XmlErrorKind::Encoding, at, &message)
    }

    #[inline]
    pub(super) fn skip_space(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while bytes.get(at).is_some_and(|&byte| is_space(byte)) {
            at += 1;
        }
        at
    }

    /// `<!`: a comment, a CDATA section, the document type declaration.
    #[cold]
    fn declaration(&mut self, at: usize) -> Step<Token> {
        let rest = &self.text.as_bytes()[at..];
        if rest.starts_with(b"<!--") {
            return self.comment(at);
        }
        const CDATA: &[u8] = b"<![CDATA[";
        if rest.starts_with(CDATA) {
            if self.state.stage != Stage::Content {
                return self.wrong(at, "a CDATA section outside the document element");
            }
            let start = at + CDATA.len();
            let Some(length) = memmem::find(&rest[CDATA.len()..], b"]]>") else { return Err(Stop::Short) };
            let end = start + length;
            self.state.at = end + "]]>".len();
            let verbatim = !(self.contents.carriage_return && self.text.as_bytes()[start..end].contains(&b'\r'));
            return Ok(self.with_content(if verbatim { Token::Verbatim } else { Token::CData }, start, end));
        }
        const DOCTYPE: &[u8] = b"<!DOCTYPE";
        if rest.starts_with(DOCTYPE) {
            return self.doctype(at, at + DOCTYPE.len());
        }
        if CDATA.starts_with(rest) || DOCTYPE.starts_with(rest) || b"<!--".starts_with(rest) {
            return Err(Stop::Short);
        }
        self.wrong(at, "`<!` begins neither a comment nor a CDATA section nor a document type declaration")
    }

    fn comment(&mut self, at: usize) -> Step<Token> {
        let start = at + "<!--".len();
        let bytes = self.text.as_bytes();
        let Some(length) = memmem::find(&bytes[start..], b"--") else { return Err(Stop::Short) };
        let end = start + length;
        match bytes.get(end + 2) {
            Some(b'>') => {
                self.state.at = end + "-->".len();
                Ok(self.with_content(Token::Comment, start, end))
            }
            Some(_) => self.wrong(end, "`--` may not stand inside a comment"),
            None => Err(Stop::Short),
        }
    }

    #[cold]
    fn instruction(&mut self, at: usize) -> Step<Token> {
        let target = self.checked_name(at + "<?".len())?;
        let name = self.raw_name(target).as_str();
        if name.eq_ignore_ascii_case("xml") {
            return self.wrong(at, "an XML declaration may only stand at the very beginning of a document");
        }
        if target.colon != 0 {
            return self.wrong(at, "the target of a processing instruction may not contain a colon");
        }
        let after = target.end();
        let bytes = self.text.as_bytes();
        let Some(length) = memmem::find(&bytes[after..], b"?>") else { return Err(Stop::Short) };
        let end = after + length;
        let start = self.skip_space(after).min(end);
        if start == after && end > after {
            return self.wrong(after, "white space is missing after the target of a processing instruction");
        }
        self.state.at = end + "?>".len();
        self.state.name = target;
        Ok(self.with_content(Token::Instruction, start, end))
    }

    fn doctype(&mut self, at: usize, after: usize) -> Step<Token> {
        if self.state.stage != Stage::Prolog || self.state.dtd.is_some() {
            return self.wrong(at, "a document type declaration may only stand once, before the document element");
        }
        if self.state.options.doctype == DoctypePolicy::Refuse {
            let message = "a document type declaration is not allowed here";
            return self.fail(XmlErrorKind::DoctypeRefused, at, message);
        }
        match Dtd::parse(self.text, after, &self.state.options, &self.state.used) {
            Ok((dtd, end)) => {
                self.state.dtd = Some(Arc::new(dtd));
                self.state.at = end;
                Ok(Token::Doctype)
            }
            // Cut off anywhere, it looks wrong in one way or another. Only with all of it there is that known.
            Err(failure) if failure.kind != XmlErrorKind::Limit && !self.at_true_end() => Err(Stop::Short),
            Err(failure) => self.fail(failure.kind, failure.offset, &failure.message),
        }
    }
}
