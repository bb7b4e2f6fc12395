//! Start and end tags, names and attributes.

use std::borrow::Cow;

use super::{RawName, Reader, Stage, Step, Stop};
use crate::chars::{CLASS, NAME, NAME_START, NON_ASCII, is_name, is_name_start};
use crate::entity::{Normalise, Reference};
use crate::error::{XmlError, XmlErrorKind};
use crate::reader::token::Token;
use crate::scan::{find_name_end, find_value_end};

/// A name in the input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameToken {
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// The length of the prefix; zero when there is none.
    pub(crate) colon: u32,
    /// The same for the same name most of the time, never the same for different ones. Zero says nothing.
    pub(crate) number: u32,
}

impl NameToken {
    #[inline]
    pub(crate) fn end(self) -> usize {
        self.start as usize + self.len as usize
    }
}

/// An attribute in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAttribute {
    pub(crate) name: NameToken,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The value is what is written: no references, no white space to normalise.
    pub(crate) verbatim: bool,
}

/// An attribute of the last start tag. Namespace declarations are among them.
#[derive(Clone, Debug)]
pub struct Attribute<'a> {
    /// The name as written.
    pub name: RawName<'a>,
    /// The value after normalisation.
    pub value: Cow<'a, str>,
}

/// From this many attributes on, duplicates are looked for by sorting.
const PAIRWISE_MAX: usize = 12;

impl<'a> Reader<'a> {
    /// The attributes of the last start tag.
    pub fn attributes(&self) -> impl Iterator<Item = Result<Attribute<'a>, XmlError>> + '_ {
        self.state.attributes.iter().map(|attribute| {
            Ok(Attribute { name: self.raw_name(attribute.name), value: self.attribute_value(attribute)? })
        })
    }

