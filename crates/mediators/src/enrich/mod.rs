//! `<enrich>`: copies or moves a part of the message, a property or a constant to another place.

mod source;
mod target_json;
mod target_xml;

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{MediaType, Scope, Value};

use penstock_engine::payload;
use penstock_message::tree::{Content, envelope_of};
use source::EnrichSource;

pub use target_json::json_of;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "enrich", compile };

struct Enrich {
    source: EnrichSource,
    target: Target,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Replace,
    Child,
    Sibling,
    Remove,
}

enum Target {
    Custom(Expression),
    Envelope,
    Body,
    Property(Arc<str>),
    Variable(Arc<str>),
    /// The name of a member of JSON.
    Key(Expression),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let (Some(source), Some(target)) = (el.child("source"), el.child("target")) else {
        cx.error(el.place(), "<enrich> needs a <source> and a <target>");
        return None;
    };
    let action = match target.attribute("action") {
        None | Some("replace" | "") => Action::Replace,
        Some("child") => Action::Child,
        Some("sibling") => Action::Sibling,
        Some("remove") => Action::Remove,
        Some(other) => {
            cx.error(
                target.attribute_place("action"),
                format!("`{other}` is not an action: replace, child, sibling, remove"),
            );
            return None;
        }
    };
    let compiled = source::compile(&source, cx)?;
    source.finish(cx);
    let kind = target.attribute("type").unwrap_or("custom");
    let named = |cx: &mut Compiler<'_>| {
        let name =
            target.attribute("property").or_else(|| target.attribute("variable")).or_else(|| target.attribute("name"));
        if name.is_none() {
            cx.error(target.place(), "<target> needs the attribute `property`");
        }
        name.map(Arc::from)
    };
    let target_kind = match kind {
        // A part to remove is often named by the target.
        "custom" => Target::Custom(cx.required_expression(&target, "xpath")?),
        "key" => Target::Key(cx.required_expression(&target, "xpath")?),
        "envelope" => Target::Envelope,
        "body" => Target::Body,
        "property" => Target::Property(named(cx)?),
        "variable" => Target::Variable(named(cx)?),
        other => {
            cx.error(
                target.attribute_place("type"),
                format!("`{other}` is not a target: custom, envelope, body, property, variable, key"),
            );
            return None;
        }
    };
    target.attribute("xpath");
    target.finish(cx);
    Some(Box::new(Enrich { source: compiled, target: target_kind, action }))
}

impl Enrich {
    fn remove(&self, exchange: &mut Exchange) -> Result<(), Fault> {
        match (&self.source, &self.target) {
            (EnrichSource::Custom(paths, _), Target::Property(name)) => {
                let value = exchange
                    .property(Scope::Default, name)
                    .ok_or_else(|| Fault::new(format!("the property `{name}` is not set")))?;
                let rest = source::without(value, paths)?;
                exchange.set_property(Scope::Default, name, rest);
            }
            (EnrichSource::Custom(paths, _), Target::Body | Target::Envelope) => {
                self.remove_from_body(exchange, paths)?
            }
            (_, Target::Custom(path)) => self.remove_from_body(exchange, std::slice::from_ref(path))?,
            (_, Target::Property(name)) => exchange.remove_property(Scope::Default, name),
            (_, Target::Variable(name)) => {
                exchange.message.variables.remove(name);
            }
            (_, Target::Body | Target::Envelope) => exchange.message.body.set(penstock_message::Form::Empty),
            (_, Target::Key(_)) => return Err(Fault::new("a key cannot be removed; remove the member")),
        }
        Ok(())
    }

    fn remove_from_body(&self, exchange: &mut Exchange, paths: &[Expression]) -> Result<(), Fault> {
        if paths.iter().any(|path| path.json_path().is_some()) {
            let mut root = (*exchange.json()?).clone();
            for path in paths.iter().filter_map(Expression::json_path) {
                penstock_json::path::remove(&mut root, path);
            }
            payload::set_json(exchange, Arc::new(root));
            return Ok(());
        }
        for path in paths {
            target_xml::change(exchange, path, Action::Remove, &[])?;
        }
        Ok(())
    }

    fn put(&self, exchange: &mut Exchange, value: Value) -> Result<(), Fault> {
        match &self.target {
            Target::Custom(path) => match path.json_path() {
                Some(json) => target_json::change(exchange, json, self.action, &value),
                None => target_xml::change(exchange, path, self.action, &payload::contents_of(&value)),
            },
            Target::Key(path) => {
                let json = path.json_path().ok_or_else(|| Fault::new("a key is named by a JSONPath"))?;
                target_json::rename(exchange, json, &value)
            }
            Target::Body => self.put_in_body(exchange, value),
            Target::Envelope => {
                let contents = payload::contents_of(&value);
                payload::replace_by_nodes(exchange, &contents)
            }
            Target::Property(name) => {
                let value = self.as_property(value);
                let old = match self.action {
                    Action::Replace => None,
                    _ => exchange.property(Scope::Default, name),
                };
                let joined = self.joined(old, value)?;
                exchange.set_property(Scope::Default, name, joined);
                Ok(())
            }
            Target::Variable(name) => {
                let old = match self.action {
                    Action::Replace => None,
                    _ => exchange.message.variables.get(name).cloned(),
                };
                let joined = self.joined(old, value)?;
                exchange.message.variables.set(name.clone(), joined);
                Ok(())
            }
        }
    }

