//! Messages of MCP: refused, or read; and what goes on to another server is read there as it was here.

use penstock_gateway::readers::mcp_message;

/// Pieces of messages.
pub const DICTIONARY: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":\"a\"",
    "\"method\":\"tools/call\"",
    "\"method\":\"notifications/initialized\"",
    "\"params\":{",
    "\"name\":\"x\"",
    "\"arguments\":{}",
    "\"result\":{}",
    "\"error\":{}",
    "\\u006e",
    "\\u0000",
    "null",
    "1e400",
    "-0",
];

/// Reads a message, and what is written of it.
pub fn message(data: &[u8]) {
    let Some(written) = mcp_message(data) else { return };
    assert_eq!(mcp_message(&written).as_deref(), Some(&*written), "{}", String::from_utf8_lossy(&written));
}
