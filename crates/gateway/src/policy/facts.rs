//! What several policies tell others about a request: interceptor services, policy agents.

use std::borrow::Cow;
use std::net::SocketAddr;

use penstock_catalog::Api;
use penstock_engine::Exchange;

use crate::context::CallContext;
use crate::policy::Site;

/// The host of an API that names none.
const ANY_HOST: &str = "localhost";

/// `http` or `https`.
pub(crate) fn scheme(exchange: &Exchange) -> &'static str {
    if exchange.client.line.secure { "https" } else { "http" }
}

/// Path and query as they are now: policies may have changed what the client sent.
pub(crate) fn target_now<'a>(exchange: &'a Exchange, site: &Site) -> Cow<'a, str> {
    let sent = exchange.client.line.target();
    match exchange.message.url_postfix.as_deref() {
        Some(postfix) if below(sent, site) != Some(postfix) => {
            Cow::Owned(format!("{}{postfix}", site.base_path.trim_end_matches('/')))
        }
        _ => Cow::Borrowed(sent),
    }
}

/// What of a path and query stands below the base path of the API.
pub(crate) fn below<'a>(target: &'a str, site: &Site) -> Option<&'a str> {
    let rest = target.strip_prefix(site.base_path.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with(['/', '?'])).then_some(rest)
}

/// Path and query below the API, as policies before left them.
pub(crate) fn below_now<'a>(exchange: &'a Exchange, site: &Site) -> &'a str {
    let sent = exchange.client.line.target();
    exchange.message.url_postfix.as_deref().unwrap_or_else(|| below(sent, site).unwrap_or(sent))
}

/// Who sent it: what a proxy before us says, or the peer.
pub(crate) fn source(exchange: &Exchange) -> Cow<'_, str> {
    match exchange.message.headers.get("x-forwarded-for") {
        Some(forwarded) => Cow::Borrowed(forwarded),
        None => Cow::Owned(address(exchange.client.peer)),
    }
}

fn address(peer: SocketAddr) -> String {
    SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string()
}

/// The virtual host a request was for.
pub(crate) fn vhost<'a>(exchange: &Exchange, api: &'a Api) -> &'a str {
    let sent = exchange.message.headers.get("host").unwrap_or_default();
    let name = sent.rsplit_once(':').map_or(sent, |(name, _)| name);
    let fitting = api.vhosts.iter().find(|vhost| vhost.eq_ignore_ascii_case(name) || vhost.eq_ignore_ascii_case(sent));
    fitting.or_else(|| api.vhosts.first()).map_or(ANY_HOST, |vhost| vhost)
}

/// What the original calls the backends of an operation; empty when there are none.
pub(crate) fn cluster_name(exchange: &Exchange, context: &CallContext, sandbox: bool) -> String {
    let api = &context.site.api;
    let endpoints = context.site.operation.endpoints.as_ref().unwrap_or(&api.endpoints);
    let (kind, cluster) = if sandbox { ("Sand", &endpoints.sandbox) } else { ("Prod", &endpoints.production) };
    if cluster.is_none() {
        return String::new();
    }
    format!("{}_cluster{kind}_{}_{}{}", api.organization, vhost(exchange, api), api.name, api.version)
}
