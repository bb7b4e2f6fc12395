//! JSON values as YAML in block style, for exported projects. Only what cannot be misread is written without quotes.

use serde_json::Value;

/// A value as a document.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => block(&mut out, value, 0),
        scalar => {
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
    out
}

fn block(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                out.push_str(&indent);
                out.push_str(&text(name));
                out.push(':');
                nested(out, value, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                out.push_str(&indent);
                out.push('-');
                nested(out, item, depth + 1);
            }
        }
        scalar => out.push_str(&flow(scalar)),
    }
}

fn nested(out: &mut String, value: &Value, depth: usize) {
    let is_block = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        block(out, value, depth);
    } else {
        out.push(' ');
        out.push_str(&flow(value));
        out.push('\n');
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// A text: as it is when no reader takes it for anything else, otherwise with the escapes of JSON, which YAML shares.
fn text(text: &str) -> String {
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || " _-./".contains(letter))
        && !text.ends_with(' ')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn values_are_written_in_blocks() {
        let value = json!({"a": [1, {"b": "x: y", "c": []}], "on": null, "path": "/pets/{id}", "v": "1.0", "e": {}});
        let expected =
            "a:\n  - 1\n  -\n    b: \"x: y\"\n    c: []\n\"on\": null\npath: \"/pets/{id}\"\nv: \"1.0\"\ne: {}\n";
        assert_eq!(super::write(&value), expected);
    }
}
