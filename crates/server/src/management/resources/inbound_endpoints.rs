//! `/inbound-endpoints`

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::{
    MASKED, is_secret_name, masked, read_artifacts, service_status, set_service, statistics, switch_aspect, tracing,
};

const KIND: &str = "inboundEndpoint";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "inboundEndpointName",
        |_| unknown(),
        |found| summary(call, found),
        |found| detail(call, found),
    )
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(name) = text(&payload, "name") else { return refuse(400, "Unsupported operation") };
    let info = json!({ "inboundEndpointName": name });
    let Some(wanted) = text(&payload, "status") else {
        let inventory = call.api.inventory();
        let Some(found) = inventory.find(KIND, &name) else {
            return refuse(400, format!("Specified inbound endpoint ('{name}') not found"));
        };
        return switch_aspect(call, &payload, &found, "inbound_endpoint", &info);
    };
    let Some(status) = call.api.state().services.get(KIND, &name) else {
        return refuse(404, "Inbound endpoint could not be found");
    };
    let Some(is_active) = set_service(&status, &wanted) else { return refuse(400, "Provided state is not valid") };
    audit::changed(call, if is_active { Action::Enabled } else { Action::Disabled }, "inbound_endpoint", &info);
    done(format!("{name} : is {}", if is_active { "activated" } else { "deactivated" }))
}

fn summary(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let name = &found.artifact.name;
    json!({
        "name": name,
        "protocol": found.element.attribute("protocol").or_else(|| found.element.attribute("class")),
        "status": service_status(call, KIND, name),
    })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let mut detail = summary(call, found);
    detail["sequence"] = json!(found.element.attribute("sequence"));
    detail["error"] = json!(found.element.attribute("onError"));
    detail["stats"] = json!(statistics(call, found));
    detail["tracing"] = json!(tracing(call, found));
    detail["configuration"] = json!(masked(found));
    let parameters = found.parameters().into_iter().map(|(name, value)| {
        let value = if is_secret_name(&name) { MASKED.to_owned() } else { value };
        json!({ "name": name, "value": value })
    });
    detail["parameters"] = parameters.collect();
    detail
}
