//! `endpointConfig`: the backends of a descriptor.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{
    Api, AwsIdentity, Cluster, ClusterKind, EndpointSecurity, LambdaAccess, Lifecycle, Retry, Secret,
};

use crate::document::{Item, parse};
use crate::{Import, endpoint_security, hint, openapi};
use penstock_catalog::ErrorStyle;

/// Choreo Connect's maximum of retries; larger values are cut to it.
pub(crate) const RETRIES_MAX: u64 = 5;

/// Reads backends into an API.
pub(crate) fn read(import: &mut Import<'_>, item: &Item<'_>, api: &mut Api) {
    // Old exports carry it as JSON in a text.
    if let Some(text) = item.text() {
        let at = item.at();
        match parse(&at.file, text.as_bytes()) {
            Ok(mut document) => {
                // Places inside a text are those of the text.
                document.root.line = at.line;
                document.root.column = at.column;
                if document.item().is_map() {
                    return read(import, &document.item(), api);
                }
                import.error(&at, "`endpointConfig` must be a mapping");
            }
            Err((_, message)) => import.error(&at, format!("`endpointConfig` is not JSON: {message}")),
        }
        return;
    }
    if !item.is_map() {
        return import.error(&item.at(), format!("`endpointConfig` must be a mapping, not {}", item.kind()));
    }
    // Those of subscriptions are the same addresses, over WebSocket.
    if let Some(http) =
        item.get("http").filter(|_| import.text_of(item, "endpoint_type").is_some_and(|kind| &*kind == "graphql"))
    {
        return read(import, &http, api);
    }
    if import.text_of(item, "implementation_status").is_some_and(|status| &*status == "prototyped") {
        api.lifecycle = Lifecycle::Prototyped;
    }
    let kind = match kind(import, item, api) {
        Some(kind) => kind,
        None => return,
    };
    let security = item.get("endpoint_security");
    api.endpoints.production = cluster(import, item, "production", kind, security.as_ref());
    api.endpoints.sandbox = cluster(import, item, "sandbox", kind, security.as_ref());
    for key in ["sessionManagement", "sessionTimeOut"] {
        if let Some(found) =
            item.get(key).filter(|found| found.text().is_some_and(|text| !text.is_empty() && &**text != "none"))
        {
            import.warn(&found.at(), format!("`{key}` is ignored: requests are spread one by one"));
        }
    }
}

/// How backends are chosen; `None` after it was said that there are none a gateway can ask.
fn kind(import: &mut Import<'_>, item: &Item<'_>, api: &mut Api) -> Option<ClusterKind> {
    // Groups that take turns have it too: there it enables failover, which is always enabled.
    let fails_over = import.flag_of(item, "failOver") == Some(true);
    let kind = import.some_text_of(item, "endpoint_type");
    match kind.as_deref() {
        None if fails_over => Some(ClusterKind::Failover),
        None | Some("http" | "address" | "load_balance" | "loadbalance" | "service" | "ws") => {
            Some(ClusterKind::LoadBalance)
        }
        Some("failover") => Some(ClusterKind::Failover),
        Some("default") => Some(ClusterKind::Addressed),
        Some("awslambda") => {
            api.lambda = Some(lambda(import, item));
            None
        }
        Some(kind @ "sequence_backend") => {
            import.error(&item.at(), format!("backends of the type `{kind}` are not supported yet"));
            None
        }
        Some(other) => {
            let known = ["http", "address", "load_balance", "failover", "default"];
            let meant = hint(other, known.into_iter());
            import.error(&item.at(), format!("unknown `endpoint_type` `{other}`{meant}"));
            None
        }
    }
}

/// Who invokes functions of AWS, and where they are.
fn lambda(import: &mut Import<'_>, item: &Item<'_>) -> LambdaAccess {
    let region = import.some_text_of(item, "amznRegion");
    if let Some(role) = item.get("amznRoleArn").filter(|role| role.text().is_some_and(|text| !text.is_empty())) {
        import.error(&role.at(), "roles of AWS are not assumed (`amznRoleArn`): give the access key of who may invoke");
    }
    let (key_id, key) = (import.some_text_of(item, "amznAccessKey"), import.some_text_of(item, "amznSecretKey"));
    let identity = match (key_id, key) {
        (Some(key_id), Some(key)) => Some(AwsIdentity { key_id, key: Secret(key), session: None }),
        (None, None) => None,
        _ => {
            import.error(
                &item.at(),
                "an access key of AWS is `amznAccessKey` and `amznSecretKey`; one of them is missing",
            );
            None
        }
    };
    LambdaAccess { region, identity }
}

