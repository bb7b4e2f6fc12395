//! `spec` of a `RestApi`.

use std::sync::Arc;

use penstock_catalog::{Api, At, Operation, Platform, Resilience, SecurityMode};

use super::hosts::{self, Hosts};
use super::operations::{self, OfApi};
use super::{known_keys, steps, upstream};
use crate::Import;
use crate::document::Item;

/// The members of a specification.
const KEYS: [&str; 15] = [
    "displayName",
    "version",
    "context",
    "description",
    "upstream",
    "upstreamDefinitions",
    "vhosts",
    "subscriptionPlans",
    "policies",
    "faultPolicies",
    "operations",
    "deploymentState",
    "resilience",
    "definition",
    "projectId",
];

/// As the API Platform says it.
const CONTEXT_CHARS_MAX: usize = 200;

/// Reads an API; `None` after a mistake that leaves nothing to serve.
pub(super) fn read(import: &mut Import<'_>, spec: &Item<'_>, handle: Arc<str>) -> Option<Api> {
    known_keys(import, spec, &KEYS);
    let name = name(import, spec);
    let version = version(import, spec);
    let base_path = context(import, spec, version.as_deref().unwrap_or_default());
    if let Some(plans) = spec.get("subscriptionPlans") {
        import
            .warn(&plans.at(), "`subscriptionPlans` are ignored: subscriptions of the API Platform are not supported");
    }
    if let Some(faults) = spec.get("faultPolicies") {
        import.error(&faults.at(), "`faultPolicies` are not supported");
    }
    let endpoints = upstream::read(import, spec);
    let of_api = OfApi {
        chain: steps::read(import, spec, true),
        resilience: operations::resilience(import, spec, Resilience::default()),
        endpoints: &endpoints,
    };
    let operations = operations::read(import, spec, &of_api);
    let has_sandbox =
        |operation: &Arc<Operation>| operation.endpoints.as_ref().is_some_and(|endpoints| endpoints.sandbox.is_some());
    let has_sandbox = endpoints.sandbox.is_some() || operations.iter().any(has_sandbox);
    let Hosts { main, sandbox } = hosts::read(import, spec, has_sandbox);
    let vhosts = if main.is_empty() { Vec::new() } else { main.iter().chain(&sandbox).cloned().collect() };
    let mut api = Api {
        name: name?,
        version: version?,
        base_path: base_path?,
        vhosts,
        endpoints,
        operations,
        platform: Some(Arc::new(Platform { handle, hosts: main, sandbox_host: sandbox })),
        ..Api::default()
    };
    api.security.oauth2 = false;
    api.security.application = SecurityMode::Off;
    Some(api)
}

fn name(import: &mut Import<'_>, spec: &Item<'_>) -> Option<Arc<str>> {
    let name = import.some_text_of(spec, "displayName");
    let Some(name) = name else {
        import.error(&spec.at(), "`spec` needs `displayName`");
        return None;
    };
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
    if name.chars().count() > 100 || !name.chars().all(is_good) {
        let at = at_of(spec, "displayName");
        import.error(&at, "`displayName` is at most 100 letters, digits, blanks, `-`, `_` and `.`");
    }
    Some(name)
}

/// `v1.0`, `2`, `1.0.3`.
fn version(import: &mut Import<'_>, spec: &Item<'_>) -> Option<Arc<str>> {
    let Some(version) = import.some_text_of(spec, "version") else {
        import.error(&spec.at(), "`spec` needs `version`");
        return None;
    };
    let numbers: Vec<&str> = version.strip_prefix('v').unwrap_or(&version).split('.').collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() > 3 || !numbers.iter().all(is_number) {
        import.error(&at_of(spec, "version"), format!("`version` is one to three numbers, as `v1.0`, not `{version}`"));
    }
    Some(version)
}

fn context(import: &mut Import<'_>, spec: &Item<'_>, version: &str) -> Option<Arc<str>> {
    let Some(context) = import.some_text_of(spec, "context") else {
        import.error(&spec.at(), "`spec` needs `context`");
        return None;
    };
    let at = at_of(spec, "context");
    if context.len() > 1 && context.ends_with('/') {
        import.error(&at, "`context` does not end with `/`");
        return None;
    }
    if context.chars().count() > CONTEXT_CHARS_MAX {
        import.error(&at, format!("`context` is longer than {CONTEXT_CHARS_MAX} characters"));
        return None;
    }
    import.base_path(&context.replace("$version", version), &at)
}

pub(super) fn at_of(map: &Item<'_>, key: &str) -> At {
    map.get(key).map_or_else(|| map.at(), |item| item.at())
}
