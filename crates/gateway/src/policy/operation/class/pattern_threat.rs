//! `RegularExpressionProtector`: a message in which a pattern finds something is not let through. Pattern and switches
//! stand in properties of the message.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::MediaType;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::payload;
use super::settings::{Compiled, PolicyClasses, Settings, is_on, threat};
use crate::error::{GatewayError, codes};
use crate::{CallContext, client_request, text};

/// Patterns a core keeps compiled. They are properties, so a template could compute them from messages.
const PATTERNS_MAX: usize = 64;

struct PatternThreat;

pub(super) fn compile(_settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    Ok(Box::new(PatternThreat))
}

impl Mediator for PatternThreat {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(pattern) = exchange.message.property_text("regex") else {
            return Err(threat("Threat detection key words are missing"));
        };
        let Some(pattern) = compiled(&pattern) else {
            let why = "the pattern of the policy is not a regular expression here";
            return Err(GatewayError::new(codes::MEDIATION).because(why).into());
        };
        let kind = exchange.message.property_text("threatType").unwrap_or_else(|| "null".to_owned());
        let found = |place: &str| Err(threat(format!("{kind} Threat detected in {place}")));
        if is_on(exchange, "enabledCheckBody", true) && finds_in_body(&pattern, exchange)? {
            return found("Payload");
        }
        if is_on(exchange, "enabledCheckPathParams", true) {
            let context = CallContext::of(exchange)?;
            let target = client_request::below_now(exchange, &context.site);
            // As it was sent, and as the backend will read it.
            if pattern.is_match(target) || pattern.is_match(&text::percent_decoded(target, true)) {
                return found("Query Parameters");
            }
        }
        if is_on(exchange, "enabledCheckHeaders", true) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let mut fields = exchange.message.headers.iter();
            if fields.any(|(name, value)| pattern.is_match(&format!("{}={}", text(name), text(value)))) {
                return found("HTTP Headers");
            }
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

fn compiled(pattern: &str) -> Option<Arc<Regex>> {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Option<Arc<Regex>>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(found) = known.get(pattern) {
            return found.clone();
        }
        if known.len() >= PATTERNS_MAX {
            known.clear();
        }
        let made = RegexBuilder::new(pattern).case_insensitive(true).build().ok().map(Arc::new);
        known.insert(pattern.to_owned(), made.clone());
        made
    })
}

fn finds_in_body(pattern: &Regex, exchange: &mut Exchange) -> Result<bool, Fault> {
    let Some(text) = payload::text(exchange)? else { return Ok(false) };
    if pattern.is_match(&text) {
        return Ok(true);
    }
    // Escapes hide nothing: in JSON what is looked at are the texts that stand there, in a form its values.
    let message = &mut exchange.message;
    let form = message.content_type().is_some_and(|of| of.starts_with("application/x-www-form-urlencoded"));
    Ok(match message.media_type() {
        MediaType::Json => serde_json::from_str(&text).is_ok_and(|value: Value| finds_in(pattern, &value)),
        _ if form => pattern.is_match(&text::percent_decoded(&text, true)),
        _ => false,
    })
}

fn finds_in(pattern: &Regex, value: &Value) -> bool {
    match value {
        Value::String(text) => pattern.is_match(text),
        Value::Array(values) => values.iter().any(|value| finds_in(pattern, value)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| pattern.is_match(name) || finds_in(pattern, value))
        }
        _ => false,
    }
}
