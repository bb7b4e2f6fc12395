//! From a request to its operation: host, base path, path template, method.
//!
//! Start reading at [`ApiRouter`], then `table.rs` (the operations below one base path) and `pattern.rs`.

mod header_match;
mod host;
mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::path::{has_dot_segment, other_readings, without_segment_escapes};
use penstock_catalog::{Api, ApiKind};
use penstock_compile::Compiler;
use penstock_engine::Step;
use penstock_engine::ports::Client;
use penstock_engine::route::{Operation, Routed, Router, ServiceListing, ServiceSummary};
use penstock_message::{Headers, Message};
use penstock_projects::place;

use crate::error::{GatewayError, NO_RESOURCE, codes};
use crate::policy::explain_step;
use crate::steps::{AnswerError, Refuse};
use crate::system::System;
use crate::{CallContext, ErrorStyle, GatewayConfig, GatewayState, Site};

pub(crate) use host::{HostRank, best_rank, rank, without_port};
use table::Table;

/// The routes while they are collected.
#[derive(Default)]
pub(crate) struct Routes {
    bases: HashMap<Arc<str>, Vec<Arc<Served>>>,
}

/// An API at one of its base paths.
pub(crate) struct Base {
    /// The base path, without a slash at its end; empty for the root.
    pub path: Arc<str>,
    /// The hosts it is for, see `host.rs`; empty means every one.
    pub hosts: Vec<Arc<str>>,
    /// Whether it is served over HTTP, over HTTPS.
    pub transports: (bool, bool),
    /// Operations.
    pub targets: Vec<Target>,
    /// What answers OPTIONS on paths that have no such operation, by path template.
    pub options: Vec<Target>,
}

/// An operation and where its policies are applied.
#[derive(Clone)]
pub(crate) struct Target {
    pub site: Arc<Site>,
    pub operation: Arc<Operation>,
}

impl Routes {
    /// Adds an API at its base paths, unless one of them is taken by another API; whether that worked.
    pub(crate) fn add_all(&mut self, api: &Api, all: Vec<Arc<Served>>, cx: &mut Compiler<'_>) -> bool {
        for served in &all {
            let base = &served.base;
            if let Some(other) = self.taken(base).map(|site| &site.api) {
                let path = if base.path.is_empty() { "/" } else { &base.path };
                let message = format!("`{path}` is served already, by {}:{} ({})", other.name, other.version, other.at);
                cx.error(place(&api.at), message);
                return false;
            }
        }
        for served in all {
            let same_path = self.bases.entry(served.base.path.clone()).or_default();
            same_path.push(served);
        }
        true
    }

    /// What is there already at a base path and one of its hosts.
    fn taken(&self, base: &Base) -> Option<&Arc<Site>> {
        let taken = self.bases.get(&base.path).into_iter().flatten().find(|other| {
            let both = base.hosts.is_empty() && other.base.hosts.is_empty();
            both || base.hosts.iter().any(|host| other.base.hosts.contains(host))
        });
        taken.and_then(|other| other.base.targets.first()).map(|target| &target.site)
    }
}

/// An API at a base path, ready for requests.
pub(crate) struct Served {
    base: Base,
    table: Table,
    /// What answers OPTIONS, by the path's index in the table.
    options: Vec<Option<Target>>,
}

/// Finds operations. Requests at the gateway's ports without one are rejected here too.
pub(crate) struct ApiRouter {
    config: Arc<GatewayConfig>,
    state: Arc<GatewayState>,
    /// By base path.
    bases: HashMap<Arc<str>, Vec<Arc<Served>>>,
    /// The segments of the longest base path.
    segments_max: usize,
    unknown: Arc<Operation>,
    /// The API is there, and no path of it fits.
    no_resource: Arc<Operation>,
    other_method: Arc<Operation>,
    /// The API is there, over HTTP or HTTPS only and the request came by the other.
    denied: [Arc<Operation>; 2],
    system: System,
}

