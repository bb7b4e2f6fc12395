//! `api.yaml`: the description of an API that the publisher of API Manager exports and `apictl` writes.
//!
//! Start reading at [`read`], then `endpoint_config.rs` (backends) and `operations.rs`.

pub(super) mod endpoint_config;
pub(super) mod operations;
mod sequences;

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Api, ApiKind, At, Implementation, Lifecycle, Limit, LimitUnit, Schemes, SecurityMode};

use super::document::Item;
use super::{Import, hint, websub};
pub(super) use sequences::NamedSequence;

/// What a descriptor says, before the definition is read.
pub(super) struct Descriptor {
    /// The API.
    pub api: Api,
    /// `securityScheme`, when there is one.
    pub schemes: Option<Schemes>,
    /// Sequences that surround all operations, as versions before 4 wrote them.
    pub sequences: Vec<NamedSequence>,
    /// Where it is served.
    pub context: Context,
    /// `isDefaultVersion`.
    pub is_default: bool,
    /// Where backends are described, when they are.
    pub endpoints_at: Option<At>,
}

/// `context`, in which `{version}` stands for the version.
pub(super) struct Context(Arc<str>);

impl Context {
    /// The base path of a version: the version follows the context unless it is part of it.
    pub fn base_path(&self, version: &str) -> Arc<str> {
        let context = self.0.trim_end_matches('/');
        if context.contains("{version}") {
            return context.replace("{version}", version).into();
        }
        if context.split('/').any(|segment| segment == version) {
            return context.into();
        }
        format!("{context}/{version}").into()
    }
}

/// Members that describe an API to people and to the publisher, and mean nothing to a gateway.
const FOR_OTHERS: [&str; 36] = [
    "id",
    "displayName",
    "description",
    "hasThumbnail",
    "isRevision",
    "revisionId",
    "revisionedApiId",
    "tags",
    "categories",
    "visibility",
    "visibleRoles",
    "visibleTenants",
    "visibleOrganizations",
    "subscriptionAvailability",
    "subscriptionAvailableTenants",
    "additionalProperties",
    "additionalPropertiesMap",
    "accessControl",
    "accessControlRoles",
    "businessInformation",
    "createdTime",
    "lastUpdatedTime",
    "lastUpdatedTimestamp",
    "scopes",
    "serviceInfo",
    "monetization",
    "monetizedLabel",
    "enableStore",
    "gatewayEnvironments",
    "deploymentEnvironments",
    "labels",
    "apiHubPolicies",
    "organizationPolicies",
    "workflowStatus",
    "initiatedFromGateway",
    "sandboxMaxTps",
];

/// Members that would make a difference and make none here, and why.
const WITHOUT_EFFECT: [(&str, &str); 9] = [
    ("primaryProductionEndpointId", "the backends are those of `endpointConfig`"),
    ("primarySandboxEndpointId", "the backends are those of `endpointConfig`"),
    ("threatProtectionPolicies", "operation policies protect from threats"),
    ("gatewayVendor", ""),
    ("gatewayType", ""),
    ("subtypeConfiguration", "the tokens of models are not counted"),
    ("enableSubscriberVerification", ""),
    ("asyncTransportProtocols", ""),
    ("egress", "the API is served like any other"),
];

/// Members that are read.
const READ: [&str; 31] = [
    "keyManagers",
    "mediationPolicies",
    "websubSubscriptionConfiguration",
    "name",
    "context",
    "contextTemplate",
    "version",
    "provider",
    "lifeCycleStatus",
    "type",
    "transport",
    "isDefaultVersion",
    "endpointConfig",
    "endpointImplementationType",
    "securityScheme",
    "authorizationHeader",
    "apiKeyHeader",
    "audiences",
    "audience",
    "corsConfiguration",
    "operations",
    "apiPolicies",
    "policies",
    "apiThrottlingPolicy",
    "enableSchemaValidation",
    "responseCachingEnabled",
    "cacheTimeout",
    "maxTps",
    "organizationId",
    "advertiseInfo",
    "wsdlInfo",
];

/// Reads `data` of a descriptor; `None` after it was said what is missing.
pub(super) fn read(import: &mut Import<'_>, data: &Item<'_>) -> Option<Descriptor> {
    let mut descriptor = read_without_operations(import, data)?;
    operations::read(import, data, &mut descriptor.api);
    Some(descriptor)
}

