//! The JSON body as policies for language models look at it: as text, or a part of it by JSONPath.

use std::sync::Arc;

use bytes::Bytes;
use penstock_engine::{Exchange, Fault};
use penstock_json::path::{Dialect, JsonPath, replace};
use penstock_message::{Form, MediaType};
use serde_json::Value;

use super::settings::Settings;
use crate::policy::measure::without_quotes;

/// The body as text; `None` when there is none.
pub(super) fn text(exchange: &mut Exchange) -> Result<Option<Arc<str>>, Fault> {
    if exchange.message.body.is_empty() {
        return Ok(None);
    }
    let program = exchange.program().clone();
    Ok(Some(exchange.message.text(&program.conversion)?).filter(|text| !text.is_empty()))
}

/// Replaces the body by a JSON text.
pub(super) fn put(exchange: &mut Exchange, text: String) -> Result<(), Fault> {
    let message = &mut exchange.message;
    message.headers.remove("Content-Encoding");
    if message.media_type() != MediaType::Json {
        message.set_message_type("application/json");
    }
    message.body.set(Form::Bytes(Bytes::from(text)));
    Ok(())
}

/// The part of a body that is meant.
pub(super) struct PayloadPart(Option<JsonPath>);

impl PayloadPart {
    /// `jsonPath`; nothing means the whole.
    pub(super) fn from_settings(settings: &Settings) -> Result<PayloadPart, String> {
        let parse = |path: &str| {
            JsonPath::parse(path.trim(), Dialect::Artifacts).map_err(|error| format!("`jsonPath` is `{path}`: {error}"))
        };
        settings.text("jsonPath").map(parse).transpose().map(PayloadPart)
    }

    /// What is there as text, without the quotes around it. The error says why nothing is.
    pub(super) fn text(&self, json: &str) -> Result<String, String> {
        let Some(path) = &self.0 else { return Ok(without_quotes(json).to_owned()) };
        let root: Value = serde_json::from_str(json).map_err(|_| "the payload is not JSON".to_owned())?;
        match path.read(&root).as_deref() {
            None => Err("the payload has nothing at the path".to_owned()),
            Some(Value::String(text)) => Ok(without_quotes(text).trim().to_owned()),
            Some(other) => Ok(other.to_string()),
        }
    }

    /// The body with another text in this place.
    pub(super) fn replaced(&self, json: &str, text: String) -> Result<String, String> {
        match &self.0 {
            None => serde_json::from_str::<serde::de::IgnoredAny>(&text)
                .map(|_| text)
                .map_err(|_| "what became of the payload is not JSON".to_owned()),
            Some(_) => self.changed(json, |_| Ok(Value::String(text))),
        }
    }

    /// The body with what `change` makes of the value in this place.
    pub(super) fn changed(
        &self,
        json: &str,
        change: impl FnOnce(Value) -> Result<Value, String>,
    ) -> Result<String, String> {
        let mut root: Value = serde_json::from_str(json).map_err(|_| "the payload is not JSON".to_owned())?;
        let Some(path) = &self.0 else { return change(root).map(|value| value.to_string()) };
        let found = path.read(&root).ok_or("the payload has nothing at the path")?.into_owned();
        let value = change(found)?;
        replace(&mut root, path, &value);
        Ok(root.to_string())
    }
}