impl ApiRouter {
    pub(crate) fn new(
        config: Arc<GatewayConfig>,
        state: Arc<GatewayState>,
        routes: Routes,
        cx: &mut Compiler<'_>,
    ) -> ApiRouter {
        let system = System::new(&config, &state, cx);
        let mut refusing = |error| {
            let step = |mediator, kind| Step { mediator, kind, at: Default::default() };
            let refuse = step(Box::new(Refuse(error)), "route");
            let explain = explain_step(&config).map(|mediator| step(mediator, "explain"));
            let answer = step(Box::new(AnswerError { config: config.clone() }), "error");
            Arc::new(Operation {
                in_sequence: Some(cx.add_sequence(explain.into_iter().chain([refuse]).collect())),
                fault_sequence: Some(cx.add_sequence(vec![answer])),
                ..Operation::default()
            })
        };
        let is_api_manager = config.error_style == ErrorStyle::ApiManager;
        let unknown = refusing(GatewayError::new(codes::NOT_FOUND));
        let no_resource = match is_api_manager {
            true => refusing(GatewayError::described(codes::NOT_FOUND, NO_RESOURCE)),
            false => unknown.clone(),
        };
        let other_method = match config.compat {
            // Choreo Connect's router knows paths and methods together.
            true => unknown.clone(),
            false => refusing(GatewayError::new(codes::METHOD_NOT_ALLOWED)),
        };
        // To Choreo Connect such an API is not there.
        let denied = ["http", "https"].map(|transport| match is_api_manager {
            true => {
                let text = format!("Unsupported Transport [ {transport} ]. The requested resource is not available.");
                refusing(GatewayError::described(codes::TRANSPORT_DENIED, text))
            }
            false => unknown.clone(),
        });
        let bases = routes.bases;
        let segments_max = bases.keys().map(|path| path.matches('/').count()).max().unwrap_or_default();
        ApiRouter { config, state, bases, segments_max, unknown, no_resource, other_method, denied, system }
    }

