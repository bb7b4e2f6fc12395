//! From the reader's tokens to the tree.

mod attributes;
mod entities;
mod space;

use penstock_budget as budget;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::build::{TreeBuilder, UNBOUND};
use crate::doctype::Doctype;
use crate::dtd::Entity;
use crate::entity::decode_text;
use crate::error::{Position, XmlError, XmlErrorKind};
use crate::names::lexicon::{Lexicon, Resolved};
use crate::names::{NAME_EMPTY, NAMESPACE_NONE, NAMESPACE_XML, Names, PREFIX_NONE, PREFIX_XML};
use crate::options::ParseOptions;
use crate::reader::{NameToken, Reader, Token};
use crate::text::{OWNED, StrRef};
use crate::tree::{Document, NO_OFFSET, Node, NodeKind};

/// Bytes of source per node: fewer than in most documents, so that the array rarely grows.
const BYTES_PER_NODE: usize = 10;

pub(crate) fn parse_document(source: Bytes, options: &ParseOptions) -> Result<Document, XmlError> {
    let mut builder = TreeBuilder::with_capacity(source.len() / BYTES_PER_NODE + 16);
    builder.document.base_uri.clone_from(&options.base_uri);
    append(&mut builder, source, options)?;
    Ok(builder.finish())
}

pub(crate) fn append(builder: &mut TreeBuilder, source: Bytes, options: &ParseOptions) -> Result<(), XmlError> {
    let size_max = options.limits.source_bytes_max.min(OWNED as usize - 1);
    if source.len() > size_max {
        let message = format!("the document has {} bytes, {size_max} are allowed", source.len());
        return Err(XmlError { kind: XmlErrorKind::Limit, position: Position::UNKNOWN, message: message.into() });
    }
    let text = crate::encoding::decode(source, options.encoding)?;
    let base = if builder.document.strings.source.bytes().is_empty() {
        builder.document.strings.source = text.clone();
        0
    } else {
        // A tree has one source; the text of a further one is copied.
        if !builder.document.strings.has_room(text.as_str()) {
            let message = "the tree has no room for a further document";
            return Err(XmlError { kind: XmlErrorKind::Limit, position: Position::UNKNOWN, message: message.into() });
        }
        let start = builder.document.strings.owned.len() as u32 | OWNED;
        builder.document.strings.owned.push_str(text.as_str());
        start
    };
    let mut reader = Reader::over(&text, options);
    reader.check_all()?;
    let outer = Outer::hide(builder);
    let lexicon = Lexicon::take(&builder.document.names, reader.state.seen.identity);
    let mut parse = Parse::new(builder, options, outer.default_bound, lexicon);
    let result = parse.run(&mut reader, base);
    let Parse { lexicon, .. } = parse;
    lexicon.keep(&builder.document.names);
    outer.restore(builder);
    result.map_err(|error| *error)
}

/// What the builder was at before a document was put into it.
struct Outer {
    depth: usize,
    bindings: Option<Vec<u32>>,
    default_bound: bool,
}

impl Outer {
    /// Hides the namespaces in scope: the document to come does not know them.
    fn hide(builder: &mut TreeBuilder) -> Outer {
        let depth = builder.open.len();
        let default_bound = builder.bindings[PREFIX_NONE as usize] != NAMESPACE_NONE;
        if builder.undo.is_empty() {
            return Outer { depth, bindings: None, default_bound };
        }
        let bindings = builder.bindings.clone();
        builder.bindings.fill(UNBOUND);
        builder.bindings[PREFIX_NONE as usize] = NAMESPACE_NONE;
        builder.bindings[PREFIX_XML as usize] = NAMESPACE_XML;
        Outer { depth, bindings: Some(bindings), default_bound }
    }

    fn restore(self, builder: &mut TreeBuilder) {
        while builder.open.len() > self.depth {
            builder.end_element();
        }
        if let Some(mut bindings) = self.bindings {
            bindings.resize(builder.bindings.len(), UNBOUND);
            builder.bindings = bindings;
        }
    }
}

