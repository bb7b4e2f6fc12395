//! What a policy registers: its name, the kinds of APIs it applies to, its phase, and the functions that compile it.

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::Mediator;

use crate::{Gateway, Site};

/// Compiles a policy for a site; `None` when the site does not configure it.
pub type CompilePolicy = fn(&Gateway, &Arc<Site>, &mut Compiler<'_>) -> Option<Box<dyn Mediator>>;

/// A policy: one file or folder beside this file.
pub struct PolicyKind {
    /// Its name in logs, in explanations and in the documentation.
    pub name: &'static str,
    /// The kinds of APIs it applies to.
    pub applies_to: ApiKinds,
    /// The part of the request flow it belongs to.
    pub phase: Phase,
    /// Compiles its step of the request flow.
    pub request: Option<CompilePolicy>,
    /// Compiles its step of the response flow.
    pub response: Option<CompilePolicy>,
}

/// The parts of the request flow, in order. Responses pass them in the opposite order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Once for each request of a client: explanation, trace, compression, CORS. An API behind an MCP tool skips it.
    Client,
    /// Whether the API takes such a request at all, before its caller is known.
    Admission,
    /// Who the caller is.
    Authentication,
    /// Whether the caller may make this request.
    Authorization,
    /// Whether the caller has quota left.
    Limits,
    /// The message: its body, its headers, interceptors, the response cache.
    Message,
    /// What produces the response.
    Backend,
}

/// A set of API kinds, as far as their policies differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiKinds(u16);

impl ApiKinds {
    /// Operations over HTTP, SOAP and server-sent events.
    pub const HTTP: ApiKinds = ApiKinds(1);
    /// `OPTIONS` on a path without such an operation: a preflight request without credentials, which reaches no backend.
    pub const OPTIONS: ApiKinds = ApiKinds(1 << 1);
    /// Handshakes of WebSocket APIs. They have no body, and frames are neither requests nor responses.
    pub const WEBSOCKET: ApiKinds = ApiKinds(1 << 2);
    /// Requests to GraphQL APIs, handshakes included.
    pub const GRAPHQL: ApiKinds = ApiKinds(1 << 3);
    /// Policies of GraphQL APIs that also run for the handshake of a connection for subscriptions; the others skip it.
    pub const GRAPHQL_SOCKET: ApiKinds = ApiKinds(1 << 4);
    /// APIs of the API Platform, which have a chain of policies of their own.
    pub const PLATFORM: ApiKinds = ApiKinds(1 << 5);
    /// Messages to MCP servers, and calls of their tools.
    pub const MCP: ApiKinds = ApiKinds(1 << 6);
    /// Messages to MCP servers that need no credentials. Wrong credentials are rejected nevertheless.
    pub const MCP_OPEN: ApiKinds = ApiKinds(1 << 7);
    /// Subscribers of WebSub hubs. Plans count events, not subscriptions.
    pub const SUBSCRIBERS: ApiKinds = ApiKinds(1 << 8);
    /// Publishers to WebSub hubs, which sign their events in place of credentials.
    pub const PUBLISHERS: ApiKinds = ApiKinds(1 << 9);

    /// The kinds whose callers the gateway authenticates. Of the others, `OPTIONS` has no caller, publishers sign, and an
    /// API of the API Platform names its authentication policy in its chain.
    pub const AUTHENTICATED: ApiKinds =
        Self::HTTP.and(Self::CONNECTIONS).and(Self::MCP).and(Self::MCP_OPEN).and(Self::SUBSCRIBERS);
    /// WebSocket and GraphQL, handshakes included.
    pub const CONNECTIONS: ApiKinds = Self::WEBSOCKET.and(Self::GRAPHQL).and(Self::GRAPHQL_SOCKET);
    /// The kinds with requests and responses that this gateway passes on by its own policies.
    pub const MESSAGES: ApiKinds = Self::HTTP.and(Self::GRAPHQL).and(Self::MCP);

