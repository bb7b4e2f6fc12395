//! References: finding them, replacing them, and normalising what stands around them.

use std::cell::Cell;

use crate::chars::{is_char, is_name_char, is_name_start};
use crate::dtd::{Dtd, Entity};
use crate::error::XmlErrorKind;
use crate::limits::Limits;

/// What a reference refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A character: by number, or one of the five entities every document has.
    Char(char),
    /// A general entity; the range of its name.
    Entity { start: usize, end: usize },
}

/// A failure with its place counted in the text at hand.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: XmlErrorKind,
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(kind: XmlErrorKind, offset: usize, message: impl Into<String>) -> Failure {
        Failure { kind, offset, message: message.into() }
    }
}

/// Reads the reference that begins with the `&` at `at`; returns where it ends. An empty message means that the
/// text ends within it.
pub(crate) fn scan_reference(text: &str, at: usize) -> Result<(Reference, usize), &'static str> {
    let start = at + 1;
    let bytes = text.as_bytes();
    if bytes.get(start) == Some(&b'#') {
        return scan_char_reference(bytes, start + 1);
    }
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.char_indices().find(|&(_, c)| !is_name_char(c)).map(|(length, _)| length);
    let Some(length) = length else { return Err("") };
    if !rest.starts_with(is_name_start) {
        return Err("`&` must begin a reference, write `&amp;` for the character itself");
    }
    let end = start + length;
    if bytes.get(end) != Some(&b';') {
        return Err("a reference must end with `;`; write `&amp;` for the character `&` itself");
    }
    let reference = match &rest[..length] {
        "lt" => Reference::Char('<'),
        "gt" => Reference::Char('>'),
        "amp" => Reference::Char('&'),
        "quot" => Reference::Char('"'),
        "apos" => Reference::Char('\''),
        name if name.contains(':') => return Err("the name of an entity may not contain a colon"),
        _ => Reference::Entity { start, end },
    };
    Ok((reference, end + 1))
}

fn scan_char_reference(bytes: &[u8], mut at: usize) -> Result<(Reference, usize), &'static str> {
    let radix = if bytes.get(at) == Some(&b'x') {
        at += 1;
        16
    } else {
        10
    };
    let digits = at;
    let mut code: u32 = 0;
    while let Some(digit) = bytes.get(at).and_then(|&byte| char::from(byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    match bytes.get(at) {
        None => Err(""),
        Some(b';') if at > digits => match char::from_u32(code).filter(|&c| is_char(c)) {
            Some(c) => Ok((Reference::Char(c), at + 1)),
            None => Err("this character reference names no character that XML allows"),
        },
        Some(_) => Err("a character reference is `&#` with decimal or `&#x` with hexadecimal digits, then `;`"),
    }
}

/// Appends text with its references to characters replaced and its line ends turned into line feeds. The references
/// were checked before; one to an entity stays as it is.
pub(crate) fn decode_text(raw: &str, references: bool, out: &mut String) {
    let bytes = raw.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'\r', if references { b'&' } else { b'\r' }, &bytes[at..]) {
        let special = at + found;
        out.push_str(&raw[copied..special]);
        if bytes[special] == b'\r' {
            // XML 1.0 §2.11: a carriage return, with or without a line feed after it, is one line feed.
            if bytes.get(special + 1) != Some(&b'\n') {
                out.push('\n');
            }
            at = special + 1;
        } else if let Ok((Reference::Char(c), after)) = scan_reference(raw, special) {
            out.push(c);
            at = after;
        } else {
            out.push('&');
            at = special + 1;
        }
        copied = at;
    }
    out.push_str(&raw[copied..]);
}

/// Counts what entities add to a document and refuses when it is too much.
pub(crate) fn charge(used: &Cell<usize>, bytes: usize, limits: &Limits) -> Result<(), Failure> {
    // Even an empty entity costs something, or a million references to it would be free.
    let sum = used.get().saturating_add(bytes).saturating_add(1);
    used.set(sum);
    if sum > limits.entity_bytes_max {
        return Err(Failure::new(XmlErrorKind::Limit, 0, "the entities of this document expand to too much text"));
    }
    Ok(())
}

/// Turns the written value of an attribute into the value that is meant (XML 1.0 §3.3.3).
pub(crate) struct Normalise<'d> {
    dtd: Option<&'d Dtd>,
    limits: &'d Limits,
    used: &'d Cell<usize>,
    depth: usize,
}

impl<'d> Normalise<'d> {
    pub(crate) fn new(dtd: Option<&'d Dtd>, limits: &'d Limits, used: &'d Cell<usize>) -> Normalise<'d> {
        Normalise { dtd, limits, used, depth: 0 }
    }

    /// Appends the value. White space becomes blanks; that of character references stays.
    pub(crate) fn attribute(&mut self, raw: &str, out: &mut String) -> Result<(), Failure> {
        let bytes = raw.as_bytes();
        let mut at = 0;
        let mut copied = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\t' | b'\n' | b'\r' => {
                    out.push_str(&raw[copied..at]);
                    // A line end is one blank even when it is written with two characters.
                    if !(byte == b'\r' && bytes.get(at + 1) == Some(&b'\n')) {
                        out.push(' ');
                    }
                    at += 1;
                    copied = at;
                }
                b'&' => {
                    out.push_str(&raw[copied..at]);
                    at = self.reference(raw, at, out)?;
                    copied = at;
                }
                b'<' => {
                    let message = "the value of an attribute contains `<` through an entity, which is not allowed";
                    return Err(Failure::new(XmlErrorKind::Malformed, at, message));
                }
                _ => at += 1,
            }
        }
        out.push_str(&raw[copied..]);
        Ok(())
    }

    fn reference(&mut self, raw: &str, at: usize, out: &mut String) -> Result<usize, Failure> {
        let (reference, after) = scan_reference(raw, at).map_err(|message| {
            let message = if message.is_empty() { "a reference is cut off" } else { message };
            Failure::new(XmlErrorKind::Malformed, at, message)
        })?;
        match reference {
            Reference::Char(c) => out.push(c),
            Reference::Entity { start, end } => self.entity(&raw[start..end], at, out)?,
        }
        Ok(after)
    }

    fn entity(&mut self, name: &str, at: usize, out: &mut String) -> Result<(), Failure> {
        let fail = |kind, message: String| Err(Failure::new(kind, at, message));
        let Some(dtd) = self.dtd else {
            return fail(XmlErrorKind::Entity, format!("the entity `{name}` is not declared"));
        };
        let text = match dtd.entities.get(name) {
            Some(Entity::Internal(text)) => text,
            Some(_) => {
                let message = format!("the external entity `{name}` may not be used in the value of an attribute");
                return fail(XmlErrorKind::Entity, message);
            }
            None if dtd.incomplete => return Ok(()),
            None => return fail(XmlErrorKind::Entity, format!("the entity `{name}` is not declared")),
        };
        if self.depth >= self.limits.entity_depth_max {
            return fail(XmlErrorKind::Entity, format!("the entity `{name}` contains itself, or is nested too deeply"));
        }
        charge(self.used, text.len(), self.limits)?;
        self.depth += 1;
        self.attribute(text, out)?;
        self.depth -= 1;
        Ok(())
    }
}
