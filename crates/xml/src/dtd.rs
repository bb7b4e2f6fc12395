//! The document type declaration: entities, attribute defaults and types.
//!
//! Nothing is validated. Content models are read to know where they end and then forgotten.

mod cursor;
mod declarations;
mod literal;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::doctype::UnparsedEntity;
use crate::entity::{Failure, charge};
use crate::error::XmlErrorKind;
use crate::options::{ExternalPolicy, ParseOptions};

/// What the declarations of a document say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dtd {
    pub(crate) name: Box<str>,
    pub(crate) external: Option<ExternalId>,
    pub(crate) entities: HashMap<Box<str>, Entity>,
    pub(crate) parameters: HashMap<Box<str>, Entity>,
    /// The declared attributes of each element, by name as written.
    pub(crate) attributes: HashMap<Box<str>, Vec<AttributeRule>>,
    /// Declarations that may exist were not read, so an unknown entity is not a mistake of the document.
    pub(crate) incomplete: bool,
}

/// What an entity stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entity {
    Internal(Arc<str>),
    External(ExternalId),
    Unparsed(UnparsedEntity),
}

/// Where something external is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExternalId {
    pub(crate) public: Option<Box<str>>,
    pub(crate) system: Box<str>,
}

/// The declaration of one attribute.
#[derive(Clone, Debug)]
pub(crate) struct AttributeRule {
    pub(crate) name: Box<str>,
    pub(crate) kind: AttributeKind,
    pub(crate) default: Option<Box<str>>,
}

/// What the type of an attribute means for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeKind {
    /// `CDATA`: the value stays as it is.
    Text,
    /// `ID`: blanks are collapsed, and the value identifies the element.
    Id,
    /// Any other: blanks are collapsed.
    Tokens,
}

impl Dtd {
    /// Reads a declaration from behind `<!DOCTYPE` to behind its `>`; returns that place.
    pub(crate) fn parse(
        text: &str,
        at: usize,
        options: &ParseOptions,
        used: &Cell<usize>,
    ) -> Result<(Dtd, usize), Failure> {
        let mut dtd = Dtd::default();
        let mut parser = Parser { text, at, external: false, depth: 0, dtd: &mut dtd, options, used };
        parser.required_space()?;
        let name = parser.name()?;
        let had_space = parser.space();
        let external = if had_space { parser.external_id(true)? } else { None };
        parser.space();
        parser.dtd.name = name.into();
        if parser.eat("[") {
            parser.subset(true)?;
            parser.expect("]")?;
            parser.space();
        }
        parser.expect(">")?;
        let end = parser.at;
        if let Some(external) = &external {
            parser.external_subset(external)?;
        }
        dtd.external = external;
        Ok((dtd, end))
    }

    pub(crate) fn knows(&self, entity: &str) -> bool {
        self.entities.contains_key(entity)
    }

    /// The text an entity stands for in content. Nothing when it is external and unresolved.
    pub(crate) fn replacement(&self, name: &str, options: &ParseOptions) -> Result<Option<Arc<str>>, Failure> {
        let fail = |message: String| Err(Failure::new(XmlErrorKind::Entity, 0, message));
        match self.entities.get(name) {
            Some(Entity::Internal(text)) => Ok(Some(text.clone())),
            Some(Entity::External(id)) => Ok(fetch(id, options)?.map(Arc::from)),
            Some(Entity::Unparsed(_)) => fail(format!("the entity `{name}` is not text and cannot be referred to")),
            None if self.incomplete && options.external == ExternalPolicy::Skip => Ok(None),
            None => fail(format!("the entity `{name}` is not declared")),
        }
    }
}

/// The text of something external through the caller's resolver, without its text declaration.
fn fetch(id: &ExternalId, options: &ParseOptions) -> Result<Option<String>, Failure> {
    let fail = |kind, message: String| Err(Failure::new(kind, 0, message));
    let bytes = match &options.resolver {
        Some(resolver) => resolver.resolve(id.public.as_deref(), &id.system, options.base_uri.as_deref()),
        None => Ok(None),
    };
    let bytes = match bytes {
        Ok(Some(bytes)) => bytes,
        Ok(None) if options.external == ExternalPolicy::Skip => return Ok(None),
        Ok(None) => {
            return fail(XmlErrorKind::Entity, format!("`{}` is outside the document and is not read", id.system));
        }
        Err(message) => return fail(XmlErrorKind::Entity, format!("`{}` cannot be read: {message}", id.system)),
    };
    if bytes.len() > options.limits.entity_bytes_max {
        return fail(XmlErrorKind::Limit, format!("`{}` is too large", id.system));
    }
    let text = match crate::encoding::decode(bytes, None) {
        Ok(text) => text,
        Err(failure) => return fail(failure.kind, format!("`{}`: {}", id.system, failure.message)),
    };
    let text = text.as_str();
    if let Some(offset) = crate::chars::forbidden_char(text) {
        return fail(XmlErrorKind::Malformed, format!("`{}`: a forbidden character at byte {offset}", id.system));
    }
    let body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let body = match body.strip_prefix("<?xml").filter(|rest| rest.starts_with([' ', '\t', '\r', '\n'])) {
        Some(rest) => rest.split_once("?>").map_or("", |(_, body)| body),
        None => body,
    };
    Ok(Some(normalise_lines(body)))
}

fn normalise_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    crate::entity::decode_text(text, false, &mut out);
    out
}

