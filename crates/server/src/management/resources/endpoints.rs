//! `/endpoints`

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::super::switches;
use super::{read_artifacts, switch_aspect, tracing};

const KIND: &str = "endpoint";

/// Elements of endpoints, and what Micro Integrator calls each in a description.
const TYPES: [(&str, &str); 7] = [
    ("http", "HTTP Endpoint"),
    ("address", "Address Endpoint"),
    ("wsdl", "WSDL Endpoint"),
    ("default", "Default Endpoint"),
    ("failover", "Failover Endpoint"),
    ("loadbalance", "Load Balance Endpoint"),
    ("recipientlist", "Recipient List Endpoint"),
];

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "endpointName",
        |_| unknown(),
        |found| {
            let name = &found.artifact.name;
            json!({ "name": name, "type": element_type(found), "isActive": is_active(call, name) })
        },
        |found| detail(call, found),
    )
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(name) = text(&payload, "name") else { return refuse(400, "Unsupported operation") };
    let info = json!({ "endpointName": name });
    let Some(status) = text(&payload, "status") else {
        let inventory = call.api.inventory();
        let Some(found) = inventory.find(KIND, &name) else {
            return refuse(400, format!("Specified endpoint ('{name}') not found"));
        };
        return switch_aspect(call, &payload, &found, "endpoint", &info);
    };
    let state = call.api.state();
    let program = state.current.get();
    if switches::endpoint(&program, &name).is_none() {
        return refuse(404, "Endpoint does not exist");
    }
    let on = match status.to_ascii_lowercase().as_str() {
        "active" => true,
        "inactive" => false,
        _ => return refuse(400, "Provided state is not valid"),
    };
    state.switches.switch_endpoint(&program, &name, on);
    audit::changed(call, if on { Action::Enabled } else { Action::Disabled }, "endpoint", &info);
    done(format!("{name} is switched {}", if on { "On" } else { "Off" }))
}

fn is_active(call: &Call<'_>, name: &str) -> bool {
    let program = call.api.state().current.get();
    switches::endpoint(&program, name).is_some_and(|endpoint| endpoint.state.phase() == "Active")
}

/// The name of the element that says what the endpoint does; `template` for one that a template makes.
fn element_type<'i>(found: &Deployed<'i>) -> &'i str {
    let own = found.element.children().map(|child| child.name());
    let known = own.into_iter().find(|name| TYPES.iter().any(|(known, _)| known == name));
    known.unwrap_or(if found.element.attribute("template").is_some() { "template" } else { "default" })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let name = &found.artifact.name;
    let kind = element_type(found);
    let title = TYPES.iter().find(|(known, _)| *known == kind).map_or("Template Endpoint", |(_, title)| title);
    let mut detail = json!({ "name": name, "type": title });
    if let Some(element) = found.element.child(kind) {
        for (attribute, member) in [
            ("method", "method"),
            ("uri-template", "uriTemplate"),
            ("uri", if kind == "wsdl" { "wsdlUri" } else { "address" }),
            ("service", "serviceName"),
            ("port", "portName"),
            ("format", "format"),
        ] {
            if let Some(value) = element.attribute(attribute) {
                detail[member] = json!(value);
            }
        }
        let members: Vec<Value> = element
            .elements("endpoint")
            .map(|member| json!(member.attribute("key").or_else(|| member.attribute("name")).unwrap_or("anonymous")))
            .collect();
        if !members.is_empty() {
            detail["children"] = json!(members);
        }
        detail["advanced"] = advanced(&element);
    }
    if let Some(template) = found.element.attribute("template") {
        detail["template"] = json!(template);
        detail["uri"] = json!(found.element.attribute("uri"));
    }
    detail["tracing"] = json!(tracing(call, found));
    detail["isActive"] = json!(is_active(call, name));
    detail["configuration"] = json!(found.configuration());
    detail
}

/// Timeouts and suspension.
fn advanced(element: &penstock_compile::Element<'_>) -> Value {
    let text = |holder: &str, name| element.child(holder).and_then(|holder| holder.child_text(name));
    json!({
        "suspendState": {
            "errorCodes": text("suspendOnFailure", "errorCodes"),
            "initialDuration": text("suspendOnFailure", "initialDuration"),
            "progressionFactor": text("suspendOnFailure", "progressionFactor"),
            "maximumDuration": text("suspendOnFailure", "maximumDuration"),
        },
        "timeoutState": {
            "errorCodes": text("markForSuspension", "errorCodes"),
            "retriesBeforeSuspension": text("markForSuspension", "retriesBeforeSuspension"),
            "retryDelay": text("markForSuspension", "retryDelay"),
        },
        "timeoutDuration": text("timeout", "duration"),
        "timeoutAction": text("timeout", "responseAction"),
    })
}
