//! Values with the types that properties, variables and results can declare.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;

use crate::template::Template;
use penstock_engine::payload;

/// A declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `STRING`.
    String,
    /// `BOOLEAN`.
    Boolean,
    /// `INTEGER`, `LONG`, `SHORT`: the smallest and the largest value.
    Integer(i64, i64),
    /// `FLOAT`, `DOUBLE`.
    Double,
    /// `OM`, `XML`.
    Xml,
    /// `JSON`.
    Json,
}

impl Type {
    /// The type an artifact names, in any case.
    pub fn parse(name: &str) -> Option<Type> {
        Some(match name.trim().to_ascii_uppercase().as_str() {
            "STRING" => Type::String,
            "BOOLEAN" => Type::Boolean,
            "INTEGER" => Type::Integer(i64::from(i32::MIN), i64::from(i32::MAX)),
            "LONG" => Type::Integer(i64::MIN, i64::MAX),
            "SHORT" => Type::Integer(i64::from(i16::MIN), i64::from(i16::MAX)),
            "FLOAT" | "DOUBLE" => Type::Double,
            "OM" | "XML" => Type::Xml,
            "JSON" => Type::Json,
            _ => return None,
        })
    }

    /// What variables call it.
    pub fn name(self) -> &'static str {
        match self {
            Type::String => "STRING",
            Type::Boolean => "BOOLEAN",
            Type::Integer(_, i64::MAX) => "LONG",
            Type::Integer(..) => "INTEGER",
            Type::Double => "DOUBLE",
            Type::Xml => "XML",
            Type::Json => "JSON",
        }
    }

    /// The value as one of this type; a value that cannot be is a fault.
    pub fn coerce(self, value: Value) -> Result<Value, Fault> {
        let wrong = |what: &str, value: &Value| Fault::new(format!("`{}` is not {what}", value.to_text()));
        Ok(match self {
            Type::String => Value::String(value.to_text().into()),
            Type::Boolean => Value::Boolean(value.is_true()),
            Type::Integer(least, greatest) => {
                let number = match &value {
                    Value::Integer(number) => Some(*number),
                    Value::Double(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => Some(*number as i64),
                    other => other.to_text().trim().parse().ok(),
                };
                let fits = number.filter(|number| (least..=greatest).contains(number));
                Value::Integer(fits.ok_or_else(|| wrong("a whole number of the declared size", &value))?)
            }
            Type::Double => match &value {
                Value::Double(number) => Value::Double(*number),
                other => Value::Double(other.to_text().trim().parse().map_err(|_| wrong("a number", &value))?),
            },
            Type::Xml => match value {
                Value::Xml(..) => value,
                Value::Json(json) => {
                    let (document, nodes) =
                        payload::json_elements(&json).ok_or_else(|| Fault::new(format!("`{json}` is not XML")))?;
                    Value::Xml(document, nodes)
                }
                other => {
                    let (document, root) = payload::parse(other.to_text().into_owned().into_bytes())?;
                    Value::Xml(document, vec![root])
                }
            },
            Type::Json => match value {
                Value::Json(_) => value,
                Value::Xml(document, nodes) => Value::Json(Arc::new(xml_to_json(&document, &nodes)?)),
                other => {
                    let text = other.to_text();
                    let json =
                        json_of_text(&text).map_err(|error| Fault::new(format!("`{text}` is not JSON: {error}")))?;
                    Value::Json(Arc::new(json))
                }
            },
        })
    }
}

/// Text as JSON. As in Micro Integrator, text that is none is a string when it would be one in quotes, and no text is null.
fn json_of_text(text: &str) -> Result<serde_json::Value, serde_json::Error> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(serde_json::Value::Null);
    }
    serde_json::from_str(trimmed).or_else(|error| serde_json::from_str(&format!("\"{text}\"")).map_err(|_| error))
}

