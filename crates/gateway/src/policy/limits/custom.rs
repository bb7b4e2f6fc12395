//! Limits that count by keys of the configuration.

use std::fmt::Write;
use std::sync::Arc;

use penstock_catalog::Limit;
use penstock_engine::Exchange;

use super::CustomLimit;
use super::counters::SEPARATOR;
use crate::{CallContext, Site};

/// A custom limit at one operation.
pub(super) struct Custom {
    name: Arc<str>,
    parts: Vec<KeyPart>,
    pub(super) limit: Limit,
}

enum KeyPart {
    Text(String),
    User,
    Application,
    ClientIp,
}

impl Custom {
    /// What is the same for every request of the operation is put in now.
    pub(super) fn new(custom: &CustomLimit, site: &Site) -> Custom {
        let mut parts = Vec::new();
        let mut rest = &*custom.key;
        while let Some((before, after)) = rest.split_once('$') {
            let end = after.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            parts.push(KeyPart::Text(before.to_owned()));
            parts.push(KeyPart::parse(name, site));
            rest = after;
        }
        parts.push(KeyPart::Text(rest.to_owned()));
        Custom { name: custom.name.clone(), parts, limit: custom.limit }
    }

    pub(super) fn write_key(&self, key: &mut String, exchange: &Exchange, context: &CallContext) {
        key.clear();
        let caller = context.caller.borrow();
        // Writing to a `String` cannot fail.
        let _ = write!(key, "custom{SEPARATOR}{}{SEPARATOR}", self.name);
        for part in &self.parts {
            match part {
                KeyPart::Text(text) => key.push_str(text),
                KeyPart::User => key.push_str(&caller.subject),
                KeyPart::Application => key.push_str(&caller.application_id),
                KeyPart::ClientIp => {
                    let _ = write!(key, "{}", exchange.client.address);
                }
            }
        }
    }
}

impl KeyPart {
    fn parse(name: &str, site: &Site) -> KeyPart {
        let api = &site.api;
        match name {
            "userId" => KeyPart::User,
            "appId" => KeyPart::Application,
            "clientIp" => KeyPart::ClientIp,
            "apiContext" => KeyPart::Text(api.base_path.to_string()),
            "apiVersion" => KeyPart::Text(api.version.to_string()),
            "apiProvider" => KeyPart::Text(api.provider.to_string()),
            "resourceKey" => {
                let operation = &site.operation;
                KeyPart::Text(format!("{}/{}{}:{}", api.base_path, api.version, operation.path, operation.method))
            }
            other => KeyPart::Text(format!("${other}")),
        }
    }
}
