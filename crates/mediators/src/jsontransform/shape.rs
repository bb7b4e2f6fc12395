//! A value takes the shape a schema names: texts become numbers and back, a single value becomes a list.

use std::collections::HashMap;

use penstock_json::has_duplicates;
use penstock_json::schema::JsonSchema;
use regex::Regex;
use serde_json::{Map, Number, Value as Json};

/// Values inside values. Parsed JSON does not come near.
const DEPTH_MAX: usize = 256;

/// What a schema makes of values, compiled once.
pub(super) struct Shape(SchemaType);

enum SchemaType {
    /// Stays as it is.
    Any,
    /// No value fits, and why.
    Never(String),
    Boolean(Limits),
    Text(Limits),
    Number {
        is_integer: bool,
        limits: Limits,
    },
    Null,
    Array(Box<ArrayShape>),
    Object(Box<ObjectShape>),
}

/// Bounds, patterns and choices of a plain value, checked after it has its type.
struct Limits(Option<JsonSchema>);

struct ArrayShape {
    items_min: Option<usize>,
    items_max: Option<usize>,
    is_unique: bool,
    items: Items,
}

enum Items {
    Any,
    /// All of one shape.
    Each(Shape),
    /// One after the other; then the rest, which there may be none of.
    Listed {
        first: Vec<Shape>,
        rest: Option<Shape>,
        is_closed: bool,
    },
}

struct ObjectShape {
    required: Vec<String>,
    properties_min: Option<usize>,
    properties_max: Option<usize>,
    named: HashMap<String, Shape>,
    /// `Err` says which pattern cannot be used.
    patterns: Result<Vec<(Regex, Shape)>, String>,
    additional: Option<Shape>,
    is_closed: bool,
    /// The schema's text, for messages about violations.
    text: String,
}

impl Shape {
    /// The shape that a whole schema describes.
    pub(super) fn new(schema: &Json) -> Shape {
        let never = |why: &str| Shape(SchemaType::Never(why.to_owned()));
        match schema {
            Json::Bool(true) => Shape(SchemaType::Any),
            Json::Bool(false) => never("JSON schema is false, so all validations will fail"),
            Json::Object(_) if type_of(schema).is_none() => never("the JSON schema names no type"),
            Json::Object(_) => Shape::inner(schema),
            _ => never("JSON schema should be an object or boolean"),
        }
    }

    /// The shape that a part of a schema describes.
    fn inner(schema: &Json) -> Shape {
        Shape(match type_of(schema) {
            None => SchemaType::Any,
            Some("boolean") => SchemaType::Boolean(Limits::new(schema)),
            Some("string") => SchemaType::Text(Limits::new(schema)),
            Some(kind @ ("number" | "integer")) => {
                SchemaType::Number { is_integer: kind == "integer", limits: Limits::new(schema) }
            }
            Some("null") => SchemaType::Null,
            Some("array") => SchemaType::Array(Box::new(ArrayShape::new(schema))),
            Some("object") => SchemaType::Object(Box::new(ObjectShape::new(schema))),
            Some(other) => SchemaType::Never(format!("`{other}` is not a type")),
        })
    }

    /// The value in this shape; why it does not fit.
    pub(super) fn apply(&self, value: Json) -> Result<Json, String> {
        self.at_depth(value, 0)
    }

    fn at_depth(&self, value: Json, depth: usize) -> Result<Json, String> {
        if depth > DEPTH_MAX {
            return Err(format!("values nest deeper than {DEPTH_MAX}"));
        }
        match &self.0 {
            SchemaType::Any => Ok(value),
            SchemaType::Never(why) => Err(why.clone()),
            SchemaType::Boolean(limits) => limits.check(boolean(value)?),
            SchemaType::Text(limits) => limits.check(text(value)?),
            SchemaType::Number { is_integer, limits } => limits.check(number(value, *is_integer)?),
            SchemaType::Null => match &value {
                Json::Null => Ok(Json::Null),
                Json::String(text) if text.is_empty() || text == "null" => Ok(Json::Null),
                other => Err(format!("the value {other} should be null")),
            },
            SchemaType::Array(shape) => shape.apply(value, depth),
            SchemaType::Object(shape) => shape.apply(value, depth),
        }
    }
}

fn type_of(schema: &Json) -> Option<&str> {
    match schema.get("type")? {
        Json::String(name) => Some(name),
        // Of several the first that is not null is what a value becomes.
        Json::Array(names) => names.iter().filter_map(Json::as_str).find(|name| *name != "null"),
        _ => None,
    }
}

