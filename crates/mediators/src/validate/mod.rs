//! `<validate>`: the payload, or what `source` selects, against an XML schema or a JSON schema.
//!
//! A message that is JSON is checked by a JSON schema, every other one by XML schemas.

mod schema;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use penstock_compile::{Compiler, Element, Expression, MediatorKind, NameKind, Text};
use penstock_engine::{Exchange, Fault, Flow, Joins, Mediator, Needs, SequenceId};
use penstock_message::{Form, MediaType, Value};
use serde_json::Value as Json;

use schema::{Locations, Schema};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "validate", compile };

/// Schemas of computed keys that are kept compiled.
const COMPUTED_MAX: usize = 256;

struct Validate {
    schema: ValidationSchema,
    source: Option<Expression>,
    on_fail: SequenceId,
    locations: Locations,
}

enum ValidationSchema {
    Static(Arc<Schema>),
    /// Keys that are computed, and the schemas they led to. `cache-schema="false"` keeps none.
    Computed(Vec<Text>, Option<RwLock<HashMap<String, Arc<Schema>>>>),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    // Switches of Micro Integrator's own validator, and a key that was never read.
    el.attribute("key");
    for tolerated in ["feature", "property"] {
        el.elements(tolerated).for_each(|child| child.accept_all());
    }
    let mut locations = Locations::default();
    for resource in el.elements("resource") {
        let (location, key) = (resource.required(cx, "location")?, resource.required(cx, "key")?);
        locations.insert(location.to_owned(), key.to_owned());
        resource.finish(cx);
    }
    let mut keys = Vec::new();
    for child in el.elements("schema") {
        let key = child.required(cx, "key")?;
        let at = child.attribute_place("key");
        let key = Text::compile(cx, &child, key, at.clone())?;
        if let Text::Constant(key) = &key
            && cx.resource(key).is_none()
        {
            cx.unknown(NameKind::RESOURCE, key, at);
        }
        keys.push(key);
        child.finish(cx);
    }
    if keys.is_empty() {
        cx.error(el.place(), "<validate> needs a <schema key=\"…\"/>");
        return None;
    }
    let source = match el.attribute("source") {
        Some(_) => Some(cx.expression(el, "source")?),
        None => None,
    };
    let Some(on_fail) = el.child("on-fail") else {
        cx.error(el.place(), "<validate> needs an <on-fail> sequence");
        return None;
    };
    let on_fail = cx.sequence_of(&on_fail);
    let keep = el.flag("cache-schema", true);
    let constant: Option<Vec<Arc<str>>> = keys
        .iter()
        .map(|key| match key {
            Text::Constant(key) => Some(key.clone()),
            Text::Computed(_) => None,
        })
        .collect();
    let schema = match constant {
        Some(keys) => {
            let schema = Schema::compile(&*cx, &keys, &locations);
            schema.tell(cx);
            ValidationSchema::Static(Arc::new(schema))
        }
        None => {
            cx.depends_on_resources();
            ValidationSchema::Computed(keys, keep.then(RwLock::default))
        }
    };
    Some(Box::new(Validate { schema, source, on_fail, locations }))
}

impl Validate {
    fn schema(&self, exchange: &mut Exchange) -> Result<Arc<Schema>, Fault> {
        let (keys, kept) = match &self.schema {
            ValidationSchema::Static(schema) => return Ok(schema.clone()),
            ValidationSchema::Computed(keys, kept) => (keys, kept),
        };
        let keys = keys.iter().map(|key| key.text(exchange)).collect::<Result<Vec<_>, _>>()?;
        let name = keys.join("\n");
        if let Some(kept) = kept
            && let Some(found) = kept.read().unwrap_or_else(PoisonError::into_inner).get(&name)
        {
            return Ok(found.clone());
        }
        let schema = Arc::new(Schema::compile(&exchange.program().resources, &keys, &self.locations));
        if let Some(kept) = kept {
            let mut kept = kept.write().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < COMPUTED_MAX {
                kept.insert(name, schema.clone());
            }
        }
        Ok(schema)
    }

