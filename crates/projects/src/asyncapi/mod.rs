//! AsyncAPI 2 and 3: the channels of a WebSocket API are topics a client connects to, those of an API of server-sent
//! events are streams that it requests.
//!
//! A connection goes both ways, so publishing and subscribing on one channel are one operation: `GET` on the topic.
//! Start reading at [`read`]; [`join`] makes one of both, [`finish`] says what has no effect on frames (`topics.rs`).

mod servers;
mod topics;

use std::sync::Arc;

use penstock_catalog::{ApiKind, At, Operation, Requirement};

use self::servers::Servers;
pub(super) use self::topics::{finish, join};
use super::document::Item;
use super::openapi::{OpenApi, resolve, root_of, security, tier};
use super::{Import, hint};

/// Directions of all channels of one API. More is a generator that went wrong.
const OPERATIONS_MAX: usize = 20_000;

/// What the two directions of a channel are called, the first one has precedence.
const PUBLISH: &str = "PUBLISH";
const SUBSCRIBE: &str = "SUBSCRIBE";

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

/// What a definition that stands by itself is about: events, when that is all its servers speak.
pub(super) fn kind_of(root: &Item<'_>) -> ApiKind {
    let servers = root.get("servers");
    let speaks_events = |server: Item<'_>| {
        server.get("protocol").and_then(|protocol| protocol.text().cloned()).is_some_and(|name| &*name == "sse")
    };
    let mut servers = servers.iter().flat_map(|servers| servers.entries()).map(|(_, _, server)| speaks_events(server));
    match servers.next() {
        Some(true) if servers.all(|speaks_events| speaks_events) => ApiKind::Sse,
        _ => ApiKind::WebSocket,
    }
}

/// Reads a definition.
pub(super) fn read(import: &mut Import<'_>, root: Item<'_>, kind: ApiKind) -> OpenApi {
    import.sockets = kind == ApiKind::WebSocket;
    check(import, &root, OF_APIS);
    let mut found = root_of(import, &root);
    found.api.kind = kind;
    let version = root.get("asyncapi").and_then(|version| version.text().cloned());
    let is_version_3 = version.is_some_and(|version| version.starts_with('3'));
    let Servers { production, sandbox, path, requirements } = servers::read(import, root, is_version_3);
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
                import.warn(&at, format!("the channel `{name}` is ignored: it has neither `publish` nor `subscribe`"));
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
                None => import.warn(&at, format!("the operation `{name}` is ignored: its channel has no `address`")),
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
            "`security` of AsyncAPI 3 is ignored: a token is required, with the scopes of `x-scopes`",
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
