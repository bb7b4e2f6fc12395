//! AsyncAPI 2: the channels of a WebSocket API are topics a client connects to.
//!
//! A connection goes both ways, so publishing and subscribing on one channel are one operation: `GET` on the topic.
//! Start reading at [`read`]; [`join`] makes one of both, [`finish`] says what has no effect on frames.

use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, At, Cluster, Implementation, Operation, Policies, Requirement};

use super::document::Item;
use super::openapi::{OpenApi, endpoints, resolve, root_extensions, security, tier};
use super::shared::address;
use super::{Import, hint};
use crate::router::PathPattern;

/// Channels of one API. More is a generator that went wrong.
const CHANNELS_MAX: usize = 20_000;

/// What the two directions of a channel are called, the one that comes first where both say something.
const PUBLISH: &str = "PUBLISH";
const SUBSCRIBE: &str = "SUBSCRIBE";

/// The topic of an API that names none: the API as a whole.
const ANY_TOPIC: &str = "/*";

/// Extensions by the level they are read at.
const OF_APIS: &[&str] = &[
    "x-wso2-basePath",
    "x-wso2-production-endpoints",
    "x-wso2-sandbox-endpoints",
    "x-wso2-endpoints",
    "x-wso2-cors",
    "x-wso2-disable-security",
    "x-auth-type",
    "x-wso2-auth-header",
    "x-wso2-api-key-header",
    "x-wso2-application-security",
    "x-wso2-mutual-ssl",
    "x-wso2-throttling-tier",
    "x-throttling-tier",
    "x-wso2-transports",
    "x-wso2-label",
];
const OF_CHANNELS: &[&str] = &["x-wso2-disable-security", "x-auth-type"];
const OF_OPERATIONS: &[&str] = &[
    "x-uri-mapping",
    "x-scopes",
    "x-wso2-disable-security",
    "x-auth-type",
    "x-wso2-throttling-tier",
    "x-throttling-tier",
];

/// The verb of a topic in a descriptor; `None` when it is none.
pub(super) fn verb(text: &str) -> Option<&'static str> {
    [PUBLISH, SUBSCRIBE].into_iter().find(|verb| verb.eq_ignore_ascii_case(text))
}

/// Reads a definition.
pub(super) fn read(import: &mut Import<'_>, root: Item<'_>) -> OpenApi {
    import.sockets = true;
    check(import, &root, OF_APIS);
    let mut api = Api { kind: ApiKind::WebSocket, at: root.at(), ..Api::default() };
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
    api.endpoints = endpoints::read(import, &root, &root);
    root_extensions(import, &root, &mut api);
    security::read_api(import, &root, &mut api);
    let Servers { production, sandbox, path, requirements } = servers(import, root);
    let fallback_base = match &base_path {
        None => import.base_path(&path, &root.at()).unwrap_or_else(|| "/".into()),
        Some(_) => "/".into(),
    };
    let labels = match root.get("x-wso2-label") {
        Some(item) => import.texts(&item, "x-wso2-label").into_iter().map(|label| (label, item.at())).collect(),
        None => Vec::new(),
    };
    api.operations = channels(import, root, &requirements, api.tier.is_some());
    OpenApi { api, base_path, fallback_base, server: production, sandbox_server: sandbox, http2: false, labels }
}

/// What `servers` say.
#[derive(Default)]
struct Servers {
    production: Option<Arc<Cluster>>,
    sandbox: Option<Arc<Cluster>>,
    /// The path of the first address.
    path: String,
    requirements: Vec<Requirement>,
}

