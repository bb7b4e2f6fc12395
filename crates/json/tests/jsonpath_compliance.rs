//! The JSONPath compliance suite.

use std::path::Path;

use penstock_json::path::{Dialect, JsonPath, Step};
use serde_json::Value;

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_of_the_compliance_suite_passes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/jsonpath/cts.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let suite: Value = serde_json::from_str(&text).unwrap();
    let cases = suite["tests"].as_array().unwrap();
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    println!("{} of {} cases pass", cases.len() - failures.len(), cases.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Value) -> Result<(), String> {
    let (name, selector) = (&case["name"], case["selector"].as_str().expect("a case has a selector"));
    let parsed = JsonPath::parse(selector, Dialect::Rfc9535);
    if case["invalid_selector"] == true {
        return match parsed {
            Ok(_) => Err(format!("{name}: `{selector}` was accepted")),
            Err(_) => Ok(()),
        };
    }
    let path = parsed.map_err(|error| format!("{name}: `{selector}`: {error}"))?;
    let document = &case["document"];
    let found = Value::Array(path.select(document).into_iter().cloned().collect());
    if !one_of(case, "result", &found) {
        return Err(format!("{name}: `{selector}` found {found}"));
    }
    let places = Value::Array(path.locate(document).iter().map(|place| normal(place).into()).collect());
    if !one_of(case, "result_paths", &places) {
        return Err(format!("{name}: `{selector}` is at {places}"));
    }
    Ok(())
}

fn one_of(case: &Value, key: &str, actual: &Value) -> bool {
    let several = case.get(key.replacen("result", "results", 1));
    case.get(key) == Some(actual) || several.and_then(Value::as_array).is_some_and(|results| results.contains(actual))
}

/// RFC 9535 §2.7.
fn normal(place: &[Step]) -> String {
    let mut text = "$".to_owned();
    for step in place {
        match step {
            Step::Element(index) => text.push_str(&format!("[{index}]")),
            Step::Member(name) => {
                text.push_str("['");
                for character in name.chars() {
                    match character {
                        '\'' | '\\' => text.extend(['\\', character]),
                        '\u{8}' => text.push_str("\\b"),
                        '\u{c}' => text.push_str("\\f"),
                        '\n' => text.push_str("\\n"),
                        '\r' => text.push_str("\\r"),
                        '\t' => text.push_str("\\t"),
                        other if other < ' ' => text.push_str(&format!("\\u{:04x}", other as u32)),
                        other => text.push(other),
                    }
                }
                text.push_str("']");
            }
        }
    }
    text
}
