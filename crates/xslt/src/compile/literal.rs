//! Literal result elements, and the parts of them that can be serialised before any document is seen.

use std::borrow::Cow;

use crate::output::escape;
use crate::program::{Event, Fragment, Literal, LiteralAttribute, Op, OutName};
use crate::read::XSL;
use crate::run::normalized_id;

use super::scope::LiteralScope;
use super::{At, Compiler};

/// A literal result element, looked at before its code is emitted.
struct Start {
    literal: Literal,
    attributes: Vec<LiteralAttribute>,
    sets: Vec<u32>,
    /// Its children do not inherit its namespaces.
    isolates: bool,
}

impl<'t> Compiler<'t> {
    /// A literal result element and its content.
    pub fn literal_element(&mut self, at: At) {
        let start = self.literal_start(at);
        let scope = self.literal.clone();
        let plan = self.fragment_plan(at, &start, scope.as_ref());
        let inner = inner_scope(&start.literal, scope.as_ref());
        let literal = self.program.literals.len() as u32;
        let name = start.literal.name.clone();
        self.program.literals.push(start.literal);
        match plan {
            Some(needs_no_default) => {
                self.push_event(Event::Start(literal), needs_no_default);
                for attribute in start.attributes {
                    match attribute.value.as_constant() {
                        Some(value) => {
                            let event = Event::Attribute(attribute.name, value.into());
                            self.push_event(event, needs_no_default);
                        }
                        None => self.emit_attribute(attribute),
                    }
                }
            }
            None => {
                self.emit(Op::StartLiteral(literal));
                if start.isolates {
                    self.emit(Op::IsolateNamespaces);
                }
                for set in start.sets {
                    self.emit(Op::UseAttributeSet(set));
                }
                start.attributes.into_iter().for_each(|attribute| self.emit_attribute(attribute));
            }
        }
        self.literal = Some(inner);
        self.body(at);
        self.literal = scope;
        self.here = at;
        match plan {
            Some(needs_no_default) => self.push_event(Event::End, needs_no_default),
            None => {
                debug_assert!(!name.local.is_empty(), "elements have names");
                self.emit(Op::EndElement);
            }
        }
    }

    fn emit_attribute(&mut self, attribute: LiteralAttribute) {
        self.program.literal_attributes.push(attribute);
        self.emit(Op::LiteralAttribute(self.program.literal_attributes.len() as u32 - 1));
    }