/// `servers`: one called `sandbox` is for sandbox keys, all others are for production.
fn servers(import: &mut Import<'_>, root: Item<'_>) -> Servers {
    let mut found = Servers { path: "/".to_owned(), ..Servers::default() };
    let Some(list) = root.get("servers") else { return found };
    let (mut production, mut sandbox) = (Vec::new(), Vec::new());
    for (name, at, server) in list.entries() {
        let Some(server) = resolve(import, root, server) else { continue };
        let Some(url) = import.some_text_of(&server, "url") else {
            import.error(&at, format!("the server `{name}` needs `url`"));
            continue;
        };
        let mut url = endpoints::variables(&url, &server);
        let protocol = import.text_of(&server, "protocol").unwrap_or_default().to_ascii_lowercase();
        if !matches!(&*protocol, "" | "ws" | "wss" | "http" | "https") {
            import.warn(
                &at,
                format!("the server `{name}` speaks `{protocol}` and is left out; WebSocket is `ws` or `wss`"),
            );
            continue;
        }
        if !url.contains("://") {
            url = format!("{}://{url}", if protocol.is_empty() { "ws" } else { &protocol });
        }
        let url_at = server.get("url").map_or(at, |url| url.at());
        let Some(url) = endpoints::url(import, &url, &url_at) else { continue };
        if production.is_empty() && sandbox.is_empty() {
            found.path = address(&url).map_or("/", |url| url.path).to_owned();
        }
        if let Some(requirements) = security::requirements(import, root, &server)
            && found.requirements.is_empty()
        {
            found.requirements = requirements;
        }
        if &**name == "sandbox" { &mut sandbox } else { &mut production }.push(url);
    }
    let cluster = |urls: Vec<Arc<str>>| {
        (!urls.is_empty()).then(|| Arc::new(Cluster { urls, at: list.at(), ..Cluster::default() }))
    };
    (found.production, found.sandbox) = (cluster(production), cluster(sandbox));
    found
}

/// The topics, in the order written.
fn channels(
    import: &mut Import<'_>,
    root: Item<'_>,
    requirements: &[Requirement],
    api_has_tier: bool,
) -> Vec<Arc<Operation>> {
    let api_secured = security::secured(import, &root);
    let mut operations = Vec::new();
    for (name, at, channel) in root.get("channels").iter().flat_map(|channels| channels.entries()) {
        if name.starts_with("x-") {
            continue;
        }
        if operations.len() >= CHANNELS_MAX {
            import.error(&at, format!("more than {CHANNELS_MAX} channels"));
            break;
        }
        let Some(channel) = resolve(import, root, channel) else { continue };
        check(import, &channel, OF_CHANNELS);
        let secured = security::secured(import, &channel).or(api_secured);
        let before = operations.len();
        for (key, verb) in [("publish", PUBLISH), ("subscribe", SUBSCRIBE)] {
            // `publish: {}` and a `publish` with nothing behind it say that there is one.
            let Some((_, at, item)) = channel.entries().find(|(name, _, _)| &***name == key) else { continue };
            let Some(item) = resolve(import, root, item) else { continue };
            let mut operation = topic(import, root, &item, api_has_tier);
            operation.method = verb.into();
            operation.path = slashed(name);
            operation.secured = security::secured(import, &item).or(secured).unwrap_or(true);
            if operation.requirements.is_empty() {
                operation.requirements = requirements.to_vec();
            }
            operation.at = at;
            operations.push(Arc::new(operation));
        }
        if operations.len() == before {
            import.warn(&at, format!("the channel `{name}` is left out: it has neither `publish` nor `subscribe`"));
        }
    }
    join(operations)
}

fn topic(import: &mut Import<'_>, root: Item<'_>, item: &Item<'_>, api_has_tier: bool) -> Operation {
    check(import, item, OF_OPERATIONS);
    let requirements = security::requirements(import, root, item).unwrap_or_default();
    let mut scopes = import.texts_of(item, "x-scopes");
    if scopes.is_empty() {
        scopes = security::scopes(&requirements);
    }
    Operation {
        id: import.some_text_of(item, "operationId"),
        scopes,
        requirements,
        tier: tier(import, item).filter(|_| !api_has_tier),
        uri_mapping: import.some_text_of(item, "x-uri-mapping"),
        ..Operation::default()
    }
}

/// A channel's name as a path.
fn slashed(name: &str) -> Arc<str> {
    if name.starts_with('/') { name.into() } else { format!("/{name}").into() }
}

