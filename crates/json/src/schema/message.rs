//! The wording of violations: that of the validator flows were written against.

use serde_json::Value;

use super::ValueType;

pub(super) fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if super::number::is_integer(number, true) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl ValueType {
    pub(super) fn name(self) -> &'static str {
        match self {
            ValueType::Null => "null",
            ValueType::Boolean => "boolean",
            ValueType::Object => "object",
            ValueType::Array => "array",
            ValueType::Number => "number",
            ValueType::Integer { .. } => "integer",
            ValueType::String => "string",
        }
    }
}

/// Names in the brackets and quotes of a JSON list.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", quoted.join(","))
}

pub(super) fn kinds(value: &Value, allowed: &[ValueType]) -> String {
    let mut names: Vec<&str> = allowed.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    let allowed = list(names.into_iter());
    format!("instance type ({}) does not match any allowed primitive type (allowed: {allowed})", kind_name(value))
}

pub(super) fn choices(value: &Value, allowed: &[Value]) -> String {
    let all: Vec<String> = allowed.iter().map(Value::to_string).collect();
    format!("instance value ({value}) not found in enum (possible values: [{}])", all.join(","))
}
