//! What a FreeMarker template sees of a message: `payload`, `args`, `ctx`, `axis2`, `trp`, `vars`,
//! `params`. Only what the template mentions is looked at.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use penstock_freemarker::{Data, Model, Template};
use penstock_message::{Envelope, Form, MediaType, Properties, Scope, Value};
use serde_json::Value as Json;

use super::argument::{Argument, Given, GivenValue};
use super::{Media, insert};

/// Writes the template for a message.
pub(super) fn render(
    template: &Template,
    arguments: &[Argument],
    media: Media,
    exchange: &mut Exchange,
) -> Result<String, Fault> {
    let payload = if template.mentions("payload") { Payload::from_exchange(exchange)? } else { Payload::Nothing };
    let wants_variables = ["vars", "var"].iter().any(|name| template.mentions(name));
    let variables = if wants_variables { exchange.message.variables.clone() } else { Default::default() };
    let mut roots = vec![("payload", payload.data())];
    if template.mentions("args") {
        roots.push(("args", arguments_of(arguments, media, exchange)?));
    }
    if wants_variables {
        let all = hash(variables.iter().map(|(name, value)| (name.into(), data_of(value))));
        roots.push(("vars", all.clone()));
        roots.push(("var", all));
    }
    let wants_all = template.mentions("props") || template.mentions("properties");
    let default =
        if template.mentions("ctx") || wants_all { texts(&exchange.message.properties) } else { Data::Missing };
    let axis2 = if template.mentions("axis2") || wants_all { axis2(exchange) } else { Data::Missing };
    if wants_all {
        let both = hash([("synapse".into(), default.clone()), ("axis2".into(), axis2.clone())].into_iter());
        roots.push(("props", both.clone()));
        roots.push(("properties", both));
    }
    roots.push(("ctx", default));
    roots.push(("axis2", axis2));
    if ["trp", "headers"].iter().any(|name| template.mentions(name)) {
        let fields =
            exchange.message.headers.iter().map(|(name, value)| {
                (Rc::from(String::from_utf8_lossy(name)), Data::text(String::from_utf8_lossy(value)))
            });
        let fields = hash(fields);
        roots.push(("trp", fields.clone()));
        roots.push(("headers", fields));
    }
    if template.mentions("params") {
        roots.push(("params", parameters(exchange)));
    }
    let model = Model { roots, now: penstock_engine::clock::system_date };
    template.render(&model).map_err(|error| Fault::new(format!("Error parsing FreeMarking template: {error}")))
}

/// The body in the form the template walks through.
enum Payload {
    Nothing,
    Json(Arc<Json>),
    Xml(Arc<Envelope>),
    Text(String),
}

impl Payload {
    fn from_exchange(exchange: &mut Exchange) -> Result<Payload, Fault> {
        let media = match exchange.message.body.form() {
            Form::Empty => return Ok(Payload::Nothing),
            Form::Json(_) => MediaType::Json,
            Form::Text(text) => return Ok(Payload::Text(text.to_string())),
            Form::Xml(_) => MediaType::Xml,
            Form::Bytes(_) | Form::Stream { .. } => exchange.message.source_media(),
        };
        Ok(match media {
            MediaType::Json => Payload::Json(exchange.json()?),
            MediaType::Text => {
                let program = exchange.program().clone();
                // As Micro Integrator has it: text is always escaped for XML.
                let text = exchange.message.text(&program.conversion)?;
                let mut escaped = Vec::with_capacity(text.len());
                penstock_xml::escape_text(&mut escaped, &text);
                Payload::Text(String::from_utf8_lossy(&escaped).into_owned())
            }
            _ => Payload::Xml(exchange.xml()?),
        })
    }

    fn data(&self) -> Data<'_> {
        match self {
            Payload::Nothing => Data::Missing,
            Payload::Json(json) => Data::of_json(json),
            // The payload is a document: its root element is a child, by name.
            Payload::Xml(envelope) => Data::node(&envelope.document, envelope.body),
            Payload::Text(text) => Data::text(text.as_str()),
        }
    }
}

fn hash<'d>(members: impl Iterator<Item = (Rc<str>, Data<'d>)>) -> Data<'d> {
    Data::Hash(Rc::new(members.collect()))
}

fn data_of(value: &Value) -> Data<'_> {
    match value {
        Value::String(text) => Data::text(&**text),
        Value::Boolean(flag) => Data::Boolean(*flag),
        Value::Integer(number) => Data::Number(*number as f64),
        Value::Double(number) => Data::Number(*number),
        Value::Json(json) => Data::of_json(json),
        Value::Xml(document, nodes) => Data::Nodes(document, Rc::new(nodes.clone())),
    }
}

/// Properties of all types are text.
fn texts<'d>(properties: &Properties) -> Data<'d> {
    hash(properties.iter().map(|(name, value)| (name.into(), Data::text(value.to_text()))))
}

fn axis2<'d>(exchange: &mut Exchange) -> Data<'d> {
    let mut members: Vec<(Rc<str>, Data<'d>)> = Vec::new();
    for (name, value) in exchange.message.axis2.iter().chain(exchange.message.axis2_client.iter()) {
        members.push((name.into(), Data::text(value.to_text())));
    }
    for name in
        ["HTTP_METHOD", "REST_URL_POSTFIX", "HTTP_SC", "messageType", "ContentType", "REMOTE_ADDR", "TransportInURL"]
    {
        if !members.iter().any(|(known, _)| **known == *name)
            && let Some(value) = exchange.property(Scope::Axis2, name)
        {
            members.push((name.into(), Data::text(value.to_text())));
        }
    }
    hash(members.into_iter())
}

fn parameters<'d>(exchange: &Exchange) -> Data<'d> {
    let query = exchange.client.line.query().unwrap_or_default();
    let names = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let queries = names.filter_map(|name| Some((Rc::from(name), Data::text(exchange.query_parameter(name)?))));
    let properties = exchange.message.properties.iter();
    let paths = properties
        .filter_map(|(name, value)| Some((Rc::from(name.strip_prefix("uri.var.")?), Data::text(value.to_text()))));
    let functions = exchange.functions.last().map(|scope| scope.parameters.as_slice()).unwrap_or_default();
    let functions = functions.iter().map(|(name, value)| (Rc::from(&**name), Data::text(value.to_text())));
    let parts = [("queryParams", hash(queries)), ("pathParams", hash(paths)), ("functionParams", hash(functions))];
    hash(parts.into_iter().map(|(name, value)| (name.into(), value)))
}

/// `args.arg1` and so on: text, escaped for what is built.
fn arguments_of<'d>(arguments: &[Argument], media: Media, exchange: &mut Exchange) -> Result<Data<'d>, Fault> {
    let mut members = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let given = argument.evaluate(exchange)?;
        members.push((Rc::from(format!("arg{}", index + 1)), Data::text(written(&given, media))));
    }
    Ok(hash(members.into_iter()))
}

fn written(given: &Given, media: Media) -> String {
    let mut out = String::new();
    // Text stands in quotes where templates put it; objects and lists stand as they are.
    let composed = matches!(&given.value, GivenValue::Json(json, _) if json.is_object() || json.is_array());
    insert::argument(&mut out, given, media, media == Media::Json && !composed, false);
    out
}
