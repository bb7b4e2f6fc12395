//! The call that an exchange is about, and the contexts it passes.

use std::rc::Rc;

use penstock_engine::{Exchange, Fault};

use super::Call;
use crate::CallContext;

/// The call of an exchange.
pub(super) fn call(exchange: &Exchange) -> Result<Rc<Call>, Fault> {
    let call = find(exchange);
    call.ok_or_else(|| Fault::new("a step of an MCP server runs before a message was read"))
}

/// The same, when there may be none.
pub(super) fn find(exchange: &Exchange) -> Option<Rc<Call>> {
    exchange.extension::<CallContext>()?.mcp.get().cloned()
}

/// Goes on in another context, with the same call.
pub(super) fn enter(exchange: &mut Exchange, outer: &Rc<CallContext>, inner: CallContext, call: Rc<Call>) {
    let inner = Rc::new(inner);
    // The context is new, so it has no call yet.
    let _ = inner.mcp.set(call);
    outer.becomes(&inner);
    exchange.extension = Some(inner);
}

/// Goes back to the context that was left.
pub(super) fn leave(exchange: &mut Exchange) -> Result<(), Fault> {
    let context = CallContext::of(exchange)?;
    if let Some(outer) = context.outer() {
        exchange.extension = Some(outer);
    }
    Ok(())
}
