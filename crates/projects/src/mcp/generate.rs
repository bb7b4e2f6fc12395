//! Tools from a definition of OpenAPI: what an operation takes, written as the schema of a tool.

use serde_json::{Map, Value, json};

use super::schema::BODY;
use crate::openapi::METHODS;

/// References in a row, and schemas in one another, beyond which a schema says nothing more. A schema may refer to
/// itself.
const DEPTH_MAX: usize = 12;

/// Values of the schema of one tool.
const VALUES_MAX: usize = 5_000;

/// Members that say nothing to agents.
const LEFT_OUT: [&str; 3] = ["xml", "externalDocs", "discriminator"];

/// An operation of a definition.
pub(super) struct Found {
    pub method: String,
    pub path: String,
    pub name: String,
    pub description: Option<String>,
    pub schema: Value,
}

/// The operations of a definition, in their order.
pub(super) fn operations(definition: &Value) -> Vec<Found> {
    let paths = definition.get("paths").and_then(Value::as_object);
    let mut found = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        for (method, _) in item.as_object().into_iter().flatten() {
            if METHODS.contains(&method.as_str()) {
                found.extend(operation(definition, path, method));
            }
        }
    }
    found
}

/// One of them.
pub(super) fn operation(definition: &Value, path: &str, method: &str) -> Option<Found> {
    let item = definition.get("paths")?.get(path)?;
    let operation = item.get(method.to_ascii_lowercase())?;
    let text = |key: &str| operation.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let described = text("summary").or_else(|| text("description")).map(str::to_owned);
    let name = text("operationId").map_or_else(|| made_up(path, method), str::to_owned);
    let mut inliner = Inliner { definition, left: VALUES_MAX };
    let mut properties = Map::new();
    let mut required = Vec::new();
    // Those of the operation come last, and win.
    for parameters in [item.get("parameters"), operation.get("parameters")].into_iter().flatten() {
        for parameter in parameters.as_array().into_iter().flatten() {
            let Some(parameter) = inliner.resolved(parameter) else { continue };
            inliner.parameter(parameter, &mut properties, &mut required);
        }
    }
    if let Some(body) = operation.get("requestBody").and_then(|body| inliner.resolved(body)) {
        inliner.body(body, &mut properties, &mut required);
    }
    required.dedup();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Some(Found { method: method.to_ascii_uppercase(), path: path.to_owned(), name, description: described, schema })
}

/// A name for an operation that has none: `get_pets_id`.
fn made_up(path: &str, method: &str) -> String {
    let mut name = method.to_ascii_lowercase();
    for part in path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        name.push('_');
        name.push_str(part);
    }
    name
}

/// Writes schemas without references.
struct Inliner<'d> {
    definition: &'d Value,
    left: usize,
}

