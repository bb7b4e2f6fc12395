//! What is in scope at a place of a stylesheet: namespaces, versions, excluded prefixes, variables.

use std::sync::Arc;

use penstock_xml::NodeId;
use penstock_xpath::ast::Name;
use penstock_xpath::collation::Collation;
use penstock_xpath::{FunctionRef, Resolver, ResultKind, VariableRef};

use super::Compiler;
use crate::program::Slot;
use crate::read::{Module, XSL};
use crate::run::functions;

/// A place in the stylesheet: a module and a node of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub module: usize,
    pub node: NodeId,
}

/// What the nearest enclosing literal result element guarantees about the namespaces of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiteralScope {
    pub bindings: Vec<(Box<str>, Box<str>)>,
    /// The default namespace: `None` when it depends on what encloses the template's output.
    pub default: Option<Box<str>>,
}

/// The variables of the template, function or global being compiled.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub visible: Vec<(u32, Slot)>,
    pub slots: u32,
}

impl Frame {
    pub fn new_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }
}

impl<'t> Compiler<'t> {
    pub fn module(&self, at: At) -> &'t Module {
        &self.tree.modules[at.module]
    }

    /// An attribute without a namespace.
    pub fn attribute(&self, at: At, name: &str) -> Option<&'t str> {
        self.module(at).document.attribute(at.node, "", name)
    }

    /// The local name of an XSLT element.
    pub fn xsl_name(&self, at: At) -> Option<&'t str> {
        let document = &self.module(at).document;
        (document.is_element(at.node) && document.namespace(at.node) == XSL).then(|| document.local_name(at.node))
    }

    /// The children that count, as places.
    pub fn content(&self, at: At) -> Vec<At> {
        self.module(at).content(at.node).map(|node| At { node, ..at }).collect()
    }

    /// The element and those around it, innermost first.
    fn enclosing(&self, at: At) -> impl Iterator<Item = NodeId> + use<'t> {
        let document = &self.module(at).document;
        std::iter::once(at.node).chain(document.ancestors(at.node)).filter(move |node| document.is_element(*node))
    }

    /// The value of a standard attribute: `NAME` on XSLT elements, `xsl:NAME` on literal result elements.
    fn standard(&self, module: usize, node: NodeId, name: &str) -> Option<&'t str> {
        let document = &self.tree.modules[module].document;
        let namespace = if document.namespace(node) == XSL { "" } else { XSL };
        document.attribute(node, namespace, name)
    }

    /// The version in force.
    pub fn version(&self, at: At) -> f64 {
        self.enclosing(at)
            .find_map(|node| {
                // `version` means something else on `xsl:output`.
                if self.module(at).is_xsl(node, "output") { None } else { self.standard(at.module, node, "version") }
            })
            .and_then(|version| version.trim().parse().ok())
            .unwrap_or(1.0)
    }

    /// Whether unknown things are to be tolerated until they are reached.
    pub fn forwards_compatible(&self, at: At) -> bool {
        let version = self.version(at);
        version != 1.0 && version != 2.0
    }

    /// The namespaces that are not copied from here into the result.
    pub fn excluded(&self, at: At) -> Vec<&'t str> {
        let document = &self.module(at).document;
        let mut excluded = vec![XSL];
        for node in self.enclosing(at) {
            for name in ["exclude-result-prefixes", "extension-element-prefixes"] {
                for token in self.standard(at.module, node, name).unwrap_or_default().split_ascii_whitespace() {
                    if token == "#all" {
                        excluded.extend(document.in_scope_namespaces(node).map(|declared| document.text(declared)));
                        continue;
                    }
                    let prefix = if token == "#default" { "" } else { token };
                    excluded.extend(document.lookup_namespace(node, prefix));
                }
            }
        }
        excluded
    }

    /// The URI of the default collation in force: the first known one of `default-collation`.
    pub fn default_collation_uri(&self, at: At) -> Option<&'t str> {
        let list = self.enclosing(at).find_map(|node| self.standard(at.module, node, "default-collation"))?;
        list.split_ascii_whitespace().find(|uri| Collation::from_uri(uri).is_some())
    }

    /// The default collation in force.
    pub fn default_collation(&self, at: At) -> Collation {
        self.default_collation_uri(at).and_then(Collation::from_uri).unwrap_or_default()
    }

    /// Whether an element is an extension instruction.
    pub fn is_extension(&self, at: At) -> bool {
        let document = &self.module(at).document;
        let namespace = document.namespace(at.node);
        !namespace.is_empty()
            && self.enclosing(at).any(|node| {
                let list = self.standard(at.module, node, "extension-element-prefixes").unwrap_or_default();
                list.split_ascii_whitespace().any(|token| {
                    let prefix = if token == "#default" { "" } else { token };
                    document.lookup_namespace(node, prefix) == Some(namespace)
                })
            })
    }

    /// The namespace of unprefixed element names in expressions.
    pub fn default_element_namespace(&self, at: At) -> Option<&'t str> {
        self.enclosing(at)
            .find_map(|node| self.standard(at.module, node, "xpath-default-namespace"))
            .filter(|namespace| !namespace.is_empty())
    }

    /// The number of an expanded name written as a lexical QName; unprefixed names are in no namespace.
    pub fn qname(&mut self, text: &str, at: At) -> Option<u32> {
        let text = text.trim();
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        if !is_ncname(local) || (text.contains(':') && !is_ncname(prefix)) {
            self.error("XTSE0020", format!("`{text}` is not a name"), at);
            return None;
        }
        if prefix.is_empty() {
            return Some(self.expanded("", local));
        }
        match self.module(at).document.lookup_namespace(at.node, prefix) {
            Some(namespace) => Some(self.expanded(namespace, local)),
            None => {
                self.error("XTSE0280", format!("the prefix `{prefix}` of `{text}` is not declared"), at);
                None
            }
        }
    }

    /// The index of a function whose argument is a lexical QName, with the place whose namespaces it needs.
    fn scoped(&self, index: u32, at: At) -> u32 {
        let mut scopes = self.scopes.borrow_mut();
        let place = (at.module, at.node);
        if scopes.last() != Some(&place) {
            scopes.push(place);
        }
        let scope = (scopes.len() - 1).min(functions::SCOPES_MAX - 1);
        functions::SCOPED | (scope as u32) << 8 | index
    }

    /// The number of an expanded name.
    pub fn expanded(&mut self, namespace: &str, local: &str) -> u32 {
        let name = expanded_name(namespace, local);
        if let Some(number) = self.name_numbers.get(&name) {
            return *number;
        }
        let number = self.program.names.len() as u32;
        self.program.names.push(Arc::clone(&name));
        self.name_numbers.insert(name, number);
        number
    }
}

