//! Events to bytes, by the rules of the output method.
//!
//! The plain case (XML, UTF-8, no indentation, no CDATA sections) also takes fragments that were serialised when the
//! stylesheet was compiled. A start tag stays open until something follows it, so that empty elements are short and
//! attributes can still be added or replaced.

mod attributes;
mod elements;
mod text;

use super::namespaces::Namespaces;
use super::{Charset, Method, OutputProperties, escape};
use crate::program::Fragment;

/// An element that was opened by an event.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Its name in [`Writer::names`].
    name: u32,
    name_end: u32,
    flags: u8,
}

/// It contains text, so that no white space may be added.
const HAS_TEXT: u8 = 1;
/// It contains elements.
const HAS_ELEMENTS: u8 = 2;
/// Its text goes into CDATA sections.
const CDATA: u8 = 4;
/// Its text is written as it is (scripts).
const RAW: u8 = 8;
/// It is known to HTML.
const HTML: u8 = 16;
/// White space inside is significant.
const KEEP: u8 = 32;

/// An attribute of the open start tag: where it stands in the output.
#[derive(Debug, Clone, Copy)]
struct Written {
    start: usize,
    name_end: usize,
    end: usize,
    local: usize,
}

/// Buffers that outlive a run, so that the next one need not allocate.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    names: String,
    open: Vec<Open>,
    attributes: Vec<Written>,
    namespaces: Namespaces,
}

/// Writes a result.
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    properties: &'o OutputProperties,
    charset: Charset,
    last_character: char,
    /// `None` until the first element or text decides.
    method: Option<Method>,
    start: usize,
    buffers: Buffers,
    /// How many elements are open, those opened by fragments included.
    depth: u32,
    tag_open: bool,
    /// Open elements that fragments would have opened without a default namespace in scope. Until they are closed
    /// their fragments come as events, independently of inner scopes.
    expanded: u32,
    takes_fragments: bool,
    indent: bool,
    doctype_done: bool,
    /// White space and comments before the method is known.
    prolog: Vec<Prolog>,
    /// Depths of the open elements whose children do not inherit their namespaces, where the result can express that.
    isolated: Vec<u32>,
    /// The open start tag is of such a child; these prefixes it declares itself.
    settles: Option<Vec<String>>,
    /// Raw text just written ends here: adjacent escaped text must not join a CDATA section.
    wrote_anything: bool,
}

enum Prolog {
    Text(String, bool),
    Comment(String),
    Instruction(String, String),
}

impl<'o> Writer<'o> {
    pub fn new(out: &'o mut Vec<u8>, properties: &'o OutputProperties, mut buffers: Buffers) -> Self {
        buffers.names.clear();
        buffers.open.clear();
        buffers.attributes.clear();
        buffers.namespaces.clear();
        let charset = Charset::from_name(properties.encoding.as_deref());
        let start = out.len();
        let last_character = charset.last_character();
        let mut writer = Writer {
            out,
            properties,
            charset,
            last_character,
            method: None,
            start,
            buffers,
            depth: 0,
            tag_open: false,
            expanded: 0,
            takes_fragments: false,
            indent: false,
            doctype_done: false,
            prolog: Vec::new(),
            isolated: Vec::new(),
            settles: None,
            wrote_anything: false,
        };
        if let Some(method) = properties.method {
            writer.decide(method);
        }
        writer
    }

    /// Ends the result: the method that was used, and the buffers back.
    pub fn finish(mut self) -> (Method, Buffers) {
        if self.method.is_none() {
            self.decide(Method::Xml);
        }
        self.close_tag();
        if let Some(form) = self.properties.normalization_form.as_deref().filter(|form| *form != "none") {
            self.normalize(form);
        }
        if self.properties.byte_order_mark == Some(true) && self.charset == Charset::Utf8 {
            self.out.splice(self.start..self.start, "\u{feff}".bytes());
        }
        super::encode(self.out, self.start, &self.charset);
        (self.method.unwrap_or(Method::Xml), self.buffers)
    }

    /// Puts the result into a normalization form of Unicode.
    fn normalize(&mut self, form: &str) {
        let Ok(text) = std::str::from_utf8(&self.out[self.start..]) else { return };
        if let Some(normal) = penstock_xpath::in_normalization_form(text, form) {
            self.out.truncate(self.start);
            self.out.extend_from_slice(normal.as_bytes());
        }
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        !self.wrote_anything && self.depth == 0 && self.prolog.is_empty()
    }

    /// Whether the start tag of an element is open, so that it may still get attributes; else whether any element is.
    pub fn takes_attributes(&self) -> Result<(), bool> {
        if self.tag_open { Ok(()) } else { Err(self.depth > 0) }
    }

    /// How many bytes were written.
    pub fn bytes(&self) -> usize {
        self.out.len() - self.start
    }