/// Says what becomes of extensions that are not read at a level.
fn check(import: &mut Import<'_>, item: &Item<'_>, known: &[&'static str]) {
    for (key, at, _) in item.entries().filter(|(key, _, _)| key.starts_with("x-wso2") && !known.contains(&&***key)) {
        let elsewhere = [OF_APIS, OF_CHANNELS, OF_OPERATIONS].concat();
        if elsewhere.contains(&&**key) {
            import.warn(&at, format!("`{key}` is ignored here; it is read at another level"));
        } else {
            import.warn(&at, format!("unknown extension `{key}` is ignored{}", hint(key, elsewhere.into_iter())));
        }
    }
}

/// One operation for each topic: `GET`, with what is said of publishing before what is said of subscribing.
pub(super) fn join(operations: Vec<Arc<Operation>>) -> Vec<Arc<Operation>> {
    let mut joined: Vec<Arc<Operation>> = Vec::new();
    for operation in operations {
        match joined.iter_mut().find(|known| known.path == operation.path) {
            None => joined.push(operation),
            Some(known) => {
                let publishes = &*operation.method == PUBLISH;
                let (first, second) = if publishes { (&operation, &*known) } else { (&*known, &operation) };
                *known = Arc::new(one_of(first, second));
            }
        }
    }
    for operation in &mut joined {
        Arc::make_mut(operation).method = "GET".into();
    }
    joined
}

fn one_of(first: &Operation, second: &Operation) -> Operation {
    let mut one = first.clone();
    // One connection is for both, so it is open only when both are.
    one.secured |= second.secured;
    if one.scopes.is_empty() {
        one.scopes = second.scopes.clone();
    }
    if one.requirements.is_empty() {
        one.requirements = second.requirements.clone();
    }
    one.uri_mapping = one.uri_mapping.or_else(|| second.uri_mapping.clone());
    one.tier = one.tier.or_else(|| second.tier.clone());
    if any_policy(&one.policies).is_none() {
        one.policies = second.policies.clone();
    }
    one
}

/// What holds for every WebSocket API, however it was described.
pub(super) fn finish(import: &mut Import<'_>, api: &mut Api) {
    if api.operations.is_empty() {
        let at = api.at.clone();
        let any = Operation { method: "GET".into(), path: ANY_TOPIC.into(), secured: true, at, ..Operation::default() };
        api.operations.push(Arc::new(any));
    }
    for transport in &mut api.transports {
        match &**transport {
            "ws" => *transport = "http".into(),
            "wss" => *transport = "https".into(),
            _ => {}
        }
    }
    let mut idle =
        |at: &At, what: &str| import.warn(at, format!("{what}: a WebSocket API carries frames, which nothing changes"));
    if let Some(at) = any_policy(&api.policies) {
        idle(at, "the policies of the API have no effect");
    }
    for operation in &api.operations {
        if let Some(at) = any_policy(&operation.policies) {
            idle(at, &format!("the policies of `{}` have no effect", operation.path));
        }
    }
    if api.schema_validation {
        idle(&api.at, "`enableSchemaValidation` has no effect");
        api.schema_validation = false;
    }
    if api.response_cache.take().is_some() {
        idle(&api.at, "`responseCachingEnabled` has no effect");
    }
    if api.implementation == Implementation::Mock {
        import.error(&api.at, "a WebSocket API cannot be answered from examples");
    }
    for operation in &api.operations {
        if let Some(mapping) = &operation.uri_mapping {
            check_mapping(import, mapping, operation);
        }
    }
}

/// Where the first policy of any flow stands.
fn any_policy(policies: &Policies) -> Option<&At> {
    let mut all = policies.request.iter().chain(&policies.response).chain(&policies.fault);
    all.next().map(|policy| &policy.at)
}

/// Every parameter of a mapping must be one of its topic.
fn check_mapping(import: &mut Import<'_>, mapping: &str, operation: &Operation) {
    let known = PathPattern::parse(&operation.path).parameters;
    for inside in mapping.split('{').skip(1) {
        let Some((name, _)) = inside.split_once('}') else {
            import.error(&operation.at, format!("`x-uri-mapping` has an unclosed `{{`: `{mapping}`"));
            return;
        };
        let name = name.strip_prefix("uri.var.").unwrap_or(name);
        if !known.iter().any(|known| **known == *name) {
            let meant = hint(name, known.iter().map(|known| &**known));
            import.error(
                &operation.at,
                format!("`x-uri-mapping` names `{name}`, which is no parameter of `{}`{meant}", operation.path),
            );
        }
    }
}
