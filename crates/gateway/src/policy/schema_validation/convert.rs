//! From OpenAPI's dialect to JSON Schema: `nullable`, references into the document, members for one direction only.
//!
//! OpenAPI 2.0 and 3.0 are read as draft 4, whose words they take; 3.1 is 2020-12 as it stands.

use std::collections::HashMap;

use penstock_json::schema::JsonSchema;
use serde_json::{Map, Value, json};

use super::definition::{Dialect, HOPS_MAX, pointer_of};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// Members that say nothing about what is valid, or hold values that look like schemas.
const DROPPED: [&str; 16] = [
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "nullable",
    "discriminator",
    "readOnly",
    "writeOnly",
    "xml",
    "externalDocs",
    "example",
    "examples",
    "default",
    "deprecated",
    "title",
    "description",
];
const SCHEMAS: [&str; 11] = [
    "additionalProperties",
    "items",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const BY_NAME: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// One schema of a definition on its way to JSON Schema, with all it refers to.
struct Converter<'d> {
    root: &'d Value,
    dialect: Dialect,
    side: Side,
    /// Names of what is referred to, by pointer into the document.
    names: HashMap<String, String>,
    /// What still has to be converted: its name and itself.
    waiting: Vec<(String, &'d Value)>,
    problem: Option<String>,
}

/// A schema of the definition as JSON Schema: the text, without references out of it.
pub(super) fn convert(root: &Value, dialect: Dialect, side: Side, schema: &Value) -> Result<Value, String> {
    let mut converter = Converter { root, dialect, side, names: HashMap::new(), waiting: Vec::new(), problem: None };
    // The reference at the top is followed here, so that what it leads to can hold the definitions.
    let mut schema = schema;
    for _ in 0..HOPS_MAX {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
        schema = pointer_of(root, reference).ok_or_else(|| unresolved(reference))?;
    }
    let mut main = match converter.schema(schema) {
        Value::Object(members) => members,
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    };
    let mut definitions = Map::new();
    while let Some((name, schema)) = converter.waiting.pop() {
        let converted = converter.schema(schema);
        definitions.insert(name, converted);
    }
    if let Some(problem) = converter.problem {
        return Err(problem);
    }
    let draft = match dialect {
        Dialect::V31 => "https://json-schema.org/draft/2020-12/schema",
        _ => "http://json-schema.org/draft-04/schema#",
    };
    main.insert("$schema".to_owned(), draft.into());
    main.insert("definitions".to_owned(), definitions.into());
    Ok(Value::Object(main))
}

/// The same, compiled.
pub(super) fn compile(converted: &Value) -> Result<JsonSchema, String> {
    JsonSchema::compile(converted)
        .map_err(|errors| errors.first().map_or_else(|| "it is no schema".to_owned(), ToString::to_string))
}

fn unresolved(reference: &str) -> String {
    format!("`{reference}` cannot be resolved in the definition")
}

impl<'d> Converter<'d> {
    fn schema(&mut self, schema: &'d Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let name = self.name_of(reference);
            out.insert("$ref".to_owned(), format!("#/definitions/{name}").into());
            // Before 2020-12 what stands beside a reference does not count.
            if self.dialect != Dialect::V31 {
                return Value::Object(out);
            }
        }
        for (key, value) in members {
            let key = key.as_str();
            let converted = match value {
                _ if key == "$ref" || key.starts_with("x-") || DROPPED.contains(&key) => continue,
                // OpenAPI 2.0 calls a body of bytes so.
                Value::String(kind) if key == "type" && kind == "file" => continue,
                Value::Array(names) if key == "required" => match self.required(names, members) {
                    names if names.is_empty() => continue,
                    names => Value::Array(names),
                },
                // An old way to say it of the member itself, which means nothing here.
                _ if key == "required" => continue,
                Value::Array(all) if LISTS.contains(&key) || key == "items" => {
                    Value::Array(all.iter().map(|one| self.schema(one)).collect())
                }
                Value::Object(all) if BY_NAME.contains(&key) => {
                    Value::Object(all.iter().map(|(name, one)| (name.clone(), self.schema(one))).collect())
                }
                _ if SCHEMAS.contains(&key) => self.schema(value),
                _ => value.clone(),
            };
            out.insert(key.to_owned(), converted);
        }
        let nullable = self.dialect != Dialect::V31 && is_true(members.get("nullable").or(members.get("x-nullable")));
        if nullable { or_null(out) } else { Value::Object(out) }
    }

    /// What is required in this direction: what only the server writes is not required of clients.
    fn required(&self, names: &[Value], members: &Map<String, Value>) -> Vec<Value> {
        let keyword = match self.side {
            Side::Request => "readOnly",
            Side::Response => "writeOnly",
        };
        let is_other_way = |name: &Value| {
            let property = name.as_str().and_then(|name| members.get("properties")?.get(name));
            let target = property.and_then(|property| match property.get("$ref").and_then(Value::as_str) {
                Some(reference) => pointer_of(self.root, reference),
                None => Some(property),
            });
            is_true(target.and_then(|target| target.get(keyword)))
        };
        names.iter().filter(|name| !is_other_way(name)).cloned().collect()
    }

    /// The name of what a reference leads to.
    fn name_of(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let name = format!("s{}", self.names.len());
        self.names.insert(reference.to_owned(), name.clone());
        match pointer_of(self.root, reference) {
            Some(target) => self.waiting.push((name.clone(), target)),
            None => self.problem = Some(unresolved(reference)),
        }
        name
    }
}

