//! One call on its way: what was asked, and which sequences take its answer and its fault.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use bytes::Bytes;
use penstock_engine::{Exchange, Fault, SequenceId};
use penstock_message::Message;
use serde_json::{Map, Value};

use crate::CallContext;

/// What one message of a client asks for.
pub(crate) struct Call {
    /// The request's name; null for what is not answered.
    pub id: Value,
    /// What takes the answer.
    pub response: SequenceId,
    /// What takes a fault; the server's own when absent.
    pub fault: Option<SequenceId>,
    /// Whether a tool over HTTP is called, whose faults an agent is told as a result.
    pub is_http_tool: bool,
    /// The arguments of the tool, until they are made a request.
    pub arguments: Cell<Map<String, Value>>,
    /// What is sent on to the server behind this one.
    pub forwarded: Cell<Bytes>,
    /// The answer that was known before anything was asked.
    pub answer: Cell<Option<Message>>,
}

/// What the context of a request knows of the call it is, and of the calls it became.
#[derive(Default)]
pub(crate) struct CallState {
    call: RefCell<Option<Rc<Call>>>,
    /// What this one became: the tool's call, the request to the API behind it.
    inner: RefCell<Option<Rc<CallContext>>>,
    outer: RefCell<Weak<CallContext>>,
}

impl CallState {
    /// The call, when a message of a client was read.
    pub(super) fn call(&self) -> Option<Rc<Call>> {
        self.call.borrow().clone()
    }
}

impl CallContext {
    /// The context of what a call became in the end; `None` when it became nothing else.
    pub fn innermost(&self) -> Option<Rc<CallContext>> {
        let inner = self.mcp.get()?.inner.borrow().clone()?;
        Some(inner.innermost().unwrap_or(inner))
    }
}

/// The call of an exchange.
pub(super) fn of(exchange: &Exchange) -> Result<Rc<Call>, Fault> {
    let call = find(exchange);
    call.ok_or_else(|| Fault::new("a step of an MCP server runs before a message was read"))
}

/// The same, when there may be none.
pub(super) fn find(exchange: &Exchange) -> Option<Rc<Call>> {
    exchange.extension::<CallContext>()?.mcp.get()?.call()
}

/// Goes on in another context, with the same call.
pub(super) fn enter(exchange: &mut Exchange, outer: &Rc<CallContext>, inner: CallContext, call: Rc<Call>) {
    let inner = Rc::new(inner);
    let state = inner.mcp.get_or_init(Box::default);
    *state.call.borrow_mut() = Some(call);
    *state.outer.borrow_mut() = Rc::downgrade(outer);
    *outer.mcp.get_or_init(Box::default).inner.borrow_mut() = Some(inner.clone());
    exchange.extension = Some(inner);
}

/// Goes back to the context that was left.
pub(super) fn leave(exchange: &mut Exchange) -> Result<(), Fault> {
    let context = CallContext::of(exchange)?;
    if let Some(outer) = context.mcp.get().and_then(|state| state.outer.borrow().upgrade()) {
        exchange.extension = Some(outer);
    }
    Ok(())
}