    /// These kinds and others.
    pub const fn and(self, others: ApiKinds) -> ApiKinds {
        ApiKinds(self.0 | others.0)
    }

    /// Whether all of these are among them.
    pub const fn contains(self, kinds: ApiKinds) -> bool {
        self.0 & kinds.0 == kinds.0
    }

    /// The kind of a site's API, for requests that reach its operations directly.
    pub(crate) fn of_site(site: &Site) -> ApiKinds {
        if site.api.platform.is_some() {
            ApiKinds::PLATFORM
        } else if site.is_websocket() {
            ApiKinds::WEBSOCKET
        } else if site.graphql.is_some() {
            ApiKinds::GRAPHQL
        } else {
            ApiKinds::HTTP
        }
    }
}

/// Whether each kind whose callers have credentials has a policy that authenticates them.
pub(super) const fn all_authenticated(policies: &[PolicyKind]) -> bool {
    let (mut kinds, mut index) = (ApiKinds(0), 0);
    while index < policies.len() {
        if matches!(policies[index].phase, Phase::Authentication) && policies[index].request.is_some() {
            kinds = kinds.and(policies[index].applies_to);
        }
        index += 1;
    }
    kinds.contains(ApiKinds::AUTHENTICATED)
}

/// Whether policies are listed in the order of their phases.
pub(super) const fn in_order(policies: &[PolicyKind]) -> bool {
    let mut index = 1;
    while index < policies.len() {
        if policies[index - 1].phase as u8 > policies[index].phase as u8 {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::POLICIES;

    fn policy(applies_to: ApiKinds, phase: Phase) -> PolicyKind {
        PolicyKind { name: "test", applies_to, phase, request: Some(|_, _, _| None), response: None }
    }

    #[test]
    fn a_kind_of_apis_without_authentication_is_found() {
        let all = || policy(ApiKinds::AUTHENTICATED, Phase::Authentication);
        assert!(all_authenticated(&[all()]));
        assert!(!all_authenticated(&[policy(ApiKinds::AUTHENTICATED, Phase::Authorization)]));
        assert!(!all_authenticated(&[policy(ApiKinds::HTTP.and(ApiKinds::MCP), Phase::Authentication)]));
        assert!(!all_authenticated(&[PolicyKind { request: None, ..all() }]));
    }

    #[test]
    fn a_policy_before_its_phase_is_found() {
        let [first, second] = [Phase::Limits, Phase::Backend].map(|phase| policy(ApiKinds::HTTP, phase));
        assert!(in_order(&[policy(ApiKinds::HTTP, Phase::Limits), policy(ApiKinds::HTTP, Phase::Backend)]));
        assert!(!in_order(&[second, first]));
    }

    #[test]
    fn the_page_lists_all_policies() {
        let page = include_str!("../../../../docs/gateway/adding-a-policy.md");
        let rows = page.split("## Policies").nth(1).unwrap_or_default().lines().filter(|line| line.starts_with("| `"));
        let listed: BTreeSet<&str> = rows.filter_map(|row| Some(row.rsplit_once(" | ")?.0)).collect();
        let registered: Vec<String> =
            POLICIES.iter().map(|policy| format!("| `{}` | {:?}", policy.name, policy.phase)).collect();
        assert_eq!(listed, registered.iter().map(String::as_str).collect());
    }

    /// Requests without credentials run what does not authenticate them, and nothing that changes messages.
    #[test]
    fn kinds_without_callers_have_few_policies() {
        let names = |kind| -> Vec<&str> {
            POLICIES.iter().filter(|policy| policy.applies_to.contains(kind)).map(|policy| policy.name).collect()
        };
        assert_eq!(names(ApiKinds::OPTIONS), ["cors"]);
        assert_eq!(names(ApiKinds::PUBLISHERS), ["explain", "trace", "availability", "deny", "rate-limit"]);
    }
}
