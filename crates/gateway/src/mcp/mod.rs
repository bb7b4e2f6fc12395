//! MCP servers: tools for agents over Streamable HTTP, each of them an operation of a backend, of an API that is served
//! here, or a tool of an MCP server behind this one.
//!
//! All messages come by one operation, and the body of a message names its method. So that operation only reads it
//! (`message.rs`) and chooses (`dispatch.rs`); from there each tool has sequences of its own with the same policies as
//! an API's operation (`assemble.rs`). In between, arguments become a request (`request.rs`) and its answer a result
//! (`result.rs`).

mod assemble;
mod call;
mod current;
mod dispatch;
mod fault;
mod message;
mod metadata;
mod pages;
mod request;
mod result;
mod session;

pub(crate) use assemble::targets;
pub(crate) use call::Call;

/// What bytes say as a message, written again for another server; `None` when they are none.
pub(crate) fn rewritten(bytes: &[u8]) -> Option<bytes::Bytes> {
    message::read(bytes).ok().map(message::Incoming::forwarded)
}
