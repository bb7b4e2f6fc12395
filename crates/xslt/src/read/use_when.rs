//! Conditional inclusion (`use-when`, XSLT 2.0 §3.12): decided before anything else is looked at.

use std::sync::Arc;

use penstock_xml::{Document, NodeId};
use penstock_xpath::ast::Name;
use penstock_xpath::{
    DynamicContext, FunctionRef, Host, HostCall, Resolver, ResultKind, Sequence, Session, StaticContext, Version,
    XPath, XPathError,
};

use super::{Diagnostics, Module, XSL};
use crate::run::functions::available::{self, Availability};

/// Evaluates the conditions of a module and notes the elements they exclude.
pub(super) fn exclude(module: &mut Module, diagnostics: &mut Diagnostics) {
    let mut excluded = Vec::new();
    let mut skipped = 0;
    for node in std::iter::once(module.root).chain(module.document.descendants(module.root)) {
        if node.index() < skipped || !module.document.is_element(node) {
            continue;
        }
        let namespace = if module.document.namespace(node) == XSL { "" } else { XSL };
        let Some(condition) = module.document.attribute(node, namespace, "use-when") else { continue };
        match holds(module, node, condition) {
            Ok(true) => {}
            Ok(false) => {
                excluded.push(node);
                skipped = module.document.subtree(node).end;
            }
            Err(error) => {
                let message = format!("{}, in `{condition}`", error.message());
                diagnostics.error(error.code().to_owned(), message, module.position(node));
            }
        }
    }
    module.excluded = excluded;
}

fn holds(module: &Module, element: NodeId, condition: &str) -> Result<bool, XPathError> {
    let scope = Scope { document: &module.document, element };
    let document = &module.document;
    let elements = std::iter::once(element).chain(document.ancestors(element));
    let default = elements.filter(|node| document.is_element(*node)).find_map(|node| {
        let namespace = if document.namespace(node) == XSL { "" } else { XSL };
        document.attribute(node, namespace, "xpath-default-namespace")
    });
    let context = StaticContext::new()
        .version(Version::Two)
        .resolver(&scope)
        .default_element_namespace(default.filter(|namespace| !namespace.is_empty()))
        .base_uri(super::base_uri(module, element));
    let compiled = XPath::compile(condition, &context)?;
    let session = Session::new();
    compiled.evaluate_boolean(&DynamicContext::new(&session, &scope))
}

/// What a condition may ask for: the namespaces of its element and what the processor offers.
struct Scope<'d> {
    document: &'d Document,
    element: NodeId,
}

impl Resolver for Scope<'_> {
    fn namespace(&self, prefix: &str) -> Option<Arc<str>> {
        self.document.lookup_namespace(self.element, prefix).map(Into::into)
    }

    fn requires_declared_prefixes(&self) -> bool {
        true
    }

    fn function(&self, name: &Name, arity: usize) -> Option<FunctionRef> {
        let namespace = name.namespace.as_deref().unwrap_or_default();
        let standard = namespace.is_empty() || namespace == penstock_xpath::FUNCTION_NAMESPACE;
        let found = Availability::from_name(&name.local).filter(|found| standard && found.takes(arity))?;
        Some(FunctionRef { index: found as u32, result: ResultKind::Any })
    }
}

impl Host for Scope<'_> {
    fn call(&self, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
        let namespace = |prefix: &str| self.document.lookup_namespace(self.element, prefix).map(str::to_owned);
        available::answer(call.index, call, &namespace, &|_, _, _| false)
    }
}
