//! Revoking tokens over HTTPS: `/revoked-tokens`.

use penstock_gateway::security::{Revocations, RevokedToken};
use penstock_message::Message;
use serde_json::{Value, json};

use super::routes::error;
use crate::rest::reply;

/// A token is at most 64 KiB.
pub(super) const BODY_BYTES_MAX: usize = 128 * 1024;

/// Maximum tokens of one response.
const LIST_MAX: usize = 10_000;

/// What is revoked, for one request.
pub(super) struct Revoked<'r>(pub(super) &'r Revocations);

impl Revoked<'_> {
    /// Revokes a token, or the one of an id.
    pub(super) fn revoke(&self, bytes: &[u8]) -> Message {
        let token = match wanted(bytes) {
            Ok(token) => token,
            Err(why) => return error(400, "Bad Request", why),
        };
        let told = told(&token);
        match self.0.revoke(token) {
            Ok(first) => {
                let mut told = told;
                told["revoked"] = first.into();
                reply(200, &told)
            }
            Err(why) => error(500, "Internal Server Error", &why),
        }
    }

    /// Those that were revoked here.
    pub(super) fn list(&self, offset: Option<usize>, limit: Option<usize>) -> Message {
        let all = self.0.own();
        let page = all.iter().skip(offset.unwrap_or_default()).take(limit.unwrap_or(LIST_MAX).min(LIST_MAX));
        let list: Vec<Value> = page.map(told).collect();
        reply(200, &json!({"total": all.len(), "count": list.len(), "list": list}))
    }

    /// Takes a revocation back.
    pub(super) fn restore(&self, id: Option<&str>) -> Message {
        let Some(id) = id else { return error(400, "Bad Request", "`jti` is needed") };
        match self.0.restore(id) {
            Ok(true) => reply(200, &json!({"action": "restored", "info": id})),
            Ok(false) => error(404, "Not Found", "no such token was revoked here"),
            Err(why) => error(500, "Internal Server Error", &why),
        }
    }
}

fn told(token: &RevokedToken) -> Value {
    json!({"jti": token.id, "expires": token.expires})
}

fn wanted(bytes: &[u8]) -> Result<RevokedToken, &'static str> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| "the body is not JSON")?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expires = match value.get("expires") {
        None | Some(Value::Null) => None,
        Some(expires) => Some(expires.as_u64().ok_or("`expires` is not a time in seconds since 1970")?),
    };
    match (text("token"), text("jti")) {
        (Some(token), None) => RevokedToken::of(token).ok_or("`token` is not a JWT"),
        (None, Some(id)) => Ok(RevokedToken { id: id.to_owned(), expires }),
        _ => Err("either `token` or `jti` is needed"),
    }
}