    /// Text inside or outside of literal result elements.
    pub fn literal_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.literal.is_some() {
            let flag = self.open_fragment().is_some_and(|fragment| fragment.needs_no_default);
            self.push_event(Event::Text(text.into()), flag);
            return;
        }
        let number = self.string(text);
        self.emit(Op::Text(number));
    }

    fn literal_start(&mut self, at: At) -> Start {
        let document = &self.module(at).document;
        let name = document.name(at.node);
        let excluded = self.excluded(at);
        let mut namespaces: Vec<(Box<str>, Box<str>)> = Vec::new();
        for declared in document.in_scope_namespaces(at.node) {
            let (prefix, namespace) = (document.local_name(declared), document.text(declared));
            if prefix == "xml" || self.is_excluded(namespace, &excluded) {
                continue;
            }
            let (prefix, namespace) = self.alias_binding(prefix, namespace);
            if !namespaces.iter().any(|(known, _)| *known == prefix) {
                namespaces.push((prefix, namespace));
            }
        }
        self.check_validation(at, XSL);
        self.check_scope_attributes(at, XSL);
        if let Some(validation) = document.attribute(at.node, XSL, "validation")
            && !matches!(validation.trim(), "strict" | "lax" | "preserve" | "strip")
        {
            self.error("XTSE0020", format!("`xsl:validation` is not `{validation}`"), at);
        }
        let mut attributes = Vec::new();
        let mut sets = Vec::new();
        for node in document.attributes(at.node) {
            let name = document.name(node);
            if name.namespace == XSL {
                match name.local {
                    "use-attribute-sets" => sets = self.attribute_set_list(document.text(node), at),
                    "version"
                    | "exclude-result-prefixes"
                    | "extension-element-prefixes"
                    | "use-when"
                    | "xpath-default-namespace"
                    | "default-collation"
                    | "type"
                    | "validation"
                    | "inherit-namespaces" => {}
                    other if !self.forwards_compatible(at) => {
                        let message = format!("`xsl:{other}` is not an attribute of literal result elements");
                        self.error("XTSE0805", message, At { node, ..at });
                    }
                    _ => {}
                }
                continue;
            }
            let text = document.text(node);
            // What is computed is normalized when it is written.
            let is_constant_id =
                name.namespace == penstock_xml::XML_NAMESPACE && name.local == "id" && !text.contains('{');
            let text = if is_constant_id { Cow::Owned(normalized_id(text)) } else { Cow::Borrowed(text) };
            let value = self.avt(&text, At { node, ..at });
            attributes.push(LiteralAttribute { name: self.alias_name(name), value });
        }
        let literal = Literal { name: self.alias_name(name), namespaces };
        let isolates = document.attribute(at.node, XSL, "inherit-namespaces").is_some_and(|text| text.trim() == "no");
        Start { literal, attributes, sets, isolates }
    }

    /// An excluded namespace that is the result of an alias, or is aliased, follows the alias.
    fn is_excluded(&self, namespace: &str, excluded: &[&str]) -> bool {
        excluded.contains(&namespace) && !self.aliases.contains_key(namespace)
    }

    fn alias_binding(&self, prefix: &str, namespace: &str) -> (Box<str>, Box<str>) {
        match self.aliases.get(namespace) {
            Some(alias) => (self.alias_prefix(alias, prefix), alias.namespace.as_str().into()),
            None => (prefix.into(), namespace.into()),
        }
    }

    /// The prefix of a name that an alias changes: the one that the alias names. In 1.0 it stays.
    fn alias_prefix(&self, alias: &super::declarations::Alias, prefix: &str) -> Box<str> {
        match (alias.namespace.is_empty(), self.program.version_two) {
            // A result in no namespace has no prefix to keep.
            (true, _) => "".into(),
            (false, true) => alias.prefix.clone(),
            (false, false) => prefix.into(),
        }
    }

    /// The name in the result of a name in the stylesheet.
    fn alias_name(&self, name: penstock_xml::Name<'_>) -> OutName {
        match self.aliases.get(name.namespace) {
            Some(alias) => OutName {
                prefix: self.alias_prefix(alias, name.prefix),
                local: name.local.into(),
                namespace: alias.namespace.as_str().into(),
            },
            None => OutName { prefix: name.prefix.into(), local: name.local.into(), namespace: name.namespace.into() },
        }
    }

    /// Whether the element can be a fragment: `Some` with whether it holds only without a default namespace.
    fn fragment_plan(&self, at: At, start: &Start, scope: Option<&LiteralScope>) -> Option<bool> {
        let scope = scope?;
        let guaranteed = |prefix: &str, namespace: &str| {
            if prefix.is_empty() {
                return scope.default.as_deref() == Some(namespace);
            }
            scope.bindings.iter().any(|(p, n)| **p == *prefix && **n == *namespace)
        };
        if start.isolates || !start.sets.is_empty() || !start.literal.namespaces.iter().all(|(p, n)| guaranteed(p, n)) {
            return None;
        }
        let name = &start.literal.name;
        let plain = name.prefix.is_empty() && name.namespace.is_empty();
        if plain && scope.default.as_deref().is_some_and(|default| !default.is_empty()) {
            return None;
        }
        if !plain && !guaranteed(&name.prefix, &name.namespace) {
            return None;
        }
        let attributes_fit = start.attributes.iter().all(|attribute| {
            let name = &attribute.name;
            name.namespace.is_empty() || *name.prefix == *"xml" || guaranteed(&name.prefix, &name.namespace)
        });
        if !attributes_fit {
            return None;
        }
        if !start.attributes.is_empty() {
            // Once an attribute is computed all of them must be seen by the sink, which replaces repeated ones.
            let constant = start.attributes.iter().all(|attribute| attribute.value.as_constant().is_some());
            if !constant || self.may_add_attributes(at) {
                return None;
            }
        }
        Some(plain && scope.default.is_none())
    }

    /// Whether the content may begin with attributes that are computed.
    fn may_add_attributes(&self, at: At) -> bool {
        for child in self.content(at) {
            match self.xsl_name(child) {
                Some("text") => return false,
                Some("value-of" | "variable" | "message" | "fallback" | "number") => {}
                Some("element" | "comment" | "processing-instruction") => return false,
                Some(_) => return true,
                None => return self.is_extension(child),
            }
        }
        false
    }

    /// Adds to the fragment at the end of the code, or begins one.
    fn push_event(&mut self, event: Event, needs_no_default: bool) {
        let extendable = self.open_fragment().is_some_and(|fragment| {
            if fragment.events.iter().all(|event| matches!(event, Event::Text(_))) {
                fragment.needs_no_default = needs_no_default;
            }
            fragment.needs_no_default == needs_no_default
        });
        if !extendable {
            self.program.fragments.push(Fragment { needs_no_default, ..Fragment::default() });
            let number = self.program.fragments.len() as u32 - 1;
            self.emit(Op::Fragment(number));
        }
        let name = match &event {
            Event::Start(literal) => {
                self.open_literals.push(*literal);
                self.program.literals[*literal as usize].name.lexical()
            }
            Event::End => {
                let literal = self.open_literals.pop().unwrap_or_default();
                self.program.literals[literal as usize].name.lexical()
            }
            _ => String::new(),
        };
        if let Some(fragment) = self.program.fragments.last_mut() {
            write_event(fragment, &event, &name);
            fragment.events.push(event);
        }
    }
}

