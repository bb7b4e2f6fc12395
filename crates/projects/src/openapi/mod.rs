//! OpenAPI 2.0, 3.0 and 3.1 with the extensions of API Manager and Choreo Connect.
//!
//! Start reading at [`read`], then `extensions.rs` (which there are), `paths.rs` (operations) and `endpoints.rs`.

pub(super) mod endpoints;
mod extensions;
mod mock;
mod paths;
mod reference;
pub(super) mod security;

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Api, At, Cluster, Implementation, SecurityMode};

use super::document::Item;
use super::{Definition, Import};
pub(super) use endpoints::url;
use extensions::Level;
pub(super) use paths::METHODS;
pub(super) use reference::{follow, resolve};

/// What a definition says, before it is known whether a descriptor says otherwise.
#[derive(Default)]
pub(super) struct OpenApi {
    /// The API as far as the definition describes it; its endpoints are those of extensions.
    pub api: Api,
    /// `x-wso2-basePath`.
    pub base_path: Option<Arc<str>>,
    /// The base path when nothing else says one.
    pub fallback_base: Arc<str>,
    /// The backend that `servers` or `host` name.
    pub server: Option<Arc<Cluster>>,
    /// The one for sandbox keys, if a definition has it.
    pub sandbox_server: Option<Arc<Cluster>>,
    /// `x-wso2-http2-backend-enabled`.
    pub http2: bool,
    /// `x-wso2-label`.
    pub labels: Vec<(Arc<str>, At)>,
}

/// Whether examples of answers are wanted, which are much to keep for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Examples {
    Read,
    Skip,
}

/// Reads a definition.
pub(super) fn read(import: &mut Import<'_>, root: Item<'_>, kind: Definition, examples: Examples) -> OpenApi {
    extensions::check(import, &root, Level::Api);
    let mut found = root_of(import, &root);
    let (server, mut fallback_base) = match kind {
        Definition::Swagger => (endpoints::host(import, &root), "/".into()),
        _ => endpoints::servers(import, &root),
    };
    let is_fallback_needed = found.base_path.is_none();
    if is_fallback_needed && &*fallback_base != "/" {
        fallback_base = import.base_path(&fallback_base, &root.at()).unwrap_or(fallback_base);
    }
    if kind == Definition::Swagger
        && is_fallback_needed
        && let Some(item) = root.get("basePath")
        && let Some(text) = import.text(&item, "basePath")
    {
        fallback_base = import.base_path(&text, &item.at()).unwrap_or_else(|| "/".into());
    }
    let is_mock = import.flag_of(&root, "x-wso2-is-mock-api").unwrap_or(false);
    let examples = if is_mock { Examples::Read } else { examples };
    if is_mock {
        found.api.implementation = Implementation::Mock;
    }
    found.http2 = import.flag_of(&root, "x-wso2-http2-backend-enabled").unwrap_or(false);
    found.api.operations = paths::read(import, root, kind, examples, found.api.tier.is_some());
    OpenApi { server: server.map(Arc::new), fallback_base, ..found }
}

/// What the root of every definition says, of AsyncAPI too.
pub(super) fn root_of(import: &mut Import<'_>, root: &Item<'_>) -> OpenApi {
    let mut api = Api { at: root.at(), ..Api::default() };
    match root.get("info") {
        Some(info) => {
            api.name = import.some_text_of(&info, "title").unwrap_or_default();
            api.version = import.some_text_of(&info, "version").unwrap_or_default();
        }
        None => import.error(&root.at(), "a definition needs `info` with `title` and `version`"),
    }
    let base_path = root.get("x-wso2-basePath").and_then(|item| {
        let text = import.text(&item, "x-wso2-basePath")?;
        import.base_path(&text.replace("{version}", &api.version), &item.at())
    });
    api.endpoints = endpoints::read(import, root, root);
    root_extensions(import, root, &mut api);
    security::read_api(import, root, &mut api);
    let labels = match root.get("x-wso2-label") {
        Some(item) => import.texts(&item, "x-wso2-label").into_iter().map(|label| (label, item.at())).collect(),
        None => Vec::new(),
    };
    OpenApi { api, base_path, labels, ..OpenApi::default() }
}

/// Extensions of the root that are one value each.
fn root_extensions(import: &mut Import<'_>, root: &Item<'_>, api: &mut Api) {
    api.cors = root.get("x-wso2-cors").and_then(|item| import.cors(&item));
    api.authorization_header = import.some_text_of(root, "x-wso2-auth-header");
    api.api_key_header = import.some_text_of(root, "x-wso2-api-key-header");
    api.tier = tier(import, root);
    api.transports = import.texts_of(root, "x-wso2-transports");
    if let Some(cache) = root.get("x-wso2-response-cache")
        && import.flag_of(&cache, "enabled") == Some(true)
    {
        let seconds = import.number_of(&cache, "cacheTimeoutInSeconds").unwrap_or(300);
        api.response_cache = Some(Duration::from_secs(seconds));
    }
    api.schema_validation = import.flag_of(root, "x-wso2-schema-validation").unwrap_or(false);
    if let Some(item) = root.get("x-wso2-mutual-ssl")
        && let Some(text) = import.text(&item, "x-wso2-mutual-ssl")
    {
        api.security.mutual_tls = match text.to_ascii_lowercase().as_str() {
            "mandatory" => SecurityMode::Mandatory,
            "optional" => SecurityMode::Optional,
            other => {
                import
                    .error(&item.at(), format!("`x-wso2-mutual-ssl` must be `mandatory` or `optional`, not `{other}`"));
                SecurityMode::Off
            }
        };
    }
}

/// The plan of an API or an operation: the extension of the gateway before that of the publisher.
pub(super) fn tier(import: &mut Import<'_>, item: &Item<'_>) -> Option<Arc<str>> {
    import.some_text_of(item, "x-wso2-throttling-tier").or_else(|| import.some_text_of(item, "x-throttling-tier"))
}