impl<'d> Inliner<'d> {
    /// What a value or a reference is.
    fn resolved(&self, value: &'d Value) -> Option<&'d Value> {
        let mut value = value;
        for _ in 0..DEPTH_MAX {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = self.definition.pointer(reference.strip_prefix('#')?)?;
        }
        None
    }

    fn parameter(&mut self, parameter: &'d Value, properties: &mut Map<String, Value>, required: &mut Vec<String>) {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else { return };
        let is_required = parameter.get("required") == Some(&Value::Bool(true));
        if place == "body" {
            let schema = parameter.get("schema").map(|schema| self.schema(schema, 0)).unwrap_or_else(|| json!({}));
            add_body(schema, "application/json", is_required, properties, required);
            return;
        }
        if !matches!(place, "path" | "query" | "header") {
            return;
        }
        let mut schema = match parameter.get("schema") {
            Some(schema) => self.schema(schema, 0),
            // OpenAPI 2.0 writes it into the parameter.
            None => {
                let own = ["type", "format", "enum", "items", "default", "minimum", "maximum", "pattern"];
                let members = own.iter().filter_map(|key| Some(((*key).to_owned(), parameter.get(*key)?.clone())));
                Value::Object(members.collect())
            }
        };
        if let (Value::Object(schema), Some(description)) = (&mut schema, text("description")) {
            schema.entry("description").or_insert_with(|| description.into());
        }
        let key = format!("{place}_{name}");
        if is_required || place == "path" {
            required.push(key.clone());
        }
        properties.insert(key, schema);
    }

    fn body(&mut self, body: &'d Value, properties: &mut Map<String, Value>, required: &mut Vec<String>) {
        let Some(content) = body.get("content").and_then(Value::as_object) else { return };
        let json = content.iter().find(|(media_type, _)| media_type.starts_with("application/json"));
        let Some((media_type, described)) = json.or_else(|| content.iter().next()) else { return };
        let schema = described.get("schema").map(|schema| self.schema(schema, 0)).unwrap_or_else(|| json!({}));
        let is_required = body.get("required") == Some(&Value::Bool(true));
        add_body(schema, media_type, is_required, properties, required);
    }

    fn schema(&mut self, schema: &'d Value, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.left == 0 {
            return json!({});
        }
        self.left -= 1;
        match schema {
            Value::Object(members) if members.contains_key("$ref") => match self.resolved(schema) {
                Some(target) => self.schema(target, depth + 1),
                None => json!({}),
            },
            Value::Object(members) => {
                let kept = members.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
                Value::Object(kept.map(|(key, value)| (key.clone(), self.schema(value, depth + 1))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.schema(item, depth + 1)).collect()),
            other => other.clone(),
        }
    }
}

fn add_body(
    mut schema: Value,
    media_type: &str,
    is_required: bool,
    properties: &mut Map<String, Value>,
    required: &mut Vec<String>,
) {
    if let Value::Object(schema) = &mut schema {
        schema.insert("contentType".to_owned(), media_type.into());
    }
    properties.insert(BODY.to_owned(), schema);
    if is_required {
        required.push(BODY.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_becomes_the_schema_of_a_tool() {
        let definition = json!({
            "openapi": "3.0.1",
            "components": {
                "parameters": { "Page": { "name": "page", "in": "query", "schema": { "type": "integer" } } },
                "schemas": { "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" } } } },
            },
            "paths": { "/pets/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
                "put": {
                    "summary": "Changes a pet",
                    "parameters": [{ "$ref": "#/components/parameters/Page" }, { "name": "c", "in": "cookie" }],
                    "requestBody": { "required": true, "content": {
                        "text/xml": {}, "application/json": { "schema": { "$ref": "#/components/schemas/Node" } } } },
                },
                "get": { "operationId": "getPet" },
            } },
        });
        let found = operations(&definition);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["put_pets_id", "getPet"]);
        let put = &found[0];
        assert_eq!((put.method.as_str(), put.description.as_deref()), ("PUT", Some("Changes a pet")));
        let properties = &put.schema["properties"];
        assert_eq!(properties["path_id"], json!({ "type": "string" }));
        assert_eq!(properties["query_page"], json!({ "type": "integer" }));
        assert_eq!(properties["requestBody"]["contentType"], "application/json");
        assert_eq!(properties["requestBody"]["properties"]["next"]["type"], "object");
        assert_eq!(put.schema["required"], json!(["path_id", "requestBody"]));
        assert!(put.schema.to_string().len() < 2_000, "a schema that refers to itself ends");
    }

    #[test]
    fn the_second_version_of_the_language_is_read_too() {
        let definition = json!({ "swagger": "2.0", "paths": { "/a": { "post": { "parameters": [
            { "name": "q", "in": "query", "type": "string", "enum": ["x"], "description": "Which" },
            { "name": "b", "in": "body", "required": true, "schema": { "type": "object" } },
        ] } } } });
        let found = operation(&definition, "/a", "POST").expect("it is there");
        assert_eq!(
            found.schema["properties"]["query_q"],
            json!({ "type": "string", "enum": ["x"], "description": "Which" })
        );
        assert_eq!(found.schema["required"], json!(["requestBody"]));
    }
}
