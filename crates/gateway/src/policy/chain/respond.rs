//! `respond`: an answer without a backend.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Headers;

use super::answer;
use super::headers::{is_name, is_value};
use super::params::Params;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "respond", make };

struct Respond {
    status: u16,
    headers: Headers,
    body: Arc<str>,
}

fn make(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let mut headers = Headers::new();
    for item in params.list("headers") {
        let Some(item) = item.map("headers") else { continue };
        let (Some(name), Some(value)) = (item.required_text("name"), item.text("value")) else {
            item.error("a field needs `name` and `value`");
            continue;
        };
        if !is_name(&name) || !is_value(&value) {
            item.error(format!("`{name}` with this value is no header field"));
            continue;
        }
        headers.set(&name, &*value);
    }
    // A 1xx status is no response, although the API Platform accepts it.
    let status = params.whole("statusCode", 200, 599).map_or(200, |status| status as u16);
    Some(Made::request(ChainPhase::Head, Respond { status, headers, body: params.text("body").unwrap_or_default() }))
}

impl Mediator for Respond {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut headers = self.headers.clone();
        if !self.body.is_empty() && !headers.contains("content-type") {
            headers.append("content-type", "text/plain");
        }
        Ok(answer::immediately(exchange, self.status, headers, self.body.to_string()))
    }
}
