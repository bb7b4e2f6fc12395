//! MCP servers that stand before another MCP server: its tools are asked for, and offered.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::mcp;
use crate::host::FetchRequest;
use crate::http::Response;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/mcp-servers/validate-mcp-server", validate),
    ("POST", "/mcp-servers/generate-from-mcp-server", generate),
];

/// The largest response: lists of tools have schemas.
const BYTES_MAX: usize = 4 << 20;

/// Pages of a list of tools.
const PAGES_MAX: usize = 20;

/// The version of the protocol that is offered.
const PROTOCOL: &str = "2025-06-18";

const SECURITY: Members = &[("isSecure", Is::Flag), ("header", Is::Text), ("value", Is::Text)];

/// A server, and the header field that it wants.
struct Remote<'c> {
    url: String,
    security: Option<(String, String)>,
    session: Option<String>,
    call: &'c Call<'c>,
}

fn failed(why: impl std::fmt::Display) -> Problem {
    let text = format!("The MCP server returned an invalid or empty response when generating the tool list. {why}");
    Problem::rejected(904_000, "Failed to generate tool list", text)
}

impl<'c> Remote<'c> {
    fn of(call: &'c Call<'c>, given: &Map<String, Value>) -> Result<Remote<'c>, Problem> {
        let text = |object: &Map<String, Value>, name: &str| {
            object.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
        };
        let url = text(given, "url");
        if url.is_empty() {
            let why = "Server URL is required and cannot be null or empty.";
            return Err(Problem::rejected(904_003, "Server URL cannot be null", why));
        }
        let security = match given.get("securityInfo").and_then(Value::as_object) {
            None => None,
            Some(info) => {
                schema::check(info, SECURITY, &[])?;
                let is_secure = info.get("isSecure").and_then(Value::as_bool).unwrap_or(false);
                is_secure.then(|| (text(info, "header"), text(info, "value"))).filter(|(header, _)| !header.is_empty())
            }
        };
        Ok(Remote { url, security, session: None, call })
    }

    /// Where requests go: an address without a path is called at `/mcp`, as the gateway does.
    fn address(&self) -> String {
        let plain = self.url.trim_end_matches('/');
        if plain.ends_with("/mcp") { plain.to_owned() } else { format!("{plain}/mcp") }
    }

    fn send(&mut self, message: &Value) -> Result<Value, Problem> {
        let address = self.address();
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", PROTOCOL),
        ];
        if let Some((name, value)) = &self.security {
            headers.push((name, value));
        }
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        let body = Bytes::from(message.to_string());
        let request = FetchRequest { method: "POST", url: &address, headers, body, bytes_max: BYTES_MAX };
        let fetched = self.call.control.host.fetch(&request).map_err(failed)?;
        if !(200..300).contains(&fetched.status) {
            return Err(failed(format!("It responds with {}", fetched.status)));
        }
        let header = |name: &str| {
            fetched.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
        };
        self.session = header("mcp-session-id").or(self.session.take());
        let text = String::from_utf8_lossy(&fetched.body);
        let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let id = &message["id"];
        let found = match is_stream {
            true => events(&text).find(|event| event["id"] == *id),
            false => serde_json::from_str(&text).ok(),
        };
        match (found, id) {
            (Some(found), _) if found.get("error").is_some() => Err(failed(&found["error"]["message"])),
            (Some(found), _) => Ok(found),
            // A notification has no response.
            (None, Value::Null) => Ok(Value::Null),
            (None, _) => Err(failed("The response is not a message of JSON-RPC")),
        }
    }

    /// The tools of the server as operations of an MCP server.
    fn tools(&mut self) -> Result<Vec<Value>, Problem> {
        self.send(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": PROTOCOL, "capabilities": {},
                "clientInfo": {"name": "penstock", "version": env!("CARGO_PKG_VERSION")},
            },
        }))?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let (mut tools, mut cursor) = (Vec::new(), Value::Null);
        for page in 0..PAGES_MAX {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let message = json!({"jsonrpc": "2.0", "id": page + 2, "method": "tools/list", "params": params});
            let result = self.send(&message)?["result"].take();
            let listed = result["tools"].as_array().ok_or_else(|| failed("It lists no tools"))?;
            tools.extend(listed.iter().filter_map(operation));
            cursor = result["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        if tools.is_empty() { Err(failed("It lists no tools")) } else { Ok(tools) }
    }
}

