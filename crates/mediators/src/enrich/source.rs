//! Where the part comes from.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_compile::expression::closing_brace;
use penstock_compile::{Compiler, Element, Expression, NameKind};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::{Form, MediaType, Scope, Value};
use penstock_xml::TreeBuilder;

use super::{Action, target_xml};
use crate::template::Template;
use crate::typed::{Type, inline_xml};
use penstock_engine::payload;
use penstock_message::tree;

/// A compiled source.
pub enum EnrichSource {
    /// Paths; whether what they find stays where it is.
    Custom(Vec<Expression>, bool),
    /// The whole message.
    Envelope,
    /// The payload; whether it stays.
    Body(bool),
    /// A property; whether it stays.
    Property(Arc<str>, bool),
    /// A variable.
    Variable(Arc<str>),
    /// A constant element.
    Element(Value),
    /// A constant text, or one with expressions.
    Text(InlineText),
    /// A local entry or registry resource, read when it is used.
    Resource(Arc<str>),
}

/// Text written in place.
pub enum InlineText {
    /// `${…}` inside, or none.
    Template(Template),
    /// `{…}` inside: parts and what they are after.
    Braced(Vec<(String, Option<Expression>)>),
}

/// Compiles a `<source>`.
pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<EnrichSource> {
    let stays = el.flag("clone", true);
    Some(match el.attribute("type").unwrap_or("custom") {
        "custom" => EnrichSource::Custom(custom(el, cx)?, stays),
        "envelope" => EnrichSource::Envelope,
        "body" => EnrichSource::Body(stays),
        "property" => EnrichSource::Property(el.required(cx, "property")?.into(), stays),
        "variable" => EnrichSource::Variable(
            el.attribute("variable").or_else(|| el.attribute("property")).or_else(|| el.required(cx, "name"))?.into(),
        ),
        "inline" => inline(el, cx)?,
        other => {
            cx.error(
                el.attribute_place("type"),
                format!("`{other}` is not a source: custom, envelope, body, property, variable, inline"),
            );
            return None;
        }
    })
}