/// The same without operations: of an MCP server, which has tools, and of a product, which has those of its APIs.
pub(super) fn read_without_operations(import: &mut Import<'_>, data: &Item<'_>) -> Option<Descriptor> {
    for (key, at, _) in data.entries() {
        let known = || READ.iter().chain(&FOR_OTHERS).copied().chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name));
        if !known().any(|name| name == &**key) && !key.starts_with("x-") {
            let meant = hint(key, known());
            // A member of a newer version is no mistake; one that looks like a known one may be.
            if !meant.is_empty() {
                import.warn(&at, format!("unknown member `{key}` is ignored{meant}"));
            }
        }
    }
    tell_without_effect(import, data);
    let mut needed = |key: &str| {
        let found = import.some_text_of(data, key);
        if found.is_none() {
            import.error(&data.get(key).map_or_else(|| data.at(), |item| item.at()), format!("an API needs `{key}`"));
        }
        found
    };
    let (name, context, version) = (needed("name"), needed("context"), needed("version"));
    let (name, context, version) = (name?, context?, version?);
    let context_at = data.get("context").map_or_else(|| data.at(), |item| item.at());
    let context: Arc<str> = if context.starts_with('/') { context } else { format!("/{context}").into() };
    import.base_path(&context.replace("{version}", &version), &context_at)?;
    let mut api = Api { name, version, at: data.at(), ..Api::default() };
    api.kind = kind(import, data)?;
    if api.kind == ApiKind::WebSub {
        api.websub = Some(Arc::new(websub::read(import, data)));
    }
    api.provider = import.text_of(data, "provider").unwrap_or_default();
    api.organization = import.text_of(data, "organizationId").unwrap_or_default();
    api.lifecycle = lifecycle(import, data);
    api.implementation = implementation(import, data);
    api.authorization_header = import.some_text_of(data, "authorizationHeader");
    api.api_key_header = import.some_text_of(data, "apiKeyHeader");
    // Not `audience`, which says whom the portal is for.
    api.audiences = unless_all(import.texts_of(data, "audiences"));
    api.key_managers = unless_all(import.texts_of(data, "keyManagers"));
    api.cors = data.get("corsConfiguration").and_then(|item| import.cors(&item));
    // Without a limit of its own the API has those of its operations.
    api.tier = import.some_text_of(data, "apiThrottlingPolicy").filter(|tier| !tier.eq_ignore_ascii_case("Unlimited"));
    api.subscription_plans = import.texts_of(data, "policies");
    api.transports = import.texts_of(data, "transport");
    api.schema_validation = import.flag_of(data, "enableSchemaValidation").unwrap_or(false);
    if import.flag_of(data, "responseCachingEnabled") == Some(true) {
        let seconds = import.number_of(data, "cacheTimeout").unwrap_or(300);
        api.response_cache = Some(Duration::from_secs(seconds));
    }
    if let Some(limits) = data.get("maxTps") {
        api.backend_limit = (backend_limit(import, &limits, "production"), backend_limit(import, &limits, "sandbox"));
    }
    if let Some(advertised) = data.get("advertiseInfo")
        && import.flag_of(&advertised, "advertised") == Some(true)
    {
        import.error(&advertised.at(), "the API is only advertised (`advertised: true`); it is served elsewhere");
    }
    let config = data.get("endpointConfig");
    if let Some(config) = &config {
        endpoint_config::read(import, config, &mut api);
    }
    let endpoints = config.filter(|_| api.endpoints.production.is_some() || api.endpoints.sandbox.is_some());
    Some(Descriptor {
        schemes: schemes(import, data),
        sequences: sequences::read(import, data),
        context: Context(context),
        is_default: import.flag_of(data, "isDefaultVersion").unwrap_or(false),
        endpoints_at: endpoints.map(|item| item.at()),
        api,
    })
}

