//! `<jsontransform>`: XML to JSON with switches of its own, and JSON whose values take the types a
//! schema names.

mod shape;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use penstock_compile::{Compiler, Element, MediatorKind, NameKind, Text};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, FindResource, Flow, Mediator, Needs};
use penstock_json::mapping::Options;
use penstock_message::Form;
use serde_json::Value as Json;

use shape::Shape;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "jsontransform", compile };

struct JsonTransform {
    schema: Option<Schema>,
    properties: Vec<(String, String)>,
    /// The mapping of the program with the properties applied.
    options: OnceLock<Options>,
}

enum Schema {
    /// Named in the configuration. `Err` says what is wrong, when a message gets there.
    Fixed(Result<Shape, String>),
    /// Named by the message; the last one is kept.
    Computed(Text, Mutex<Option<Named>>),
}

/// The key of a schema, and what it describes.
type Named = (Arc<str>, Arc<Shape>);

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let schema = match el.attribute("schema").map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => {
            let at = el.attribute_place("schema");
            Some(match Text::compile(cx, el, key, at.clone())? {
                Text::Constant(key) => {
                    if cx.resource(&key).is_none() {
                        cx.unknown(NameKind::RESOURCE, &key, at);
                    }
                    Schema::Fixed(shape_of(&*cx, &key))
                }
                computed => {
                    cx.depends_on_resources();
                    Schema::Computed(computed, Mutex::default())
                }
            })
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
                format!("`{name}` is not a flag of the mapping and is ignored"),
            ),
            Err(why) => cx.error(property.attribute_place("value"), why),
        }
        property.finish(cx);
    }
    Some(Box::new(JsonTransform { schema, properties, options: OnceLock::new() }))
}

/// The shape that the schema of a key describes.
fn shape_of(resources: &dyn FindResource, key: &str) -> Result<Shape, String> {
    let Some(resource) = resources.find(key) else {
        return Err(format!("Schema does not exist in the specified location : {key}"));
    };
    let text = resource.text();
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err("Input json and schema should not be null".to_owned());
    }
    match serde_json::from_str(text) {
        Ok(schema) => Ok(Shape::new(&schema)),
        Err(error) => Err(format!("Can not find valid JSON Schema content: {error}")),
    }
}

impl Schema {
    fn apply(&self, exchange: &mut Exchange, json: Json) -> Result<Json, Fault> {
        let (key, last) = match self {
            Schema::Fixed(shape) => {
                let shape = shape.as_ref().map_err(|why| Fault::new(why.as_str()))?;
                return shape.apply(json).map_err(Fault::new);
            }
            Schema::Computed(key, last) => (key.text(exchange)?, last),
        };
        let known = last.lock().unwrap_or_else(PoisonError::into_inner).take().filter(|(known, _)| *known == key);
        // Not under the lock: reading a large schema pauses.
        let shape = match known {
            Some((_, shape)) => shape,
            None => Arc::new(shape_of(&exchange.program().resources, &key).map_err(Fault::new)?),
        };
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, shape.clone()));
        shape.apply(json).map_err(Fault::new)
    }
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
}

impl Mediator for JsonTransform {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if self.schema.is_none() && self.properties.is_empty() {
            return Ok(Flow::Next);
        }
        self.transform(exchange)
            .inspect_err(|fault| exchange.log(Level::Error, "JSONTransformMediator", &fault.message))?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

impl JsonTransform {
    fn transform(&self, exchange: &mut Exchange) -> Result<(), Fault> {
        let mut json = self.json(exchange)?;
        if let Some(schema) = &self.schema {
            json = Arc::new(schema.apply(exchange, (*json).clone())?);
        }
        exchange.message.headers.remove("Content-Encoding");
        exchange.message.body.set(Form::Json(json));
        Ok(())
    }
}
