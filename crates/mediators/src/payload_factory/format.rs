//! `<format>`: cut into text, `$1` arguments and `${…}` expressions when it is compiled.

use std::sync::Arc;

use penstock_compile::expression::synapse::Escape;
use penstock_compile::{Compiler, Element, Expression, InlineText, NameKind};
use penstock_engine::{Needs, Place};
use penstock_xml::{Document, NodeId, NodeKind, WriteOptions};

use super::{Media, sample};
use crate::template::{self, pieces};
use penstock_message::tree::{Change, Changes, edit, lean_copy};

/// A compiled format.
pub struct Format {
    /// The parts in order.
    pub pieces: Vec<Piece>,
    /// Bytes of text in it.
    pub length_hint: usize,
    /// Whether it is a whole SOAP envelope.
    pub is_envelope: bool,
    /// The format is a FreeMarker template; there are no parts then.
    pub template: Option<penstock_freemarker::Template>,
}

/// A part of a format.
pub enum Piece {
    /// As it stands.
    Text(Arc<str>),
    /// `$n`, 0-based.
    Argument {
        /// Which.
        index: usize,
        /// It stands in a string of JSON.
        quoted: bool,
        /// It stands inside a tag.
        attribute: bool,
    },
    /// `${…}` whose value is escaped for what the format is: between tags, in a string of JSON.
    Inline(InlineText),
    /// `${…}`.
    Expression {
        /// What.
        expression: Expression,
        /// It stands in a string of JSON.
        quoted: bool,
        /// It stands inside a tag.
        attribute: bool,
    },
}

impl Format {
    /// Whether an expression looks at the body.
    pub fn reads_body(&self) -> bool {
        if let Some(template) = &self.template {
            return template.mentions("payload");
        }
        let expressions = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Expression { expression, .. } => Some(expression),
            Piece::Text(_) | Piece::Argument { .. } | Piece::Inline(_) => None,
        });
        let reads = |piece: &Piece| matches!(piece, Piece::Inline(text) if text.needs() != Needs::Nothing);
        template::needs_of(expressions) != Needs::Nothing || self.pieces.iter().any(reads)
    }
}

/// Compiles a `<format>`; `arguments` is how many there are.
pub fn compile(
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
    media: Media,
    freemarker: bool,
    arguments: usize,
) -> Option<Format> {
    let at = el.place();
    let (text, is_envelope) = text_of(el, cx, media)?;
    let length_hint = text.len() + 64;
    if freemarker {
        el.accept_all();
        return match penstock_freemarker::Template::parse(&text) {
            Ok(template) => Some(Format { pieces: Vec::new(), length_hint, is_envelope, template: Some(template) }),
            Err(error) => {
                cx.error(at, format!("the template is not valid: {error}"));
                None
            }
        };
    }
    let mut cutter = Cutter {
        cx,
        el,
        at,
        media,
        arguments,
        pieces: Vec::new(),
        missing: Vec::new(),
        in_tag: false,
        in_string: false,
    };
    cutter.cut(&text)?;
    let Cutter { pieces, missing, .. } = cutter;
    report_missing(cx, el, &missing, arguments);
    if media == Media::Json
        && let Err(why) = sample::check(&pieces)
    {
        cx.warn(el.place(), format!("the format is not valid JSON: {why}"));
    }
    el.accept_all();
    Some(Format { pieces, length_hint, is_envelope, template: None })
}

/// Warns about `$n` that stay in the text.
fn report_missing(cx: &mut Compiler<'_>, el: &Element<'_>, missing: &[usize], arguments: usize) {
    let has = match arguments {
        0 => "there is no <arg>".to_owned(),
        1 => "there is one <arg>".to_owned(),
        count => format!("there are {count} <arg>"),
    };
    for number in missing {
        cx.warn(el.place(), format!("`${number}` has no argument and stays in the text: {has}"));
    }
}

/// The text of the format, and whether it is an envelope.
fn text_of(el: &Element<'_>, cx: &mut Compiler<'_>, media: Media) -> Option<(String, bool)> {
    if let Some(key) = el.attribute("key") {
        let Some(resource) = cx.resource(key) else {
            cx.unknown(NameKind::RESOURCE, key, el.attribute_place("key"));
            return Some((String::new(), false));
        };
        let text = resource.text().into_owned();
        if media == Media::Xml
            && let Ok(document) = Document::parse(resource.bytes.clone(), &penstock_xml::ParseOptions::default())
            && let Some(root) = document.root_element()
        {
            return Some(serialized(&document, root));
        }
        return Some((text, false));
    }
    match (media, el.children().next()) {
        (Media::Xml, Some(child)) => {
            child.accept_all();
            Some(serialized(&child.source.document, child.node))
        }
        (_, Some(child)) => {
            // JSON or text that contains markup.
            let text = el.text();
            let markup = String::from_utf8_lossy(&child.to_xml()).into_owned();
            Some((if text.is_empty() { markup } else { text }, false))
        }
        (_, None) => Some((el.text(), false)),
    }
}

