//! JSON schemas, values and what is wrong with them, as data.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::path::Path;

use penstock_json::schema::JsonSchema;
use serde_json::Value;

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// `pointer keyword: message` of each violation.
fn check(schema: &str, value: &str, expected: &[&str]) {
    let schema = JsonSchema::compile(&parse(schema)).unwrap_or_else(|errors| panic!("{schema}: {}", errors[0]));
    let violations = schema.validate(&parse(value));
    let found: Vec<String> =
        violations.iter().map(|one| format!("{} {}: {}", one.pointer, one.keyword, one.message)).collect();
    assert_eq!(found, expected, "{value}");
    assert_eq!(schema.is_valid(&parse(value)), expected.is_empty());
}

#[test]
fn violations_say_where_and_what() {
    const ORDER: &str = r##"{
        "type": "object", "required": ["id", "lines"], "additionalProperties": false,
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "mail": {"type": "string", "format": "email"},
            "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/line"}}
        },
        "definitions": {"line": {"type": "object", "properties": {
            "sku": {"type": "string", "pattern": "^[A-Z]{2}\\d+$"}, "state": {"enum": ["new", "old"]},
            "price": {"type": "number", "multipleOf": 0.01, "exclusiveMinimum": true, "minimum": 0}}}}
    }"##;
    check(ORDER, r#"{"id": 1, "lines": [{"sku": "AB1", "price": 19.99}]}"#, &[]);
    check(ORDER, r#"{"id": 1}"#, &[r#" required: object has missing required properties (["lines"])"#]);
    check(
        ORDER,
        r#"{"id": "1", "lines": [], "x": 1}"#,
        &[
            r#"/id type: instance type (string) does not match any allowed primitive type (allowed: ["integer"])"#,
            r#"/lines minItems: array is too short: must have at least 1 elements but instance has 0 elements"#,
            r#" additionalProperties: object instance has properties which are not allowed by the schema: ["x"]"#,
        ],
    );
    check(
        ORDER,
        r#"{"id": 0, "mail": "a", "lines": [{"sku": "a1", "state": "no", "price": 0}]}"#,
        &[
            "/id minimum: numeric instance is lower than the required minimum (minimum: 1, found: 0)",
            "/mail format: string \"a\" is not a valid email address",
            "/lines/0/sku pattern: ECMA 262 regex \"^[A-Z]{2}\\d+$\" does not match input string \"a1\"",
            r#"/lines/0/state enum: instance value ("no") not found in enum (possible values: ["new","old"])"#,
            "/lines/0/price exclusiveMinimum: numeric instance is not strictly greater than the required minimum 0",
        ],
    );
}

#[test]
fn the_draft_decides() {
    // Without `$schema` it is draft 4, which has no `const`.
    check(r#"{"const": 1}"#, "2", &[]);
    check(
        r#"{"$schema": "http://json-schema.org/draft-07/schema#", "const": 1}"#,
        "2",
        &[" const: instance value (2) is not the value 1"],
    );
    check(
        r#"{"type": "integer"}"#,
        "1.0",
        &[r#" type: instance type (number) does not match any allowed primitive type (allowed: ["integer"])"#],
    );
    check(r#"{"$schema": "http://json-schema.org/draft-06/schema#", "type": "integer"}"#, "1.0", &[]);
    check(
        r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": true}, "unevaluatedProperties": false}"#,
        r#"{"a": 1, "b": 2}"#,
        &["/b false: no value is allowed here"],
    );
    let schema = JsonSchema::compile(&parse(r#"{"const": 1}"#)).unwrap();
    assert!(schema.notes()[0].message.starts_with("`const` is no keyword of draft 4"));
}

#[test]
fn mistakes_of_schemas_have_places() {
    for (schema, expected) in [
        (r#"{"type": "text"}"#, "at `#/type`: \"text\" is not a type"),
        (
            r#"{"properties": {"a": {"$ref": "http://example.org/other.json"}}}"#,
            "at `#/properties/a/$ref`: the reference `http://example.org/other.json` cannot be resolved in this schema; nothing is fetched",
        ),
        (r#"{"pattern": "("}"#, "at `#/pattern`: the pattern `(` cannot be used: unclosed group"),
        ("[]", "at `#`: a schema is an object, or true or false"),
    ] {
        let errors = JsonSchema::compile(&parse(schema)).err().unwrap_or_else(|| panic!("{schema} compiles"));
        assert_eq!(errors[0].to_string(), expected);
    }
}

#[test]
fn circles_end() {
    let schema = JsonSchema::compile(&parse(r##"{"$ref": "#"}"##)).unwrap();
    assert!(!schema.is_valid(&Value::Null));
}

#[test]
fn an_identifier_may_be_taken_twice() {
    // The second part has the name, the first keeps its own anchors.
    let twice = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "b", "$dynamicAnchor": "x",
        "$defs": {"t": {"$id": "b", "$dynamicAnchor": "n", "type": "string"}}, "type": "integer"}"#;
    check(twice, "1", &[]);
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_schemas_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi/json-schema");
    let entries = std::fs::read_dir(&folder).unwrap();
    let (mut count, mut failed) = (0, Vec::new());
    for entry in entries {
        let path = entry.unwrap().path();
        // Some are examples of connectors' forms, which are JSON and no schemas; a few are no JSON.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            eprintln!("{} is no JSON", path.display());
            continue;
        };
        count += 1;
        if let Err(errors) = JsonSchema::compile(&value) {
            failed.push(format!("{}: {}", path.display(), errors[0]));
        }
    }
    eprintln!("{count} schemas");
    assert_eq!(failed, Vec::<String>::new());
}
