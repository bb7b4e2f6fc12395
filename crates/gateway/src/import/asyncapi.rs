//! AsyncAPI 2 and 3: the channels of a WebSocket API are topics a client connects to.
//!
//! A connection goes both ways, so publishing and subscribing on one channel are one operation: `GET` on the topic.
//! Start reading at [`read`]; [`join`] makes one of both, [`finish`] says what has no effect on frames.

use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, At, Cluster, Implementation, Operation, Policies, Requirement};

use super::document::Item;
use super::openapi::{OpenApi, endpoints, resolve, root_of, security, tier};
use super::shared::address;
use super::{Import, hint};
use crate::router::PathPattern;

/// Directions of all channels of one API. More is a generator that went wrong.
const OPERATIONS_MAX: usize = 20_000;

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
    let mut found = root_of(import, &root);
    found.api.kind = ApiKind::WebSocket;
    let version = root.get("asyncapi").and_then(|version| version.text().cloned());
    let is_version_3 = version.is_some_and(|version| version.starts_with('3'));
    let Servers { production, sandbox, path, requirements } = servers(import, root, is_version_3);
    if found.base_path.is_none() {
        found.fallback_base = import.base_path(&path, &root.at()).unwrap_or_else(|| "/".into());
    }
    let api_has_tier = found.api.tier.is_some();
    let mut topics = Topics { root, is_version_3, requirements, api_has_tier, operations: Vec::new() };
    if is_version_3 {
        topics.of_operations(import);
    } else {
        topics.of_channels(import);
    }
    found.api.operations = join(topics.operations);
    OpenApi { server: production, sandbox_server: sandbox, ..found }
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
fn servers(import: &mut Import<'_>, root: Item<'_>, is_version_3: bool) -> Servers {
    let mut found = Servers { path: "/".to_owned(), ..Servers::default() };
    let Some(list) = root.get("servers") else { return found };
    let (mut production, mut sandbox) = (Vec::new(), Vec::new());
    for (name, at, server) in list.entries() {
        let Some(server) = resolve(import, root, server) else { continue };
        let address_key = if is_version_3 { "host" } else { "url" };
        let address_at = server.get(address_key).map_or(at, |url| url.at());
        let Some(host) = import.some_text_of(&server, address_key) else {
            import.warn(&address_at, format!("the server `{name}` is left out: it has no `{address_key}`"));
            continue;
        };
        let protocol = import.text_of(&server, "protocol").unwrap_or_default().to_ascii_lowercase();
        if !matches!(&*protocol, "" | "ws" | "wss" | "http" | "https") {
            let why = format!("it speaks `{protocol}`; WebSocket is `ws` or `wss`");
            import.warn(&address_at, format!("the server `{name}` is left out: {why}"));
            continue;
        }
        let pathname = import.text_of(&server, "pathname").filter(|_| is_version_3).unwrap_or_default();
        let mut url = endpoints::variables(&format!("{host}{pathname}"), &server);
        if !url.contains("://") {
            url = format!("{}://{url}", if protocol.is_empty() { "ws" } else { &protocol });
        }
        let Some(found_address) = address(&url).filter(|found| matches!(found.scheme, "ws" | "wss" | "http" | "https"))
        else {
            import.warn(&address_at, format!("the server `{name}` is left out: `{url}` is no address"));
            continue;
        };
        if production.is_empty() && sandbox.is_empty() {
            found.path = found_address.path.to_owned();
        }
        let requirements = requirements(import, root, &server, is_version_3);
        if found.requirements.is_empty() {
            found.requirements = requirements;
        }
        if &**name == "sandbox" { &mut sandbox } else { &mut production }.push(url.into());
    }
    let cluster = |urls: Vec<Arc<str>>| {
        (!urls.is_empty()).then(|| Arc::new(Cluster { urls, at: list.at(), ..Cluster::default() }))
    };
    (found.production, found.sandbox) = (cluster(production), cluster(sandbox));
    found
}