/// Reports members that are ignored.
fn tell_without_effect(import: &mut Import<'_>, data: &Item<'_>) {
    let is_async =
        matches!(data.get("type").and_then(|kind| kind.text().cloned()).as_deref(), Some("WEBSUB" | "WS" | "SSE"));
    for (name, why) in WITHOUT_EFFECT {
        let Some(item) = data.get(name) else { continue };
        let says_nothing = match name {
            "gatewayVendor" => item.text().is_none_or(|text| text.is_empty() || text.eq_ignore_ascii_case("wso2")),
            "gatewayType" => item.text().is_none_or(|text| text.is_empty() || text.starts_with("wso2/")),
            "subtypeConfiguration" => item
                .get("subtype")
                .and_then(|subtype| subtype.text().cloned())
                // Others say where the tools of an MCP server come from.
                .is_none_or(|text| !text.eq_ignore_ascii_case("AIAPI")),
            // What exports call the backends of `endpointConfig`.
            "primaryProductionEndpointId" | "primarySandboxEndpointId" => {
                item.text().is_none_or(|text| text.is_empty() || text.starts_with("default_"))
            }
            "asyncTransportProtocols" | "enableSubscriberVerification" => is_async || says_nothing(&item),
            _ => says_nothing(&item),
        };
        if says_nothing {
            continue;
        }
        let value = item.text().map_or_else(String::new, |text| format!(": {text}"));
        let why = match (name, why) {
            ("gatewayVendor" | "gatewayType", _) => "the API was made for another gateway and is served by this one",
            (_, "") => "it is for APIs of another type",
            (_, why) => why,
        };
        let message = format!("`{name}{value}` is ignored; {why}");
        match name {
            "threatProtectionPolicies" => import.unprotected(&item.at(), message),
            _ => import.warn(&item.at(), message),
        }
    }
}

/// Whether a value is what exports write for nothing.
fn says_nothing(item: &Item<'_>) -> bool {
    let texts = ["", "0", "false", "null"];
    item.is_null()
        || item.text().is_some_and(|text| texts.contains(&&**text))
        || ((item.is_list() || item.is_map())
            && item.items().all(|one| says_nothing(&one))
            && item.entries().all(|(_, _, one)| says_nothing(&one)))
}

/// A list, unless it has what the publisher writes for no restriction.
fn unless_all(list: Vec<Arc<str>>) -> Vec<Arc<str>> {
    if list.iter().any(|one| &**one == "all") { Vec::new() } else { list }
}

/// The maximum rate of backends for a key type: an amount, and its window.
fn backend_limit(import: &mut Import<'_>, limits: &Item<'_>, kind: &str) -> Option<Limit> {
    let amount = import.number_of(limits, kind)?;
    let key = format!("{kind}TimeUnit");
    let unit = import.some_text_of(limits, &key).unwrap_or_else(|| "SECOND".into());
    let seconds = match &*unit.to_ascii_uppercase() {
        "SECOND" | "SEC" => 1,
        "MINUTE" | "MIN" => 60,
        "HOUR" => 3_600,
        "DAY" => 86_400,
        _ => {
            let meant = hint(&unit.to_ascii_uppercase(), ["SECOND", "MINUTE", "HOUR", "DAY"].into_iter());
            import.error(&at_of(limits, &key), format!("`{key}` must be a time, not `{unit}`{meant}"));
            return None;
        }
    };
    Some(Limit { amount, unit: LimitUnit::Requests, window: Duration::from_secs(seconds) })
}

/// The item of a member, or of the whole when it is absent.
fn at_of(data: &Item<'_>, key: &str) -> At {
    data.get(key).map_or_else(|| data.at(), |item| item.at())
}

fn kind(import: &mut Import<'_>, data: &Item<'_>) -> Option<ApiKind> {
    let Some(kind) = import.some_text_of(data, "type") else { return Some(ApiKind::Http) };
    match &*kind.to_ascii_uppercase() {
        "HTTP" => Some(ApiKind::Http),
        "SOAP" => Some(ApiKind::Soap),
        "GRAPHQL" => Some(ApiKind::GraphQl),
        "WS" => {
            import.sockets = true;
            Some(ApiKind::WebSocket)
        }
        "WEBSUB" => Some(ApiKind::WebSub),
        "SSE" => Some(ApiKind::Sse),
        "WEBHOOK" | "ASYNC" | "SOAPTOREST" | "APIPRODUCT" | "MCP" => {
            import.error(&at_of(data, "type"), format!("APIs of the type `{kind}` are not supported yet"));
            None
        }
        _ => {
            let meant = hint(&kind, ["HTTP", "SOAP", "GRAPHQL", "WS", "WEBSUB", "SSE"].into_iter());
            import.error(&at_of(data, "type"), format!("unknown type of API `{kind}`{meant}"));
            None
        }
    }
}

