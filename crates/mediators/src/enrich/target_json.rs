//! Putting a part into JSON.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use penstock_json::path::{self, JsonPath, Step};
use penstock_message::Value;
use serde_json::Value as Json;

use super::Action;
use crate::typed::xml_to_json;
use penstock_engine::payload;

/// Changes the body at a path.
pub fn change(exchange: &mut Exchange, target: &JsonPath, action: Action, value: &Value) -> Result<(), Fault> {
    let part = json_of(value)?;
    let mut root = (*exchange.json()?).clone();
    let changed = match action {
        Action::Replace if target.is_root() => {
            root = part;
            1
        }
        Action::Replace => replace_or_add(&mut root, target, &part),
        Action::Child => path::insert_child(&mut root, target, &part),
        // See `Enrich::complaint`.
        Action::Sibling => return Ok(()),
        Action::Remove => path::remove(&mut root, target),
    };
    if changed == 0 {
        return Err(Fault::new("the target of <enrich> is not in the message"));
    }
    payload::set_json(exchange, Arc::new(root));
    Ok(())
}

/// A member that is not there yet is added to its object.
fn replace_or_add(root: &mut Json, target: &JsonPath, part: &Json) -> usize {
    let replaced = path::replace(root, target, part);
    if replaced > 0 {
        return replaced;
    }
    let (Some(parent), Some(name)) = (target.parent(), target.last_name()) else { return 0 };
    let mut added = 0;
    for location in parent.locate(root) {
        if let Some(Json::Object(members)) = path::value_at(root, &location) {
            members.insert(name.to_owned(), part.clone());
            added += 1;
        }
    }
    added
}

/// Renames the members a path finds; their order stays.
pub fn rename(exchange: &mut Exchange, target: &JsonPath, value: &Value) -> Result<(), Fault> {
    let name = value.to_text();
    let mut root = (*exchange.json()?).clone();
    for location in target.locate(&root) {
        let Some((Step::Member(old), above)) = location.split_last() else { continue };
        if let Some(Json::Object(members)) = path::value_at(&mut root, above) {
            let renamed = std::mem::take(members).into_iter();
            *members = renamed
                .map(|(key, value)| if key == *old { (name.to_string(), value) } else { (key, value) })
                .collect();
        }
    }
    payload::set_json(exchange, Arc::new(root));
    Ok(())
}

/// A property's JSON with a part added.
pub fn joined(old: &Value, value: &Value) -> Result<Value, Fault> {
    let mut root = json_of(old)?;
    let part = json_of(value)?;
    match (&mut root, part) {
        (Json::Array(elements), part) => elements.push(part),
        (Json::Object(members), Json::Object(more)) => members.extend(more),
        _ => return Err(Fault::new("only an object or a list can be added to")),
    }
    Ok(Value::Json(Arc::new(root)))
}

/// A value as JSON: text is JSON when it reads as such, else a string.
pub fn json_of(value: &Value) -> Result<Json, Fault> {
    Ok(match value {
        Value::Json(json) => (**json).clone(),
        Value::Xml(document, nodes) => xml_to_json(document, nodes)?,
        Value::Boolean(flag) => Json::Bool(*flag),
        Value::Integer(number) => Json::from(*number),
        Value::Double(number) => Json::from(*number),
        Value::String(text) => {
            let trimmed = text.trim();
            let composed = trimmed.starts_with(['{', '[']);
            match serde_json::from_str(trimmed) {
                Ok(json) if composed => json,
                _ => Json::String(text.to_string()),
            }
        }
    })
}