/// The namespaces known to be in scope inside an element.
fn inner_scope(literal: &Literal, outer: Option<&LiteralScope>) -> LiteralScope {
    let mut scope = outer.cloned().unwrap_or_default();
    let mut bind = |prefix: &str, namespace: &str| {
        if prefix.is_empty() {
            scope.default = Some(namespace.into());
            return;
        }
        scope.bindings.retain(|(known, _)| **known != *prefix);
        scope.bindings.push((prefix.into(), namespace.into()));
    };
    for (prefix, namespace) in &literal.namespaces {
        bind(prefix, namespace);
    }
    bind_name(&literal.name, &mut bind);
    scope
}

fn bind_name(name: &OutName, bind: &mut impl FnMut(&str, &str)) {
    if &*name.prefix != "xml" {
        bind(&name.prefix, &name.namespace);
    }
}

fn write_event(fragment: &mut Fragment, event: &Event, name: &str) {
    let bytes = &mut fragment.bytes;
    let close_tag = |bytes: &mut Vec<u8>, open: &mut bool| {
        if std::mem::take(open) {
            bytes.push(b'>');
        }
    };
    match event {
        Event::Start(_) => {
            close_tag(bytes, &mut fragment.leaves_open);
            bytes.push(b'<');
            bytes.extend_from_slice(name.as_bytes());
            fragment.leaves_open = true;
            fragment.depth_change += 1;
        }
        Event::Attribute(name, value) => {
            bytes.push(b' ');
            bytes.extend_from_slice(name.lexical().as_bytes());
            bytes.extend_from_slice(b"=\"");
            escape::attribute(bytes, value);
            bytes.push(b'"');
        }
        Event::Text(text) => {
            close_tag(bytes, &mut fragment.leaves_open);
            escape::text(bytes, text);
        }
        Event::End => {
            fragment.depth_change -= 1;
            if std::mem::take(&mut fragment.leaves_open) {
                bytes.extend_from_slice(b"/>");
                return;
            }
            let first = bytes.is_empty();
            bytes.extend_from_slice(b"</");
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'>');
            if first {
                fragment.end_tag_bytes = bytes.len();
            }
        }
    }
}