fn is_true(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(true))
}

/// The same, or null: as a second type where that says it all.
fn or_null(mut schema: Map<String, Value>) -> Value {
    const OTHERS: [&str; 6] = ["enum", "allOf", "anyOf", "oneOf", "not", "const"];
    if let Some(Value::String(kind)) = schema.get("type")
        && !OTHERS.iter().any(|other| schema.contains_key(*other))
    {
        let both = json!([kind, "null"]);
        schema.insert("type".to_owned(), both);
        return Value::Object(schema);
    }
    json!({ "anyOf": [{ "type": "null" }, schema] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dialect: Dialect, side: Side, schema: Value, good: &[Value], bad: &[Value]) {
        let root = json!({ "components": { "schemas": {
            "Name": { "type": "string", "minLength": 2, "example": { "$ref": "no reference" } },
            "Id": { "type": "integer", "readOnly": true },
            "Node": { "type": "object", "required": ["next"],
                      "properties": { "next": { "nullable": true, "allOf": [{ "$ref": "#/components/schemas/Node" }] } } },
            "nullable": { "properties": { "nullable": { "type": "string" } } },
        } } });
        let converted = convert(&root, dialect, side, &schema).expect("it can be converted");
        let compiled = compile(&converted).unwrap_or_else(|error| panic!("{error} in {converted}"));
        for value in good {
            assert!(compiled.is_valid(value), "{value} by {schema}: {:?}", compiled.validate(value));
        }
        for value in bad {
            assert!(!compiled.is_valid(value), "{value} by {schema}");
        }
    }

    #[test]
    fn the_dialect_of_openapi_becomes_json_schema() {
        let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let v30 = |schema: Value, good: &[Value], bad: &[Value]| check(Dialect::V30, Side::Request, schema, good, bad);
        v30(of("Name"), &[json!("ab")], &[json!("a"), json!(null)]);
        v30(json!({ "type": "string", "nullable": true }), &[json!("a"), json!(null)], &[json!(1)]);
        v30(json!({ "type": "string", "nullable": true, "enum": ["a"] }), &[json!("a"), json!(null)], &[json!("b")]);
        v30(of("Node"), &[json!({"next": null}), json!({"next": {"next": null}})], &[json!({}), json!({"next": {}})]);
        v30(of("nullable"), &[json!({ "nullable": "x" })], &[json!({ "nullable": 1 }), json!({ "nullable": null })]);
        v30(json!({ "type": "number", "minimum": 1, "exclusiveMinimum": true }), &[json!(2)], &[json!(1)]);
    }

    #[test]
    fn members_of_the_other_direction_are_not_required() {
        let schema = json!({ "required": ["id", "key", "name"], "properties": {
            "id": { "$ref": "#/components/schemas/Id" }, "key": { "writeOnly": true } } });
        let (sent, answered) = (json!({ "key": 1, "name": 1 }), json!({ "id": 1, "name": 1 }));
        check(
            Dialect::V30,
            Side::Request,
            schema.clone(),
            std::slice::from_ref(&sent),
            &[answered.clone(), json!({ "key": 1 })],
        );
        check(Dialect::V30, Side::Response, schema, &[answered], &[sent]);
    }

    #[test]
    fn version_3_1_is_json_schema_itself() {
        let schema = json!({ "type": ["object", "null"], "properties": {
            "a": { "const": 1 }, "b": { "$ref": "#/components/schemas/Name", "maxLength": 3 } }, "unevaluatedProperties": false });
        let good = [json!(null), json!({ "a": 1, "b": "abc" })];
        check(
            Dialect::V31,
            Side::Request,
            schema,
            &good,
            &[json!({ "a": 2 }), json!({ "b": "abcd" }), json!({ "c": 1 })],
        );
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_a_problem() {
        for reference in ["#/nowhere", "other.yaml#/A"] {
            let nested = json!({ "items": { "$ref": reference } });
            let problem = convert(&json!({}), Dialect::V30, Side::Request, &nested).expect_err(reference);
            assert_eq!(problem, format!("`{reference}` cannot be resolved in the definition"));
        }
    }
}
