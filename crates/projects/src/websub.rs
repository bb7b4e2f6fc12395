//! APIs of the type `WEBSUB`: the topics and publishers of their descriptor.

use std::sync::Arc;

use penstock_catalog::{Api, Operation, RECEIVER_PATH, Secret, SigningAlgorithm, Topic, WebSub, topic_name};

use super::document::{Item, parse};
use super::{Import, Project, hint};

const DEFINITIONS: [&str; 3] = ["Definitions/asyncapi.yaml", "Definitions/asyncapi.yml", "Definitions/asyncapi.json"];

/// What publishers of webhooks call the field of their signature.
const SIGNATURE_HEADER: &str = "x-hub-signature";

/// Reads what `data` says of publishers and subscribers.
pub(super) fn read(import: &mut Import<'_>, data: &Item<'_>) -> WebSub {
    let mut websub = WebSub {
        signature_header: SIGNATURE_HEADER.into(),
        verifies: import.flag_of(data, "enableSubscriberVerification").unwrap_or(false),
        ..WebSub::default()
    };
    let Some(config) = data.get("websubSubscriptionConfiguration") else { return websub };
    if import.flag_of(&config, "enable") == Some(false) {
        return websub;
    }
    websub.secret = import.some_text_of(&config, "secret").map(Secret);
    if let Some(name) = import.some_text_of(&config, "signatureHeader") {
        websub.signature_header = name;
    }
    if let Some(name) = import.some_text_of(&config, "signingAlgorithm") {
        let plain = name.to_ascii_lowercase().replace(['-', '_'], "");
        websub.algorithm = match plain.trim_start_matches("hmac") {
            "sha1" => SigningAlgorithm::Sha1,
            "sha256" => SigningAlgorithm::Sha256,
            "sha384" => SigningAlgorithm::Sha384,
            "sha512" => SigningAlgorithm::Sha512,
            _ => {
                let meant = hint(&name, ["SHA1", "SHA256", "SHA384", "SHA512"].into_iter());
                import.error(&config.at(), format!("unknown `signingAlgorithm` `{name}`{meant}"));
                SigningAlgorithm::Sha1
            }
        };
    }
    websub
}

/// Makes topics of what was read as operations, and operations of the hub's requests.
pub(super) fn finish(import: &mut Import<'_>, project: &Project, api: &mut Api) {
    let mut websub = api.websub.take().map(|websub| (*websub).clone()).unwrap_or_default();
    let topic = |operation: &Arc<Operation>| Topic {
        name: topic_name(&operation.path).into(),
        secured: operation.secured,
        scopes: operation.scopes.clone(),
        at: operation.at.clone(),
    };
    websub.topics = api.operations.iter().map(topic).collect();
    if websub.topics.is_empty() {
        websub.topics = channels(import, project);
    }
    websub.topics.sort_by(|left, right| left.name.cmp(&right.name));
    websub.topics.dedup_by(|left, right| left.name == right.name);
    if websub.topics.is_empty() {
        import.error(&api.at, "the hub has no topic: give `operations` or `Definitions/asyncapi.yaml`");
    }
    if websub.secret.is_none() {
        let message =
            "publishers are not authenticated: `websubSubscriptionConfiguration` has no `secret`, or is not enabled";
        import.warn(&api.at, message);
    }
    let secured = websub.topics.iter().any(|topic| topic.secured);
    let one = |method: &str, path: &str, secured| {
        let (method, path, at) = (method.into(), path.into(), api.at.clone());
        Arc::new(Operation { method, path, secured, at, ..Operation::default() })
    };
    api.operations = vec![
        one("POST", RECEIVER_PATH, false),
        one("POST", "/*", secured),
        one("GET", "/*", secured),
        one("HEAD", "/*", secured),
    ];
    api.websub = Some(Arc::new(websub));
}

/// The channels of a definition of AsyncAPI.
fn channels(import: &mut Import<'_>, project: &Project) -> Vec<Topic> {
    let Some(file) = DEFINITIONS.iter().find_map(|name| project.file(name)) else { return Vec::new() };
    let document = match parse(&file.file, &file.bytes) {
        Ok(document) => document,
        Err((at, message)) => {
            import.error(&at, message);
            return Vec::new();
        }
    };
    let channels = document.item().get("channels");
    let topic = |(name, at, _): (&Arc<str>, _, _)| Topic {
        name: topic_name(name).into(),
        secured: true,
        scopes: Vec::new(),
        at,
    };
    channels.iter().flat_map(|channels| channels.entries()).map(topic).collect()
}
