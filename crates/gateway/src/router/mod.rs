//! From a request to its operation: host, base path, path template, method.
//!
//! Start reading at [`ApiRouter`], then `table.rs` (the operations below one base path) and `pattern.rs`.

mod dots;
mod pattern;
mod table;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::ApiKind;
use penstock_compile::Compiler;
use penstock_engine::Step;
use penstock_engine::ports::Client;
use penstock_engine::route::{Operation, Routed, Router, ServiceSummary};
use penstock_message::Message;

use crate::config::GatewayConfig;
use crate::context::CallContext;
use crate::error::{GatewayError, codes};
use crate::policy::{AnswerError, Refuse, Site, explain_step};
use crate::state::GatewayState;
use crate::system::System;

pub(crate) use dots::has_dot_segment;
pub use pattern::PathPattern;
use table::{Found, Table};

/// The routes while they are collected.
#[derive(Default)]
pub(crate) struct Routes {
    bases: Vec<Base>,
}

/// An API at one of its base paths.
pub(crate) struct Base {
    /// The base path, without a slash at its end; empty for the root.
    pub path: Arc<str>,
    /// The hosts it is for; empty means every one.
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
    /// What is there already at a base path and one of its hosts.
    pub(crate) fn taken(&self, base: &Base) -> Option<&Arc<Site>> {
        let taken = self.bases.iter().find(|other| {
            let both = base.hosts.is_empty() && other.hosts.is_empty();
            other.path == base.path && (both || base.hosts.iter().any(|host| other.hosts.contains(host)))
        });
        taken.and_then(|other| other.targets.first()).map(|target| &target.site)
    }

    /// Adds an API at a base path.
    pub(crate) fn add(&mut self, base: Base) {
        self.bases.push(base);
    }
}

/// An API at a base path, ready to be asked.
struct Served {
    base: Base,
    table: Table,
    /// What answers OPTIONS, by the rank of the path in the table.
    options: Vec<Option<Target>>,
}

/// Finds operations. Whatever came in by a port of the gateway and fits none is refused here too.
pub(crate) struct ApiRouter {
    config: Arc<GatewayConfig>,
    state: Arc<GatewayState>,
    /// By base path; those for named hosts before the one for all others.
    bases: HashMap<Arc<str>, Vec<Served>>,
    /// The segments of the longest base path.
    segments_max: usize,
    unknown: Arc<Operation>,
    other_method: Arc<Operation>,
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
        let mut refusing = |code| {
            let step = |mediator, kind| Step { mediator, kind, at: Default::default() };
            let refuse = step(Box::new(Refuse(GatewayError::new(code))), "route");
            let explain = explain_step(&config).map(|mediator| step(mediator, "explain"));
            let answer = step(Box::new(AnswerError { config: config.clone() }), "error");
            Arc::new(Operation {
                in_sequence: Some(cx.add_sequence(explain.into_iter().chain([refuse]).collect())),
                fault_sequence: Some(cx.add_sequence(vec![answer])),
                ..Operation::default()
            })
        };
        let unknown = refusing(codes::NOT_FOUND);
        // Choreo Connect's router knows paths and methods together.
        let other_method = if config.compat { unknown.clone() } else { refusing(codes::METHOD_NOT_ALLOWED) };
        let mut bases: HashMap<Arc<str>, Vec<Served>> = HashMap::new();
        let mut segments_max = 0;
        for base in routes.bases {
            segments_max = segments_max.max(base.path.matches('/').count());
            let served = bases.entry(base.path.clone()).or_default();
            served.push(Served::new(base));
            served.sort_by_key(|served| served.base.hosts.is_empty());
        }
        ApiRouter { config, state, bases, segments_max, unknown, other_method, system }
    }

    /// The API with the longest base path that a path begins with, and the rest of the path.
    fn base<'p>(&self, path: &'p str, host: Option<&str>, secure: bool) -> Option<(&Served, &'p str)> {
        let mut end = end_of_segments(path, self.segments_max);
        loop {
            if let Some(served) = self.bases.get(&path[..end]) {
                let fits = |served: &&Served| served.is_for(host, secure);
                if let Some(found) = served.iter().find(fits) {
                    return Some((found, &path[end..]));
                }
            }
            end = path[..end].rfind('/')?;
        }
    }

    /// What a request is for; `None` when no API has such a base path.
    fn find(
        &self,
        path: &str,
        method: &str,
        host: Option<&str>,
        secure: bool,
    ) -> Option<(&Arc<Operation>, Option<&Target>)> {
        let (served, rest) = self.base(path, host, secure)?;
        let target = match served.table.find(rest, method) {
            Found::Operation(number) => served.base.targets.get(number),
            Found::OtherMethod(rank) if method == "OPTIONS" => served.options.get(rank).and_then(Option::as_ref),
            Found::OtherMethod(_) => return Some((&self.other_method, None)),
            Found::Nothing => None,
        };
        Some(target.map_or((&self.unknown, None), |target| (&target.operation, Some(target))))
    }

    /// Whether a port is one of the gateway's, and whether integrations are served on it too.
    fn is_ours(&self, port: u16) -> Option<bool> {
        let ports = self.state.ports.get();
        let (http, https) =
            ports.map_or((self.config.http_port, self.config.https_port), |ports| (ports.http, ports.https));
        (port == http || port == https).then(|| ports.is_some_and(|ports| ports.shared))
    }
}

impl Served {
    fn new(base: Base) -> Served {
        let pairs = base.targets.iter().map(|target| (&*target.site.operation.path, &*target.site.operation.method));
        let table = Table::new(pairs);
        let by_path: HashMap<&str, &Target> =
            base.options.iter().map(|target| (&*target.site.operation.path, target)).collect();
        let options = (0..table.ranks()).map(|rank| {
            let (_, number) = table.methods(rank).next()?;
            let path = &*base.targets.get(number)?.site.operation.path;
            by_path.get(path).map(|target| (*target).clone())
        });
        let options = options.collect();
        Served { table, options, base }
    }

    fn is_for(&self, host: Option<&str>, secure: bool) -> bool {
        let (http, https) = self.base.transports;
        let by_host = || {
            let host = host.map(without_port).unwrap_or_default();
            self.base.hosts.is_empty() || self.base.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        };
        (if secure { https } else { http }) && by_host()
    }
}

/// The host of a `Host` field.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an address of IPv6 stand in brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
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
        let mut found = self.find(line.path(), line.method.as_str(), host, line.secure);
        if found.is_some() && has_dot_segment(line.path()) {
            found = Some((&self.unknown, None));
        }
        if found.is_none()
            && let Some(operation) = self.system.find(client, message)
        {
            return Some(Routed { operation, extension: None });
        }
        // On a port of both, what no API is for belongs to integrations.
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
        let one = |served: &Served| {
            let api = &served.base.targets.first()?.site.api;
            let kind = match api.kind {
                ApiKind::Http => "HTTP",
                ApiKind::Soap => "SOAP",
                ApiKind::GraphQl => "GRAPHQL",
                ApiKind::WebSocket => "WS",
                ApiKind::Mcp => "MCP",
                ApiKind::WebSub => "WEBSUB",
            };
            let path = if served.base.path.is_empty() { "/" } else { &served.base.path };
            let (name, version) = (api.name.to_string(), api.version.to_string());
            Some(ServiceSummary { name, version, kind, path: path.to_owned(), hosts: served.base.hosts.clone() })
        };
        let mut services: Vec<_> = self.bases.values().flatten().filter_map(one).collect();
        services.sort();
        services
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
