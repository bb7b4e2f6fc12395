//! Operations that make values, attributes and elements.

use std::borrow::Cow;

use penstock_xml::{Document, NodeId, NodeKind};
use penstock_xpath::{Atomic, Item, ItemRef, Node, Sequence};

use super::Outcome;
use super::machine::Machine;
use crate::compile::is_ncname;
use crate::program::{Avt, ComputedName, ExprId, OutName, Part, ValueOf, ValueSource};

impl<'a> Machine<'a, '_> {
    /// `xsl:value-of`.
    #[inline]
    pub(super) fn value_of(&mut self, number: u32) -> Outcome<()> {
        let value = &self.program.values_of[number as usize];
        if let (ValueSource::Child(name), None, false) = (value.source, &value.separator, value.raw)
            && let Some(Item::Node(node)) = self.focus.item
        {
            // The most frequent operation of all: nothing is allocated for it.
            let found = if node.document == 0 {
                self.children.first(self.run, &mut self.search, node, name)
            } else {
                let document: &'a Document = self.session.document(node.document);
                let child = self.run.name_in(node.document, name).and_then(|name| {
                    document.children(node.id).find(|id| document.is_element(*id) && document.name_id(*id) == name)
                });
                child.map(|child| (document, child))
            };
            if let Some((document, child)) = found {
                self.sink.text(&text_content(document, child), self.session);
            }
            return Ok(());
        }
        // With a separator the others count as well, and mostly there are none.
        if let (ValueSource::Child(name), false) = (value.source, value.raw)
            && let Some(Item::Node(node)) = self.focus.item
            && node.document == 0
        {
            match self.children.first_of_all(self.run, &mut self.search, node, name) {
                None => return Ok(()),
                Some((document, child, false)) => {
                    self.sink.text(&text_content(document, child), self.session);
                    return Ok(());
                }
                Some((_, _, true)) => {}
            }
        }
        let text = self.text_of(value)?;
        if value.raw {
            self.sink.raw(&text, self.session)
        } else {
            self.sink.text(&text, self.session)
        }
        Ok(())
    }

    /// The text of a value.
    pub(super) fn text_of(&self, value: &ValueOf) -> Outcome<Cow<'a, str>> {
        match (value.source, self.focus.item.as_ref()) {
            (ValueSource::Context, Some(Item::Node(node))) => {
                Ok(self.session.document(node.document).string_value(node.id))
            }
            (ValueSource::Context, Some(Item::Atomic(atomic))) => {
                Ok(Cow::Owned(atomic.to_text(value.separator.is_none()).into_owned()))
            }
            (ValueSource::Child(name), Some(Item::Node(node))) => self.children_text(*node, name, value),
            (ValueSource::Attribute(name), Some(Item::Node(node))) => {
                let document: &'a Document = self.session.document(node.document);
                let found = self.run.name_in(node.document, name).and_then(|name| {
                    document.attributes(node.id).find(|attribute| document.name_id(*attribute) == name)
                });
                Ok(Cow::Borrowed(found.map_or("", |attribute| document.text(attribute))))
            }
            (ValueSource::Expr(expr), _) => self.expression_text(expr, value),
            _ => self.failure("XPDY0002", "there is no context node here"),
        }
    }

    fn children_text(&self, node: Node, name: u32, value: &ValueOf) -> Outcome<Cow<'a, str>> {
        let document: &'a Document = self.session.document(node.document);
        let Some(name) = self.run.name_in(node.document, name) else { return Ok(Cow::Borrowed("")) };
        let mut found =
            document.children(node.id).filter(|child| document.is_element(*child) && document.name_id(*child) == name);
        let Some(first) = found.next() else { return Ok(Cow::Borrowed("")) };
        let first = document.string_value(first);
        let Some(separator) = &value.separator else { return Ok(first) };
        let Some(second) = found.next() else { return Ok(first) };
        let separator = self.avt(separator)?;
        let mut text = first.into_owned();
        for child in std::iter::once(second).chain(found) {
            text.push_str(&separator);
            text.push_str(&document.string_value(child));
        }
        Ok(Cow::Owned(text))
    }

    fn expression_text(&self, expr: ExprId, value: &ValueOf) -> Outcome<Cow<'a, str>> {
        let Some(separator) = &value.separator else {
            return match self.program.expressions[expr as usize].evaluate_string(&self.context()) {
                Ok(text) => Ok(Cow::Owned(text.into_owned())),
                Err(error) => self.xpath_failure(&error, expr),
            };
        };
        let sequence = self.evaluate(expr)?;
        let separator = if sequence.len() > 1 { self.avt(separator)? } else { Cow::Borrowed("") };
        Ok(Cow::Owned(self.joined(&sequence, &separator)))
    }

    /// A sequence as one text (XSLT 2.0 §5.7.2): adjacent text nodes are one item, those without text none.
    pub(super) fn joined(&self, sequence: &Sequence, separator: &str) -> String {
        let mut text = String::new();
        let mut items = 0;
        let mut after_text_node = false;
        for item in sequence.iter() {
            let part = self.item_text(item);
            let is_text = matches!(item, ItemRef::Node(node) if self.kind(node) == NodeKind::Text);
            if is_text && part.is_empty() {
                continue;
            }
            if items > 0 && !(is_text && after_text_node) {
                text.push_str(separator);
            }
            text.push_str(&part);
            items += 1;
            after_text_node = is_text;
        }
        text
    }

    pub(super) fn item_text<'v>(&'v self, item: ItemRef<'v>) -> Cow<'v, str> {
        match item {
            ItemRef::Node(node) => self.session.string_value(node),
            ItemRef::Atomic(atomic) => atomic.to_text(!self.program.version_two),
        }
    }

    /// The text of an attribute value template.
    pub(super) fn avt(&self, avt: &'a Avt) -> Outcome<Cow<'a, str>> {
        match &avt.parts[..] {
            [] => Ok(Cow::Borrowed("")),
            [Part::Text(text)] => Ok(Cow::Borrowed(text)),
            [Part::Value(value)] => self.text_of(value),
            parts => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Text(more) => text.push_str(more),
                        Part::Value(value) => text.push_str(&self.text_of(value)?),
                    }
                }
                Ok(Cow::Owned(text))
            }
        }
    }

    pub(super) fn start_literal(&mut self, number: u32) {
        let literal = &self.program.literals[number as usize];
        self.sink.start_element(&literal.name.prefix, &literal.name.local, &literal.name.namespace);
        for (prefix, namespace) in &literal.namespaces {
            self.sink.declare(prefix, namespace);
        }
    }

    pub(super) fn literal_attribute(&mut self, number: u32) -> Outcome<()> {
        let attribute = &self.program.literal_attributes[number as usize];
        let value = self.avt(&attribute.value)?;
        self.sink.attribute(&attribute.name, &value, self.session);
        Ok(())
    }

    pub(super) fn simple_attribute(&mut self, number: u32) -> Outcome<()> {
        let attribute = &self.program.simple_attributes[number as usize];
        let value = self.avt(&attribute.value)?;
        self.check_attribute()?;
        match &attribute.fixed {
            Some(name) => self.sink.attribute(name, &value, self.session),
            None => {
                if let Some(name) = self.attribute_name(&attribute.name)? {
                    self.sink.attribute(&name, &value, self.session);
                }
            }
        }
        Ok(())
    }

    pub(super) fn end_attribute(&mut self, number: u32) -> Outcome<()> {
        let value = self.finish_text();
        self.add_attribute(number, &value)
    }

    pub(super) fn add_attribute(&mut self, number: u32, value: &str) -> Outcome<()> {
        let name = &self.program.computed_names[number as usize];
        self.check_attribute()?;
        if let Some(name) = self.attribute_name(name)? {
            self.sink.attribute(&name, value, self.session);
        }
        Ok(())
    }

    /// The name of an attribute; nothing when an attribute cannot have it, which 1.0 lets pass.
    fn attribute_name(&self, computed: &'a ComputedName) -> Outcome<Option<OutName>> {
        let lexical = self.avt(&computed.name)?;
        let lexical = lexical.trim();
        if lexical == "xmlns" && computed.namespace.is_none() {
            return self.bad_name(lexical, "XTDE0855");
        }
        let Some((prefix, local)) = split_name(lexical) else { return self.bad_name(lexical, "XTDE0850") };
        let namespace: Cow<'_, str> = match &computed.namespace {
            Some(namespace) => self.avt(namespace)?,
            None if prefix.is_empty() => Cow::Borrowed(""),
            None => match self.stylesheet_namespace(computed, prefix) {
                Some(namespace) => Cow::Borrowed(namespace),
                None => return self.bad_name(lexical, "XTDE0860"),
            },
        };
        let prefix = if prefix == "xmlns" || namespace.is_empty() { "" } else { prefix };
        Ok(Some(OutName { prefix: prefix.into(), local: local.into(), namespace: namespace.into() }))
    }

    /// XSLT 1.0 processors go on without the node; 2.0 demands an error.
    pub(super) fn bad_name<T: Default>(&self, name: &str, code: &'static str) -> Outcome<T> {
        if self.program.version_two {
            return self.failure(code, format!("`{name}` is not a name that fits here"));
        }
        (self.run.options.messages)(&format!("warning: `{name}` is not a name that fits here"));
        Ok(T::default())
    }

    fn stylesheet_namespace(&self, computed: &ComputedName, prefix: &str) -> Option<&'a str> {
        let (module, node) = computed.scope;
        self.program.modules.modules.get(module)?.document.lookup_namespace(node, prefix)
    }

    pub(super) fn start_computed(&mut self, number: u32) -> Outcome<()> {
        let computed = &self.program.computed_names[number as usize];
        let name = self.element_name(computed)?;
        self.named.push(name.is_some());
        if let Some(name) = name {
            self.sink.start_element(&name.prefix, &name.local, &name.namespace);
        }
        Ok(())
    }

    fn element_name(&self, computed: &'a ComputedName) -> Outcome<Option<OutName>> {
        let lexical = self.avt(&computed.name)?;
        let lexical = lexical.trim();
        let Some((prefix, local)) = split_name(lexical) else { return self.bad_name(lexical, "XTDE0820") };
        let namespace: Cow<'_, str> = match &computed.namespace {
            Some(namespace) => self.avt(namespace)?,
            None => match self.stylesheet_namespace(computed, prefix) {
                Some(namespace) => Cow::Borrowed(namespace),
                None if prefix.is_empty() => Cow::Borrowed(""),
                None => return self.bad_name(lexical, "XTDE0830"),
            },
        };
        let prefix = if prefix == "xmlns" { "" } else { prefix };
        Ok(Some(OutName { prefix: prefix.into(), local: local.into(), namespace: namespace.into() }))
    }
}

/// The string value of an element; most have one text node and nothing else.
#[inline]
fn text_content(document: &Document, element: NodeId) -> Cow<'_, str> {
    if let Some(first) = document.first_child(element)
        && document.kind(first) == NodeKind::Text
        && document.subtree(element).end == first.index() + 1
    {
        return Cow::Borrowed(document.text(first));
    }
    document.string_value(element)
}

/// The prefix (or nothing) and local part of a lexical QName.
fn split_name(lexical: &str) -> Option<(&str, &str)> {
    match lexical.split_once(':') {
        Some((prefix, local)) => (is_ncname(prefix) && is_ncname(local)).then_some((prefix, local)),
        None => is_ncname(lexical).then_some(("", lexical)),
    }
}

/// A string as an item.
pub(super) fn string_item(text: &str) -> Item {
    Item::Atomic(Atomic::String(text.into()))
}
