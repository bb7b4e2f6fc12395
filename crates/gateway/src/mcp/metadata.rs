//! Where tokens for an MCP server come from (RFC 9728): `GET …/.well-known/oauth-protected-resource`.

use penstock_catalog::MCP_METADATA_PATH;
use penstock_engine::Exchange;
use penstock_message::{Body, Headers, Message};
use serde_json::json;

use super::pages;
use crate::client_request;

/// The address of the metadata of a server.
pub(super) fn address(exchange: &Exchange, base_path: &str, trusts_forwarded: bool) -> String {
    format!(
        "{}{}{MCP_METADATA_PATH}",
        client_request::origin(exchange, trusts_forwarded),
        base_path.trim_end_matches('/')
    )
}

/// The metadata of a server.
pub(super) fn answer(exchange: &Exchange, of: &pages::Metadata) -> Message {
    let pages::Metadata { site, issuers, trusts_forwarded } = of;
    let tools = site.api.mcp.iter().flat_map(|server| &server.tools);
    let mut scopes: Vec<&str> = tools.flat_map(|tool| tool.operation.scopes.iter().map(|scope| &**scope)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let resource =
        format!("{}{}/mcp", client_request::origin(exchange, *trusts_forwarded), site.base_path.trim_end_matches('/'));
    let body = json!({
        "resource": resource,
        "authorization_servers": issuers,
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
    });
    let mut headers = Headers::new();
    headers.set("content-type", "application/json");
    Message { headers, status: 200, body: Body::bytes(body.to_string()), ..Message::default() }
}
