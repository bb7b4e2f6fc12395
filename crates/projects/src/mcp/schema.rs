//! What a tool takes: a JSON Schema in which the names of properties say where arguments go (`path_id`, `query_limit`,
//! `header_X-Trace`, `requestBody`). Agents see it without these prefixes.

use penstock_catalog::{ParameterPlace, ToolBody, ToolParameter};
use serde_json::{Map, Value, json};

const PREFIXES: [(&str, ParameterPlace); 3] =
    [("path_", ParameterPlace::Path), ("query_", ParameterPlace::Query), ("header_", ParameterPlace::Header)];

/// The property that is the body.
pub(super) const BODY: &str = "requestBody";

/// What a request's body is when nothing says.
const JSON: &str = "application/json";

/// What the schema of a tool says of its request.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub parameters: Vec<ToolParameter>,
    pub body: Option<ToolBody>,
    /// The schema for agents.
    pub shown: Value,
}

/// The schema of a tool that takes nothing.
pub(super) fn nothing() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Splits a schema.
pub(super) fn split(schema: Value) -> Taken {
    let Value::Object(mut schema) = schema else { return Taken { shown: nothing(), ..Taken::default() } };
    let required: Vec<String> = match schema.remove("required") {
        Some(Value::Array(names)) => names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut taken = Taken::default();
    let mut shown = Map::new();
    for (key, property) in properties {
        let is_required = required.contains(&key);
        if key.eq_ignore_ascii_case(BODY) {
            let content_type = property.get("contentType").and_then(Value::as_str).unwrap_or(JSON);
            taken.body = Some(ToolBody { content_type: content_type.into(), required: is_required });
            shown.insert(BODY.to_owned(), property);
            continue;
        }
        let (place, name) = placed(&key);
        if let Some(place) = place {
            taken.parameters.push(ToolParameter { name: name.into(), place, required: is_required });
        }
        shown.insert(name.to_owned(), property);
    }
    let mut names: Vec<&str> = required.iter().map(|name| placed(name).1).collect();
    names.sort_unstable();
    names.dedup();
    schema.entry("type").or_insert_with(|| "object".into());
    schema.insert("properties".to_owned(), shown.into());
    if !names.is_empty() {
        schema.insert("required".to_owned(), names.into());
    }
    taken.shown = Value::Object(schema);
    taken
}

/// Where an argument goes, and what agents call it.
fn placed(key: &str) -> (Option<ParameterPlace>, &str) {
    if key.eq_ignore_ascii_case(BODY) {
        return (None, BODY);
    }
    let found = PREFIXES.iter().find_map(|(prefix, place)| Some((*place, key.strip_prefix(prefix)?)));
    found.filter(|(_, name)| !name.is_empty()).map_or((None, key), |(place, name)| (Some(place), name))
}

/// A schema that describes its tool too: then the schema is its member `inputSchema`.
pub(super) fn unwrap(schema: Value) -> (Value, Map<String, Value>) {
    match schema {
        Value::Object(mut members) if members.get("inputSchema").is_some_and(Value::is_object) => {
            let input = members.remove("inputSchema").unwrap_or_default();
            (input, members)
        }
        other => (other, Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_where_arguments_go() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path_id": { "type": "string" }, "query_page_size": { "type": "integer" }, "header_X-Trace": {},
                "requestBody": { "type": "object", "contentType": "text/plain" }, "other_thing": {}, "query_": {},
            },
            "required": ["path_id", "requestBody", "other_thing"],
        });
        let taken = split(schema);
        let parameters: Vec<_> = taken.parameters.iter().map(|one| (&*one.name, one.place, one.required)).collect();
        assert_eq!(
            parameters,
            [
                ("id", ParameterPlace::Path, true),
                ("page_size", ParameterPlace::Query, false),
                ("X-Trace", ParameterPlace::Header, false),
            ]
        );
        let body = taken.body.expect("a body");
        assert_eq!((&*body.content_type, body.required), ("text/plain", true));
        let names: Vec<_> = taken.shown["properties"].as_object().expect("a mapping").keys().collect();
        assert_eq!(names, ["id", "page_size", "X-Trace", "requestBody", "other_thing", "query_"]);
        assert_eq!(taken.shown["required"], json!(["id", "other_thing", "requestBody"]));
    }

    #[test]
    fn what_is_no_schema_takes_nothing() {
        for schema in [json!(null), json!([]), json!({}), json!({ "properties": 1, "required": "a" })] {
            let taken = split(schema.clone());
            assert_eq!(taken.shown, nothing(), "{schema}");
            assert!(taken.parameters.is_empty() && taken.body.is_none());
        }
    }
}