/// The backends for one kind of key: `production_endpoints` and `production_failovers`.
fn cluster(
    import: &mut Import<'_>,
    item: &Item<'_>,
    key: &str,
    kind: ClusterKind,
    security: Option<&Item<'_>>,
) -> Option<Arc<Cluster>> {
    let first = item.get(&format!("{key}_endpoints"));
    if kind == ClusterKind::Addressed && (first.is_some() || key == "production") {
        // Exports write the word `default` for its address.
        let mut cluster = Cluster { kind, at: item.at(), ..Cluster::default() };
        if let Some(config) = first.and_then(|first| first.get("config")) {
            advanced(import, &config, &mut cluster);
        }
        cluster.security = security.and_then(|all| credentials(import, all, key));
        return Some(Arc::new(cluster));
    }
    let first = first?;
    let mut described: Vec<Item<'_>> = if first.is_list() { first.items().collect() } else { vec![first] };
    let others = item.get(&format!("{key}_failovers"));
    let mut others = others.iter().flat_map(|list| list.items()).peekable();
    // Choreo Connect uses them for any type.
    let are_given = import.config.error_style == ErrorStyle::ChoreoConnect && others.peek().is_some();
    let kind = if are_given { ClusterKind::Failover } else { kind };
    if kind == ClusterKind::Failover {
        described.extend(others);
    }
    let mut cluster = Cluster { kind, at: first.at(), ..Cluster::default() };
    for endpoint in described {
        let Some(url) = import.some_text_of(&endpoint, "url") else {
            import.error(&endpoint.at(), "an endpoint needs `url`");
            continue;
        };
        let at = endpoint.get("url").map_or_else(|| endpoint.at(), |url| url.at());
        cluster.urls.extend(openapi::url(import, &url, &at));
        if let Some(config) = endpoint.get("config") {
            advanced(import, &config, &mut cluster);
        }
    }
    if cluster.urls.is_empty() {
        return None;
    }
    cluster.security = security.and_then(|all| credentials(import, all, key));
    Some(Arc::new(cluster))
}

/// `endpoint_security`: by kind of key, or the old form for both.
fn credentials(import: &mut Import<'_>, all: &Item<'_>, key: &str) -> Option<EndpointSecurity> {
    if let Some(one) = all.get(key) {
        return endpoint_security::read(import, &one);
    }
    all.get("type").and_then(|_| endpoint_security::read(import, all))
}

/// `config` of an endpoint. Numbers are milliseconds, and exports write them as texts.
fn advanced(import: &mut Import<'_>, config: &Item<'_>, cluster: &mut Cluster) {
    if config.text().is_some() {
        return;
    }
    let number = |import: &mut Import<'_>, key: &str| import.number_of(config, key).filter(|number| *number > 0);
    if let Some(millis) = number(import, "actionDuration") {
        cluster.timeout = Some(Duration::from_millis(millis));
    }
    // Choreo Connect repeats requests so often; to API Manager it says how many may fail before a backend is left alone.
    let repeats = import.config.error_style == ErrorStyle::ChoreoConnect;
    if let Some(count) = number(import, "retryTimeOut").filter(|_| repeats) {
        cluster.retry = Some(Retry { count: count.min(RETRIES_MAX) as u32, statuses: Vec::new() });
    }
    match config.get("actionSelect").and_then(|action| action.text().cloned()).as_deref() {
        None | Some("" | "fault") => {}
        Some("neverTimeout") => import.warn(
            &config.at(),
            "`actionSelect: neverTimeout` is ignored: every request ends, after `gateway.route_timeout` at the latest",
        ),
        Some(other) => {
            let message = format!("`actionSelect: {other}` is ignored: the client gets a timeout error");
            import.warn(&config.at(), message);
        }
    }
    let is_read = |key: &str| matches!(key, "actionDuration" | "actionSelect") || (key == "retryTimeOut" && repeats);
    let others: Vec<&str> = config
        .entries()
        .filter(|(key, _, value)| !is_read(key) && !is_empty(value))
        .map(|(key, _, _)| &**key)
        .collect();
    if !others.is_empty() {
        let message = format!("ignored: {}; backends are watched by health checks instead", others.join(", "));
        import.warn(&config.at(), message);
    }
}

fn is_empty(value: &Item<'_>) -> bool {
    value.is_null()
        || value.text().is_some_and(|text| text.is_empty())
        || (value.is_list() && value.items().next().is_none())
}