    /// The JSON that is checked; an empty body counts as an empty object.
    fn json(&self, exchange: &mut Exchange) -> Result<Arc<Json>, Fault> {
        let nothing = || Arc::new(Json::Object(serde_json::Map::new()));
        let Some(source) = &self.source else {
            if exchange.message.body.is_empty() {
                return Ok(nothing());
            }
            let program = exchange.program().clone();
            return Ok(exchange.message.strict_json(&program.conversion)?);
        };
        Ok(match source.value(exchange)? {
            None => nothing(),
            Some(Value::Json(json)) => json,
            Some(Value::Boolean(flag)) => Arc::new(Json::Bool(flag)),
            Some(other) => {
                let text = other.to_text();
                let read = if text.trim().is_empty() {
                    Ok(Json::Object(serde_json::Map::new()))
                } else {
                    serde_json::from_str(&text)
                };
                Arc::new(read.unwrap_or_else(|_| Json::String(text.into_owned())))
            }
        })
    }

    /// What the schema says of the message: nothing when it is valid, else message and detail.
    fn check(&self, exchange: &mut Exchange) -> Result<Option<Failure>, Fault> {
        let schema = self.schema(exchange)?;
        if is_json(exchange) {
            let schema = schema.json()?;
            let violations = schema.validate(&*self.json(exchange)?);
            return Ok(violations.first().map(|first| Failure {
                message: first.message.clone(),
                detail: format!("Error while validating Json message {first}"),
            }));
        }
        let schema = schema.xml()?;
        let (document, node) = match self.subject(exchange) {
            Ok(found) => found,
            Err(why) => return Ok(Some(why)),
        };
        let violations = schema.validate(&document, node);
        if violations.is_empty() {
            return Ok(None);
        }
        // All messages, each on a line of its own, as flows have always got them.
        let message = violations.iter().map(|violation| format!("{}\n", violation.message)).collect();
        let detail = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Ok(Some(Failure { message, detail }))
    }

    /// The element that is checked. What cannot be found is a failure, not a fault.
    fn subject(&self, exchange: &mut Exchange) -> Result<(Arc<penstock_xml::Document>, penstock_xml::NodeId), Failure> {
        let missing = |source: &str, why: String| Failure {
            message: format!("Error occurred while accessing source element: {source}"),
            detail: why,
        };
        match &self.source {
            Some(source) => {
                let (document, nodes) =
                    source.nodes(exchange).map_err(|fault| missing(&source.text, fault.message.to_string()))?;
                let element = nodes.into_iter().find(|node| document.is_element(*node));
                match element {
                    Some(element) => Ok((document, element)),
                    None => Err(missing(&source.text, format!("`{}` selects no element", source.text))),
                }
            }
            None => {
                let envelope = exchange.xml().map_err(|fault| missing("the payload", fault.message.to_string()))?;
                match envelope.payload() {
                    Some(payload) => Ok((envelope.document.clone(), payload)),
                    None => Err(missing("the payload", "there is no payload".to_owned())),
                }
            }
        }
    }
}

struct Failure {
    message: String,
    detail: String,
}

/// Whether the message holds JSON.
fn is_json(exchange: &Exchange) -> bool {
    match exchange.message.body.form() {
        Form::Json(_) => true,
        Form::Xml(_) | Form::Text(_) => false,
        Form::Empty | Form::Bytes(_) | Form::Stream { .. } => exchange.message.source_media() == MediaType::Json,
    }
}

impl Mediator for Validate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(failure) = self.check(exchange)? else { return Ok(Flow::Next) };
        let properties = &mut exchange.message.properties;
        properties.set("ERROR_EXCEPTION", Value::string(failure.message.trim_end()));
        properties.set("ERROR_MESSAGE", Value::string(failure.message));
        properties.set("ERROR_DETAIL", Value::string(failure.detail));
        Ok(Flow::Enter(self.on_fail))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }

    fn joins(&self) -> Joins {
        Joins::Inside(vec![self.on_fail])
    }
}
