//! Guardrails: requests and answers are let through by what is in their bodies.
//!
//! `count.rs` counts words, sentences and bytes, `pattern.rs` looks for a regular expression, `schema.rs` holds a body
//! against a JSON Schema. What they have in common is here.

mod count;
mod pattern;
mod schema;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_json::path::{Dialect, JsonPath};
use penstock_message::Method;
use serde_json::{Value, json};

use super::answer;
use super::params::Params;
use crate::client_request::body_decoded;
use crate::policy::chain::kind::{ChainPhase, Made, Making};

pub(super) use count::{CONTENT_LENGTH, SENTENCE_COUNT, WORD_COUNT};
pub(super) use pattern::POLICY as REGEX;
pub(super) use schema::POLICY as JSON_SCHEMA;

/// The status of what is not let through.
const STATUS: u16 = 422;

/// The name of a guardrail in responses.
struct GuardrailKind {
    name: &'static str,
    type_name: &'static str,
    reason: &'static str,
    /// Where the text is in a request, in an answer; nothing is the whole body.
    paths: [&'static str; 2],
}

/// Where a text is in requests and answers of language models.
const OF_MODELS: [&str; 2] = ["$.messages[-1].content", "$.choices[0].message.content"];

/// What a guardrail looks for.
trait Look: Send + Sync {
    /// Whether it fits.
    fn fits(&self, text: &str) -> bool;

    /// Whether it looks at JSON, and not at what a text says.
    fn reads_json(&self) -> bool {
        false
    }

    /// The expectation, with `showAssessment`.
    fn expected(&self, invert: bool) -> Value;
}

/// A guardrail of one flow.
struct Guard {
    kind: &'static GuardrailKind,
    look: Box<dyn Look>,
    path: Option<JsonPath>,
    invert: bool,
    shows: bool,
    direction: &'static str,
}

/// Reads both flows. One without `enabled` is on for requests and off for answers, unless it was made when there was no
/// such switch.
fn made(
    making: &Making<'_>,
    params: &Params<'_>,
    kind: &'static GuardrailKind,
    read: impl Fn(&Params<'_>) -> Option<Box<dyn Look>>,
) -> Option<Made> {
    let old = making.step.version == 0;
    let guard = |name: &'static str, index: usize, direction| -> Option<(ChainPhase, Box<dyn Mediator>)> {
        let flow = params.map(name)?;
        let enabled = flow.flag("enabled", old || index == 0);
        let look = read(&flow);
        let path = flow.text("jsonPath");
        let usual = if old { "" } else { kind.paths[index] };
        let path = path.as_deref().unwrap_or(usual).trim();
        let path = match JsonPath::parse(path, Dialect::Artifacts) {
            _ if path.is_empty() => None,
            Ok(path) => Some(path),
            Err(error) => {
                flow.error(format!("`jsonPath` cannot be read: {error}"));
                None
            }
        };
        // For answers that come in pieces, which here are looked at as a whole.
        let _ = flow.text("streamingJsonPath");
        let (invert, shows) = (flow.flag("invert", false), flow.flag("showAssessment", false));
        let guard = Guard { kind, look: look?, path, invert, shows, direction };
        enabled.then(|| (ChainPhase::Body, Box::new(guard) as Box<dyn Mediator>))
    };
    let (request, response) = (guard("request", 0, "REQUEST"), guard("response", 1, "RESPONSE"));
    if params.get("request").is_none() && params.get("response").is_none() {
        params.error("`request` or `response` is missing");
    }
    Some(Made { request, response, ..Made::default() })
}

impl Mediator for Guard {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let body = body_decoded(exchange)?;
        if body.is_empty() && !may_have_body(exchange) {
            return Ok(Flow::Next);
        }
        let text = match &self.path {
            None => Ok(String::from_utf8_lossy(&body).into_owned()),
            Some(path) => {
                let value = serde_json::from_slice::<Value>(&body).ok();
                let at = if self.look.reads_json() { text_at } else { texts_at };
                value.and_then(|value| at(&value, path)).ok_or_else(|| "nothing is at the JSONPath".to_owned())
            }
        };
        let (reason, assessment) = match text {
            Ok(text) if self.look.fits(&text) != self.invert => return Ok(Flow::Next),
            Ok(_) => (self.kind.reason, self.look.expected(self.invert)),
            Err(why) => ("Error extracting value from JSONPath", Value::String(why)),
        };
        Ok(self.refuse(exchange, reason, assessment))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

impl Guard {
    fn refuse(&self, exchange: &mut Exchange, reason: &str, assessment: Value) -> Flow {
        let mut message = json!({
            "action": "GUARDRAIL_INTERVENED",
            "interveningGuardrail": self.kind.name,
            "actionReason": reason,
            "direction": self.direction,
        });
        if self.shows {
            message["assessments"] = assessment;
        }
        let body = json!({"type": self.kind.type_name, "message": message}).to_string();
        answer::immediately(exchange, STATUS, answer::json(), body)
    }
}

/// Whether a message that is empty could have a body: then an empty one is looked at like any other.
fn may_have_body(exchange: &Exchange) -> bool {
    let method = &exchange.client.line.method;
    match exchange.is_response() {
        true => !matches!(exchange.message.status, 204 | 304) && *method != Method::Head,
        false => matches!(method, Method::Post | Method::Put | Method::Patch),
    }
}

/// Every text, number and truth at a place and below it, one a line.
fn texts_at(value: &Value, path: &JsonPath) -> Option<String> {
    fn collect(value: &Value, parts: &mut Vec<String>) {
        match value {
            Value::Null => {}
            Value::String(text) => parts.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| collect(value, parts)),
            Value::Object(members) => members.values().for_each(|value| collect(value, parts)),
            other => parts.push(other.to_string()),
        }
    }
    let mut parts = Vec::new();
    path.select(value).into_iter().for_each(|found| collect(found, &mut parts));
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// A text or number at a place, as text.
pub(super) fn text_at(value: &Value, path: &JsonPath) -> Option<String> {
    match path.select(value).first()? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}
