//! JSON Schema: compiling any schema ends with a schema or errors, and the verdict agrees with the violations.

use penstock_json::schema::JsonSchema;
use serde_json::Value;

/// Pieces of schemas.
pub const DICTIONARY: &[&str] = &[
    "\"$ref\": \"#\"",
    "\"$ref\": \"#/$defs/a\"",
    "\"$id\": \"a/b\"",
    "\"$anchor\": \"x\"",
    "\"$dynamicRef\": \"#x\"",
    "\"$dynamicAnchor\": \"x\"",
    "\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
    "\"$schema\": \"https://json-schema.org/draft/2019-09/schema\"",
    "\"$recursiveRef\": \"#\"",
    "\"$recursiveAnchor\": true",
    "\"allOf\": [",
    "\"oneOf\": [{}, false]",
    "\"not\": {}",
    "\"if\": {}, \"then\": false",
    "\"items\": {",
    "\"prefixItems\": [true]",
    "\"contains\": {\"type\": \"string\"}",
    "\"properties\": {\"a\": {",
    "\"patternProperties\": {\"^a\": false}",
    "\"unevaluatedProperties\": false",
    "\"unevaluatedItems\": false",
    "\"pattern\": \"[a-z]{1,9}\"",
    "\"multipleOf\": 1e-300",
    "\"minimum\": 1e400",
    "\"enum\": [1.0, null]",
    "\"type\": [\"integer\", \"null\"]",
    "\"required\": [\"a\"]",
    "}",
    "]",
    "{",
    ",",
];

const VALUES: &str = r#"[null, true, 1.0, 12345678901234567890, "abc", [], [1, "a", null], {"a": {"a": [1]}, "b": 2}]"#;

/// Compiles the bytes as a schema; what compiles checks values.
pub fn schema(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(schema) = JsonSchema::compile(&value) else { return };
    let Ok(Value::Array(values)) = serde_json::from_str::<Value>(VALUES) else { return };
    for one in values.iter().chain([&value]) {
        assert_eq!(schema.is_valid(one), schema.validate(one).is_empty());
    }
}