/// A parse under way.
struct Parse<'p> {
    builder: &'p mut TreeBuilder,
    options: &'p ParseOptions,
    /// The entities that are being expanded.
    entities: Vec<Box<str>>,
    /// The text of entities, and where it is stored; filled when the first one is referred to. Storing it between
    /// two pieces of text would keep these from being joined in place.
    texts: HashMap<Box<str>, (Arc<str>, u32)>,
    /// The depth at which top elements must undeclare a default namespace; zero for none.
    undeclare_at: usize,
    /// Start tags need a closer look even without attributes: the declarations may add some.
    careful: bool,
    /// Whether `xml:space` was seen anywhere.
    space_seen: bool,
    /// What names were resolved to, by the number the reader gives them.
    lexicon: Lexicon,
}

impl<'p> Parse<'p> {
    fn new(
        builder: &'p mut TreeBuilder,
        options: &'p ParseOptions,
        default_bound: bool,
        lexicon: Lexicon,
    ) -> Parse<'p> {
        let undeclare_at = if default_bound { builder.open.len() } else { 0 };
        Parse {
            builder,
            options,
            entities: Vec::new(),
            texts: HashMap::new(),
            undeclare_at,
            careful: default_bound,
            space_seen: false,
            lexicon,
        }
    }

    /// Reads to the end. `base` is where the reader's text begins in the document's strings.
    fn run(&mut self, reader: &mut Reader<'_>, base: u32) -> Result<(), Box<XmlError>> {
        let strips = self.options.strip_space.is_some();
        loop {
            let token = reader.advance()?;
            budget::step();
            if strips && !matches!(token, Token::Verbatim | Token::Text | Token::CData | Token::Reference) {
                self.strip_last();
            }
            match token {
                Token::Start => self.start(reader, base)?,
                Token::Empty => {
                    self.start(reader, base)?;
                    self.builder.end_element();
                }
                Token::End => self.builder.end_element(),
                Token::Verbatim => self.text(reader, base),
                Token::Text => self.decoded_text(reader, true),
                Token::CData => self.decoded_text(reader, false),
                Token::EndOfInput | Token::NeedMore => return Ok(()),
                other => self.rare(reader, base, other)?,
            }
        }
    }

    #[inline]
    fn start(&mut self, reader: &Reader<'_>, base: u32) -> Result<(), Box<XmlError>> {
        let name = reader.state.name;
        if self.careful || !reader.state.attributes.is_empty() {
            self.start_with_attributes(reader, base, name)?;
        } else {
            let id = self.resolve(reader, name, false)?;
            self.builder.open_element(id, offset(base, name.start - 1));
        }
        self.check_size(reader)
    }

    #[cold]
    fn rare(&mut self, reader: &mut Reader<'_>, base: u32, token: Token) -> Result<(), Box<XmlError>> {
        let (start, end) = reader.state.content;
        match token {
            Token::Comment => {
                self.leaf(reader, base, NodeKind::Comment, NAME_EMPTY);
                self.check_size(reader)
            }
            Token::Instruction => {
                let target = reader.state.name;
                let local = reader.piece(target.start, target.start + target.len);
                let names = &mut self.builder.document.names;
                let id = Names::intern_qname(names, PREFIX_NONE, NAMESPACE_NONE, local);
                self.leaf(reader, base, NodeKind::ProcessingInstruction, id);
                self.check_size(reader)
            }
            Token::Doctype => {
                self.doctype(reader);
                Ok(())
            }
            Token::Reference => self.entity(reader, start, end),
            _ => Ok(()),
        }
    }

    fn check_size(&self, reader: &Reader<'_>) -> Result<(), Box<XmlError>> {
        let limit = self.options.limits.nodes_max;
        if self.builder.document.nodes.len() > limit {
            return Err(Box::new(reader.error(
                XmlErrorKind::TooManyNodes { limit },
                reader.offset(),
                "the document has too many nodes",
            )));
        }
        Ok(())
    }

    /// The qualified name for a name in the input.
    #[inline]
    fn resolve(&mut self, reader: &Reader<'_>, name: NameToken, is_attribute: bool) -> Result<u32, Box<XmlError>> {
        let known = *self.lexicon.resolved(name.number);
        let in_none = is_attribute && name.colon == 0;
        let bound = if in_none { NAMESPACE_NONE } else { self.builder.bindings[known.prefix as usize] };
        if known.number == name.number && known.namespace == bound {
            return Ok(known.id);
        }
        self.resolve_new(reader, name, in_none)
    }

    #[cold]
    fn resolve_new(&mut self, reader: &Reader<'_>, name: NameToken, in_none: bool) -> Result<u32, Box<XmlError>> {
        let names = &mut self.builder.document.names;
        let text = reader.piece(name.start, name.start + name.len);
        let skipped = if name.colon == 0 { 0 } else { name.colon as usize + 1 };
        let prefix = match name.colon as usize {
            0 => PREFIX_NONE,
            colon => match names.find_prefix(&text[..colon]) {
                Some(prefix) => prefix,
                None => return Err(undeclared(reader, name)),
            },
        };
        // Attributes without a prefix are in no namespace.
        let namespace = if in_none { NAMESPACE_NONE } else { self.builder.bindings[prefix as usize] };
        if namespace == UNBOUND {
            return Err(undeclared(reader, name));
        }
        let id = Names::intern_qname(names, prefix, namespace, &text[skipped..]);
        if name.number != 0 {
            *self.lexicon.resolved(name.number) = Resolved { number: name.number, prefix, namespace, id };
        }
        Ok(id)
    }

    /// Text that is stored as it is written.
    #[inline]
    fn text(&mut self, reader: &Reader<'_>, base: u32) {
        let (start, end) = reader.state.content;
        let parent = self.builder.current();
        let document = &mut self.builder.document;
        let follows_text =
            document.nodes.last().is_some_and(|last| last.kind() == NodeKind::Text && last.parent == parent);
        if follows_text {
            self.builder.text(reader.piece(start, end));
        } else if end > start {
            document.push_node(Node::new(NodeKind::Text, NAME_EMPTY, parent, base + start, end - start));
        }
    }

    #[cold]
    fn decoded_text(&mut self, reader: &Reader<'_>, references: bool) {
        let (start, end) = reader.state.content;
        let mut decoded = String::with_capacity((end - start) as usize);
        decode_text(reader.piece(start, end), references, &mut decoded);
        self.made_text(&decoded, start);
    }

    fn made_text(&mut self, text: &str, offset: u32) {
        let before = self.builder.document.nodes.len();
        self.builder.text(text);
        if self.builder.document.nodes.len() > before && self.entities.is_empty() {
            self.builder.document.places.push((before as u32, offset));
        }
    }

    fn leaf(&mut self, reader: &Reader<'_>, base: u32, kind: NodeKind, name: u32) {
        let (start, end) = reader.state.content;
        let parent = self.builder.current();
        let raw = reader.piece(start, end);
        let document = &mut self.builder.document;
        let mut value = StrRef { start: base + start, len: end - start };
        if raw.contains('\r') {
            let mut decoded = String::with_capacity(raw.len());
            decode_text(raw, false, &mut decoded);
            value = document.strings.push(&decoded);
            document.places.push((document.nodes.len() as u32, reader.offset() as u32));
        }
        document.push_node(Node::new(kind, name, parent, value.start, value.len));
    }

    fn doctype(&mut self, reader: &Reader<'_>) {
        let Some(dtd) = reader.dtd() else { return };
        self.careful |= !dtd.attributes.is_empty();
        let unparsed = dtd.entities.iter().filter_map(|(name, entity)| match entity {
            Entity::Unparsed(entity) => Some((name.clone(), entity.clone())),
            _ => None,
        });
        self.builder.document.doctype = Some(Box::new(Doctype {
            name: dtd.name.clone(),
            public: dtd.external.as_ref().and_then(|id| id.public.clone()),
            system: dtd.external.as_ref().map(|id| id.system.clone()),
            unparsed: unparsed.collect(),
            ids: Default::default(),
        }));
    }
}

/// The offset to store in an element: only those in the source are known later.
#[inline]
fn offset(base: u32, start: u32) -> u32 {
    if base & OWNED == 0 { base + start } else { NO_OFFSET }
}

#[cold]
fn undeclared(reader: &Reader<'_>, name: NameToken) -> Box<XmlError> {
    let prefix = reader.piece(name.start, name.start + name.colon);
    let message = format!("the prefix `{prefix}` is not declared");
    Box::new(reader.error(XmlErrorKind::Namespace, name.start as usize, &message))
}
