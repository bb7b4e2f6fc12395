//! `/message-processors`

use serde_json::{Map, Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, refuse, text};
use super::super::inventory::Deployed;
use super::{masked, read_artifacts, service_status, set_service};

const KIND: &str = "messageProcessor";

/// The ends of classes, and the types that clients know.
const TYPES: [(&str, &str); 3] = [
    ("FailoverScheduledMessageForwardingProcessor", "Failover-scheduled-message-forwarding-processor"),
    ("ScheduledMessageForwardingProcessor", "Scheduled-message-forwarding-processor"),
    ("SamplingProcessor", "Sampling-processor"),
];

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "name",
        |name| refuse(404, format!("Specified message processor ('{name}') not found")),
        |found| summary(call, found),
        |found| detail(call, found),
    )
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let (Some(name), Some(wanted)) = (text(&payload, "name"), text(&payload, "status")) else {
        return refuse(400, "Missing parameters in payload");
    };
    let Some(status) = call.api.state().services.get(KIND, &name) else {
        return refuse(404, "Message processor does not exist");
    };
    let Some(is_active) = set_service(&status, &wanted) else { return refuse(400, "Provided state is not valid") };
    let action = if is_active { Action::Enabled } else { Action::Disabled };
    audit::changed(call, action, "message_processor", &json!({ "messageProcessorName": name }));
    done(format!("{name} : is {}", if is_active { "activated" } else { "deactivated" }))
}

fn summary(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let class = found.element.attribute("class").unwrap_or_default();
    let simple = class.rsplit('.').next().unwrap_or(class);
    let kind = TYPES.iter().find(|(known, _)| *known == simple).map_or("Custom-message-processor", |(_, kind)| kind);
    let name = &found.artifact.name;
    json!({ "name": name, "type": kind, "status": service_status(call, KIND, name) })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let mut detail = summary(call, found);
    detail["artifactContainer"] = json!(found.container);
    detail["fileName"] = json!(found.file_name());
    let parameters: Map<String, Value> =
        found.parameters().into_iter().map(|(name, value)| (name, json!(value))).collect();
    detail["parameters"] = Value::Object(parameters);
    detail["messageStore"] = json!(found.element.attribute("messageStore"));
    detail["configuration"] = json!(masked(found));
    detail
}