/// One path, or several JSONPaths in one `json-eval(…)`.
fn custom(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Vec<Expression>> {
    let text = el.required(cx, "xpath")?;
    let at = el.attribute_place("xpath");
    if let Some(inner) = text.trim().strip_prefix("json-eval(").and_then(|inner| inner.strip_suffix(')')) {
        let paths = split_paths(inner);
        if paths.len() > 1 {
            return paths
                .into_iter()
                .map(|path| Expression::compile(cx, el, &format!("json-eval({path})"), at.clone()))
                .collect();
        }
    }
    Some(vec![Expression::compile(cx, el, text, at)?])
}

/// Cuts at commas that stand outside of brackets and before a `$`.
fn split_paths(text: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth -= 1,
            b',' if depth == 0 && text[index + 1..].trim_start().starts_with('$') => {
                paths.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    paths.push(text[start..].trim());
    paths
}

fn inline(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<EnrichSource> {
    if let Some(key) = el.attribute("key") {
        if cx.resource(key).is_none() {
            cx.unknown(NameKind::RESOURCE, key, el.attribute_place("key"));
        }
        return Some(EnrichSource::Resource(key.into()));
    }
    if let Some(child) = el.children().next() {
        return Some(EnrichSource::Element(inline_xml(&child)));
    }
    let text = el.text();
    if !text.contains("${") && text.contains("{$") || text.contains("{get-property(") || text.contains("{json-eval(") {
        return Some(EnrichSource::Text(InlineText::Braced(braced_parts(cx, el, &text)?)));
    }
    Some(EnrichSource::Text(InlineText::Template(Template::compile(cx, el, &text, el.place())?)))
}

/// Text with XPath expressions in braces; braces of JSON are not expressions.
fn braced_parts(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str) -> Option<Vec<(String, Option<Expression>)>> {
    let mut parts = Vec::new();
    let mut before = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let starts = ["{$ctx:", "{$axis2:", "{$trp:", "{$url:", "{$func:", "{$body", "{get-property(", "{json-eval("];
        let close =
            if starts.iter().any(|start| rest[at..].starts_with(start)) { closing_brace(&rest[at..]) } else { None };
        let Some(close) = close else {
            before.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        before.push_str(&rest[..at]);
        let expression = Expression::compile(cx, el, &rest[at + 1..at + close], el.place())?;
        parts.push((std::mem::take(&mut before), Some(expression)));
        rest = &rest[at + close + 1..];
    }
    before.push_str(rest);
    parts.push((before, None));
    Some(parts)
}

impl EnrichSource {
    /// The part. What is not there is no nodes; in JSON it is a fault, as in Micro Integrator.
    pub fn value(&self, exchange: &mut Exchange) -> Result<Value, Fault> {
        match self {
            EnrichSource::Custom(paths, stays) => custom_value(paths, *stays, exchange),
            EnrichSource::Envelope => {
                let envelope = exchange.xml()?;
                Ok(Value::Xml(envelope.document.clone(), vec![envelope.envelope]))
            }
            EnrichSource::Body(stays) => {
                let Some(value) = payload::payload_of(exchange)? else { return Ok(nothing()) };
                if !stays {
                    take_payload(exchange, &value)?;
                }
                Ok(value)
            }
            EnrichSource::Property(name, stays) => {
                let Some(value) = exchange.property(Scope::Default, name) else {
                    return match exchange.message.media_type() {
                        MediaType::Json => Err(Fault::new(format!("the property `{name}` is not set"))),
                        _ => Ok(nothing()),
                    };
                };
                if !stays {
                    exchange.remove_property(Scope::Default, name);
                }
                Ok(value)
            }
            EnrichSource::Variable(name) => exchange
                .message
                .variables
                .get(name)
                .cloned()
                .ok_or_else(|| Fault::new(format!("the variable `{name}` is not set"))),
            EnrichSource::Element(value) => Ok(value.clone()),
            EnrichSource::Text(InlineText::Template(template)) => Ok(as_it_looks(template.text(exchange)?)),
            EnrichSource::Text(InlineText::Braced(parts)) => {
                let mut text = String::new();
                for (before, expression) in parts {
                    text.push_str(before);
                    if let Some(expression) = expression {
                        let found = expression.text(exchange)?;
                        if found.is_empty() {
                            return Err(Fault::new(format!("the expression `{}` finds nothing", expression.text)));
                        }
                        text.push_str(&found);
                    }
                }
                Ok(as_it_looks(text))
            }
            EnrichSource::Resource(key) => {
                let resource = exchange.entry_of_key(key);
                let resource = resource
                    .ok_or_else(|| Fault::new(format!("no local entry or registry resource is named `{key}`")))?;
                Ok(as_it_looks(resource.text().into_owned()))
            }
        }
    }

    /// Whether it looks at the body.
    pub fn reads_body(&self) -> bool {
        match self {
            EnrichSource::Custom(paths, stays) => !stays || paths.iter().any(|path| path.needs() != Needs::Nothing),
            EnrichSource::Envelope | EnrichSource::Body(_) => true,
            EnrichSource::Text(InlineText::Template(template)) => template.needs() != Needs::Nothing,
            EnrichSource::Text(InlineText::Braced(parts)) => parts.iter().any(|(_, expression)| {
                expression.as_ref().is_some_and(|expression| expression.needs() != Needs::Nothing)
            }),
            EnrichSource::Property(..)
            | EnrichSource::Variable(_)
            | EnrichSource::Element(_)
            | EnrichSource::Resource(_) => false,
        }
    }
}

fn custom_value(paths: &[Expression], stays: bool, exchange: &mut Exchange) -> Result<Value, Fault> {
    let [path] = paths else { return Err(Fault::new("several paths can only be removed")) };
    if let Some(json) = path.json_path() {
        let root = exchange.json()?;
        let found = json.read(&root).map(Cow::into_owned);
        let found = found.ok_or_else(|| Fault::new(format!("the expression `{}` finds nothing", path.text)))?;
        if !stays {
            let mut rest = (*root).clone();
            penstock_json::path::remove(&mut rest, json);
            payload::set_json(exchange, Arc::new(rest));
        }
        return Ok(Value::Json(Arc::new(found)));
    }
    let value = path.value(exchange)?.unwrap_or_else(nothing);
    if !stays && matches!(value, Value::Xml(..)) {
        target_xml::change(exchange, path, Action::Remove, &[])?;
    }
    Ok(value)
}

/// What is not there: no nodes.
fn nothing() -> Value {
    Value::Xml(Arc::new(TreeBuilder::new().finish()), Vec::new())
}

/// The payload moves out of the message.
fn take_payload(exchange: &mut Exchange, value: &Value) -> Result<(), Fault> {
    match value {
        Value::Xml(document, nodes) => {
            let soap = exchange.xml()?.soap;
            let changes = nodes.iter().map(|node| (*node, tree::Change::Replace(Vec::new()))).collect();
            super::put_envelope(exchange, tree::edit(document, &changes), soap)
        }
        _ => {
            exchange.message.body.set(Form::Empty);
            Ok(())
        }
    }
}

/// A constant: JSON or XML when it is, else text.
fn as_it_looks(text: String) -> Value {
    let trimmed = text.trim();
    if trimmed.starts_with('<') {
        if let Ok((document, root)) = payload::parse(trimmed.as_bytes().to_vec()) {
            return Value::Xml(document, vec![root]);
        }
    } else if trimmed.starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str(trimmed)
    {
        return Value::Json(Arc::new(json));
    }
    Value::string(text)
}

/// A value without what the paths find in it.
pub fn without(value: Value, paths: &[Expression]) -> Result<Value, Fault> {
    let Value::Json(mut root) = Type::Json.coerce(value)? else { return Err(Fault::new("the property is not JSON")) };
    let changed = Arc::make_mut(&mut root);
    for path in paths {
        let json = path.json_path().ok_or_else(|| Fault::new("parts of a property are removed by JSONPath"))?;
        penstock_json::path::remove(changed, json);
    }
    Ok(Value::Json(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_at_outer_commas() {
        for (text, expected) in
            [("$.a", vec!["$.a"]), ("$.a,$.b", vec!["$.a", "$.b"]), ("$['a','b'], $.c", vec!["$['a','b']", "$.c"])]
        {
            assert_eq!(split_paths(text), expected);
        }
    }

    #[test]
    fn constants_are_what_they_look_like() {
        assert!(matches!(as_it_looks(" {\"a\":1}".into()), Value::Json(_)));
        assert!(matches!(as_it_looks("<a/>".into()), Value::Xml(..)));
        assert!(matches!(as_it_looks("{a}".into()), Value::String(_)));
    }
}