/// Nodes as the mapping writes them in JSON.
pub fn xml_to_json(
    document: &penstock_xml::Document,
    nodes: &[penstock_xml::NodeId],
) -> Result<serde_json::Value, Fault> {
    match nodes {
        [node] if document.is_element(*node) => {
            penstock_json::mapping::to_json(document, *node, &penstock_json::mapping::Options::default())
                .map_err(|error| Fault::new(error.to_string()))
        }
        [node] => Ok(serde_json::Value::String(document.string_value(*node).into_owned())),
        several => {
            let all: Result<_, _> = several.iter().map(|node| xml_to_json(document, &[*node])).collect();
            Ok(serde_json::Value::Array(all?))
        }
    }
}

/// Where a value comes from.
pub enum ValueSource {
    /// Known at compile time, coerced already.
    Constant(Value),
    /// Text with expressions in it.
    Template(Template),
    /// An expression.
    Expression(Expression),
}

impl ValueSource {
    /// Reads `value`, `expression` or an inline element. `None` when there is none of them, or after
    /// an error was reported.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, declared: Option<Type>) -> Option<ValueSource> {
        if let Some(text) = el.attribute("value") {
            if text.contains("${") {
                return Some(ValueSource::Template(Template::compile(cx, el, text, el.attribute_place("value"))?));
            }
            return match declared.unwrap_or(Type::String).coerce(Value::string(text)) {
                Ok(value) => Some(ValueSource::Constant(value)),
                Err(fault) => {
                    cx.error(el.attribute_place("value"), fault.message.to_string());
                    None
                }
            };
        }
        if el.attribute("expression").is_some() {
            return cx.expression(el, "expression").map(ValueSource::Expression);
        }
        let inline = el.children().next()?;
        Some(ValueSource::Constant(inline_xml(&inline)))
    }

    /// The value for a message; `None` when an expression finds nothing.
    pub fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        match self {
            ValueSource::Constant(value) => Ok(Some(value.clone())),
            ValueSource::Template(template) => Ok(Some(Value::string(template.text(exchange)?))),
            ValueSource::Expression(expression) => expression.value(exchange),
        }
    }

    /// The value as text; `None` for a property that is not there.
    pub fn text(&self, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        match self {
            ValueSource::Expression(expression) => expression.text_if_any(exchange),
            other => Ok(other.value(exchange)?.map(|value| value.to_text().into_owned())),
        }
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match self {
            ValueSource::Constant(_) => Needs::Nothing,
            ValueSource::Template(template) => template.needs(),
            ValueSource::Expression(expression) => expression.needs(),
        }
    }
}

/// An element of the configuration as a value, in a document of its own.
pub fn inline_xml(el: &Element<'_>) -> Value {
    el.accept_all();
    let document = penstock_message::tree::lean_copy(&el.source.document, el.node);
    let nodes = document.root_element().into_iter().collect();
    Value::Xml(Arc::new(document), nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_declared_types_or_fail() {
        for (name, text, expected) in [
            ("STRING", "a", Some("a")),
            ("boolean", "TRUE", Some("true")),
            ("BOOLEAN", "yes", Some("false")),
            ("INTEGER", " 7 ", Some("7")),
            ("INTEGER", "2147483648", None),
            ("LONG", "2147483648", Some("2147483648")),
            ("SHORT", "70000", None),
            ("DOUBLE", "2", Some("2.0")),
            ("DOUBLE", "two", None),
            ("JSON", r#"{"a": 1.50}"#, Some(r#"{"a":1.50}"#)),
            ("JSON", "two words", Some("two words")),
            ("JSON", "{", Some("{")),
            ("JSON", "{\"a\"", None),
            ("JSON", "", Some("null")),
        ] {
            let coerced = Type::parse(name).unwrap().coerce(Value::string(text));
            assert_eq!(coerced.ok().map(|value| value.to_text().into_owned()).as_deref(), expected, "{name} {text}");
        }
        assert_eq!(Type::parse("WORD"), None);
    }
}
