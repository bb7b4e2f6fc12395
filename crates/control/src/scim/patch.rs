//! `PATCH` (RFC 7644 §3.5.2): the body that its operations amount to. Paths name one attribute, an attribute of `name`, or
//! `members[value eq "ID"]`.

use serde_json::{Map, Value, json};

use super::resource::{ATTRIBUTES, members};
use crate::problem::Problem;
use crate::store::{Kind, Object, Transaction};

/// Operations of one request.
const OPERATIONS_MAX: usize = 100;

/// The attributes that change, with their new values; `null` removes one. The error is what is not supported.
pub(super) fn apply(
    tx: &Transaction<'_>,
    object: &Object,
    given: &Map<String, Value>,
) -> Result<Result<Map<String, Value>, String>, Problem> {
    let mut ids = match object.kind {
        Kind::Role => members(tx, object)?.into_iter().map(|user| user.id).collect(),
        _ => Vec::new(),
    };
    let mut result = Map::new();
    let operations = given.get("Operations").or_else(|| given.get("operations")).and_then(Value::as_array);
    let Some(operations) = operations.filter(|operations| operations.len() <= OPERATIONS_MAX) else {
        return Ok(Err(format!("`Operations` must be a list of at most {OPERATIONS_MAX}")));
    };
    for operation in operations {
        if let Err(why) = one(object, operation, &mut result, &mut ids) {
            return Ok(Err(why));
        }
    }
    if object.kind == Kind::Role {
        let members: Vec<Value> = ids.into_iter().map(|id| json!({"value": id})).collect();
        result.insert("members".into(), members.into());
    }
    Ok(Ok(result))
}

fn one(
    object: &Object,
    operation: &Value,
    result: &mut Map<String, Value>,
    ids: &mut Vec<String>,
) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
    let value = operation.get("value").cloned().unwrap_or_default();
    let (name, path) = (text("op").to_ascii_lowercase(), text("path"));
    let path = path.rsplit_once("User:").map_or(path, |(_, attribute)| attribute);
    let listed = |value: &Value| -> Vec<String> {
        let entries = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        entries.iter().filter_map(|entry| entry.get("value")?.as_str().map(str::to_owned)).collect()
    };
    let is_group = object.kind == Kind::Role;
    let single = path.strip_prefix("members[value eq \"").and_then(|rest| rest.strip_suffix("\"]"));
    match (name.as_str(), path) {
        ("add" | "replace", "") => {
            let Value::Object(attributes) = &value else { return Err("`value` must be an object".to_owned()) };
            if let Some(wanted) = attributes.get("members").filter(|_| is_group) {
                if name == "replace" {
                    ids.clear();
                }
                ids.extend(listed(wanted));
            }
            result.extend(attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        ("add", "members") if is_group => ids.extend(listed(&value)),
        ("replace", "members") if is_group => *ids = listed(&value),
        ("remove", "members") if is_group => match listed(&value) {
            removed if removed.is_empty() => ids.clear(),
            removed => ids.retain(|id| !removed.contains(id)),
        },
        ("remove", _) if is_group && single.is_some() => ids.retain(|id| Some(id.as_str()) != single),
        ("add" | "replace", "displayName") if is_group => drop(result.insert(path.to_owned(), value)),
        ("add" | "replace", "active" | "password") if !is_group => drop(result.insert(path.to_owned(), value)),
        (operation, path) if !is_group && ATTRIBUTES.contains(&path) => match operation {
            "add" | "replace" => drop(result.insert(path.to_owned(), value)),
            "remove" => drop(result.insert(path.to_owned(), Value::Null)),
            other => return Err(format!("the operation `{other}` is not supported")),
        },
        ("add" | "replace", path) if !is_group && path.starts_with("name.") => {
            let before = object.document.get("attributes").and_then(|kept| kept.get("name")).cloned();
            let changed = result.entry("name").or_insert_with(|| before.unwrap_or_else(|| json!({})));
            changed[&path["name.".len()..]] = value;
        }
        _ => return Err(format!("the operation `{name}` of the path `{path}` is not supported")),
    }
    Ok(())
}
