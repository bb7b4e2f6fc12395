//! What an evaluation is given: the context item, slots of variables, and the host behind everything else.

use std::time::SystemTime;

use crate::ast::Name;
use crate::error::{Result, XPathError};
use crate::session::Session;
use crate::value::{Item, ItemRef, Node, Sequence};

/// Answers what only the program around an expression knows. Every method has a default that says "not here".
pub trait Host {
    /// A variable found by name.
    fn variable(&self, name: &Name, _session: &Session) -> Result<Sequence> {
        Err(XPathError::new("XPST0008", format!("unknown variable `${}`", name.lexical())))
    }

    /// A variable the [`crate::Resolver`] gave an index.
    fn variable_at(&self, index: u32, _session: &Session) -> Result<Sequence> {
        Err(XPathError::new("XPST0008", format!("no variable has the index {index}")))
    }

    /// Calls a function the [`crate::Resolver`] announced.
    fn call(&self, call: &HostCall<'_>) -> Result<Sequence> {
        Err(XPathError::new("XPST0017", format!("unknown function `{}`", call.name.lexical())))
    }

    /// The value of `current-dateTime()`, asked for once in an evaluation.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Loads a document for `doc()`. Nothing is ever loaded unless a host does it here.
    fn document(&self, uri: &str, _base: Option<&str>, _session: &Session) -> Result<Node> {
        Err(XPathError::new("FODC0002", format!("document `{uri}` is not available here")))
    }

    /// Where `trace()` writes.
    fn trace(&self, _label: &str, _value: &Sequence) {}
}

/// The host of expressions that need none.
pub struct NoHost;

impl Host for NoHost {}

/// A call of a function of the host.
pub struct HostCall<'c> {
    /// What the resolver said; `u32::MAX` for a function that was unknown.
    pub index: u32,
    /// The name, resolved.
    pub name: &'c Name,
    /// The values of the arguments.
    pub arguments: &'c [Sequence],
    /// The context item at the call.
    pub item: Option<ItemRef<'c>>,
    /// The context item of the whole expression: `current()` of XSLT.
    pub current: Option<ItemRef<'c>>,
    /// Where nodes live.
    pub session: &'c Session,
    /// The base URI of the expression.
    pub base_uri: Option<&'c str>,
    /// Whether XPath 1.0 rules apply.
    pub compat: bool,
}

impl HostCall<'_> {
    /// An argument as `string()` would give it: of several items the first; empty when there is none.
    pub fn string(&self, index: usize) -> String {
        match self.arguments.get(index).and_then(Sequence::first) {
            None => String::new(),
            Some(ItemRef::Node(node)) => self.session.string_value(node).into_owned(),
            Some(ItemRef::Atomic(atomic)) => atomic.to_text(self.compat).into_owned(),
        }
    }
}

/// The context of one evaluation. Cheap to make; everything large is borrowed.
#[derive(Clone)]
pub struct DynamicContext<'a> {
    /// Where nodes live.
    pub session: &'a Session,
    /// Who answers the rest.
    pub host: &'a dyn Host,
    /// The context item, if there is one.
    pub item: Option<Item>,
    /// What `position()` is outside of predicates.
    pub position: usize,
    /// What `last()` is outside of predicates.
    pub size: usize,
    /// The variables that compiled to [`crate::VariableRef::Slot`].
    pub slots: &'a [Sequence],
}

impl<'a> DynamicContext<'a> {
    /// Without a context item and without variables.
    pub fn new(session: &'a Session, host: &'a dyn Host) -> DynamicContext<'a> {
        DynamicContext { session, host, item: None, position: 1, size: 1, slots: &[] }
    }

    /// With a context node.
    #[must_use]
    pub fn with_node(mut self, node: Node) -> DynamicContext<'a> {
        self.item = Some(Item::Node(node));
        self
    }

    /// With slots of variables.
    #[must_use]
    pub fn with_slots(mut self, slots: &'a [Sequence]) -> DynamicContext<'a> {
        self.slots = slots;
        self
    }
}
