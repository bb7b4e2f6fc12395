//! Where the reply goes: the variable that `responseVariable` names, and the body with `overwriteBody`.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Parameter};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;
use serde_json::{Map, Value as Json};

use super::parameter;
use crate::reply::reply_value;

/// `responseVariable` and `overwriteBody`.
pub(super) struct Output {
    variable: Parameter,
    overwrite: Option<Parameter>,
}

/// The same for one message.
pub(super) struct Place {
    variable: Arc<str>,
    /// Whether the reply becomes the body; the variable has no payload then.
    pub(super) overwrites_body: bool,
}

impl Output {
    /// `Some(None)` when the reply simply becomes the body.
    pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Output>> {
        let overwrite = parameter(el, cx, "overwriteBody")?;
        Some(parameter(el, cx, "responseVariable")?.map(|variable| Output { variable, overwrite }))
    }

    /// `None` when the name of the variable is empty.
    pub(super) fn place(&self, exchange: &mut Exchange) -> Result<Option<Place>, Fault> {
        let variable = self.variable.text(exchange)?;
        let overwrites_body = match &self.overwrite {
            Some(overwrite) => overwrite.value(exchange)?.is_true(),
            None => false,
        };
        Ok((!variable.is_empty()).then(|| Place { variable: variable.into(), overwrites_body }))
    }

    /// A message that gets its body back is kept whole.
    pub(super) fn needs(&self) -> Needs {
        let overwrites = self.overwrite.as_ref().and_then(Parameter::constant);
        if overwrites.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            self.variable.needs()
        } else {
            Needs::Whole
        }
    }
}

impl Place {
    /// Sets the variable from the reply, which is the message at hand.
    pub(super) fn put(&self, exchange: &mut Exchange) -> Result<(), Fault> {
        let mut variable = Map::new();
        if !self.overwrites_body {
            let payload = match reply_value(exchange)? {
                Value::Json(json) => (*json).clone(),
                other => Json::String(other.to_text().into_owned()),
            };
            variable.insert("payload".to_owned(), payload);
        }
        let mut headers = Map::new();
        for (name, value) in exchange.message.headers.iter() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            headers.insert(text(name), Json::String(text(value)));
        }
        variable.insert("headers".to_owned(), Json::Object(headers));
        let mut attributes = Map::new();
        attributes.insert("statusCode".to_owned(), exchange.message.status.into());
        variable.insert("attributes".to_owned(), Json::Object(attributes));
        exchange.message.variables.set(self.variable.clone(), Value::Json(Arc::new(Json::Object(variable))));
        Ok(())
    }
}
