//! The list of revoked tokens that another system keeps.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Form, Headers, Message, Method};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;

use super::REVOKED_MAX;

/// Maximum of a fetched list: a million ids.
const LIST_BYTES_MAX: usize = 128 << 20;

/// For such a list.
pub(super) const ASK_TIME_MAX: Duration = Duration::from_secs(30);

/// The URL of a list of revoked tokens, in the form of API Manager (`/internal/data/v1/revokedjwt`).
#[derive(Debug, Clone)]
pub struct RevokedSource {
    /// The address.
    pub url: Arc<str>,
    /// The value of `Authorization`.
    pub authorization: Option<penstock_catalog::Secret>,
    /// How often.
    pub every: Duration,
}

/// Fetches the list.
pub(super) async fn get(outbound: &dyn Outbound, source: &RevokedSource) -> Result<HashSet<String>, String> {
    let mut headers = Headers::new();
    headers.set("Accept", "application/json");
    if let Some(authorization) = &source.authorization {
        headers.set("Authorization", &*authorization.0);
    }
    let outgoing = Outgoing {
        url: source.url.clone(),
        method: Method::Get,
        message: Message { headers, ..Message::default() },
        options: SendOptions::within(ASK_TIME_MAX),
    };
    let mut reply = outbound.send(outgoing).await.map_err(|fault| fault.to_string())?;
    if reply.status != 200 {
        return Err(format!("status {}", reply.status));
    }
    let body = &mut reply.body;
    let pulled = std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, LIST_BYTES_MAX)).await;
    pulled.map_err(|error| error.to_string())?;
    match body.form() {
        Form::Bytes(bytes) => listed(bytes),
        _ => Err("an empty response".to_owned()),
    }
}

/// `[{"jwt_signature": …, "expiry_time": …}]`. What ended is refused anyway.
fn listed(bytes: &[u8]) -> Result<HashSet<String>, String> {
    let Listed(ids) =
        serde_json::from_slice(bytes).map_err(|error| format!("the response is not a list of tokens: {error}"))?;
    Ok(ids)
}

/// The list, read entry by entry.
struct Listed(HashSet<String>);

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Listed, D::Error> {
        deserializer.deserialize_seq(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Listed;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Listed, A::Error> {
        let (mut ids, mut count) = (HashSet::new(), 0);
        while let Some(entry) = entries.next_element::<Value>()? {
            count += 1;
            if count > REVOKED_MAX {
                return Err(A::Error::custom(format_args!("more than {REVOKED_MAX} tokens")));
            }
            ids.extend(entry.get("jwt_signature").and_then(Value::as_str).map(|id| super::bare(id).to_owned()));
        }
        Ok(Listed(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_api_manager_is_read() {
        let list = listed(br#"[{"jwt_signature":"a==","expiry_time":1},{"other":1},7]"#);
        assert_eq!(list, Ok(HashSet::from(["a".to_owned()])));
        assert!(listed(b"{}").is_err() && listed(b"").is_err());
        let long = format!("[{}0]", "0,".repeat(REVOKED_MAX));
        assert!(listed(long.as_bytes()).is_err_and(|why| why.contains("more than")));
    }
}
