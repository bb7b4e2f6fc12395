//! Which requests are the same: method, address, body and header fields.

use penstock_engine::kept::Key;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Form, Method};
use ring::digest::{Context, SHA256};

/// Fields that differ from request to request and say nothing about the answer.
const NEVER: [&str; 9] = [
    "Date",
    "User-Agent",
    "Host",
    "Content-Length",
    "Connection",
    "Keep-Alive",
    "Transfer-Encoding",
    "activityid",
    "Expect",
];

/// Which fields count: those included, else all but those excluded. `*` is all.
#[derive(Debug, Default)]
pub(super) struct KeyRule {
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
}

/// Whether the body belongs to the key.
pub(super) fn needs_body(exchange: &Exchange) -> bool {
    !matches!(exchange.message.method, Method::Get | Method::Head | Method::Delete)
}

impl KeyRule {
    fn counts(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(name));
        if NEVER.iter().any(|never| never.eq_ignore_ascii_case(name)) {
            return false;
        }
        if self.include.is_empty() { !listed(&self.exclude) } else { listed(&self.include) }
    }

    /// The key of the request at hand; its body is there when it belongs to the key.
    pub(super) fn key(&self, exchange: &mut Exchange) -> Result<Key, Fault> {
        let mut digest = Context::new(&SHA256);
        // Lengths keep parts apart: no two lists of parts give one text.
        let mut part = |bytes: &[u8]| {
            digest.update(&(bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        part(exchange.message.method.as_str().as_bytes());
        part(exchange.client.line.target().as_bytes());
        let mut fields: Vec<(String, Vec<u8>)> = exchange
            .message
            .headers
            .iter()
            .map(|(name, value)| (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec()))
            .filter(|(name, _)| self.counts(name))
            .collect();
        fields.sort();
        for (name, value) in &fields {
            part(name.as_bytes());
            part(value);
        }
        if needs_body(exchange) {
            match exchange.message.body.form() {
                Form::Bytes(bytes) => part(bytes),
                Form::Json(json) => part(json.to_string().as_bytes()),
                Form::Text(text) => part(text.as_bytes()),
                Form::Xml(envelope) => {
                    let options = penstock_xml::WriteOptions::default();
                    part(&penstock_xml::to_vec(&envelope.document, envelope.body, &options));
                }
                Form::Empty | Form::Stream { .. } => part(b""),
            }
        }
        let digest = digest.finish();
        let mut key = [0; 32];
        key.copy_from_slice(digest.as_ref());
        Ok(Key(key))
    }
}
