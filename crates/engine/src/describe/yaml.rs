//! JSON values as YAML in block style.

use serde_json::Value;

/// Writes a value. Text that YAML would read as something else is quoted.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str(&scalar(name));
                out.push(':');
                // A list stands at the depth of its name, a mapping two deeper.
                after(out, member, if member.is_array() { indent } else { indent + 2 });
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str("- ");
                block(out, item, indent + 2);
            }
        }
        other => {
            out.push_str(&flat(other));
            out.push('\n');
        }
    }
}

/// What follows `name:`.
fn after(out: &mut String, value: &Value, indent: usize) {
    let nested = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        block(out, value, indent);
    } else {
        out.push(' ');
        out.push_str(&flat(value));
        out.push('\n');
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// A text as a plain scalar where that is unambiguous, else in quotes (YAML 1.1, as its readers
/// still are: `yes`, `1.0` and `2001-01-01` are not text there).
fn scalar(text: &str) -> String {
    if text.chars().any(|letter| letter.is_control()) {
        return Value::String(text.to_owned()).to_string();
    }
    let special_start = text.starts_with(|first: char| "!&*-?:,[]{}#|>@`\"'%= ~".contains(first));
    let lower = text.to_ascii_lowercase();
    let is_word = matches!(lower.as_str(), "" | "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n");
    let is_number = text.parse::<f64>().is_ok()
        || (text.starts_with(|first: char| first.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:._".contains(&byte))
            && text.matches('.').count() < 2);
    if special_start || is_word || is_number || text.contains(": ") || text.contains(" #") || text.ends_with([':', ' '])
    {
        return format!("'{}'", text.replace('\'', "''"));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_and_quotes() {
        let value = serde_json::json!({
            "swagger": "2.0", "version": "1.0.0", "tags": [{ "name": "T", "kind": "k" }, "x"],
            "paths": { "/a": { "$ref": "#/d" } }, "none": {}, "flag": true, "word": "yes"
        });
        let expected = "swagger: '2.0'\nversion: 1.0.0\ntags:\n- name: T\n  kind: k\n- x\npaths:\n  /a:\n    $ref: '#/d'\nnone: {}\nflag: true\nword: 'yes'\n";
        assert_eq!(write(&value), expected);
    }
}
