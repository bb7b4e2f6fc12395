//! Where tokens for an MCP server come from (RFC 9728): `GET …/.well-known/oauth-protected-resource`.

use penstock_engine::Exchange;
use penstock_message::{Body, Headers, Message};
use serde_json::json;

use crate::policy::{Site, facts};

/// Its path below the server's.
pub(crate) const PATH: &str = "/.well-known/oauth-protected-resource";

/// The address of the metadata of a server.
pub(super) fn address(exchange: &Exchange, base_path: &str) -> String {
    format!("{}{}{PATH}", origin(exchange), base_path.trim_end_matches('/'))
}

/// Scheme, host and port as the client knows them.
fn origin(exchange: &Exchange) -> String {
    let sent = exchange.message.headers.get("host").filter(|host| is_host(host));
    let host = sent.map_or_else(|| exchange.client.local.to_string(), str::to_owned);
    format!("{}://{host}", facts::scheme(exchange))
}

/// Whether a text is a host that may be put into an address: letters, digits, dots, hyphens, and a port.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    !name.is_empty() && name.bytes().all(letters) && port.parse::<u16>().is_ok()
}

/// The metadata of a server.
pub(super) fn answer(exchange: &Exchange, site: &Site, issuers: &[String]) -> Message {
    let tools = site.api.mcp.iter().flat_map(|server| &server.tools);
    let mut scopes: Vec<&str> = tools.flat_map(|tool| tool.operation.scopes.iter().map(|scope| &**scope)).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let resource = format!("{}{}/mcp", origin(exchange), site.base_path.trim_end_matches('/'));
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

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn only_a_host_gets_into_an_address() {
        for good in ["localhost", "a.example.com:8243", "127.0.0.1:1"] {
            assert!(is_host(good), "{good}");
        }
        for bad in ["", ":1", "a:b", "a:99999", "a/b", "a\"", "evil.com\\", "a@b"] {
            assert!(!is_host(bad), "{bad}");
        }
    }
}
