//! The test suite of the JSON Schema organisation (<https://github.com/json-schema-org/JSON-Schema-Test-Suite>).
//! `JSON_SCHEMA_TESTS` names a folder with `draft4`, `draft6` and so on.

use std::path::Path;

use penstock_json::schema::JsonSchema;
use serde_json::Value;

const DRAFTS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

/// What needs a document from elsewhere is refused: nothing is fetched.
fn is_remote(errors: &[penstock_json::schema::SchemaError]) -> bool {
    errors.iter().all(|error| error.message.contains("nothing is fetched"))
}

#[test]
#[ignore = "needs JSON_SCHEMA_TESTS, the `tests` folder of the suite"]
fn official_suite() {
    let folder = std::env::var("JSON_SCHEMA_TESTS").expect("JSON_SCHEMA_TESTS is set");
    let mut failed = Vec::new();
    for (draft, uri) in DRAFTS {
        let (mut passed, mut remote) = (0, 0);
        let entries = std::fs::read_dir(Path::new(&folder).join(draft)).expect("the folder of the draft is there");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
            let text = std::fs::read_to_string(path).expect("a readable file");
            let groups: Vec<Value> = serde_json::from_str(&text).expect("a list of groups");
            for group in groups {
                let mut schema = group["schema"].clone();
                if let Value::Object(members) = &mut schema {
                    members.entry("$schema").or_insert_with(|| uri.into());
                }
                let name =
                    format!("{draft} {} {}", path.file_stem().unwrap_or_default().display(), group["description"]);
                let tests = group["tests"].as_array().expect("tests");
                match JsonSchema::compile(&schema) {
                    Err(errors) if is_remote(&errors) => remote += tests.len(),
                    Err(errors) => failed.push(format!("{name}: {}", errors[0])),
                    Ok(schema) => {
                        for test in tests {
                            let valid = schema.is_valid(&test["data"]);
                            let listed = schema.validate(&test["data"]).is_empty();
                            if valid == listed && Value::Bool(valid) == test["valid"] {
                                passed += 1;
                            } else {
                                failed.push(format!("{name}: {}", test["description"]));
                            }
                        }
                    }
                }
            }
        }
        eprintln!("{draft}: {passed} pass, {remote} need documents from elsewhere");
    }
    eprintln!("{} fail:\n{}", failed.len(), failed.join("\n"));
    // Vocabularies of one's own are not read.
    assert!(failed.iter().all(|failed| failed.contains("custom metaschema")), "see above");
}