fn lifecycle(import: &mut Import<'_>, data: &Item<'_>) -> Lifecycle {
    let Some(state) = import.some_text_of(data, "lifeCycleStatus") else { return Lifecycle::Published };
    match &*state.to_ascii_uppercase() {
        "CREATED" => Lifecycle::Created,
        "PROTOTYPED" | "PRE-RELEASED" => Lifecycle::Prototyped,
        "PUBLISHED" => Lifecycle::Published,
        "BLOCKED" => Lifecycle::Blocked,
        "DEPRECATED" => Lifecycle::Deprecated,
        "RETIRED" => {
            import.error(&at_of(data, "lifeCycleStatus"), "a retired API is not served");
            Lifecycle::Retired
        }
        _ => {
            let message = format!("the state `{state}` is not known; the API is served as if it were published");
            import.warn(&at_of(data, "lifeCycleStatus"), message);
            Lifecycle::Published
        }
    }
}

fn implementation(import: &mut Import<'_>, data: &Item<'_>) -> Implementation {
    let Some(kind) = import.some_text_of(data, "endpointImplementationType") else { return Implementation::Endpoint };
    match &*kind.to_ascii_uppercase() {
        "ENDPOINT" | "MARKDOWN" => Implementation::Endpoint,
        "MOCKED_OAS" => Implementation::Mock,
        "INLINE" => Implementation::Inline,
        _ => {
            let meant = hint(&kind, ["ENDPOINT", "MOCKED_OAS", "INLINE"].into_iter());
            let message = format!("unknown implementation `{kind}`{meant}");
            import.error(&at_of(data, "endpointImplementationType"), message);
            Implementation::Endpoint
        }
    }
}

/// `securityScheme`. Absent or empty leaves it to the definition.
fn schemes(import: &mut Import<'_>, data: &Item<'_>) -> Option<Schemes> {
    let item = data.get("securityScheme")?;
    let names = import.texts(&item, "securityScheme");
    const NAMES: [&str; 7] = [
        "oauth2",
        "basic_auth",
        "api_key",
        "mutualssl",
        "mutualssl_mandatory",
        "oauth_basic_auth_api_key_mandatory",
        "oauth_basic_auth_api_key_optional",
    ];
    for name in names.iter().filter(|name| !NAMES.contains(&&***name)) {
        import.unprotected(&item.at(), format!("unknown security scheme `{name}`{}", hint(name, NAMES.into_iter())));
    }
    let has = |name: &str| names.iter().any(|known| &**known == name);
    if !NAMES.iter().any(|name| has(name)) {
        return None;
    }
    let (oauth2, api_key, basic) = (has("oauth2"), has("api_key"), has("basic_auth"));
    let any = oauth2 || api_key || basic;
    let mutual_tls = match () {
        // With nothing beside it there is nothing it could be optional to.
        _ if has("mutualssl_mandatory") || (has("mutualssl") && !any) => SecurityMode::Mandatory,
        _ if has("mutualssl") => SecurityMode::Optional,
        _ => SecurityMode::Off,
    };
    let application = match () {
        // Certificates alone.
        _ if !any && mutual_tls != SecurityMode::Off => SecurityMode::Off,
        _ if has("oauth_basic_auth_api_key_mandatory") || mutual_tls == SecurityMode::Off => SecurityMode::Mandatory,
        _ => SecurityMode::Optional,
    };
    // Nothing named means tokens, unless certificates do.
    let oauth2 = oauth2 || (!any && mutual_tls == SecurityMode::Off);
    Some(Schemes { oauth2, api_key, basic, mutual_tls, application })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_follows_the_context_once() {
        for (context, version, expected) in [
            ("/orders", "1.0.0", "/orders/1.0.0"),
            ("/orders/", "1.0.0", "/orders/1.0.0"),
            ("/{version}/orders", "v2", "/v2/orders"),
            ("/orders/2.0.0", "2.0.0", "/orders/2.0.0"),
            ("/t/acme/orders", "1", "/t/acme/orders/1"),
        ] {
            assert_eq!(&*Context(context.into()).base_path(version), expected, "{context}");
        }
    }
}
