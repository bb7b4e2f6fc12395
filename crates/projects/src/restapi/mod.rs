//! The resources of WSO2's API Platform: files with `apiVersion`, `kind`, `metadata` and `spec`.
//!
//! `template.rs` fills in values of the environment, `spec.rs` reads an API, `hosts.rs` its hosts, `upstream.rs` its
//! backends, `operations.rs` its operations, `steps.rs` the rows of policies. What the parameters of a policy mean is read by the policy itself (`policy/chain/`).

mod hosts;
mod operations;
mod spec;
mod steps;
mod template;
mod upstream;

use penstock_catalog::{Api, At};

pub use template::fill as fill_template;

use super::document::{Document, Item};
use super::{Import, hint};

/// What `apiVersion` begins with; the API Platform has written both.
const GROUPS: [&str; 2] = ["gateway.api-platform.wso2.com/", "api-platform.wso2.com/"];

/// The versions of the format.
const VERSIONS: [&str; 4] = ["v1alpha1", "v1alpha2", "v1beta1", "v1"];

/// Kinds of the API Platform that are not supported.
const OTHER_KINDS: [&str; 15] = [
    "WebSubApi",
    "WebBrokerApi",
    "GraphQLApi",
    "GraphQLApiKey",
    "Mcp",
    "LlmProvider",
    "LlmProviderTemplate",
    "LlmProxy",
    "Agent",
    "ApiKey",
    "Certificate",
    "ManagedSecret",
    "Secret",
    "Subscription",
    "SubscriptionPlan",
];

/// What a resource is.
pub(super) enum Resource {
    /// An API, unless there is a mistake in it.
    Api(Option<Box<Api>>),
    /// Something else, of which everything was said.
    Other,
}

/// Whether a document is a resource of the API Platform.
pub(super) fn is_resource(root: &Item<'_>) -> bool {
    let version = root.get("apiVersion").and_then(|version| version.text().cloned());
    version.is_some_and(|version| GROUPS.iter().any(|group| version.starts_with(group)))
}

/// Reads one.
pub(super) fn read(import: &mut Import<'_>, document: &mut Document) -> Resource {
    let file = document.file.clone();
    template::apply(import, &file, &mut document.root);
    let root = document.item();
    let at = |key: &str| root.get(key).map_or_else(|| root.at(), |item| item.at());
    let version = import.text_of(&root, "apiVersion").unwrap_or_default();
    let number = version.rsplit('/').next().unwrap_or_default();
    if !VERSIONS.contains(&number) {
        let meant = hint(number, VERSIONS.into_iter());
        import.error(
            &at("apiVersion"),
            format!("`apiVersion` ends with one of {}, not `{number}`{meant}", list(&VERSIONS)),
        );
    }
    let kind = import.text_of(&root, "kind").unwrap_or_default();
    match &*kind {
        "RestApi" => {
            let api = api(import, &root).map(Box::new);
            let state = root.get("spec").and_then(|spec| spec.get("deploymentState"));
            if let Some(state) = &state
                && !state.text().is_some_and(|text| matches!(&**text, "deployed" | "undeployed"))
            {
                import.error(&state.at(), "`deploymentState` is `deployed` or `undeployed`");
            }
            match state.filter(|state| state.text().is_some_and(|text| **text == *"undeployed")) {
                Some(state) if !import.failed() => {
                    import.warn(&state.at(), "not served: `deploymentState` is `undeployed`");
                    Resource::Other
                }
                _ => Resource::Api(api),
            }
        }
        kind if OTHER_KINDS.contains(&kind) => {
            import.error(&at("kind"), format!("resources of the kind `{kind}` are not supported; `RestApi` is"));
            Resource::Api(None)
        }
        kind => {
            let meant = hint(kind, ["RestApi"].into_iter());
            import.error(&at("kind"), format!("`kind` must be `RestApi`, not `{kind}`{meant}"));
            Resource::Api(None)
        }
    }
}

fn api(import: &mut Import<'_>, root: &Item<'_>) -> Option<Api> {
    known_keys(import, root, &["apiVersion", "kind", "metadata", "spec", "status"]);
    let metadata = mapping(import, root, "metadata", root.at());
    let spec = mapping(import, root, "spec", root.at());
    let handle = metadata.and_then(|metadata| {
        known_keys(import, &metadata, &["name", "labels", "annotations", "namespace"]);
        let name = import.some_text_of(&metadata, "name");
        if name.is_none() {
            import.error(&metadata.at(), "`metadata` needs `name`");
        }
        name
    });
    let mut api = spec::read(import, &spec?, handle?)?;
    api.at = root.at();
    Some(api)
}

/// The member that must be a mapping.
fn mapping<'d>(import: &mut Import<'_>, map: &Item<'d>, key: &str, at: At) -> Option<Item<'d>> {
    let found = map.get(key);
    match found {
        Some(item) if item.is_map() => return Some(item),
        Some(item) => import.error(&item.at(), format!("`{key}` must be a mapping, not {}", item.kind())),
        None => import.error(&at, format!("`{key}` is missing")),
    }
    None
}

/// The API Platform reads resources strictly: a key that it does not know is a mistake.
fn known_keys(import: &mut Import<'_>, map: &Item<'_>, known: &[&str]) {
    for (key, at, _) in map.entries() {
        if !known.contains(&&**key) {
            import.error(&at, format!("unknown key `{key}`{}", hint(key, known.iter().copied())));
        }
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
