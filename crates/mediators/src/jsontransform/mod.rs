//! `<jsontransform>`: XML to JSON with switches of its own, and JSON whose values take the types a
//! schema names.

mod shape;

use std::sync::{Arc, OnceLock, RwLock};

use penstock_compile::{Compiler, Element, MediatorKind, NameKind, Text};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_json::mapping::Options;
use penstock_message::Form;
use serde_json::Value as Json;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "jsontransform", compile };

struct JsonTransform {
    schema: Option<Text>,
    /// The schema of the last key, parsed.
    parsed: RwLock<Option<(Arc<str>, Arc<Json>)>>,
    properties: Vec<(String, String)>,
    /// The mapping of the program with the properties applied.
    options: OnceLock<Options>,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let schema = match el.attribute("schema").map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => {
            let at = el.attribute_place("schema");
            let text = Text::compile(cx, el, key, at.clone())?;
            if matches!(text, Text::Constant(_)) && cx.program.resources.get(key).is_none() {
                cx.unknown(NameKind::Resource, key, at);
            }
            Some(text)
        }
        None => None,
    };
    let mut properties = Vec::new();
    for property in el.elements("property") {
        let name = property.required(cx, "name")?.trim();
        let value = property.required(cx, "value")?.trim();
        match Options::default().set(name, value) {
            Ok(true) => properties.push((name.to_owned(), value.to_owned())),
            Ok(false) => cx.warn(
                property.attribute_place("name"),
                format!("`{name}` is no switch of the mapping and has no effect"),
            ),
            Err(why) => cx.error(property.attribute_place("value"), why),
        }
        property.finish(cx);
    }
    Some(Box::new(JsonTransform { schema, parsed: RwLock::default(), properties, options: OnceLock::new() }))
}

impl JsonTransform {
    fn options(&self, exchange: &Exchange) -> &Options {
        self.options.get_or_init(|| {
            let mut options = exchange.program().conversion.mapping.clone();
            for (name, value) in &self.properties {
                // Each was accepted when the element was compiled.
                let _ = options.set(name, value);
            }
            options
        })
    }

    /// The payload as JSON, mapped anew when there are switches.
    fn json(&self, exchange: &mut Exchange) -> Result<Arc<Json>, Fault> {
        if self.properties.is_empty() {
            return exchange.json();
        }
        let envelope = exchange.xml()?;
        let Some(payload) = envelope.payload() else { return Err(Fault::new("there is no payload to transform")) };
        let json = penstock_json::mapping::to_json(&envelope.document, payload, self.options(exchange));
        Ok(Arc::new(json.map_err(|error| Fault::new(error.to_string()))?))
    }

    fn schema(&self, exchange: &mut Exchange) -> Result<Option<Arc<Json>>, Fault> {
        let Some(key) = &self.schema else { return Ok(None) };
        let key = key.text(exchange)?;
        let poisoned = std::sync::PoisonError::into_inner;
        if let Some((known, schema)) = &*self.parsed.read().unwrap_or_else(poisoned)
            && *known == key
        {
            return Ok(Some(schema.clone()));
        }
        let Some(resource) = exchange.program().resources.get(&key).cloned() else {
            return Err(Fault::new(format!("Schema does not exist in the specified location : {key}")));
        };
        let text = resource.text();
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(Fault::new("Input json and schema should not be null"));
        }
        let schema: Json = serde_json::from_str(text)
            .map_err(|error| Fault::new(format!("Can not find valid JSON Schema content: {error}")))?;
        let schema = Arc::new(schema);
        *self.parsed.write().unwrap_or_else(|error| error.into_inner()) = Some((key, schema.clone()));
        Ok(Some(schema))
    }
}

impl Mediator for JsonTransform {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let schema = self.schema(exchange)?;
        if schema.is_none() && self.properties.is_empty() {
            return Ok(Flow::Next);
        }
        let mut json = self.json(exchange)?;
        if let Some(schema) = schema {
            json = Arc::new(shape::shaped((*json).clone(), &schema).map_err(Fault::new)?);
        }
        exchange.message.headers.remove("Content-Encoding");
        exchange.message.body.set(Form::Json(json));
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
