//! `/sequences`

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::{read_artifacts, statistics, switch_aspect, tracing};

const KIND: &str = "sequence";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(call, KIND, "sequenceName", |_| unknown(), |found| summary(call, found), |found| detail(call, found))
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