/// What the topics of a definition have in common.
struct Topics<'d> {
    root: Item<'d>,
    is_version_3: bool,
    requirements: Vec<Requirement>,
    api_has_tier: bool,
    operations: Vec<Arc<Operation>>,
}

impl<'d> Topics<'d> {
    /// Version 2: channels with what is published and what is subscribed to.
    fn of_channels(&mut self, import: &mut Import<'_>) {
        for (name, at, channel) in self.root.get("channels").iter().flat_map(|channels| channels.entries()) {
            if name.starts_with("x-") {
                continue;
            }
            let Some(channel) = resolve(import, self.root, channel) else { continue };
            check(import, &channel, OF_CHANNELS);
            let before = self.operations.len();
            for (key, verb) in [("publish", PUBLISH), ("subscribe", SUBSCRIBE)] {
                // `publish: {}` and a `publish` with nothing behind it say that there is one.
                let Some((_, at, item)) = channel.entries().find(|(name, _, _)| &***name == key) else { continue };
                let Some(item) = resolve(import, self.root, item) else { continue };
                self.add(import, name, &channel, verb, &item, at);
            }
            if self.operations.len() == before {
                import.warn(&at, format!("the channel `{name}` is left out: it has neither `publish` nor `subscribe`"));
            }
        }
    }

    /// Version 3: operations on channels. What the API receives is what its clients publish.
    fn of_operations(&mut self, import: &mut Import<'_>) {
        for (name, at, item) in self.root.get("operations").iter().flat_map(|operations| operations.entries()) {
            if name.starts_with("x-") {
                continue;
            }
            let Some(item) = resolve(import, self.root, item) else { continue };
            let verb = match import.text_of(&item, "action").as_deref() {
                Some("receive") => PUBLISH,
                Some("send") => SUBSCRIBE,
                _ => {
                    import.error(&at, format!("the operation `{name}` needs `action`, `send` or `receive`"));
                    continue;
                }
            };
            let Some(reference) = item.get("channel") else {
                import.error(&at, format!("the operation `{name}` needs `channel`"));
                continue;
            };
            let Some(channel) = resolve(import, self.root, reference) else { continue };
            check(import, &channel, OF_CHANNELS);
            match import.some_text_of(&channel, "address") {
                Some(address) => self.add(import, &address, &channel, verb, &item, at),
                None => import.warn(&at, format!("the operation `{name}` is left out: its channel has no `address`")),
            }
        }
    }

    /// Adds one direction of a topic.
    fn add(&mut self, import: &mut Import<'_>, name: &str, channel: &Item<'d>, verb: &str, item: &Item<'d>, at: At) {
        if self.operations.len() >= OPERATIONS_MAX {
            return import.error(&at, format!("more than {OPERATIONS_MAX} operations on channels"));
        }
        check(import, item, OF_OPERATIONS);
        let requirements = requirements(import, self.root, item, self.is_version_3);
        let mut scopes = import.texts_of(item, "x-scopes");
        if scopes.is_empty() {
            scopes = security::scopes(&requirements);
        }
        let levels = [item, channel, &self.root];
        let secured = levels.into_iter().find_map(|level| security::secured(import, level));
        self.operations.push(Arc::new(Operation {
            method: verb.into(),
            path: slashed(name),
            id: import.some_text_of(item, "operationId"),
            secured: secured.unwrap_or(true),
            scopes,
            requirements: if requirements.is_empty() { self.requirements.clone() } else { requirements },
            tier: tier(import, item).filter(|_| !self.api_has_tier),
            uri_mapping: import.some_text_of(item, "x-uri-mapping"),
            at,
            ..Operation::default()
        }));
    }
}

/// `security` of an operation or a server.
fn requirements<'d>(import: &mut Import<'_>, root: Item<'d>, item: &Item<'d>, is_version_3: bool) -> Vec<Requirement> {
    if !is_version_3 {
        return security::requirements(import, root, item).unwrap_or_default();
    }
    if let Some(security) = item.get("security") {
        import.warn(
            &security.at(),
            "`security` has no effect in AsyncAPI 3: a token is asked for, `x-scopes` says which",
        );
    }
    Vec::new()
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