    /// The value of an attribute of the last start tag by its name as written.
    pub fn attribute(&self, name: &str) -> Option<Result<Cow<'a, str>, XmlError>> {
        let found = self.state.attributes.iter().find(|attribute| self.raw_name(attribute.name).as_str() == name)?;
        Some(self.attribute_value(found))
    }

    pub(crate) fn attribute_value(&self, attribute: &RawAttribute) -> Result<Cow<'a, str>, XmlError> {
        let raw: &'a str = &self.text[attribute.start as usize..attribute.end as usize];
        if attribute.verbatim {
            return Ok(Cow::Borrowed(raw));
        }
        let mut normalise = Normalise::new(self.dtd().map(|dtd| &**dtd), &self.state.options.limits, &self.state.used);
        let mut out = String::with_capacity(raw.len());
        normalise
            .attribute(raw, &mut out)
            .map_err(|failure| self.error(failure.kind, attribute.start as usize, &failure.message))?;
        Ok(Cow::Owned(out))
    }

    /// A name in a tag, which the window must continue beyond.
    #[inline]
    fn name(&mut self, at: usize) -> Step<NameToken> {
        let bytes = self.text.as_bytes();
        if let Some((seen, end)) = self.state.seen.expected(bytes, at) {
            return Ok(seen.token(at, end));
        }
        let end = find_name_end(bytes, at);
        if end == bytes.len() {
            return Err(Stop::Short);
        }
        match self.state.seen.find(bytes, at, end) {
            Some(seen) => Ok(seen.token(at, end)),
            None => self.new_name(at, end),
        }
    }

    /// A name that was not seen yet, or not lately.
    #[cold]
    fn new_name(&mut self, at: usize, end: usize) -> Step<NameToken> {
        let name = self.checked_name(at)?;
        if name.end() != end {
            let message = match self.text[name.end()..].chars().next() {
                Some('<') => "this tag is not closed with `>`".to_owned(),
                found => format!("`{}` may not stand in a name", found.unwrap_or_default().escape_debug()),
            };
            return self.wrong(name.end(), &message);
        }
        let number = self.state.seen.add(self.text.as_bytes(), at, end, name.colon);
        Ok(NameToken { number, ..name })
    }

    /// A name at `at`, character by character. The window must continue beyond it.
    pub(super) fn checked_name(&self, at: usize) -> Step<NameToken> {
        let bytes = self.text.as_bytes();
        let class = |at: usize| bytes.get(at).map_or(0, |&byte| CLASS[byte as usize]);
        let (mut end, mut seen, mut colons, mut colon) = (at, 0, 0, 0);
        for &byte in &bytes[at.min(bytes.len())..] {
            let class = CLASS[byte as usize];
            if class & NAME == 0 {
                break;
            }
            if byte == b':' {
                colons += 1;
                colon = end - at;
            }
            seen |= class;
            end += 1;
        }
        if end == bytes.len() {
            return Err(Stop::Short);
        }
        if class(at) & NAME_START == 0 {
            return self.no_name(at);
        }
        if end - at > self.state.options.limits.name_bytes_max {
            return self.fail(XmlErrorKind::Limit, at, "this name is too long");
        }
        let text = &self.text[at..end];
        if seen & NON_ASCII != 0 && !is_name(text) {
            return self.wrong(at, &format!("`{text}` is not a name"));
        }
        // Namespaces in XML §4: the part after the colon is a name of its own.
        let has_local = || class(at + colon + 1) & NAME_START != 0 && text[colon + 1..].starts_with(is_name_start);
        if colons > 0 && (colons > 1 || colon == 0 || !has_local()) {
            return self.wrong(at, &format!("`{text}` is not a prefix, one colon and a name"));
        }
        Ok(NameToken { start: at as u32, len: (end - at) as u32, colon: colon as u32, number: 0 })
    }

    #[inline]
    pub(super) fn start_tag(&mut self, at: usize) -> Step<Token> {
        let name = self.name(at + 1)?;
        let bytes = self.text.as_bytes();
        self.state.attributes.clear();
        let mut end = name.end();
        // `name` made sure that a byte follows.
        if bytes[end] != b'>' && bytes[end] != b'/' {
            end = self.attribute_list(end)?;
        }
        let empty = match bytes.get(end..) {
            Some([b'>', ..]) => false,
            Some([b'/', b'>', ..]) => true,
            Some([b'/'] | []) | None => return Err(Stop::Short),
            Some(_) => return self.wrong(end, "this start tag is not closed with `>`"),
        };
        if self.state.open.len() >= self.state.options.limits.depth_max {
            return self.fail(XmlErrorKind::Limit, at, "elements are nested too deeply");
        }
        self.state.at = end + 1 + usize::from(empty);
        if !empty {
            self.state.open.push((name.start, name.len));
        }
        if self.state.track_namespaces && !self.state.attributes.is_empty() {
            self.bind_namespaces(self.state.open.len() + usize::from(empty))?;
        }
        self.state.name = name;
        Ok(if empty { Token::Empty } else { Token::Start })
    }

    /// The attributes between the name of an element and the end of its tag.
    fn attribute_list(&mut self, mut at: usize) -> Step<usize> {
        let bytes = self.text.as_bytes();
        loop {
            let next = self.skip_space(at);
            match bytes.get(next) {
                None => return Err(Stop::Short),
                Some(b'>' | b'/') => {
                    at = next;
                    break;
                }
                Some(_) if next == at => return self.wrong(at, "white space is missing before this attribute"),
                Some(_) => at = self.one_attribute(next)?,
            }
        }
        if self.state.attributes.len() > 1 {
            self.check_duplicates()?;
        }
        Ok(at)
    }

    fn one_attribute(&mut self, at: usize) -> Step<usize> {
        if self.state.attributes.len() >= self.state.options.limits.attributes_max {
            return self.fail(XmlErrorKind::Limit, at, "this element has too many attributes");
        }
        let name = self.name(at)?;
        let bytes = self.text.as_bytes();
        let equals = self.skip_space(name.end());
        match bytes.get(equals) {
            Some(b'=') => {}
            None => return Err(Stop::Short),
            Some(_) => {
                return self.wrong(at, &format!("the attribute `{}` has no value", self.raw_name(name).as_str()));
            }
        }
        let open = self.skip_space(equals + 1);
        let quote = match bytes.get(open) {
            Some(&quote @ (b'"' | b'\'')) => quote,
            None => return Err(Stop::Short),
            Some(_) => return self.wrong(open, "the value of an attribute must stand in quotes"),
        };
        let start = open + 1;
        let mut verbatim = true;
        let mut end = find_value_end(bytes, start, quote);
        loop {
            match bytes.get(end) {
                None => return Err(Stop::Short),
                Some(&byte) if byte == quote => break,
                Some(b'<') => return self.wrong(end, "`<` may not stand in the value of an attribute, write `&lt;`"),
                Some(b'&') => {
                    verbatim = false;
                    let (reference, after) = self.reference(end)?;
                    if let Reference::Entity { start, end } = reference {
                        self.require_entity(start, end)?;
                    }
                    end = find_value_end(bytes, after, quote);
                }
                Some(_) => {
                    verbatim = false;
                    end = find_value_end(bytes, end + 1, quote);
                }
            }
        }
        self.state.attributes.push(RawAttribute { name, start: start as u32, end: end as u32, verbatim });
        Ok(end + 1)
    }

    fn require_entity(&self, start: usize, end: usize) -> Step<()> {
        let name = &self.text[start..end];
        let declared = self.dtd().is_some_and(|dtd| dtd.knows(name) || dtd.incomplete);
        if declared {
            return Ok(());
        }
        let message = format!("the entity `{name}` is not declared");
        self.fail(XmlErrorKind::Entity, start, &message)
    }

    fn check_duplicates(&self) -> Step<()> {
        let name = |index: usize| self.raw_name(self.state.attributes[index].name).as_str();
        let count = self.state.attributes.len();
        let mut duplicate = None;
        if count <= PAIRWISE_MAX {
            for later in 1..count {
                if (0..later).any(|earlier| name(earlier) == name(later)) {
                    duplicate = Some(later);
                    break;
                }
            }
        } else {
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_unstable_by_key(|&index| (name(index), index));
            duplicate = order.windows(2).find(|pair| name(pair[0]) == name(pair[1])).map(|pair| pair[1]);
        }
        let Some(index) = duplicate else { return Ok(()) };
        let at = self.state.attributes[index].name.start as usize;
        self.wrong(at, &format!("the attribute `{}` is given twice", name(index)))
    }

    #[inline]
    pub(super) fn end_tag(&mut self, at: usize) -> Step<Token> {
        let bytes = self.text.as_bytes();
        let Some(&(start, len)) = self.state.open.last() else { return self.stray_end(at) };
        let from = at + 2;
        let after = from + len as usize;
        let open_name = &bytes[start as usize..(start + len) as usize];
        let matches = bytes.get(from..after).is_some_and(|name| crate::names::same_bytes(name, open_name));
        if !matches {
            return self.wrong_end(at);
        }
        let mut end = after;
        if bytes.get(end) != Some(&b'>') {
            end = self.skip_space(after);
            match bytes.get(end) {
                Some(b'>') => {}
                None => return Err(Stop::Short),
                Some(_) => return self.wrong_end(at),
            }
        }
        self.state.open.pop();
        self.state.at = end + 1;
        if self.state.open.is_empty() && !self.state.fragment {
            self.state.stage = Stage::Epilog;
        }
        Ok(self.with_content(Token::End, from, after))
    }
}