    /// The API with the longest base path that a path begins with, and the rest of the path. An API that is there but
    /// not over the request's transport is found when no other is.
    fn base<'p>(&self, path: &'p str, host: Option<&str>, secure: bool) -> Option<Found<'_, 'p>> {
        let mut end = end_of_segments(path, self.segments_max);
        let mut is_denied = false;
        loop {
            if let Some(served) = self.bases.get(&path[..end]) {
                let mut best: Option<(HostRank, &Served)> = None;
                for (rank, found) in served.iter().filter_map(|served| Some((served.rank(host)?, served))) {
                    if !found.is_offered(secure) {
                        is_denied = true;
                    } else if best.is_none_or(|(known, _)| rank > known) {
                        best = Some((rank, found));
                    }
                }
                if let Some((_, found)) = best {
                    return Some(Found::Api(found, &path[end..]));
                }
            }
            match path[..end].rfind('/') {
                Some(shorter) => end = shorter,
                None => return is_denied.then_some(Found::Denied),
            }
        }
    }

    /// The operation of a request; `None` when no API has such a base path.
    fn find(&self, key: &RouteKey<'_>) -> Option<(&Arc<Operation>, Option<&Target>)> {
        let RouteKey { path, method, host, secure, preflight, headers } = *key;
        let (served, rest) = match self.base(path, host, secure)? {
            Found::Api(served, rest) => (served, rest),
            Found::Denied => return Some((&self.denied[usize::from(secure)], None)),
        };
        let target = match served.table.find(rest, method, headers) {
            table::Found::Operation(number) => served.base.targets.get(number),
            table::Found::OtherMethod(index) if method == "OPTIONS" => {
                let index = match self.config.error_style {
                    ErrorStyle::ChoreoConnect => Some(index),
                    // A preflight request is for the resource with the requested method; without one there is no preflight.
                    ErrorStyle::ApiManager => preflight.and_then(|wanted| served.table.path(rest, wanted, headers)),
                };
                match index {
                    Some(index) => served.options.get(index).and_then(Option::as_ref),
                    None => return Some((&self.other_method, None)),
                }
            }
            // The API Platform knows paths and methods together.
            table::Found::OtherMethod(_) if served.is_of_platform() => None,
            table::Found::OtherMethod(_) => return Some((&self.other_method, None)),
            table::Found::Nothing => None,
        };
        Some(target.map_or((&self.no_resource, None), |target| (&target.operation, Some(target))))
    }

    /// Whether a request is for another operation when letters lose the escapes they do not need, as they do at backends:
    /// an unsecured operation must not shadow a secured one.
    fn is_another_unescaped(&self, key: &RouteKey<'_>, found: Option<(&Arc<Operation>, Option<&Target>)>) -> bool {
        match without_segment_escapes(key.path) {
            Cow::Borrowed(_) => false,
            Cow::Owned(plain) => {
                let identity = |(operation, target): (&Arc<Operation>, Option<&Target>)| {
                    // Operations that are alike share their policies.
                    (Arc::as_ptr(operation), target.map(|target| Arc::as_ptr(&target.site)))
                };
                self.find(&RouteKey { path: &plain, ..*key }).map(identity) != found.map(identity)
            }
        }
    }

    /// Whether a backend may take a request for another operation, whose policies would not have run: `/a%2Fb` for `/a/b`. A
    /// value with a slash in it (`/users/a%2Fb`) is what it was meant as where no such operation is, or an open one.
    fn may_be_another(&self, key: &RouteKey<'_>, found: Option<(&Arc<Operation>, Option<&Target>)>) -> bool {
        let plain = without_segment_escapes(key.path);
        other_readings(&plain).any(|path| {
            let Some((operation, Some(target))) = self.find(&RouteKey { path: &path, ..*key }) else { return false };
            let is_alike = found.is_some_and(|(other, _)| Arc::ptr_eq(operation, other));
            !is_alike && restricts(&target.site.operation)
        })
    }

    /// Whether a port is one of the gateway's, and whether integrations are served on it too.
    fn is_ours(&self, port: u16) -> Option<bool> {
        let ports = self.state.ports.get();
        let (http, https) =
            ports.map_or((self.config.http_port, self.config.https_port), |ports| (ports.http, ports.https));
        (port == http || port == https).then(|| ports.is_some_and(|ports| ports.shared))
    }
}

/// Whether an operation refuses some requests.
fn restricts(operation: &penstock_catalog::Operation) -> bool {
    operation.secured
        || operation.request_interceptor.is_some()
        || !operation.chain.is_empty()
        || !operation.policies.request.is_empty()
}

/// What decides where a request goes.
struct RouteKey<'a> {
    path: &'a str,
    method: &'a str,
    host: Option<&'a str>,
    secure: bool,
    /// The method a browser wants to be let use.
    preflight: Option<&'a str>,
    headers: &'a Headers,
}

/// What there is at a base path.
enum Found<'r, 'p> {
    /// An API, and the rest of the path.
    Api(&'r Served, &'p str),
    /// One that is not served over the request's transport.
    Denied,
}

impl Served {
    pub(crate) fn new(base: Base) -> Served {
        let operations = base.targets.iter().map(|target| {
            let Site { operation, pattern, .. } = &*target.site;
            (&**pattern, &**operation)
        });
        let table = Table::new(operations);
        let by_path: HashMap<&str, &Target> =
            base.options.iter().map(|target| (&*target.site.operation.path, target)).collect();
        let options = (0..table.paths()).map(|index| {
            let path = &*base.targets.get(table.first_operation(index)?)?.site.operation.path;
            by_path.get(path).map(|target| (*target).clone())
        });
        let options = options.collect();
        Served { table, options, base }
    }

    fn is_of_platform(&self) -> bool {
        self.base.targets.first().is_some_and(|target| target.site.api.platform.is_some())
    }

    /// How closely the hosts it is for describe that of a request; `None` when it is not for it.
    fn rank(&self, host: Option<&str>) -> Option<HostRank> {
        best_rank(&self.base.hosts, host.map(without_port).unwrap_or_default())
    }

