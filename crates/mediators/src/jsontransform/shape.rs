//! A value takes the shape a schema names: texts become numbers and back, a single value becomes a list.

use penstock_json::schema::JsonSchema;
use regex::Regex;
use serde_json::{Map, Number, Value as Json};

/// Values inside values. Parsed JSON does not come near.
const DEPTH_MAX: usize = 256;

/// The value in the shape of the schema; why it does not fit.
pub(super) fn shaped(value: Json, schema: &Json) -> Result<Json, String> {
    match schema {
        Json::Bool(true) => Ok(value),
        Json::Bool(false) => Err("JSON schema is false, so all validations will fail".to_owned()),
        Json::Object(_) if type_of(schema).is_none() => Err("the JSON schema names no type".to_owned()),
        Json::Object(_) => one(value, schema, 0),
        _ => Err("JSON schema should be an object or boolean".to_owned()),
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

fn one(value: Json, schema: &Json, depth: usize) -> Result<Json, String> {
    if depth > DEPTH_MAX {
        return Err(format!("values nest deeper than {DEPTH_MAX}"));
    }
    let Some(kind) = type_of(schema) else { return Ok(value) };
    match kind {
        "boolean" => boolean(value).and_then(|value| constrained(value, schema)),
        "string" => Ok(text(value)?).and_then(|value| constrained(value, schema)),
        "number" | "integer" => number(value, kind == "integer").and_then(|value| constrained(value, schema)),
        "null" => match &value {
            Json::Null => Ok(Json::Null),
            Json::String(text) if text.is_empty() || text == "null" => Ok(Json::Null),
            other => Err(format!("the value {other} should be null")),
        },
        "array" => array(value, schema, depth),
        "object" => object(value, schema, depth),
        other => Err(format!("`{other}` is not a type")),
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

/// Bounds, patterns and choices of a plain value, after it has its type.
fn constrained(value: Json, schema: &Json) -> Result<Json, String> {
    let Json::Object(members) = schema else { return Ok(value) };
    let mut own: Map<String, Json> = members.clone();
    own.remove("type");
    if own.is_empty() {
        return Ok(value);
    }
    // Numbers of constraints are often written in quotes, which the original accepts.
    for keyword in
        ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"]
    {
        if let Some(Json::String(text)) = own.get(keyword)
            && let Ok(number) = serde_json::from_str::<Json>(text)
        {
            own.insert(keyword.to_owned(), number);
        }
    }
    let Ok(schema) = JsonSchema::compile(&Json::Object(own)) else { return Ok(value) };
    match schema.validate(&value).first() {
        None => Ok(value),
        Some(violation) => Err(violation.message.clone()),
    }
}

fn count(schema: &Json, keyword: &str) -> Option<usize> {
    match schema.get(keyword)? {
        Json::String(text) => text.trim().parse().ok(),
        other => other.as_u64().and_then(|count| usize::try_from(count).ok()),
    }
}

fn array(value: Json, schema: &Json, depth: usize) -> Result<Json, String> {
    let items = match value {
        Json::Array(items) => items,
        single => vec![single],
    };
    let fail = |items: &[Json], keyword: &str| {
        let shown = Json::Array(items.to_vec());
        Err(format!(
            "Error occurs while validating the structure of array : {shown}. Array violated the {keyword} constraint"
        ))
    };
    if count(schema, "minItems").is_some_and(|min| items.len() < min) {
        return fail(&items, "minItems");
    }
    if count(schema, "maxItems").is_some_and(|max| items.len() > max) {
        return fail(&items, "maxItems");
    }
    let is_unique = matches!(schema.get("uniqueItems"), Some(Json::Bool(true)));
    if is_unique && items.iter().enumerate().any(|(at, item)| items[..at].contains(item)) {
        return fail(&items, "uniqueItems");
    }
    let additional = schema.get("additionalItems");
    let shaped = match schema.get("items") {
        Some(Json::Array(schemas)) => {
            if additional == Some(&Json::Bool(false)) && items.len() > schemas.len() {
                return Err(format!("Array : {} has more items than allowed in the schema", Json::Array(items)));
            }
            let rest = additional.filter(|schema| schema.is_object());
            let shape = |(index, item): (usize, Json)| match schemas.get(index).or(rest) {
                Some(schema) => one(item, schema, depth + 1),
                None => Ok(item),
            };
            items.into_iter().enumerate().map(shape).collect::<Result<Vec<_>, _>>()?
        }
        Some(schema) => items.into_iter().map(|item| one(item, schema, depth + 1)).collect::<Result<Vec<_>, _>>()?,
        None => items,
    };
    Ok(Json::Array(shaped))
}

fn object(value: Json, schema: &Json, depth: usize) -> Result<Json, String> {
    let Json::Object(mut members) = value else {
        return Err(format!("Expected a JSON as input but found : {value}"));
    };
    if let Some(Json::Array(required)) = schema.get("required")
        && required.iter().filter_map(Json::as_str).any(|name| !members.contains_key(name))
    {
        let shown = Json::Object(members);
        return Err(format!(
            "Input object : {shown} does not contains all the elements required in the schema : {schema}"
        ));
    }
    if let Some(min) = count(schema, "minProperties").filter(|min| members.len() < *min) {
        return Err(format!(
            "Object violates the minimum number of properties constraint. Input object has less number of properties than allowed minimum {min}"
        ));
    }
    if let Some(max) = count(schema, "maxProperties").filter(|max| members.len() > *max) {
        return Err(format!(
            "Object violates the maximum number of properties constraint. Input object has higher number of properties than allowed maximum {max}"
        ));
    }
    let none = Map::new();
    let named = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
    let mut patterns = Vec::new();
    for (pattern, schema) in schema.get("patternProperties").and_then(Json::as_object).unwrap_or(&none) {
        let regex = Regex::new(pattern).map_err(|error| format!("the pattern `{pattern}` cannot be used: {error}"))?;
        patterns.push((regex, schema));
    }
    let additional = schema.get("additionalProperties");
    let is_named = |name: &str| named.contains_key(name) || patterns.iter().any(|(regex, _)| regex.is_match(name));
    let forbidden = matches!(additional, Some(Json::Bool(false)))
        || matches!(additional, Some(Json::String(text)) if text == "false");
    if forbidden && members.keys().any(|name| !is_named(name)) {
        let shown = Json::Object(members);
        return Err(format!(
            "Input object {shown} has additional properties than schema {schema} and additional properties are not allowed"
        ));
    }
    for (name, value) in &mut members {
        let matching = patterns.iter().filter(|(regex, _)| regex.is_match(name)).map(|(_, schema)| *schema);
        let rest = additional.filter(|schema| schema.is_object() && !is_named(name));
        for schema in named.get(name).into_iter().chain(matching).chain(rest) {
            *value = one(value.take(), schema, depth + 1)?;
        }
    }
    Ok(Json::Object(members))
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
            (r#"{"properties": {}}"#, "{}", Err("the JSON schema names no type")),
            ("true", "\"x\"", Ok("\"x\"")),
        ] {
            let shaped = shaped(serde_json::from_str(value).unwrap(), &serde_json::from_str(schema).unwrap());
            let shown = shaped.map(|value| value.to_string());
            assert_eq!(shown.as_deref().map_err(|error| &**error), expected, "{schema} {value}");
        }
    }
}
