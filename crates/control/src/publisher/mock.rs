//! Mock scripts: a script for each operation of a definition that returns its example, for APIs without a backend.

use serde_json::{Map, Value, json};

use super::api::of_call;
use super::definition;
use crate::http::Response;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{File, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/{apiId}/generate-mock-scripts", generate),
    ("GET", "/apis/{apiId}/generated-mock-scripts", generated),
];

/// The extension of an operation that has its script.
const SCRIPT: &str = "x-mediation-script";

/// Values inside values of an example: schemas refer to themselves.
const DEPTH_MAX: usize = 12;

/// Values of one example.
const VALUES_MAX: usize = 2_000;

/// The definition of an API.
fn definition_of(tx: &Transaction<'_>, api: &Object) -> Result<Value, Problem> {
    let missing = || Problem::new(404, 900_755, "OpenAPI definition not found", "OpenAPI definition not found");
    let file = tx.file(&api.id, definition::FILE)?.ok_or_else(missing)?;
    serde_json::from_slice(&file.content).map_err(Problem::caused)
}

fn generate(call: &Call<'_>) -> Result<Response, Problem> {
    let text = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let mut document = definition_of(tx, &api)?;
        for (_, _, script) in scripts(&document) {
            let (pointer, script) = script;
            if let Some(operation) = document.pointer_mut(&pointer).and_then(Value::as_object_mut) {
                operation.insert(SCRIPT.into(), script.into());
            }
        }
        let text = document.to_string();
        tx.put_file(&api.organization, &api.id, &File::new(definition::FILE, "application/json", text.clone()))?;
        api.set("updatedBy", call.caller.shown());
        tx.update(&mut api)?;
        Ok(text)
    })?;
    Ok(Response::of_type(200, "application/json", text))
}

fn generated(call: &Call<'_>) -> Result<Response, Problem> {
    let document = call.control.store.read(|tx| definition_of(tx, &of_call(tx, call)?))?;
    let one = |(path, verb, (_, script)): (String, String, (String, String))| json!({"path": path, "content": script, "verb": verb});
    let list: Vec<Value> = scripts(&document).into_iter().map(one).collect();
    Ok(Response::json(200, &json!({"list": list})))
}

/// Path, method, and the place of the operation with its script.
fn scripts(document: &Value) -> Vec<(String, String, (String, String))> {
    let mut found = Vec::new();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if definition::METHODS.contains(&method.as_str()) {
                let escaped = path.replace('~', "~0").replace('/', "~1");
                let script = script(document, operation);
                found.push((path.clone(), method.clone(), (format!("/paths/{escaped}/{method}"), script)));
            }
        }
    }
    found
}

/// A script that returns the example of the status that the client names in `responseCode`, or of the first success.
fn script(document: &Value, operation: &Value) -> String {
    let mut responses = Map::new();
    for (status, response) in operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
        let response = resolved(document, response);
        let status = if status == "default" { "501" } else { status };
        responses.insert(status.to_owned(), example_of(document, response).unwrap_or_else(|| json!({})));
    }
    if responses.is_empty() {
        responses.insert("200".to_owned(), json!({}));
    }
    let first = responses.keys().find(|status| status.starts_with('2')).or_else(|| responses.keys().next());
    let first = first.cloned().unwrap_or_default();
    format!(
        "var responses = {};\nvar code = mc.getProperty('query.param.responseCode');\n\
         if (code == null || !responses[code]) {{ code = '{first}'; }}\n\
         mc.setProperty('CONTENT_TYPE', 'application/json');\nmc.setProperty('HTTP_SC', code + '');\n\
         mc.setPayloadJSON(responses[code]);\n",
        Value::Object(responses)
    )
}

/// What a reference in the same document refers to.
fn resolved<'v>(document: &'v Value, value: &'v Value) -> &'v Value {
    let reference = value.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// The example of a response: the one that it has, or one made of its schema.
fn example_of(document: &Value, response: &Value) -> Option<Value> {
    // Swagger 2 has examples and the schema in the response itself.
    if let Some(example) = response.pointer("/examples/application~1json") {
        return Some(example.clone());
    }
    let content = response.get("content").and_then(Value::as_object);
    let media = content.and_then(|content| content.get("application/json").or_else(|| content.values().next()));
    let media = media.unwrap_or(response);
    if let Some(example) = media.get("example") {
        return Some(example.clone());
    }
    let examples = media.get("examples").and_then(Value::as_object);
    if let Some(example) = examples.and_then(|examples| examples.values().next()) {
        return resolved(document, example).get("value").cloned();
    }
    let mut left = VALUES_MAX;
    media.get("schema").map(|schema| made(document, schema, 0, &mut left))
}

/// An example made of a schema.
fn made(document: &Value, schema: &Value, depth: usize, left: &mut usize) -> Value {
    if depth > DEPTH_MAX || *left == 0 {
        return Value::Null;
    }
    *left -= 1;
    let schema = resolved(document, schema);
    if let Some(found) = ["example", "default", "const"].iter().find_map(|name| schema.get(*name)) {
        return found.clone();
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|list| list.first()) {
        return first.clone();
    }
    for name in ["oneOf", "anyOf"] {
        if let Some(first) = schema.get(name).and_then(Value::as_array).and_then(|list| list.first()) {
            return made(document, first, depth + 1, left);
        }
    }
    let mut members = Map::new();
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        if let Value::Object(more) = made(document, part, depth + 1, left) {
            members.extend(more);
        }
    }
    for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        members.insert(name.clone(), made(document, member, depth + 1, left));
    }
    if !members.is_empty() {
        return Value::Object(members);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            let items = schema.get("items").map(|items| made(document, items, depth + 1, left));
            items.filter(|item| !item.is_null()).into_iter().collect()
        }
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(true),
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            Some("date") => json!("2024-01-01"),
            Some("date-time") => json!("2024-01-01T00:00:00Z"),
            Some("uuid") => json!("00000000-0000-4000-8000-000000000000"),
            _ => json!("string"),
        },
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_those_of_the_definition_or_made_of_schemas() {
        let document = json!({
            "paths": {"/p/{id}": {"get": {"responses": {
                "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                "404": {"content": {"application/json": {"example": {"code": 404}}}},
            }}}},
            "components": {"schemas": {"Pet": {"type": "object", "properties": {
                "id": {"type": "integer"}, "kind": {"enum": ["cat"]}, "friends": {"type": "array", "items": {"type": "string"}},
                "parent": {"$ref": "#/components/schemas/Pet"},
            }}}},
        });
        let found = scripts(&document);
        let (path, verb, (pointer, script)) = &found[0];
        assert_eq!((path.as_str(), verb.as_str(), pointer.as_str()), ("/p/{id}", "get", "/paths/~1p~1{id}/get"));
        assert!(script.contains(r#""kind":"cat""#) && script.contains(r#""friends":["string"]"#), "{script}");
        assert!(script.contains(r#""404":{"code":404}"#) && script.contains("code = '200'"), "{script}");
        assert!(document.pointer(pointer).is_some());
    }
}
