//! XML as a value, by a schema: children by name, `attr_` before attributes, lists where the schema
//! has them, numbers and booleans where the schema has them.

use penstock_xml::{Document, NodeId};
use serde_json::{Map, Number, Value as Json};

/// Elements inside one another. Real messages stay far below.
const DEPTH_MAX: usize = 256;
/// The text of an element that has attributes or children besides.
pub(super) const TEXT: &str = "_ELEMVAL";

/// The content of the root element; its own name is that of the schema.
pub(super) fn of_xml(document: &Document, root: NodeId, schema: &Json) -> Result<Json, String> {
    element(document, root, schema, 0)
}

/// The schema of a member, or of the items of a list.
pub(super) fn inner<'s>(schema: &'s Json, name: &str) -> Option<&'s Json> {
    let members = schema.get("properties")?;
    members.get(name).or_else(|| {
        // Schemas write prefixes with a colon, values with an underscore.
        members.as_object()?.iter().find(|(known, _)| super::identifier(known) == name).map(|(_, schema)| schema)
    })
}

pub(super) fn items(schema: &Json) -> &Json {
    match schema.get("items") {
        Some(Json::Array(all)) => all.first().unwrap_or(&Json::Null),
        Some(one) => one,
        None => &Json::Null,
    }
}

fn is_list(schema: Option<&Json>) -> bool {
    schema.and_then(|schema| schema.get("type")).is_some_and(|kind| kind == "array")
}

fn element(document: &Document, node: NodeId, schema: &Json, depth: usize) -> Result<Json, String> {
    if depth > DEPTH_MAX {
        return Err(format!("elements are nested deeper than {DEPTH_MAX}"));
    }
    let mut members: Map<String, Json> = Map::new();
    for attribute in document.attributes(node) {
        let local = document.local_name(attribute);
        let kind = schema.get("attributes").and_then(|all| all.get(local)).unwrap_or(&Json::Null);
        members.insert(format!("attr_{}", super::identifier(local)), typed(document.text(attribute), kind));
    }
    let mut any_child = false;
    for child in document.children(node).filter(|child| document.is_element(*child)) {
        any_child = true;
        let name = document.name(child);
        let plain = super::identifier(name.local);
        let prefixed = format!("{}_{plain}", super::identifier(name.prefix));
        let key = match inner(schema, &plain) {
            None if !name.prefix.is_empty() => prefixed,
            _ => plain,
        };
        let own = inner(schema, &key);
        let list = is_list(own);
        let value =
            element(document, child, own.map_or(&Json::Null, |own| if list { items(own) } else { own }), depth + 1)?;
        match members.get_mut(&key) {
            Some(Json::Array(all)) if list || own.is_none() => all.push(value),
            Some(before) => *before = Json::Array(vec![before.take(), value]),
            None => drop(members.insert(key, if list { Json::Array(vec![value]) } else { value })),
        }
    }
    let text = if any_child { String::new() } else { document.string_value(node).into_owned() };
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if members.is_empty() && !is_object {
        return Ok(typed(&text, schema));
    }
    if !any_child && !text.trim().is_empty() {
        members.insert(TEXT.to_owned(), typed(&text, schema.get("value").unwrap_or(&Json::Null)));
    }
    Ok(Json::Object(members))
}

/// A text with the type a schema names.
pub(super) fn typed(text: &str, schema: &Json) -> Json {
    let trimmed = text.trim();
    match schema.get("type").and_then(Json::as_str) {
        Some("number" | "integer") => match serde_json::from_str::<Number>(trimmed) {
            Ok(number) => Json::Number(number),
            Err(_) if trimmed.is_empty() => Json::Null,
            Err(_) => trimmed
                .parse::<f64>()
                .ok()
                .and_then(Number::from_f64)
                .map_or(Json::String(text.to_owned()), Json::Number),
        },
        Some("boolean") => match trimmed {
            "true" | "1" => Json::Bool(true),
            "false" | "0" => Json::Bool(false),
            _ => Json::String(text.to_owned()),
        },
        _ => Json::String(text.to_owned()),
    }
}
