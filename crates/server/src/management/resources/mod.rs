//! The resources, one file each, and what several of them have in common.

pub(super) mod apis;
pub(super) mod applications;
pub(super) mod configs;
pub(super) mod connectors;
pub(super) mod data_services;
pub(super) mod data_sources;
pub(super) mod endpoints;
pub(super) mod inbound_endpoints;
pub(super) mod local_entries;
pub(super) mod logging;
pub(super) mod logs;
pub(super) mod message_processors;
pub(super) mod message_stores;
pub(super) mod proxy_services;
pub(super) mod registry;
pub(super) mod roles;
pub(super) mod sequences;
pub(super) mod server;
pub(super) mod session;
pub(super) mod tasks;
pub(super) mod templates;
pub(super) mod transactions;
pub(super) mod users;
pub(super) mod vaults;

use std::sync::Arc;

use penstock_engine::background::ServiceStatus;
use serde_json::{Map, Value, json};

use super::audit::{self, Action};
use super::call::{Call, Outcome, list, ok, refuse, text};
use super::inventory::Deployed;
use super::switches::Aspect;

/// What stands for a password.
pub(super) const MASKED: &str = "*****";

/// `enabled` or `disabled`.
fn word(enabled: bool) -> &'static str {
    if enabled { "enabled" } else { "disabled" }
}

/// Whether an aspect is enabled: as an operator set it, otherwise as the artifact says.
fn is_enabled(call: &Call<'_>, aspect: Aspect, found: &Deployed<'_>) -> bool {
    let attribute = match aspect {
        Aspect::Trace => "trace",
        Aspect::Statistics => "statistics",
    };
    let of_artifact = || found.element.attribute(attribute) == Some("enable");
    let switches = &call.api.state().switches;
    switches.is_enabled(aspect, found.artifact.kind, &found.artifact.name).unwrap_or_else(of_artifact)
}

fn tracing(call: &Call<'_>, found: &Deployed<'_>) -> &'static str {
    word(is_enabled(call, Aspect::Trace, found))
}

fn statistics(call: &Call<'_>, found: &Deployed<'_>) -> &'static str {
    word(is_enabled(call, Aspect::Statistics, found))
}

/// `GET` of a resource: the artifact that the query parameter names, otherwise the list of those that fit `searchKey`.
fn read_artifacts(
    call: &Call<'_>,
    kind: &str,
    parameter: &str,
    not_found: impl FnOnce(&str) -> Outcome,
    summary: impl Fn(&Deployed<'_>) -> Value,
    detail: impl FnOnce(&Deployed<'_>) -> Value,
) -> Outcome {
    let inventory = call.api.inventory();
    if let Some(name) = call.parameter(parameter) {
        return inventory.find(kind, &name).map_or_else(|| not_found(&name), |found| ok(&detail(&found)));
    }
    let found = inventory.of_kind(kind).filter(|found| call.finds(&found.artifact.name));
    list(call, found.map(|found| summary(&found)))
}

/// `{"trace": "enable"}` and `{"statistics": "disable"}` for an artifact.
fn switch_aspect(
    call: &Call<'_>,
    payload: &Map<String, Value>,
    found: &Deployed<'_>,
    audit_type: &str,
    info: &Value,
) -> Outcome {
    let aspects = [("trace", Aspect::Trace, "tracing"), ("statistics", Aspect::Statistics, "statistics")];
    let named = aspects.into_iter().find_map(|(name, aspect, noun)| Some((name, aspect, noun, text(payload, name)?)));
    let Some((member, aspect, noun, wanted)) = named else {
        return refuse(400, "Missing attribute trace in payload");
    };
    let enables = match wanted.to_ascii_lowercase().as_str() {
        "enable" => true,
        "disable" => false,
        _ => return refuse(400, format!("Invalid value for state {member}")),
    };
    let (state, name) = (call.api.state(), &found.artifact.name);
    state.switches.enable(&state.current.get(), aspect, found.artifact.kind, name, enables);
    let action = if enables { Action::Enabled } else { Action::Disabled };
    audit::changed(call, action, &format!("{audit_type}_{member}"), info);
    let verb = if enables { "Enabled" } else { "Disabled" };
    ok(&json!({ "message": format!("{verb} {noun} for ('{name}')") }))
}

/// `active` or `inactive` of a service that runs on its own.
fn service_status(call: &Call<'_>, kind: &'static str, name: &str) -> &'static str {
    let status = call.api.state().services.get(kind, name);
    if status.is_some_and(|status| !status.is_pausing()) { "active" } else { "inactive" }
}

/// Activates or deactivates a service; whether it is active then.
fn set_service(status: &Arc<ServiceStatus>, wanted: &str) -> Option<bool> {
    match wanted.to_ascii_lowercase().as_str() {
        "active" => {
            status.activate();
            Some(true)
        }
        "inactive" => {
            status.pause();
            Some(false)
        }
        _ => None,
    }
}

/// XML with the passwords in it masked: those of `<password>` and of parameters named so.
fn masked(found: &Deployed<'_>) -> String {
    let mut xml = found.configuration();
    let mut secrets = Vec::new();
    collect_secrets(found.element, &mut secrets);
    for secret in secrets {
        let escaped = penstock_xml::escaped_text(&secret);
        for written in [escaped, secret] {
            xml = xml.replace(&format!(">{written}<"), &format!(">{MASKED}<"));
        }
    }
    mask_url(&xml)
}

fn collect_secrets(element: penstock_compile::Element<'_>, secrets: &mut Vec<String>) {
    for child in element.children() {
        let named = child.attribute("name").unwrap_or_else(|| child.name());
        if is_secret_name(named) {
            secrets.extend(Some(child.text()).filter(|text| !text.is_empty()));
        }
        collect_secrets(child, secrets);
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("password") || name.contains("secret")
}

/// An address without the password of `;password=…` and of `user:password@`.
fn mask_url(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find("password=") {
        let value = at + "password=".len();
        out.push_str(&rest[..value]);
        let end = rest[value..].find([';', '&', '"', '\'', '<', ' ', '\n']).map_or(rest.len(), |end| value + end);
        // `password="…"` of an attribute begins with the quote.
        if end > value {
            out.push_str(MASKED);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn passwords_in_addresses_are_masked() {
        for (address, expected) in [
            ("jdbc:h2:mem:a;PASSWORD=secret;x=1", "jdbc:h2:mem:a;PASSWORD=*****;x=1"),
            ("jdbc:mysql://h/d?user=a&password=b&c=d", "jdbc:mysql://h/d?user=a&password=*****&c=d"),
            ("jdbc:postgresql://h/d", "jdbc:postgresql://h/d"),
        ] {
            assert_eq!(super::mask_url(address), expected);
        }
    }
}