/// The messages of a stream of server-sent events.
fn events(text: &str) -> impl Iterator<Item = Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok())
}

/// A tool of the server as an operation.
fn operation(tool: &Value) -> Option<Value> {
    let name = tool["name"].as_str()?;
    Some(json!({
        "target": name, "feature": "TOOL", "authType": "Application & Application User",
        "throttlingPolicy": "Unlimited", "scopes": [],
        "description": tool["description"], "schemaDefinition": tool["inputSchema"].to_string(),
        "backendOperationMapping": {"backendId": null, "backendOperation": {"target": name, "verb": "TOOL"}},
    }))
}

fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    const MEMBERS: Members = &[("url", Is::Text), ("securityInfo", Is::Map)];
    let given = schema::body(call.request, MEMBERS, &[])?;
    let body = match Remote::of(call, &given)?.tools() {
        Ok(tools) => {
            json!({"isValid": true, "errorMessage": "", "content": null, "toolInfo": {"operations": tools}})
        }
        Err(problem) => {
            json!({"isValid": false, "errorMessage": problem.description, "content": null, "toolInfo": null})
        }
    };
    Ok(Response::json(200, &body))
}

fn generate(call: &Call<'_>) -> Result<Response, Problem> {
    const MEMBERS: Members = &[("url", Is::Text), ("additionalProperties", Is::Map), ("securityInfo", Is::Map)];
    let given = schema::body(call.request, MEMBERS, &["additionalProperties"])?;
    let mut remote = Remote::of(call, &given)?;
    let mut server = given.get("additionalProperties").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_given = server.get("operations").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !is_given {
        server.insert("operations".into(), remote.tools()?.into());
    }
    let backend = random::uuid();
    for tool in mcp::tools(&mut server) {
        let name = tool.get("target").cloned().unwrap_or_default();
        let mapping = tool.entry("backendOperationMapping").or_insert(Value::Null);
        if !mapping.is_object() {
            *mapping = json!({"backendOperation": {"target": name, "verb": "TOOL"}});
        }
        mapping["backendId"] = backend.as_str().into();
    }
    let endpoint = json!({"url": remote.url});
    let mut config = json!({"endpoint_type": "http", "production_endpoints": endpoint, "sandbox_endpoints": endpoint});
    if let Some((header, value)) = &remote.security {
        let security = json!({
            "enabled": true, "type": "apikey", "apiKeyIdentifier": header, "apiKeyIdentifierType": "HEADER",
            "apiKeyValue": value,
        });
        config["endpoint_security"] = json!({"production": security, "sandbox": security});
    }
    let given_config = server.shift_remove("endpointConfig").filter(Value::is_object);
    let config = given_config.unwrap_or(config);
    let server = call.control.store.change(|tx| {
        let mut server = mcp::insert(tx, call, server, mcp::PROXY)?;
        let name = format!("{}-backend", server.name);
        server.set(mcp::BACKENDS, json!([{"id": backend, "name": name, "endpointConfig": config, "definition": "{}"}]));
        tx.update(&mut server)?;
        Ok(server)
    })?;
    Ok(mcp::created(&server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_from_a_stream() {
        let text = "event: message\ndata: {\"id\": 2, \"result\": {}}\n\n: comment\ndata: not JSON\n";
        assert_eq!(events(text).collect::<Vec<_>>(), [json!({"id": 2, "result": {}})]);
    }
}