/// The text a plain value has.
fn plain(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn boolean(value: Json) -> Result<Json, String> {
    match plain(&value).as_deref() {
        Some("true") => Ok(Json::Bool(true)),
        Some("false") => Ok(Json::Bool(false)),
        _ => Err(format!("Cannot convert the sting : {value} to boolean")),
    }
}

fn text(value: Json) -> Result<Json, String> {
    plain(&value).map(Json::String).ok_or_else(|| format!("the value {value} cannot become a string"))
}

fn number(value: Json, integer: bool) -> Result<Json, String> {
    let text = plain(&value).unwrap_or_default();
    let text = text.trim();
    let shown = || format!("NumberFormatException: For input string: \"{text}\"");
    let whole = !text.contains(['.', 'e', 'E']);
    if integer && !whole {
        return Err(shown());
    }
    // What is a number of JSON stays as it is written; `+5` and `05` are not and become ones.
    if let Ok(number) = serde_json::from_str::<Number>(text) {
        return Ok(Json::Number(number));
    }
    if whole {
        return text.parse::<i64>().map(Json::from).map_err(|_| shown());
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).map(Json::Number).ok_or_else(shown)
}

impl Limits {
    fn new(schema: &Json) -> Limits {
        let Json::Object(members) = schema else { return Limits(None) };
        let mut own: Map<String, Json> = members.clone();
        own.remove("type");
        if own.is_empty() {
            return Limits(None);
        }
        // Numbers of constraints are often written in quotes, which Micro Integrator accepts.
        for keyword in
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"]
        {
            if let Some(Json::String(text)) = own.get(keyword)
                && let Ok(number) = serde_json::from_str::<Json>(text)
            {
                own.insert(keyword.to_owned(), number);
            }
        }
        Limits(JsonSchema::compile(&Json::Object(own)).ok())
    }

    fn check(&self, value: Json) -> Result<Json, String> {
        match self.0.as_ref().and_then(|schema| schema.validate(&value).into_iter().next()) {
            None => Ok(value),
            Some(violation) => Err(violation.message),
        }
    }
}

fn count(schema: &Json, keyword: &str) -> Option<usize> {
    match schema.get(keyword)? {
        Json::String(text) => text.trim().parse().ok(),
        other => other.as_u64().and_then(|count| usize::try_from(count).ok()),
    }
}

impl ArrayShape {
    fn new(schema: &Json) -> ArrayShape {
        let additional = schema.get("additionalItems");
        let items = match schema.get("items") {
            Some(Json::Array(schemas)) => Items::Listed {
                first: schemas.iter().map(Shape::inner).collect(),
                rest: additional.filter(|schema| schema.is_object()).map(Shape::inner),
                is_closed: additional == Some(&Json::Bool(false)),
            },
            Some(schema) => Items::Each(Shape::inner(schema)),
            None => Items::Any,
        };
        ArrayShape {
            items_min: count(schema, "minItems"),
            items_max: count(schema, "maxItems"),
            is_unique: schema.get("uniqueItems") == Some(&Json::Bool(true)),
            items,
        }
    }

    fn apply(&self, value: Json, depth: usize) -> Result<Json, String> {
        let items = match value {
            Json::Array(items) => items,
            single => vec![single],
        };
        let violated = if self.items_min.is_some_and(|min| items.len() < min) {
            Some("minItems")
        } else if self.items_max.is_some_and(|max| items.len() > max) {
            Some("maxItems")
        } else if self.is_unique && has_duplicates(&items) {
            Some("uniqueItems")
        } else {
            None
        };
        if let Some(keyword) = violated {
            return Err(format!(
                "Error occurs while validating the structure of array : {}. Array violated the {keyword} constraint",
                Json::Array(items)
            ));
        }
        let items = items.into_iter();
        Ok(Json::Array(match &self.items {
            Items::Any => items.collect(),
            Items::Each(shape) => items.map(|item| shape.at_depth(item, depth + 1)).collect::<Result<_, _>>()?,
            Items::Listed { first, is_closed: true, .. } if items.len() > first.len() => {
                let shown = Json::Array(items.collect());
                return Err(format!("Array : {shown} has more items than allowed in the schema"));
            }
            Items::Listed { first, rest, .. } => {
                let shape = |(index, item)| match first.get(index).or(rest.as_ref()) {
                    Some(shape) => shape.at_depth(item, depth + 1),
                    None => Ok(item),
                };
                items.enumerate().map(shape).collect::<Result<_, _>>()?
            }
        }))
    }
}

impl ObjectShape {
    fn new(schema: &Json) -> ObjectShape {
        let members = |keyword: &str| schema.get(keyword).and_then(Json::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        let pattern = |(pattern, schema): (&String, &Json)| match Regex::new(pattern) {
            Ok(regex) => Ok((regex, Shape::inner(schema))),
            Err(error) => Err(format!("the pattern `{pattern}` cannot be used: {error}")),
        };
        let additional = schema.get("additionalProperties");
        ObjectShape {
            required: required.map(str::to_owned).collect(),
            properties_min: count(schema, "minProperties"),
            properties_max: count(schema, "maxProperties"),
            named: members("properties").map(|(name, schema)| (name.clone(), Shape::inner(schema))).collect(),
            patterns: members("patternProperties").map(pattern).collect(),
            additional: additional.filter(|schema| schema.is_object()).map(Shape::inner),
            is_closed: match additional {
                Some(Json::Bool(allowed)) => !allowed,
                Some(Json::String(text)) => text == "false",
                _ => false,
            },
            text: schema.to_string(),
        }
    }

    fn apply(&self, value: Json, depth: usize) -> Result<Json, String> {
        let Json::Object(mut members) = value else {
            return Err(format!("Expected a JSON as input but found : {value}"));
        };
        if self.required.iter().any(|name| !members.contains_key(name)) {
            return Err(format!(
                "Input object : {} does not contains all the elements required in the schema : {}",
                Json::Object(members),
                self.text
            ));
        }
        if let Some(min) = self.properties_min.filter(|min| members.len() < *min) {
            return Err(format!(
                "Object violates the minimum number of properties constraint. Input object has less number of properties than allowed minimum {min}"
            ));
        }
        if let Some(max) = self.properties_max.filter(|max| members.len() > *max) {
            return Err(format!(
                "Object violates the maximum number of properties constraint. Input object has higher number of properties than allowed maximum {max}"
            ));
        }
        let patterns = self.patterns.as_ref().map_err(String::clone)?;
        let is_named =
            |name: &str| self.named.contains_key(name) || patterns.iter().any(|(regex, _)| regex.is_match(name));
        if self.is_closed && members.keys().any(|name| !is_named(name)) {
            return Err(format!(
                "Input object {} has additional properties than schema {} and additional properties are not allowed",
                Json::Object(members),
                self.text
            ));
        }
        for (name, value) in &mut members {
            let matching = patterns.iter().filter(|(regex, _)| regex.is_match(name)).map(|(_, shape)| shape);
            let rest = self.additional.as_ref().filter(|_| !is_named(name));
            for shape in self.named.get(name).into_iter().chain(matching).chain(rest) {
                *value = shape.at_depth(value.take(), depth + 1)?;
            }
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_types_of_the_schema() {
        for (schema, value, expected) in [
            (r#"{"type": "integer"}"#, r#""12""#, Ok("12")),
            (r#"{"type": "number"}"#, r#""12.50""#, Ok("12.50")),
            (r#"{"type": "integer"}"#, r#""x""#, Err("NumberFormatException: For input string: \"x\"")),
            (r#"{"type": "string"}"#, "12", Ok("\"12\"")),
            (r#"{"type": "boolean"}"#, r#""true""#, Ok("true")),
            (r#"{"type": "array", "items": {"type": "integer"}}"#, r#""7""#, Ok("[7]")),
            (
                r#"{"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "number"}}"#,
                r#"[1, "2"]"#,
                Ok(r#"["1",2]"#),
            ),
            (
                r#"{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {}}}"#,
                r#"{"a": 1, "b": "2", "c": "3"}"#,
                Ok(r#"{"a":["1"],"b":"2","c":"3"}"#),
            ),
            (
                r#"{"type": "object", "patternProperties": {"^n": {"type": "number"}}, "additionalProperties": {"type": "string"}}"#,
                r#"{"n1": "1", "x": 2}"#,
                Ok(r#"{"n1":1,"x":"2"}"#),
            ),
            (
                r#"{"type": "object", "required": ["a"]}"#,
                "{}",
                Err(
                    r#"Input object : {} does not contains all the elements required in the schema : {"type":"object","required":["a"]}"#,
                ),
            ),
            (
                r#"{"type": "integer", "minimum": "5"}"#,
                "\"4\"",
                Err("numeric instance is lower than the required minimum (minimum: 5, found: 4)"),
            ),
            (
                r#"{"type": "object", "patternProperties": {"(": {"type": "number"}}}"#,
                "7",
                Err("Expected a JSON as input but found : 7"),
            ),
            (
                r#"{"type": "object", "properties": {"a": {"type": "thing"}}, "minProperties": "1"}"#,
                r#"{"b": 1}"#,
                Ok(r#"{"b":1}"#),
            ),
            (r#"{"type": "array", "items": [{}], "additionalItems": false}"#, "[1]", Ok("[1]")),
            (r#"{"properties": {}}"#, "{}", Err("the JSON schema names no type")),
            ("true", "\"x\"", Ok("\"x\"")),
        ] {
            let shape = Shape::new(&serde_json::from_str(schema).unwrap());
            let shaped = shape.apply(serde_json::from_str(value).unwrap());
            let shown = shaped.map(|value| value.to_string());
            assert_eq!(shown.as_deref().map_err(|error| &**error), expected, "{schema} {value}");
        }
    }
}
