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
    parts: Vec<Part>,
    pub(super) limit: Limit,
}

enum Part {
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
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::of(name, site));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Custom { name: custom.name.clone(), parts, limit: custom.limit }
    }

    pub(super) fn write_key(&self, key: &mut String, exchange: &Exchange, context: &CallContext) {
        key.clear();
        let caller = context.caller.borrow();
        // Writing to a `String` cannot fail.
        let _ = write!(key, "custom{SEPARATOR}{}{SEPARATOR}", self.name);
        for part in &self.parts {
            match part {
                Part::Text(text) => key.push_str(text),
                Part::User => key.push_str(&caller.subject),
                Part::Application => key.push_str(&caller.application_id),
                Part::ClientIp => {
                    let _ = write!(key, "{}", exchange.client.address);
                }
            }
        }
    }
}

impl Part {
    fn of(name: &str, site: &Site) -> Part {
        let api = &site.api;
        match name {
            "userId" => Part::User,
            "appId" => Part::Application,
            "clientIp" => Part::ClientIp,
            "apiContext" => Part::Text(api.base_path.to_string()),
            "apiVersion" => Part::Text(api.version.to_string()),
            "apiProvider" => Part::Text(api.provider.to_string()),
            "resourceKey" => {
                let operation = &site.operation;
                Part::Text(format!("{}/{}{}:{}", api.base_path, api.version, operation.path, operation.method))
            }
            other => Part::Text(format!("${other}")),
        }
    }
}