    fn is_offered(&self, secure: bool) -> bool {
        let (http, https) = self.base.transports;
        if secure { https } else { http }
    }
}

/// Where the first so many segments of a path end.
fn end_of_segments(path: &str, count: usize) -> usize {
    let slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    slashes.skip(1).nth(count.saturating_sub(1)).map_or(path.len(), |at| at)
}

impl Router for ApiRouter {
    fn route(&self, client: &Client, message: &mut Message) -> Option<Routed> {
        let shared = self.is_ours(client.local.port())?;
        let line = &client.line;
        let host = message.headers.get("host");
        let key = RouteKey {
            path: line.path(),
            method: line.method.as_str(),
            host,
            secure: line.secure,
            preflight: message.headers.get("access-control-request-method"),
            headers: &message.headers,
        };
        let mut found = self.find(&key);
        let is_ambiguous = || {
            let path = line.path();
            has_dot_segment(path) || self.is_another_unescaped(&key, found) || self.may_be_another(&key, found)
        };
        if found.is_some() && is_ambiguous() {
            found = Some((&self.unknown, None));
        }
        if found.is_none()
            && let Some(operation) = self.system.find(client, message)
        {
            return Some(Routed { operation, extension: None });
        }
        // On a port of both, a request without a managed API is one for integrations.
        if shared && found.is_none() {
            return None;
        }
        let (operation, target) = found.unwrap_or((&self.unknown, None));
        let extension = target.map(|target| {
            let site = target.site.clone();
            let values = self.values(&site, line.path());
            Rc::new(CallContext::new(site, values)) as Rc<dyn std::any::Any>
        });
        Some(Routed { operation: operation.clone(), extension })
    }

    fn services(&self) -> Vec<ServiceSummary> {
        let mut services: Vec<_> = self.bases.values().flatten().filter_map(|served| served.summary()).collect();
        services.sort();
        services
    }

    fn listing(&self) -> Vec<ServiceListing> {
        let one = |served: &Arc<Served>| {
            let summary = served.summary()?;
            let targets = &served.base.targets;
            let operation =
                |target: &Target| (target.site.operation.method.clone(), target.site.operation.path.clone());
            let endpoints = &targets.first()?.site.api.endpoints;
            let clusters = endpoints.production.iter().chain(&endpoints.sandbox);
            let mut endpoints: Vec<_> = clusters.flat_map(|cluster| cluster.urls.iter().cloned()).collect();
            endpoints.dedup();
            Some(ServiceListing { summary, operations: targets.iter().map(operation).collect(), endpoints })
        };
        let mut services: Vec<_> = self.bases.values().flatten().filter_map(one).collect();
        services.sort_by(|one, other| one.summary.cmp(&other.summary));
        services
    }
}

impl Served {
    /// The API at this base path.
    fn summary(&self) -> Option<ServiceSummary> {
        let api = &self.base.targets.first()?.site.api;
        let kind = match api.kind {
            ApiKind::Http => "HTTP",
            ApiKind::Soap => "SOAP",
            ApiKind::GraphQl => "GRAPHQL",
            ApiKind::WebSocket => "WS",
            ApiKind::Mcp => "MCP",
            ApiKind::WebSub => "WEBSUB",
            ApiKind::Sse => "SSE",
        };
        let path = if self.base.path.is_empty() { "/" } else { &self.base.path };
        let (name, version) = (api.name.to_string(), api.version.to_string());
        Some(ServiceSummary { name, version, kind, path: path.to_owned(), hosts: self.base.hosts.clone() })
    }
}

impl ApiRouter {
    /// The values of a path's parameters.
    fn values(&self, site: &Site, path: &str) -> Vec<String> {
        if site.pattern.parameters.is_empty() {
            return Vec::new();
        }
        let base = site.base_path.trim_end_matches('/');
        path.get(base.len()..).and_then(|rest| site.pattern.matches(rest)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
