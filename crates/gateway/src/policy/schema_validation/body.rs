//! Bodies against their schemas.

use std::sync::Arc;

use penstock_engine::Exchange;
use penstock_json::schema::{JsonSchema, Violation};
use penstock_message::{Form, MediaType};
use serde_json::Value;

/// What a body must be.
pub(super) struct BodyCheck {
    pub(super) required: bool,
    /// By media type, never empty.
    pub(super) media: Vec<Media>,
}

/// A media type or a range of them, and what bodies of it must be.
pub(super) struct Media {
    /// Without parameters, in lower case.
    range: String,
    /// Only for JSON.
    pub(super) schema: Option<JsonSchema>,
}

impl Media {
    pub(super) fn new(range: &str) -> Media {
        Media { range: essence(range), schema: None }
    }

    /// Whether a body of it can be JSON.
    pub(super) fn may_be_json(&self) -> bool {
        matches!(&*self.range, "*/*" | "*" | "application/*") || MediaType::parse(&self.range) == MediaType::Json
    }

    /// How closely it fits a media type.
    fn fits(&self, media_type: &str) -> Option<u8> {
        let family = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
        match &*self.range {
            range if range == media_type => Some(3),
            range if range.ends_with("/*") && family(range) == family(media_type) => Some(2),
            "*/*" | "*" => Some(1),
            _ => None,
        }
    }
}

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl BodyCheck {
    /// Whether bodies are looked into.
    pub(super) fn reads(&self) -> bool {
        self.media.iter().any(|media| media.schema.is_some())
    }

    /// Adds what is wrong with the message's body.
    pub(super) fn check(&self, exchange: &mut Exchange, what: &str, wrong: &mut Vec<String>) {
        let message = &exchange.message;
        if message.body.is_empty() {
            match (self.required, what) {
                (false, _) => {}
                (true, "request") => wrong.push("A request body is required but none found.".to_owned()),
                (true, _) => wrong.push("A response body is expected but none found.".to_owned()),
            }
            return;
        }
        let media_type = essence(message.content_type().unwrap_or_default());
        let media = match &*media_type {
            // Without a type, JSON is assumed.
            "" => self.media.iter().find(|media| media.may_be_json()).or(self.media.first()),
            known => {
                let fitting = self.media.iter().filter_map(|media| Some((media.fits(known)?, media)));
                fitting.max_by_key(|(closeness, _)| *closeness).map(|(_, media)| media)
            }
        };
        let Some(media) = media else {
            let side = if what == "request" { "Request" } else { "Response" };
            let allowed: Vec<&str> = self.media.iter().map(|media| &*media.range).collect();
            let allowed = allowed.join(", ");
            wrong.push(format!(
                "{side} Content-Type header '{media_type}' does not match any allowed types. Must be one of: [{allowed}]."
            ));
            return;
        };
        let is_json = media_type.is_empty() || MediaType::parse(&media_type) == MediaType::Json;
        let Some(schema) = media.schema.as_ref().filter(|_| is_json) else { return };
        match value_of(exchange) {
            Ok(value) => wrong.extend(schema.validate(&value).iter().map(described)),
            Err(problem) => wrong.push(format!("Unable to parse JSON - {problem}.")),
        }
    }
}

/// The body as JSON. What is sent on are the bytes as they came.
fn value_of(exchange: &mut Exchange) -> Result<Arc<Value>, String> {
    let program = exchange.program().clone();
    let message = &mut exchange.message;
    match message.body.form() {
        Form::Bytes(bytes) if message.source_media() != MediaType::Json => {
            serde_json::from_slice(bytes).map(Arc::new).map_err(|error| error.to_string())
        }
        _ => message.strict_json(&program.conversion).map_err(|error| error.to_string()),
    }
}

/// A violation in the words of API Manager: where, and what with a capital.
pub(super) fn described(violation: &Violation) -> String {
    let mut letters = violation.message.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let message = format!("{first}{}", letters.as_str());
    match &*violation.pointer {
        "" => message,
        pointer => format!("[Path '{pointer}'] {message}"),
    }
}
