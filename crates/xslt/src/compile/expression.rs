//! Expressions, patterns, types and attribute value templates: the parts of a stylesheet written in XPath.

use std::sync::Arc;

use penstock_xpath::ast::SequenceType;
use penstock_xpath::{Pattern, StaticContext, Version, XPath};

use super::scope::ExprScope;
use super::{At, Compiler, is_ncname};
use crate::program::{Avt, ExprId, NONE, Part, Place, Select, ValueOf, ValueSource};
use crate::read::avt::{AvtPart, split};
use crate::read::base_uri;

/// What stands in for an expression that did not compile, so that compiling can go on.
const EMPTY: &str = "()";

impl<'t> Compiler<'t> {
    fn static_context<'s>(&self, at: At, scope: &'s ExprScope<'_, 't>) -> StaticContext<'s> {
        let version = if self.version(at) < 2.0 { Version::One } else { Version::Two };
        let mut context = StaticContext::new()
            .version(version)
            .resolver(scope)
            .default_element_namespace(self.default_element_namespace(at))
            .base_uri(base_uri(self.module(at), at.node))
            .name_pool(Arc::clone(&self.program.pool));
        if let Some(uri) = self.default_collation_uri(at) {
            context = context.default_collation(uri);
        }
        for named in &self.decimal_formats {
            context = context.decimal_format(named.name.clone(), named.format.clone());
        }
        context
    }

    /// The place of an attribute of the element, or the element itself.
    pub fn attribute_place(&self, at: At, name: &str) -> At {
        let node = self.module(at).document.attribute_node(at.node, "", name);
        At { node: node.unwrap_or(at.node), ..at }
    }

    /// Compiles an expression that stands at (or in an attribute of) an element.
    pub fn expression(&mut self, text: &str, at: At) -> ExprId {
        let element = self.element_of(at);
        let compiled = {
            let scope = ExprScope { compiler: self, at: element };
            let context = self.static_context(element, &scope);
            XPath::compile(text, &context)
        };
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                self.xpath_error(&error, text, at);
                return self.placeholder();
            }
        };
        self.note_uses(text);
        self.push_expression(compiled, at)
    }

    fn placeholder(&mut self) -> ExprId {
        match XPath::compile(EMPTY, &StaticContext::new()) {
            Ok(empty) => self.push_expression(empty, self.here),
            Err(_) => NONE,
        }
    }

    fn push_expression(&mut self, compiled: XPath, at: At) -> ExprId {
        self.program.expressions.push(compiled);
        self.program.expression_places.push(Place { module: at.module as u32, node: at.node });
        self.program.expressions.len() as u32 - 1
    }

    /// The expression in an attribute that must be there.
    pub fn required_expression(&mut self, at: At, name: &str) -> ExprId {
        match self.attribute(at, name) {
            Some(text) => self.expression(text, self.attribute_place(at, name)),
            // The missing attribute was reported when the element was checked.
            None => self.placeholder(),
        }
    }

    /// The expression in an attribute, if it is there.
    pub fn optional_expression(&mut self, at: At, name: &str) -> Option<ExprId> {
        let text = self.attribute(at, name)?;
        Some(self.expression(text, self.attribute_place(at, name)))
    }

    pub fn element_of(&self, at: At) -> At {
        let document = &self.module(at).document;
        if document.is_element(at.node) {
            return at;
        }
        At { node: document.parent(at.node).unwrap_or(at.node), ..at }
    }

    fn xpath_error(&mut self, error: &penstock_xpath::XPathError, text: &str, at: At) {
        let code = error.code().to_owned();
        let mut message = error.message().to_owned();
        let span = error.span();
        if let Some(part) = text.get(span.clone()).filter(|part| !part.is_empty() && *part != text) {
            message.push_str(&format!(", at `{part}` in `{text}`"));
        } else {
            message.push_str(&format!(", in `{text}`"));
        }
        let element = self.element_of(at);
        if self.forwards_compatible(element) {
            self.pending_failure = Some((code, message));
            return;
        }
        self.error(code, message, at);
    }

    /// Remembers what the whole stylesheet may ask of the machine. Only a hint: words in strings count too.
    fn note_uses(&mut self, text: &str) {
        if text.contains("last") {
            self.program.uses_last = true;
        }
        let upwards = ["/", "..", "::", "root", "id", "key", "lang", "position", "generate"];
        if upwards.iter().any(|part| text.contains(part)) && !is_downward_path(text) {
            self.program.looks_up = true;
        }
    }

    /// Compiles a match pattern and returns its index.
    pub fn pattern(&mut self, text: &str, at: At) -> Option<u32> {
        let element = self.element_of(at);
        let compiled = {
            let scope = ExprScope { compiler: self, at: element };
            let context = self.static_context(element, &scope);
            Pattern::compile(text, &context)
        };
        match compiled {
            Ok(pattern) => {
                for (function, code) in [("current-group()", "XTSE1060"), ("current-grouping-key()", "XTSE1070")] {
                    if text.contains(function) {
                        self.error(code, format!("`{function}` means nothing in a pattern"), at);
                    }
                }
                self.note_uses(text);
                // Steps look at parents, predicates may count siblings.
                if text.contains(['/', '[']) {
                    self.program.looks_up = true;
                }
                self.program.patterns.push(pattern);
                self.program.pattern_places.push(Place { module: at.module as u32, node: at.node });
                Some(self.program.patterns.len() as u32 - 1)
            }
            Err(error) if error.code() == "XPST0003" => {
                self.xpath_error(&penstock_xpath::XPathError::new("XTSE0340", error.message().to_owned()), text, at);
                None
            }
            Err(error) => {
                self.xpath_error(&error, text, at);
                None
            }
        }
    }

    /// The index of the sequence type in the attribute `as`, or `NONE`.
    pub fn as_type(&mut self, at: At) -> u32 {
        let Some(text) = self.attribute(at, "as") else { return NONE };
        let parsed: Result<SequenceType, _> = {
            let scope = ExprScope { compiler: self, at };
            let context = self.static_context(at, &scope);
            SequenceType::parse(text, &context)
        };
        match parsed {
            Ok(parsed) => {
                self.program.types.push(parsed);
                self.program.types.len() as u32 - 1
            }
            Err(error) => {
                self.xpath_error(&error, text, self.attribute_place(at, "as"));
                NONE
            }
        }
    }

    /// Compiles an attribute value template.
    pub fn avt(&mut self, text: &str, at: At) -> Avt {
        let parts = match split(text) {
            Ok(parts) => parts,
            Err(message) => {
                let code = if text.contains('{') { "XTSE0350" } else { "XTSE0370" };
                self.error(code, format!("{message}, in `{text}`"), at);
                return Avt::default();
            }
        };
        let mut avt = Avt::default();
        for part in parts {
            match part {
                AvtPart::Text(text) => avt.parts.push(Part::Text(text.into())),
                AvtPart::Expression(text, _) => {
                    let value = self.value_of(text, None, at);
                    avt.parts.push(Part::Value(value));
                }
            }
        }
        avt
    }

    /// The template in an attribute, or a default.
    pub fn avt_attribute(&mut self, at: At, name: &str, default: &str) -> Avt {
        match self.attribute(at, name) {
            Some(text) => self.avt(text, self.attribute_place(at, name)),
            None => Avt::constant(default),
        }
    }

    /// The template in an attribute, if it is there.
    pub fn optional_avt(&mut self, at: At, name: &str) -> Option<Avt> {
        let text = self.attribute(at, name)?;
        Some(self.avt(text, self.attribute_place(at, name)))
    }

    /// The string value of an expression, items separated as the version demands.
    pub fn value_of(&mut self, text: &str, separator: Option<Avt>, at: At) -> ValueOf {
        let element = self.element_of(at);
        let one = self.version(element) < 2.0;
        let separator = match separator {
            Some(separator) => Some(separator),
            None if one => None,
            None => Some(Avt::constant(" ")),
        };
        let source = self.value_source(text, at);
        ValueOf { source, separator, raw: false }
    }

    fn value_source(&mut self, text: &str, at: At) -> ValueSource {
        let trimmed = text.trim();
        if trimmed == "." {
            return ValueSource::Context;
        }
        if let Some(name) = trimmed.strip_prefix('@').and_then(|name| self.name_test(name, true, at)) {
            return ValueSource::Attribute(name);
        }
        match self.name_test(trimmed, false, at) {
            Some(name) => ValueSource::Child(name),
            None => ValueSource::Expr(self.expression(text, at)),
        }
    }

    /// What an instruction goes over.
    pub fn select(&mut self, text: &str, at: At) -> Select {
        if let Some(select) = common_select(text) {
            return select;
        }
        match self.name_test(text.trim(), false, at) {
            Some(name) => Select::ChildrenNamed(name),
            None => Select::Expr(self.expression(text, at)),
        }
    }

    /// The symbol of `name` or `prefix:name`, when the text is nothing else and the prefix is declared.
    fn name_test(&mut self, text: &str, attribute: bool, at: At) -> Option<u32> {
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        if !is_ncname(local) || (!prefix.is_empty() && !is_ncname(prefix)) || text.starts_with(':') {
            return None;
        }
        let element = self.element_of(at);
        let namespace = match prefix {
            "" if attribute => "",
            "" => self.default_element_namespace(element).unwrap_or_default(),
            prefix => self.module(at).document.lookup_namespace(element.node, prefix)?,
        };
        Some(self.symbol(namespace, local))
    }
}

/// The selections that need no expression.
pub(super) fn common_select(text: &str) -> Option<Select> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    Some(match &compact[..] {
        "node()" | "child::node()" => Select::Children,
        "@*|node()" | "node()|@*" | "@node()|node()" | "node()|@node()" => Select::AttributesAndChildren,
        "@*" | "attribute::*" => Select::Attributes,
        "*" | "child::*" => Select::ChildElements,
        _ => return None,
    })
}

/// `a/b/c`, `//` excluded: steps of names only, which never leave the subtree of the context node.
fn is_downward_path(text: &str) -> bool {
    !text.trim().is_empty()
        && text.split('/').all(|step| {
            let step = step.trim();
            let name = step.strip_prefix('@').unwrap_or(step);
            name == "*" || name.split(':').all(is_ncname)
        })
}