    fn decide(&mut self, method: Method) {
        self.method = Some(method);
        let properties = self.properties;
        self.indent = properties.indent.unwrap_or(matches!(method, Method::Html | Method::Xhtml));
        self.takes_fragments = method == Method::Xml
            && !self.indent
            && self.last_character == char::MAX
            && !self.undeclares()
            && properties.cdata_section_elements.is_empty()
            && properties.character_map.is_empty();
        if matches!(method, Method::Xml | Method::Xhtml) && !properties.omit_xml_declaration.unwrap_or(false) {
            self.out.extend_from_slice(b"<?xml version=\"");
            self.out.extend_from_slice(properties.version.as_deref().unwrap_or("1.0").as_bytes());
            self.out.extend_from_slice(b"\" encoding=\"");
            self.out.extend_from_slice(self.charset.name().as_bytes());
            self.out.push(b'"');
            if let Some(standalone) = properties.standalone {
                let value: &[u8] = if standalone { b"yes" } else { b"no" };
                self.out.extend_from_slice(b" standalone=\"");
                self.out.extend_from_slice(value);
                self.out.push(b'"');
            }
            self.out.extend_from_slice(b"?>");
            if self.indent {
                self.out.push(b'\n');
            }
        }
        for item in std::mem::take(&mut self.prolog) {
            match item {
                Prolog::Text(text, raw) => {
                    if raw {
                        self.raw(&text)
                    } else {
                        self.text(&text)
                    }
                }
                Prolog::Comment(text) => self.comment(&text),
                Prolog::Instruction(target, data) => self.processing_instruction(&target, &data),
            }
        }
    }

    /// Whether [`Writer::fragment`] may be called for a fragment.
    #[inline]
    pub fn takes(&self, fragment: &Fragment) -> bool {
        let default_matters = fragment.needs_no_default && (self.expanded > 0 || self.buffers.namespaces.default_bound);
        self.takes_fragments && !default_matters
    }

    /// Notes that a fragment was written as events.
    pub fn note_expanded(&mut self, fragment: &Fragment) {
        if fragment.needs_no_default {
            self.expanded = self.expanded.saturating_add_signed(fragment.depth_change);
        }
    }

    /// Writes a fragment that [`Writer::takes`] accepts.
    #[inline]
    pub fn fragment(&mut self, fragment: &Fragment) {
        let mut bytes = &fragment.bytes[..];
        if self.tag_open {
            if fragment.end_tag_bytes > 0 {
                self.out.extend_from_slice(b"/>");
                bytes = &bytes[fragment.end_tag_bytes..];
            } else {
                self.out.push(b'>');
            }
        }
        self.out.extend_from_slice(bytes);
        self.tag_open = fragment.leaves_open;
        self.buffers.attributes.clear();
        self.depth = self.depth.wrapping_add_signed(fragment.depth_change);
        self.buffers.namespaces.close_to(self.depth);
    }

    #[inline]
    fn close_tag(&mut self) {
        if !self.tag_open {
            return;
        }
        self.undeclare_inherited();
        self.tag_open = false;
        self.out.push(b'>');
        if matches!(self.method, Some(Method::Html | Method::Xhtml)) {
            self.after_start_tag();
        }
    }

    /// HTML: the head begins with its content type.
    fn after_start_tag(&mut self) {
        let Some(open) = self.buffers.open.last().copied() else { return };
        let name = &self.buffers.names[open.name as usize..open.name_end as usize];
        let wanted = self.properties.include_content_type.unwrap_or(true);
        if open.flags & HTML != 0 && name.eq_ignore_ascii_case("head") && wanted {
            if self.indent {
                self.out.push(b'\n');
            }
            let xhtml = self.method == Some(Method::Xhtml);
            let tag: &[u8] = if xhtml { b"<meta" } else { b"<META" };
            self.out.extend_from_slice(tag);
            self.out.extend_from_slice(b" http-equiv=\"Content-Type\" content=\"");
            self.out.extend_from_slice(self.properties.media_type.as_deref().unwrap_or("text/html").as_bytes());
            self.out.extend_from_slice(b"; charset=");
            self.out.extend_from_slice(self.charset.name().as_bytes());
            let end: &[u8] = if xhtml { b"\" />" } else { b"\">" };
            self.out.extend_from_slice(end);
            if let Some(open) = self.buffers.open.last_mut() {
                open.flags |= HAS_ELEMENTS;
            }
        }
    }

    /// A line break before a start tag, where it cannot matter. Lines are not indented further, as in Xalan.
    fn indent_before(&mut self, inline: bool) {
        let Some(parent) = self.buffers.open.last_mut() else {
            if self.wrote_anything {
                self.out.push(b'\n');
            }
            return;
        };
        let quiet = parent.flags & (HAS_TEXT | KEEP) == 0;
        parent.flags |= HAS_ELEMENTS;
        if quiet && !inline {
            self.out.push(b'\n');
        }
    }

    /// Text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.takes_fragments {
            if self.tag_open {
                self.tag_open = false;
                self.out.push(b'>');
            }
            self.wrote_anything = true;
            escape::text(self.out, text);
            return;
        }
        self.text_slowly(text);
    }

    /// A comment.
    pub fn comment(&mut self, text: &str) {
        match self.method {
            None => self.prolog.push(Prolog::Comment(text.to_owned())),
            Some(Method::Text) => {}
            Some(_) => {
                self.close_tag();
                if self.indent {
                    self.indent_before(false);
                }
                self.wrote_anything = true;
                self.out.extend_from_slice(b"<!--");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"-->");
            }
        }
    }

    /// A processing instruction.
    pub fn processing_instruction(&mut self, target: &str, data: &str) {
        let end: &[u8] = match self.method {
            None => {
                self.prolog.push(Prolog::Instruction(target.to_owned(), data.to_owned()));
                return;
            }
            Some(Method::Text) => return,
            Some(Method::Html) => b">",
            Some(Method::Xml | Method::Xhtml) => b"?>",
        };
        self.close_tag();
        if self.indent {
            self.indent_before(false);
        }
        self.wrote_anything = true;
        self.out.extend_from_slice(b"<?");
        self.out.extend_from_slice(target.as_bytes());
        if !data.is_empty() {
            self.out.push(b' ');
            self.out.extend_from_slice(data.as_bytes());
        }
        self.out.extend_from_slice(end);
    }
}