    /// A string that a JSONPath finds keeps its quotes in a property, as in Micro Integrator.
    fn as_property(&self, value: Value) -> Value {
        match (&self.source, value) {
            (EnrichSource::Custom(paths, _), Value::Json(json))
                if json.is_string()
                    && self.action == Action::Replace
                    && paths.iter().all(|path| path.json_path().is_some()) =>
            {
                Value::string(json.to_string())
            }
            (_, value) => value,
        }
    }

    /// What a property holds after something was added to it.
    fn joined(&self, old: Option<Value>, value: Value) -> Result<Value, Fault> {
        let Some(old) = old else { return Ok(value) };
        match old {
            Value::Xml(document, nodes) => {
                target_xml::joined(&document, &nodes, self.action, &payload::contents_of(&value))
            }
            other => target_json::joined(&other, &value),
        }
    }

    fn put_in_body(&self, exchange: &mut Exchange, value: Value) -> Result<(), Fault> {
        if self.action != Action::Replace {
            return target_xml::change_payload(exchange, self.action, &payload::contents_of(&value));
        }
        match value {
            Value::Json(json) if json.is_object() || json.is_array() => payload::set_json(exchange, json),
            Value::Xml(document, nodes) if nodes.iter().any(|node| document.is_element(*node)) => {
                payload::replace_by_nodes(exchange, &payload::contents_of(&Value::Xml(document, nodes)))?;
            }
            other => self.put_text_in_body(exchange, &other.to_text())?,
        }
        Ok(())
    }

    fn put_text_in_body(&self, exchange: &mut Exchange, text: &str) -> Result<(), Fault> {
        let trimmed = text.trim();
        if trimmed.starts_with('<')
            && let Ok((document, root)) = payload::parse(trimmed.as_bytes().to_vec())
        {
            return payload::replace_by_nodes(exchange, &[Content::Node(document, root)]);
        }
        if trimmed.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(trimmed).is_ok() {
            payload::set_json_text(exchange, trimmed.to_owned());
            return Ok(());
        }
        if exchange.message.media_type().is_xml() && !exchange.message.body.is_empty() {
            return target_xml::change_payload(exchange, Action::Replace, &[Content::Text(text.into())]);
        }
        payload::set_text(exchange, text.to_owned());
        Ok(())
    }

    /// What Micro Integrator only complains of in its log, and leaves the message as it was.
    fn complaint(&self, exchange: &Exchange, value: &Value) -> Option<&'static str> {
        let is_json = exchange.message.media_type() == MediaType::Json;
        let to_json = match &self.target {
            Target::Custom(path) => path.json_path().is_some(),
            Target::Body => is_json && !matches!(value, Value::Xml(..)),
            Target::Envelope | Target::Property(_) | Target::Variable(_) => return None,
            Target::Key(_) => true,
        };
        if matches!(value, Value::Xml(_, nodes) if nodes.is_empty()) {
            return Some("the source is empty");
        }
        match self.action {
            Action::Sibling if to_json => Some("JSON knows no siblings; use the action `child`"),
            Action::Child if to_json && matches!(self.target, Target::Body) => {
                Some("a body of JSON can only be replaced; name a path")
            }
            Action::Replace if to_json && matches!(self.target, Target::Body) && !is_composed(value) => {
                Some("only an object or a list can be a body of JSON")
            }
            _ => None,
        }
    }
}

/// Whether a value is an object or a list, or text that reads as one.
fn is_composed(value: &Value) -> bool {
    match value {
        Value::Json(json) if json.is_object() || json.is_array() => true,
        other => {
            let text = other.to_text();
            text.trim_start().starts_with(['<', '{', '['])
        }
    }
}

impl Mediator for Enrich {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if self.action == Action::Remove {
            self.remove(exchange)?;
            return Ok(Flow::Next);
        }
        let value = self.source.value(exchange)?;
        match self.complaint(exchange, &value) {
            Some(complaint) => exchange.log(Level::Error, "EnrichMediator", complaint),
            None => self.put(exchange, value)?,
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        let outside =
            matches!(self.target, Target::Property(_) | Target::Variable(_)) && self.action == Action::Replace;
        if outside && !self.source.reads_body() { Needs::Nothing } else { Needs::Whole }
    }
}

/// Replaces the whole envelope of a message by a changed copy.
fn put_envelope(
    exchange: &mut Exchange,
    document: penstock_xml::Document,
    soap: penstock_message::SoapVersion,
) -> Result<(), Fault> {
    let envelope = envelope_of(document, soap).ok_or_else(|| Fault::new("the message is no longer a SOAP envelope"))?;
    exchange.message.body.set(penstock_message::Form::Xml(Arc::new(envelope)));
    Ok(())
}
