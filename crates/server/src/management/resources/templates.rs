//! `/templates`: of sequences and of endpoints.

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, list, ok, refuse, text, unknown};
use super::super::inventory::{Deployed, Inventory};
use super::switch_aspect;

const KIND: &str = "template";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    let found = |kind: &'static str| of_type(&inventory, kind).filter(|found| call.finds(&found.artifact.name));
    let Some(kind) = call.parameter("type") else {
        let both =
            ["endpoint", "sequence"].map(|kind| found(kind).map(|found| detail(&found, kind)).collect::<Vec<_>>());
        // The tool `mi` reads two lists of names, the dashboard the list of both.
        let names = |items: &[Value]| -> Value { items.iter().map(|item| json!({ "name": item["name"] })).collect() };
        let (endpoints, sequences) = (names(&both[0]), names(&both[1]));
        let items: Vec<Value> = both.into_iter().flatten().collect();
        return ok(&json!({
            "count": items.len(),
            "list": items,
            "endpointTemplateList": endpoints,
            "sequenceTemplateList": sequences,
        }));
    };
    let kind = match kind.to_ascii_lowercase().as_str() {
        "endpoint" => "endpoint",
        "sequence" => "sequence",
        _ => return refuse(400, format!("Received type {kind} is not a valid template type")),
    };
    match call.parameter("name") {
        Some(name) => match of_type(&inventory, kind).find(|found| found.artifact.name == name) {
            Some(found) => ok(&detail(&found, kind)),
            None => unknown(),
        },
        None => list(call, found(kind).map(|found| json!({ "name": found.artifact.name }))),
    }
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let (Some(name), Some("sequence")) = (text(&payload, "name"), text(&payload, "type").as_deref()) else {
        return refuse(400, "Unsupported operation");
    };
    let inventory = call.api.inventory();
    let Some(found) = of_type(&inventory, "sequence").find(|found| found.artifact.name == name) else {
        return refuse(400, format!("Specified sequence template ('{name}') not found"));
    };
    let info = json!({ "sequenceName": name, "sequenceType": "sequence" });
    switch_aspect(call, &payload, &found, "sequence_template", &info)
}

fn of_type<'i>(inventory: &'i Inventory, kind: &'static str) -> impl Iterator<Item = Deployed<'i>> {
    inventory.of_kind(KIND).filter(move |found| found.element.child(kind).is_some())
}

fn detail(found: &Deployed<'_>, kind: &str) -> Value {
    let parameters = found.element.elements("parameter").filter_map(|parameter| {
        let name = parameter.attribute("name")?;
        if kind == "endpoint" {
            return Some(json!(name));
        }
        Some(json!({
            "name": name,
            "mandatory": parameter.flag("isMandatory", false),
            "defaultValue": parameter.attribute("defaultValue").unwrap_or_default(),
        }))
    });
    json!({
        "name": found.artifact.name,
        "Parameters": parameters.collect::<Vec<_>>(),
        "configuration": found.configuration(),
        "type": kind,
    })
}
