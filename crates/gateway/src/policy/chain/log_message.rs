//! `log-message`: what passes, written to the log.

use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use serde_json::{Map, Value, json};

use super::params::Params;
use crate::client_request::body_bytes;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "log-message", make };

const LOGGER: &str = "LogMessage";

/// As much of a body as one line of a log takes.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Headers with credentials.
const SECRET: [&str; 9] = [
    "authorization",
    "proxy-authorization",
    "x-forwarded-authorization",
    "cookie",
    "set-cookie",
    "api-key",
    "apikey",
    "x-api-key",
    "internal-key",
];

struct LogMessage {
    flow: &'static str,
    payload: bool,
    headers: bool,
    left_out: Vec<Arc<str>>,
}

fn make(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let flow = |name: &'static str, flow: &'static str| -> Option<(ChainPhase, Box<dyn Mediator>)> {
        let params = params.map(name)?;
        let (payload, headers) = (params.flag("payload", false), params.flag("headers", false));
        let left_out = params.texts("excludeHeaders");
        let phase = if payload { ChainPhase::Body } else { ChainPhase::Head };
        (payload || headers).then(|| {
            let mediator: Box<dyn Mediator> = Box::new(LogMessage { flow, payload, headers, left_out });
            (phase, mediator)
        })
    };
    let (request, response) = (flow("request", "REQUEST"), flow("response", "RESPONSE"));
    Some(Made { request, response, ..Made::default() })
}

impl Mediator for LogMessage {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if !exchange.core().log.enabled(Level::Info) {
            return Ok(Flow::Next);
        }
        let payload = if self.payload { Some(body_bytes(exchange)?) } else { None };
        let id = exchange.message.headers.get("x-request-id").unwrap_or("<request-id-unavailable>");
        let line = &exchange.client.line;
        let mut record = json!({
            "mediation-flow": self.flow,
            "request-id": id,
            "http-method": line.method.as_str(),
            "resource-path": line.path(),
        });
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            let shown = &payload[..payload.len().min(PAYLOAD_BYTES_MAX)];
            record["payload"] = String::from_utf8_lossy(shown).into_owned().into();
        }
        if self.headers {
            record["headers"] = Value::Object(self.fields(exchange));
        }
        exchange.log(Level::Info, LOGGER, &record.to_string());
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        if self.payload { Needs::Whole } else { Needs::Nothing }
    }
}

impl LogMessage {
    fn fields(&self, exchange: &Exchange) -> Map<String, Value> {
        let mut fields = Map::new();
        for (name, value) in exchange.message.headers.iter() {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            if self.left_out.iter().any(|out| out.trim().eq_ignore_ascii_case(&name)) {
                continue;
            }
            let value = match SECRET.contains(&&*name) {
                true => "***".to_owned(),
                false => String::from_utf8_lossy(value).into_owned(),
            };
            match fields.get_mut(&name) {
                Some(Value::Array(values)) => values.push(value.into()),
                Some(first) => *first = json!([first.take(), value]),
                None => drop(fields.insert(name, value.into())),
            }
        }
        fields
    }
}
