//! What operations write: names, literal content, values, messages, numbers.

use penstock_xml::NodeId;

use super::op::{ExprId, NameRef};
use crate::run::number_format::NumberFormat;

/// A name in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutName {
    pub prefix: Box<str>,
    pub local: Box<str>,
    pub namespace: Box<str>,
}

impl OutName {
    /// `prefix:local`, as written in a tag.
    pub fn lexical(&self) -> String {
        if self.prefix.is_empty() { self.local.to_string() } else { format!("{}:{}", self.prefix, self.local) }
    }
}

/// A literal result element's start.
#[derive(Debug)]
pub(crate) struct Literal {
    pub name: OutName,
    /// Its namespace nodes: prefix and namespace.
    pub namespaces: Vec<(Box<str>, Box<str>)>,
}

#[derive(Debug)]
pub(crate) struct LiteralAttribute {
    pub name: OutName,
    pub value: Avt,
}

/// Literal content that was serialised at compile time.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    /// XML in UTF-8. An end tag at the very front is counted in `end_tag_bytes`; a start tag at the very end lacks its `>`.
    pub bytes: Vec<u8>,
    pub end_tag_bytes: usize,
    pub leaves_open: bool,
    /// Whether it holds only while no default namespace is in scope.
    pub needs_no_default: bool,
    /// How many more elements are open afterwards.
    pub depth_change: i32,
    /// The same as events, for sinks that are not plain XML.
    pub events: Vec<Event>,
}

#[derive(Debug)]
pub(crate) enum Event {
    Start(u32),
    Attribute(OutName, Box<str>),
    Text(Box<str>),
    End,
}

/// An attribute value template, or anything else made of text and expressions.
#[derive(Debug, Default)]
pub(crate) struct Avt {
    pub parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    Text(Box<str>),
    Value(ValueOf),
}

impl Avt {
    pub fn constant(text: &str) -> Avt {
        Avt { parts: if text.is_empty() { Vec::new() } else { vec![Part::Text(text.into())] } }
    }

    /// The text, when there is nothing to compute.
    pub fn as_constant(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// Something whose string value is wanted.
#[derive(Debug)]
pub(crate) struct ValueOf {
    pub source: ValueSource,
    /// What stands between several items; `None` takes the first only (the rule of 1.0).
    pub separator: Option<Avt>,
    pub raw: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueSource {
    /// `.`
    Context,
    /// The first child element of that name.
    Child(NameRef),
    /// `@name`
    Attribute(NameRef),
    Expr(ExprId),
}

/// A name computed at run time, of an element, an attribute, a processing instruction.
#[derive(Debug)]
pub(crate) struct ComputedName {
    pub name: Avt,
    pub namespace: Option<Avt>,
    /// What prefixes mean there: the module and element whose namespaces are in scope.
    pub scope: (usize, NodeId),
}

#[derive(Debug)]
pub(crate) struct SimpleAttribute {
    pub name: ComputedName,
    /// The name when it is known already.
    pub fixed: Option<OutName>,
    pub value: Avt,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub terminate: Avt,
}

/// `xsl:result-document`.
#[derive(Debug)]
pub(crate) struct ResultDocument {
    pub href: Option<Avt>,
    pub format: Option<Avt>,
    /// The output properties that stand on the instruction itself.
    pub properties: Vec<(Box<str>, Avt)>,
    pub character_map: Vec<(char, Box<str>)>,
    /// Whose namespaces names in `format` and `cdata-section-elements` have.
    pub scope: (usize, NodeId),
}

#[derive(Debug)]
pub(crate) struct Number {
    pub value: Option<ExprId>,
    /// The rules of XSLT 1.0: of several values the first counts, and the node that `from` matches does not.
    pub first_only: bool,
    pub select: Option<ExprId>,
    pub level: Level,
    /// Patterns: `patterns`.
    pub count: Option<u32>,
    pub from: Option<u32>,
    pub format: Avt,
    /// The parsed format when it is constant.
    pub fixed_format: Option<NumberFormat>,
    pub letter_value: Avt,
    pub ordinal: Avt,
    pub grouping_separator: Avt,
    pub grouping_size: Avt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Single,
    Multiple,
    Any,
}