struct Parser<'p> {
    text: &'p str,
    at: usize,
    /// The text comes from outside the document: parameter entities may stand anywhere (XML 1.0 §2.8).
    external: bool,
    depth: usize,
    dtd: &'p mut Dtd,
    options: &'p ParseOptions,
    used: &'p Cell<usize>,
}

impl Parser<'_> {
    /// Declarations, up to a `]` or to the end of the text. Only the internal subset ends with a bracket.
    fn subset(&mut self, bracketed: bool) -> Result<(), Failure> {
        loop {
            self.space();
            let rest = &self.text[self.at..];
            match rest.as_bytes() {
                [] if bracketed => return Err(self.short()),
                [] => return Ok(()),
                [b']', ..] if bracketed => return Ok(()),
                [b'%', ..] => self.parameter_reference()?,
                [b'<', b'?', ..] => self.instruction()?,
                [b'<', b'!', b'-', ..] => self.comment()?,
                [b'<', b'!', b'[', ..] if self.external => self.conditional()?,
                [b'<', b'!', ..] => self.declaration()?,
                [b'<'] => return Err(self.short()),
                _ => return Err(self.fail("a declaration is expected here")),
            }
        }
    }

    /// A declaration; from outside the document with its parameter entities replaced first.
    fn declaration(&mut self) -> Result<(), Failure> {
        if !self.external {
            return self.markup_declaration();
        }
        let end = self.declaration_end()?;
        let expanded = self.expand(self.at, end)?;
        let start = self.at;
        let mut inner = self.inside(&expanded, true);
        inner.markup_declaration().map_err(|failure| Failure { offset: start, ..failure })?;
        self.at = end;
        Ok(())
    }

    fn inside<'q>(&'q mut self, text: &'q str, external: bool) -> Parser<'q> {
        Parser {
            text,
            at: 0,
            external,
            depth: self.depth + 1,
            dtd: &mut *self.dtd,
            options: self.options,
            used: self.used,
        }
    }

    /// A reference to a parameter entity between declarations.
    fn parameter_reference(&mut self) -> Result<(), Failure> {
        let start = self.at;
        self.expect("%")?;
        let name = self.name()?;
        self.expect(";")?;
        let Some((text, external)) = self.parameter(name, start)? else { return Ok(()) };
        let external = external || self.external;
        let place = |failure| Failure { offset: start, ..failure };
        self.inside(&text, external).subset(false).map_err(place)
    }

    /// The text of a parameter entity, and whether it comes from outside.
    fn parameter(&mut self, name: &str, at: usize) -> Result<Option<(Arc<str>, bool)>, Failure> {
        let limits = &self.options.limits;
        if self.depth >= limits.entity_depth_max {
            let message = format!("the parameter entity `{name}` contains itself, or is nested too deeply");
            return Err(Failure::new(XmlErrorKind::Entity, at, message));
        }
        let found = match self.dtd.parameters.get(name) {
            Some(Entity::Internal(text)) => Some((text.clone(), false)),
            Some(Entity::External(id)) => fetch(id, self.options)?.map(|text| (Arc::from(text), true)),
            Some(Entity::Unparsed(_)) => None,
            None if self.dtd.incomplete => None,
            None => {
                let message = format!("the parameter entity `{name}` is not declared");
                return Err(Failure::new(XmlErrorKind::Entity, at, message));
            }
        };
        match &found {
            Some((text, _)) => {
                charge(self.used, text.len(), limits).map_err(|failure| Failure { offset: at, ..failure })?
            }
            None => self.dtd.incomplete = true,
        }
        Ok(found)
    }

    fn external_subset(&mut self, id: &ExternalId) -> Result<(), Failure> {
        let start = self.at;
        let place = |failure| Failure { offset: start, ..failure };
        match fetch(id, self.options).map_err(place)? {
            Some(text) => self.inside(&text, true).subset(false).map_err(place),
            None => {
                self.dtd.incomplete = true;
                Ok(())
            }
        }
    }

    /// `<![INCLUDE[`, `<![IGNORE[`, with the word possibly from a parameter entity.
    fn conditional(&mut self) -> Result<(), Failure> {
        let start = self.at;
        let Some(open) = self.text[start + 3..].find('[').map(|found| start + 3 + found) else {
            return Err(self.fail("a conditional section is not closed"));
        };
        let word = self.expand(start + 3, open)?;
        let body = open + 1;
        let end = self.section_end(body)?;
        match word.trim() {
            "INCLUDE" => {
                let text = self.text;
                let place = |failure| Failure { offset: start, ..failure };
                self.inside(&text[body..end], true).subset(false).map_err(place)?;
            }
            "IGNORE" => {}
            _ => return Err(self.fail("a conditional section is either INCLUDE or IGNORE")),
        }
        self.at = end + "]]>".len();
        Ok(())
    }

    /// Where the `]]>` of a conditional section stands; sections nest.
    fn section_end(&self, body: usize) -> Result<usize, Failure> {
        let mut depth = 0;
        let mut at = body;
        while let Some(found) = self.text[at..].find(['<', ']']) {
            at += found;
            let rest = &self.text[at..];
            if rest.starts_with("<![") {
                depth += 1;
            } else if rest.starts_with("]]>") {
                if depth == 0 {
                    return Ok(at);
                }
                depth -= 1;
            }
            at += 1;
        }
        Err(self.fail("a conditional section is not closed"))
    }
}
