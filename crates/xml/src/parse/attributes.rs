//! Start tags with attributes, written or declared.

use std::borrow::Cow;

use super::{Parse, offset, undeclared};
use crate::build::UNBOUND;
use crate::dtd::{AttributeKind, AttributeRule};
use crate::error::{XmlError, XmlErrorKind};
use crate::names::lexicon::Resolved;
use crate::names::{NAME_EMPTY, Names, PREFIX_XML, XML_NAMESPACE, XMLNS_NAMESPACE};
use crate::reader::{NameToken, RawAttribute, Reader, declares_namespace};
use crate::text::StrRef;
use crate::tree::{Document, Node, NodeKind};

/// From this many attributes on, duplicates are looked for by sorting.
const PAIRWISE_MAX: usize = 12;

impl Parse<'_> {
    pub(super) fn start_with_attributes(
        &mut self,
        reader: &Reader<'_>,
        base: u32,
        name: NameToken,
    ) -> Result<(), Box<XmlError>> {
        self.builder.open_element(NAME_EMPTY, offset(base, name.start - 1));
        let element = self.builder.current();
        let dtd = reader.dtd().cloned();
        let rules = dtd
            .as_ref()
            .and_then(|dtd| dtd.attributes.get(reader.piece(name.start, name.start + name.len)))
            .map_or(&[][..], Vec::as_slice);
        let attributes = &reader.state.attributes;
        let is_declaration = |attribute: &RawAttribute| {
            declares_namespace(reader.piece(attribute.name.start, attribute.name.start + attribute.name.len))
        };
        let declarations = attributes.iter().filter(|attribute| is_declaration(attribute)).count();
        if declarations > 0 {
            for attribute in attributes.iter().filter(|attribute| is_declaration(attribute)) {
                self.declare(reader, base, attribute)?;
            }
        }
        self.declared_namespaces(reader, rules, name)?;
        if self.undeclare_at == self.builder.open.len() - 1 && self.undeclare_at > 0 {
            self.undeclare_default();
        }
        let id = self.resolve(reader, name, false)?;
        let tag = Node::new(NodeKind::Element, id, 0, 0, 0).tag;
        self.builder.document.nodes[element as usize].tag = tag;
        let first = self.builder.document.nodes.len();
        if declarations < attributes.len() {
            for attribute in attributes.iter().filter(|attribute| !is_declaration(attribute)) {
                self.attribute(reader, base, attribute, rules)?;
            }
            self.check_duplicates(reader, first)?;
        }
        if !rules.is_empty() {
            self.declared_attributes(reader, rules, name)?;
        }
        Ok(())
    }

    /// A value as the document stores it, and whether it had to be made.
    fn value(&mut self, reader: &Reader<'_>, base: u32, attribute: &RawAttribute) -> Result<StrRef, Box<XmlError>> {
        if attribute.verbatim {
            return Ok(StrRef { start: base + attribute.start, len: attribute.end - attribute.start });
        }
        let value = reader.attribute_value(attribute)?;
        Ok(self.builder.document.strings.push(&value))
    }

    fn declare(&mut self, reader: &Reader<'_>, base: u32, attribute: &RawAttribute) -> Result<(), Box<XmlError>> {
        let name = attribute.name;
        let uri = self.value(reader, base, attribute)?;
        let prefix = match name.colon {
            0 => StrRef::EMPTY,
            colon => StrRef { start: base + name.start + colon + 1, len: name.len - colon - 1 },
        };
        self.bind(reader, prefix, uri, name.start, name.number)?;
        self.place(attribute);
        Ok(())
    }

    /// Stores the place of the last node if its value does not have it.
    fn place(&mut self, attribute: &RawAttribute) {
        if !attribute.verbatim && self.entities.is_empty() {
            let node = self.builder.document.nodes.len() as u32 - 1;
            self.builder.document.places.push((node, attribute.name.start));
        }
    }

    /// Binds a prefix on the open element and adds the namespace node. `number` is that of the declaration's name.
    fn bind(
        &mut self,
        reader: &Reader<'_>,
        prefix: StrRef,
        uri: StrRef,
        at: u32,
        number: u32,
    ) -> Result<(), Box<XmlError>> {
        let mut known = *self.lexicon.declared(number);
        let Document { names, strings, .. } = &self.builder.document;
        // A message declares what the message before it declared.
        let again = number != 0 && known.number == number && names.namespace(known.namespace) == strings.get(uri);
        if !again {
            known = Resolved { number, ..self.new_declaration(reader, prefix, uri, at)? };
            *self.lexicon.declared(number) = known;
        }
        self.builder.make_room_for(known.prefix);
        if known.prefix != PREFIX_XML {
            self.builder.bind(known.prefix, known.namespace);
        }
        let parent = self.builder.current();
        self.builder.document.nodes.push(Node::new(NodeKind::Namespace, known.id, parent, uri.start, uri.len));
        Ok(())
    }

    /// Checks a declaration and finds the numbers of what is in it.
    #[cold]
    fn new_declaration(
        &mut self,
        reader: &Reader<'_>,
        prefix: StrRef,
        uri: StrRef,
        at: u32,
    ) -> Result<Resolved, Box<XmlError>> {
        let Document { names, strings, .. } = &mut self.builder.document;
        if let Some(message) = wrong_declaration(strings.get(prefix), strings.get(uri)) {
            return Err(Box::new(reader.error(XmlErrorKind::Namespace, at as usize, &message)));
        }
        let namespace = Names::intern_namespace(names, strings.get(uri));
        let prefix = Names::intern_prefix(names, strings.get(prefix));
        let id = Names::intern_declaration(names, prefix);
        Ok(Resolved { number: 0, prefix, namespace, id })
    }

    /// A default namespace in scope around the document must not become that of its elements.
    fn undeclare_default(&mut self) {
        let parent = self.builder.current();
        let declared = self.builder.document.nodes[parent as usize + 1..].iter().any(|node| node.name() == NAME_EMPTY);
        if !declared {
            let node = Node::new(NodeKind::Namespace, NAME_EMPTY, parent, 0, 0);
            self.builder.document.nodes.push(node);
        }
    }

    fn attribute(
        &mut self,
        reader: &Reader<'_>,
        base: u32,
        attribute: &RawAttribute,
        rules: &[AttributeRule],
    ) -> Result<(), Box<XmlError>> {
        let id = self.resolve(reader, attribute.name, true)?;
        let mut value = self.value(reader, base, attribute)?;
        let mut verbatim = attribute.verbatim;
        let written = reader.piece(attribute.name.start, attribute.name.start + attribute.name.len);
        let parent = self.builder.current();
        let document = &mut self.builder.document;
        if let Some(rule) = rules.iter().find(|rule| *rule.name == *written)
            && rule.kind != AttributeKind::Text
        {
            let before = document.strings.get(value);
            let after = rule.kind.finish(before.to_owned());
            if after != before {
                value = document.strings.push(&after);
                verbatim = false;
            }
            if rule.kind == AttributeKind::Id
                && let Some(doctype) = &mut document.doctype
            {
                doctype.ids.entry(after.into()).or_insert(parent);
            }
        }
        self.space_seen |= written == "xml:space";
        document.nodes.push(Node::new(NodeKind::Attribute, id, parent, value.start, value.len));
        self.place(&RawAttribute { verbatim, ..*attribute });
        Ok(())
    }

    /// Two attributes with different prefixes may still have the same name (Namespaces in XML §6.3).
    fn check_duplicates(&self, reader: &Reader<'_>, first: usize) -> Result<(), Box<XmlError>> {
        let document = &self.builder.document;
        let added = &document.nodes[first..];
        if added.len() < 2 {
            return Ok(());
        }
        let canonical = |node: &Node| document.names.qnames[node.name() as usize].canonical;
        let duplicate = if added.len() <= PAIRWISE_MAX {
            (1..added.len()).any(|later| added[..later].iter().any(|node| canonical(node) == canonical(&added[later])))
        } else {
            let mut names: Vec<u32> = added.iter().map(canonical).collect();
            names.sort_unstable();
            names.windows(2).any(|pair| pair[0] == pair[1])
        };
        if duplicate {
            let message = "two attributes of this element have the same namespace and name";
            return Err(Box::new(reader.error(XmlErrorKind::Namespace, reader.offset(), message)));
        }
        Ok(())
    }

    /// Namespace declarations that come from the document type declaration.
    fn declared_namespaces(
        &mut self,
        reader: &Reader<'_>,
        rules: &[AttributeRule],
        element: NameToken,
    ) -> Result<(), Box<XmlError>> {
        for rule in rules.iter().filter(|rule| declares_namespace(&rule.name)) {
            let Some(default) = &rule.default else { continue };
            if written(reader, &rule.name) {
                continue;
            }
            let prefix = rule.name.strip_prefix("xmlns:").unwrap_or_default();
            let prefix = self.builder.document.strings.push(prefix);
            let uri = self.builder.document.strings.push(default);
            self.bind(reader, prefix, uri, element.start, 0)?;
        }
        Ok(())
    }

    /// Attributes that have a default and were not written.
    fn declared_attributes(
        &mut self,
        reader: &Reader<'_>,
        rules: &[AttributeRule],
        element: NameToken,
    ) -> Result<(), Box<XmlError>> {
        for rule in rules.iter().filter(|rule| !declares_namespace(&rule.name)) {
            let Some(default) = &rule.default else { continue };
            if written(reader, &rule.name) {
                continue;
            }
            let (prefix, local) = rule.name.split_once(':').unwrap_or(("", &rule.name));
            let namespace = match prefix {
                "" => Cow::Borrowed(""),
                "xml" => Cow::Borrowed(XML_NAMESPACE),
                prefix => {
                    let document = &self.builder.document;
                    let bound = document.names.find_prefix(prefix);
                    match bound.map(|prefix| self.builder.bindings[prefix as usize]) {
                        Some(namespace) if namespace != UNBOUND => {
                            Cow::Owned(document.names.namespace(namespace).to_owned())
                        }
                        _ => return Err(undeclared(reader, NameToken { colon: 0, ..element })),
                    }
                }
            };
            self.space_seen |= *rule.name == *"xml:space";
            self.builder.attribute(prefix, local, &namespace, default);
        }
        Ok(())
    }
}

fn written(reader: &Reader<'_>, name: &str) -> bool {
    reader
        .state
        .attributes
        .iter()
        .any(|attribute| reader.piece(attribute.name.start, attribute.name.start + attribute.name.len) == name)
}

/// The constraints of Namespaces in XML 1.0 §3 and §5.
fn wrong_declaration(prefix: &str, uri: &str) -> Option<String> {
    match (prefix, uri) {
        ("xmlns", _) => Some("the prefix `xmlns` may not be declared".to_owned()),
        ("xml", XML_NAMESPACE) => None,
        ("xml", _) => Some("the prefix `xml` is bound to its own namespace and to no other".to_owned()),
        (_, XML_NAMESPACE) => Some(format!("no prefix but `xml` may be bound to `{XML_NAMESPACE}`")),
        (_, XMLNS_NAMESPACE) => Some(format!("no prefix may be bound to `{XMLNS_NAMESPACE}`")),
        (prefix, "") if !prefix.is_empty() => Some(format!("the prefix `{prefix}` cannot be undeclared")),
        _ => None,
    }
}
