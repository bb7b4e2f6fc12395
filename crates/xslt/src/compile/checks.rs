//! What the recommendations forbid: attributes, values and content that an element cannot have, reserved names.

use penstock_xpath::collation::Collation;
use penstock_xpath::{FUNCTION_NAMESPACE, SCHEMA_NAMESPACE, XML_NAMESPACE};

use crate::read::XSL;
use crate::read::syntax::{self, ElementSyntax, Place};
use crate::read::values::{AttributeValue, yes_or_no};

use super::{At, Compiler};

const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Namespaces in which a stylesheet declares nothing (XSLT 2.0 §3.2).
const RESERVED: &[&str] = &[XSL, FUNCTION_NAMESPACE, XML_NAMESPACE, SCHEMA_NAMESPACE, SCHEMA_INSTANCE];

/// Children that stand before all others, by parent.
const LEADING: &[(&str, &str)] = &[
    ("template", "param"),
    ("function", "param"),
    ("for-each", "sort"),
    ("for-each-group", "sort"),
    ("perform-sort", "sort"),
];

impl Compiler<'_> {
    /// Checks the attributes of an element, and that what must be empty is (XSLT 2.0 §2.2).
    pub fn check_attributes(&mut self, element: &'static ElementSyntax, at: At) {
        let document = &self.module(at).document;
        let forwards = self.forwards_compatible(at);
        for attribute in document.attributes(at.node) {
            let name = document.name(attribute);
            let place = At { node: attribute, ..at };
            if name.namespace == XSL {
                self.error("XTSE0090", format!("`{name}` is written without a prefix here"), place);
            }
            if !name.namespace.is_empty() || forwards {
                continue;
            }
            self.check_value(element.name, name.local, document.text(attribute), place);
            let known = element.required.iter().chain(element.optional);
            if known.clone().any(|known| *known == name.local) || syntax::STANDARD_ATTRIBUTES.contains(&name.local) {
                continue;
            }
            let mut message = format!("`xsl:{}` has no attribute `{}`", element.name, name.local);
            if let Some(suggested) = syntax::suggestion(name.local, known.copied()) {
                message.push_str(&format!(", did you mean `{suggested}`?"));
            }
            self.error("XTSE0090", message, place);
        }
        for required in element.required {
            if self.attribute(at, required).is_none() {
                let message = format!("`xsl:{}` needs the attribute `{required}`", element.name);
                self.error("XTSE0010", message, at);
            }
        }
        self.check_validation(at, "");
        self.check_scope_attributes(at, "");
        if syntax::EMPTY_ELEMENTS.contains(&element.name) && !forwards {
            if let Some(child) = self.content(at).first() {
                self.error("XTSE0260", format!("`xsl:{}` is empty", element.name), *child);
            }
        } else if !element.content && matches!(element.place, Place::Instruction) {
            self.check_content(element, at);
        }
        self.check_order(element.name, at);
    }

    /// Checks the value of an attribute against the list of what it may be. A value that is computed is checked when
    /// the stylesheet runs.
    fn check_value(&mut self, element: &str, attribute: &str, text: &str, place: At) {
        let Some((value, template)) = AttributeValue::find(element, attribute) else { return };
        if (template && text.contains('{')) || value.accepts(text) {
            return;
        }
        let message = format!("`{attribute}` is {}, not `{text}`", value.describe());
        self.error("XTSE0020", message, place);
    }

    /// `type` and `validation` ask for a schema-aware processor, except to strip or keep annotations.
    pub(super) fn check_validation(&mut self, at: At, namespace: &str) {
        let document = &self.module(at).document;
        let typed = document.attribute(at.node, namespace, "type").is_some();
        let validation = document.attribute(at.node, namespace, "validation").map(str::trim);
        let strict = validation == Some("strict")
            || document.attribute(at.node, namespace, "default-validation").map(str::trim) == Some("strict");
        if typed && validation.is_some() {
            self.error("XTSE1505", "`type` and `validation` exclude each other", at);
        } else if typed || strict {
            self.error("XTSE1660", "validation needs a schema-aware processor, which this is not", at);
        }
    }

    /// The attributes that apply to everything inside an element: prefixes that must be declared, collations that must
    /// exist.
    pub(super) fn check_scope_attributes(&mut self, at: At, namespace: &str) {
        let document = &self.module(at).document;
        let attribute = |name: &str| document.attribute(at.node, namespace, name);
        for (name, code) in [("exclude-result-prefixes", "XTSE0808"), ("extension-element-prefixes", "XTSE1430")] {
            for prefix in attribute(name).unwrap_or_default().split_ascii_whitespace() {
                match prefix {
                    "#all" => {}
                    "#default" if document.lookup_namespace(at.node, "").is_some_and(|uri| !uri.is_empty()) => {}
                    "#default" => self.error("XTSE0809", "there is no default namespace", at),
                    _ => match document.lookup_namespace(at.node, prefix) {
                        None => self.error(code, format!("the prefix `{prefix}` is not declared"), at),
                        Some(XSL) if code == "XTSE1430" => {
                            self.error("XTSE0800", format!("`{prefix}` stands for the namespace of XSLT"), at);
                        }
                        Some(_) => {}
                    },
                }
            }
        }
        if let Some(list) = attribute("default-collation")
            && !list.split_ascii_whitespace().any(|uri| Collation::from_uri(uri).is_some())
        {
            self.error("XTSE0125", format!("none of the collations `{list}` is known"), at);
        }
    }

    /// `xsl:stylesheet` itself.
    pub(super) fn check_stylesheet(&mut self, at: At) {
        let document = &self.module(at).document;
        match document.attribute(at.node, "", "version") {
            None => self.error("XTSE0010", "the attribute `version` is missing", at),
            Some(version) if version.trim().parse::<f64>().is_err() => {
                self.error("XTSE0110", format!("`version` is a number, not `{version}`"), at);
            }
            Some(_) => {}
        }
        let name = document.local_name(at.node);
        let forwards = self.forwards_compatible(at);
        for attribute in document.attributes(at.node) {
            let attribute_name = document.name(attribute);
            let place = At { node: attribute, ..at };
            if attribute_name.namespace == XSL {
                self.error("XTSE0090", format!("`{attribute_name}` is written without a prefix here"), place);
            }
            if !attribute_name.namespace.is_empty() || forwards {
                continue;
            }
            let local = attribute_name.local;
            self.check_value(name, local, document.text(attribute), place);
            if !syntax::STANDARD_ATTRIBUTES.contains(&local) && !syntax::STYLESHEET_ATTRIBUTES.contains(&local) {
                self.error("XTSE0090", format!("`xsl:{name}` has no attribute `{local}`"), place);
            }
        }
        self.check_validation(at, "");
        self.check_scope_attributes(at, "");
    }

    /// Elements that take only certain children.
    fn check_content(&mut self, element: &'static ElementSyntax, at: At) {
        if self.forwards_compatible(at) {
            return;
        }
        let allowed: &[&str] = match element.name {
            "choose" => &["when", "otherwise"],
            "apply-templates" => &["sort", "with-param"],
            "call-template" | "apply-imports" => &["with-param"],
            "next-match" => &["with-param", "fallback"],
            "analyze-string" => &["matching-substring", "non-matching-substring", "fallback"],
            _ => &["fallback"],
        };
        let mut last = None;
        for child in self.content(at) {
            let name = self.xsl_name(child);
            let Some(place) = allowed.iter().position(|allowed| name == Some(allowed)) else {
                let message = format!("`xsl:{}` does not contain this", element.name);
                self.error("XTSE0010", message, child);
                continue;
            };
            if element.name == "analyze-string" {
                let repeated = place < 2 && last == Some(place);
                if repeated || last.is_some_and(|last| place < last) {
                    self.error("XTSE0010", "the parts of `xsl:analyze-string` are out of order", child);
                }
                last = Some(place);
            }
        }
    }

    /// `xsl:param` and `xsl:sort` stand before everything else in their parents.
    fn check_order(&mut self, name: &str, at: At) {
        let Some((_, leading)) = LEADING.iter().find(|(parent, _)| *parent == name) else { return };
        let mut begun = false;
        for child in self.content(at) {
            if self.xsl_name(child) != Some(leading) {
                begun = true;
            } else if begun {
                self.error("XTSE0010", format!("`xsl:{leading}` stands before the other content"), child);
            }
        }
    }

    /// Content and a `select` attribute exclude each other in this element.
    pub(super) fn check_select(&mut self, at: At, code: &'static str) {
        if self.attribute(at, "select").is_some() && !self.sequence_constructor(at).is_empty() {
            self.error(code, "either `select` or content, not both", at);
        }
    }

    /// The content without `xsl:fallback`.
    pub(super) fn sequence_constructor(&self, at: At) -> Vec<At> {
        let mut content = self.content(at);
        content.retain(|child| self.xsl_name(*child) != Some("fallback"));
        content
    }

    /// The number of a name that the stylesheet declares; names in reserved namespaces are an error.
    pub(super) fn declared_name(&mut self, at: At) -> Option<u32> {
        let text = self.attribute(at, "name")?;
        let place = self.attribute_place(at, "name");
        if let Some((prefix, _)) = text.trim().split_once(':')
            && self.module(at).document.lookup_namespace(at.node, prefix).is_some_and(|uri| RESERVED.contains(&uri))
        {
            self.error("XTSE0080", format!("`{text}` is in a reserved namespace"), place);
            return None;
        }
        self.qname(text, place)
    }

    /// Whether a name is in a reserved namespace.
    pub(super) fn is_reserved(&self, text: &str, at: At) -> bool {
        let element = self.element_of(at);
        text.split_once(':').is_some_and(|(prefix, _)| {
            self.module(at).document.lookup_namespace(element.node, prefix).is_some_and(|uri| RESERVED.contains(&uri))
        })
    }

    /// The value of a yes/no attribute; a wrong one was reported with the other attributes.
    pub fn flag(&mut self, at: At, name: &str) -> bool {
        self.attribute(at, name).and_then(yes_or_no).unwrap_or(false)
    }

    /// The same, where the attribute says yes unless it says otherwise.
    pub fn flag_unless_no(&mut self, at: At, name: &str) -> bool {
        self.attribute(at, name).and_then(yes_or_no).unwrap_or(true)
    }
}