/// `{namespace}local`, or `local` in no namespace.
pub(crate) fn expanded_name(namespace: &str, local: &str) -> Arc<str> {
    if namespace.is_empty() { local.into() } else { format!("{{{namespace}}}{local}").into() }
}

/// Whether a text is a name without a colon.
pub(crate) fn is_ncname(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}'))
}

/// Functions of these namespaces are the same for all processors.
const STANDARD_NAMESPACES: &[&str] = &["", penstock_xpath::FUNCTION_NAMESPACE, penstock_xpath::SCHEMA_NAMESPACE];

/// Answers the XPath compiler's questions for one place.
pub(crate) struct ExprScope<'c, 't> {
    pub compiler: &'c Compiler<'t>,
    pub at: At,
}

impl ExprScope<'_, '_> {
    fn number(&self, name: &Name) -> Option<u32> {
        let expanded = expanded_name(name.namespace.as_deref().unwrap_or_default(), &name.local);
        self.compiler.name_numbers.get(&expanded).copied()
    }
}

impl Resolver for ExprScope<'_, '_> {
    fn namespace(&self, prefix: &str) -> Option<Arc<str>> {
        if self.compiler.internal_prefix && prefix == "penstock-internal" {
            return Some("urn:penstock:internal".into());
        }
        let document = &self.compiler.module(self.at).document;
        document.lookup_namespace(self.at.node, prefix).map(Into::into)
    }

    fn variable(&self, name: &Name) -> Option<VariableRef> {
        let number = self.number(name)?;
        let local = self.compiler.frame.visible.iter().rev().find(|(visible, _)| *visible == number);
        if let Some((_, slot)) = local {
            return Some(VariableRef::Slot(*slot));
        }
        // A global variable is not visible in its own definition (XSLT 2.0 §9.7).
        let global = self.compiler.global_numbers.get(&number);
        global.filter(|_| self.compiler.defining != Some(number)).map(|global| VariableRef::Index(*global))
    }

    fn function(&self, name: &Name, arity: usize) -> Option<FunctionRef> {
        let namespace = name.namespace.as_deref().unwrap_or_default();
        if let Some(number) = self.number(name)
            && let Some(function) = self.compiler.function_numbers.get(&(number, arity))
        {
            return Some(FunctionRef { index: functions::USER_BASE + function, result: ResultKind::Any });
        }
        if let Some(found) = functions::find(namespace, &name.local, arity) {
            let index = if functions::takes_name(&name.local) {
                self.compiler.scoped(found.index, self.at)
            } else {
                found.index
            };
            return Some(FunctionRef { index, ..found });
        }
        // XSLT 1.0 §14.1: an extension function that is not available is an error only when it is called.
        let extension = name.prefix.is_some() && !STANDARD_NAMESPACES.contains(&namespace);
        let tolerated = extension && self.compiler.version(self.at) < 2.0;
        tolerated.then_some(FunctionRef { index: u32::MAX, result: ResultKind::Any })
    }

    fn requires_declared_prefixes(&self) -> bool {
        true
    }
}
