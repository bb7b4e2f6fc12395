//! `/sequences`

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, list, ok, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::{statistics, switch_aspect, tracing};

const KIND: &str = "sequence";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    match call.parameter("sequenceName") {
        Some(name) => match inventory.find(KIND, &name) {
            Some(found) => ok(&detail(call, &found)),
            None => unknown(),
        },
        None => {
            let found = inventory.of_kind(KIND).filter(|found| call.finds(&found.artifact.name));
            list(call, found.map(|found| summary(call, &found)))
        }
    }
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(name) = text(&payload, "name") else { return refuse(400, "Unsupported operation") };
    let inventory = call.api.inventory();
    let Some(found) = inventory.find(KIND, &name) else {
        return refuse(400, format!("Specified sequence ('{name}') not found"));
    };
    switch_aspect(call, &payload, &found, "sequence", &json!({ "sequenceName": name }))
}

fn summary(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    json!({
        "name": found.artifact.name,
        "container": found.container,
        "stats": statistics(call, found),
        "tracing": tracing(call, found),
    })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let mut detail = summary(call, found);
    detail["mediators"] = found.element.children().map(|child| json!(mediator_type(child.name()))).collect();
    detail["configuration"] = json!(found.configuration());
    detail
}

/// What Micro Integrator calls the mediator of an element: its class.
fn mediator_type(element: &str) -> String {
    let mut letters = element.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain("Mediator".chars()).collect()
}