/// The element as text without the white space that only lays out the configuration.
fn serialized(document: &Document, element: NodeId) -> (String, bool) {
    let layout: Changes = document
        .descendants(element)
        .filter(|node| document.kind(*node) == NodeKind::Text && document.text(*node).trim().is_empty())
        .map(|node| (node, Change::Replace(Vec::new())))
        .collect();
    let name = document.name(element);
    let is_envelope = name.local == "Envelope"
        && (name.namespace.contains("soap/envelope") || name.namespace.contains("soap-envelope"));
    let edited;
    let (document, element) = if layout.is_empty() {
        (document, element)
    } else {
        let path = path_to(document, element);
        edited = edit(document, &layout);
        match follow(&edited, &path) {
            Some(element) => (&edited, element),
            None => (document, element),
        }
    };
    let copy = lean_copy(document, element);
    let bytes = penstock_xml::to_vec(&copy, Document::ROOT, &WriteOptions::default());
    (String::from_utf8_lossy(&bytes).into_owned(), is_envelope)
}

/// Which element child to take at each level to get to an element.
fn path_to(document: &Document, element: NodeId) -> Vec<usize> {
    let mut path = Vec::new();
    let mut node = element;
    while let Some(parent) = document.parent(node) {
        let position =
            document.children(parent).filter(|child| document.is_element(*child)).position(|child| child == node);
        path.push(position.unwrap_or_default());
        node = parent;
    }
    path.reverse();
    path
}

fn follow(document: &Document, path: &[usize]) -> Option<NodeId> {
    let mut node = Document::ROOT;
    for position in path {
        node = document.children(node).filter(|child| document.is_element(*child)).nth(*position)?;
    }
    Some(node)
}

struct Cutter<'a, 'e, 'r> {
    cx: &'a mut Compiler<'r>,
    el: &'a Element<'e>,
    at: Place,
    media: Media,
    arguments: usize,
    pieces: Vec<Piece>,
    /// Numbers of arguments that are not there.
    missing: Vec<usize>,
    in_tag: bool,
    /// Inside a string of JSON.
    in_string: bool,
}

impl Cutter<'_, '_, '_> {
    fn cut(&mut self, text: &str) -> Option<()> {
        for piece in pieces(text) {
            match piece {
                template::Piece::Text(part) => self.arguments(part),
                template::Piece::Expression(part) => self.expression(part)?,
            }
        }
        Some(())
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.media == Media::Xml
            && let Some(at) = text.rfind(['<', '>'])
        {
            self.in_tag = text.as_bytes()[at] == b'<';
        }
        if self.media == Media::Json {
            let mut letters = text.bytes();
            while let Some(letter) = letters.next() {
                match letter {
                    b'\\' if self.in_string => {
                        letters.next();
                    }
                    b'"' => self.in_string = !self.in_string,
                    _ => {}
                }
            }
        }
        self.pieces.push(Piece::Text(text.into()));
    }

    /// Finds `$n` in a text.
    fn arguments(&mut self, text: &str) {
        let mut rest = text;
        let mut from = 0;
        while let Some(at) = rest[from..].find('$').map(|at| at + from) {
            let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
            let number: usize = rest[at + 1..at + 1 + digits].parse().unwrap_or(0);
            if number == 0 || number > self.arguments {
                if number > 0 && !self.missing.contains(&number) {
                    self.missing.push(number);
                }
                from = at + 1;
                continue;
            }
            self.text(&rest[..at]);
            rest = &rest[at + 1 + digits..];
            from = 0;
            let piece = Piece::Argument { index: number - 1, quoted: self.in_string, attribute: self.in_tag };
            self.pieces.push(piece);
        }
        self.text(rest);
    }

    fn expression(&mut self, text: &str) -> Option<()> {
        let text = if self.media == Media::Xml { unescape(text) } else { text.to_owned() };
        let escape = match self.media {
            // Nodes of a path stand for their text here, see `insert::expression`.
            _ if text.contains("xpath(") => None,
            Media::Json if self.in_string => Some(Escape::Json),
            Media::Xml if !self.in_tag => Some(Escape::Xml),
            _ => None,
        };
        if let Some(escape) = escape {
            let inline = InlineText::compile(self.cx, self.el, &text, escape, self.at.clone())?;
            self.pieces.push(Piece::Inline(inline.placed(self.in_string)));
            return Some(());
        }
        let expression = Expression::compile(self.cx, self.el, &text, self.at.clone())?;
        self.pieces.push(Piece::Expression { expression, quoted: self.in_string, attribute: self.in_tag });
        Some(())
    }
}

/// Takes back what the serializer escaped.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_left_out_of_formats() {
        let document =
            Document::parse(&b"<f>\n  <a x='1'>\n <b> t </b>\n</a>\n</f>"[..], &penstock_xml::ParseOptions::default())
                .unwrap();
        let a = document.descendants(Document::ROOT).find(|node| document.local_name(*node) == "a").unwrap();
        assert_eq!(serialized(&document, a), ("<a x=\"1\"><b> t </b></a>".to_owned(), false));
    }
}
