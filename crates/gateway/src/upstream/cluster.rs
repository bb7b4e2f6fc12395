//! The backends of an API, made ready: addresses cut to pieces, limits clamped, counters.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use penstock_catalog::{Cluster, ClusterKind, Endpoints};
use penstock_compile::Compiler;
use penstock_engine::ports::TlsProfile;
use penstock_projects::place;

use super::breaker::Breaker;
use super::health::{Health, HealthChecks};
use super::proof::Proof;
use crate::caller::Caller;
use crate::error::{GatewayError, codes};
use crate::{ErrorStyle, Gateway, GatewayConfig, GatewayState};

/// Statuses an API may name for repetitions.
const RETRY_STATUSES: std::ops::RangeInclusive<u16> = 401..=598;

/// The backends of one cluster. Shared by all operations that use it, so that they count together.
#[derive(Debug)]
pub(crate) struct Backends {
    cluster: Arc<Cluster>,
    pub(super) hosts: Vec<Host>,
    next: AtomicUsize,
    pub(super) timeout: Duration,
    pub(super) retry: Option<RetryRule>,
    pub(super) breaker: Option<Breaker>,
    /// What the gateway proves itself with.
    pub(super) proof: Option<Proof>,
    pub(super) tls: Option<Arc<TlsProfile>>,
    pub(super) http2: bool,
}

/// One backend.
#[derive(Debug)]
pub(crate) struct Host {
    /// Scheme, host, port and path without a slash at its end.
    pub(super) prefix: Box<str>,
    /// How much of it is scheme and authority.
    pub(super) origin_bytes: usize,
    /// The query of its address.
    pub(super) query: Option<Box<str>>,
    /// Host and port.
    authority: Box<str>,
    /// Whether it is up, when it has others beside it.
    pub(super) health: Option<Arc<Health>>,
}

/// How a failed request is repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RetryRule {
    pub(super) count: u32,
    pub(super) statuses: Vec<u16>,
}

/// The clusters a request may go to.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    production: Option<Arc<Backends>>,
    sandbox: Option<Arc<Backends>>,
    named: Vec<(Arc<str>, Arc<Backends>)>,
}

impl Choice {
    pub(crate) fn new(
        gateway: &Gateway,
        endpoints: [&Endpoints; 2],
        tls: &Option<Arc<TlsProfile>>,
        cx: &mut Compiler<'_>,
    ) -> Choice {
        let [own, api] = endpoints;
        let mut ready = |cluster: &Arc<Cluster>| Backends::of(gateway, cluster, tls.clone(), cx);
        let mut named = Vec::new();
        for (name, cluster) in own.named.iter().chain(&api.named) {
            if named.iter().all(|(other, _)| other != name) {
                named.push((name.clone(), ready(cluster)));
            }
        }
        Choice { production: own.production.as_ref().map(&mut ready), sandbox: own.sandbox.as_ref().map(ready), named }
    }

    /// The cluster of a caller's key.
    pub(crate) fn of_caller(&self, caller: &Caller) -> Result<&Arc<Backends>, GatewayError> {
        let (wanted, other) = match caller.sandbox {
            true => (&self.sandbox, &self.production),
            false => (&self.production, &self.sandbox),
        };
        match (wanted, other) {
            (Some(cluster), _) => Ok(cluster),
            // No key type: the one that exists.
            (None, Some(cluster)) if !caller.key_type_known => Ok(cluster),
            // A key of the other type was refused by its own policy.
            (None, _) => Err(GatewayError::new(codes::UPSTREAM_CONNECTION_FAILED)),
        }
    }

    /// The cluster of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Backends>> {
        self.named.iter().find(|(known, _)| **known == *name).map(|(_, cluster)| cluster)
    }
}

impl Backends {
    /// The backends of a cluster; the same ones for every operation that names the same cluster.
    fn of(
        gateway: &Gateway,
        cluster: &Arc<Cluster>,
        tls: Option<Arc<TlsProfile>>,
        cx: &mut Compiler<'_>,
    ) -> Arc<Backends> {
        let clusters = gateway.state.get::<Clusters>();
        clusters.get_or_make(cluster, || Backends::new(&gateway.config, &gateway.state, cluster, tls, cx))
    }

    fn new(
        config: &GatewayConfig,
        state: &GatewayState,
        cluster: &Arc<Cluster>,
        tls: Option<Arc<TlsProfile>>,
        cx: &mut Compiler<'_>,
    ) -> Backends {
        let mut hosts: Vec<Host> = cluster.urls.iter().filter_map(|url| Host::parse(url)).collect();
        if hosts.len() < cluster.urls.len() {
            let bad = cluster.urls.iter().find(|url| Host::parse(url).is_none());
            let bad = bad.map_or("", |url| &**url);
            cx.error(
                place(&cluster.at),
                format!("`{bad}` is not the address of a backend: http:// or https://, host and port are expected"),
            );
        }
        if hosts.len() > 1 {
            for host in &mut hosts {
                host.health = Some(state.get::<HealthChecks>().watch(&host.connect_to(), &config.upstream.health));
            }
        }
        let retry = cluster.retry.as_ref().map(|retry| RetryRule::clamped(retry.count, &retry.statuses, config));
        let timeout_max = config.route_timeout_max.unwrap_or(config.route_timeout);
        Backends {
            cluster: cluster.clone(),
            hosts,
            next: AtomicUsize::new(0),
            timeout: match (cluster.timeout, config.error_style) {
                (None, _) => config.route_timeout,
                // An API of Choreo Connect may say less than the router; one of API Manager says what it says.
                (Some(timeout), ErrorStyle::ChoreoConnect) => timeout.min(timeout_max),
                (Some(timeout), ErrorStyle::ApiManager) => timeout,
            },
            retry: retry.filter(|retry| retry.count > 0),
            breaker: cluster.circuit_breakers.as_ref().and_then(|limits| Breaker::new(limits, cluster.http2)),
            proof: cluster.security.as_ref().map(|security| Proof::new(security, tls.clone())),
            tls,
            http2: cluster.http2,
        }
    }

    /// Whether backends get the `Host` of the request.
    pub(super) fn keeps_host(&self) -> bool {
        self.cluster.keeps_host
    }

    /// For connecting, when it is not the gateway's timeout.
    pub(super) fn connect_timeout(&self) -> Option<Duration> {
        self.cluster.connect_timeout
    }

    /// Whether a policy sets the address.
    pub(super) fn is_addressed(&self) -> bool {
        self.cluster.kind == ClusterKind::Addressed
    }

    /// The next backend: the first healthy one that was not tried for this request yet. When none is healthy all are
    /// tried, because a check may be wrong.
    pub(super) fn pick(&self, asked: &[usize]) -> Option<usize> {
        let count = self.hosts.len();
        if count <= 1 {
            return (count == 1 && asked.is_empty()).then_some(0);
        }
        let first = match self.cluster.kind {
            ClusterKind::LoadBalance if asked.is_empty() => self.next.fetch_add(1, Ordering::Relaxed),
            ClusterKind::LoadBalance => asked.last().map_or(0, |last| last + 1),
            ClusterKind::Failover | ClusterKind::Addressed => 0,
        };
        let order = || (0..count).map(|step| (first % count + step) % count).filter(|index| !asked.contains(index));
        order().find(|&index| self.hosts[index].is_up()).or_else(|| order().next())
    }
}

impl Host {
    pub(super) fn parse(url: &str) -> Option<Host> {
        let (scheme, rest) = url.trim().split_once("://")?;
        // The handshake of WebSocket is a request like any other.
        let scheme = match &*scheme.to_ascii_lowercase() {
            "http" | "ws" => "http",
            "https" | "wss" => "https",
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (address, query) = rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
        let (authority, path) = address.find('/').map_or((address, ""), |slash| address.split_at(slash));
        if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let origin = format!("{scheme}://{authority}");
        Some(Host {
            origin_bytes: origin.len(),
            prefix: format!("{origin}{}", path.trim_end_matches('/')).into(),
            query: query.filter(|query| !query.is_empty()).map(Into::into),
            authority: authority.into(),
            health: None,
        })
    }

    /// Host and port to connect to.
    fn connect_to(&self) -> String {
        let authority = self.authority.rsplit('@').next().unwrap_or_default();
        let has_port =
            authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        match (has_port, self.prefix.starts_with("https:")) {
            (true, _) => authority.to_owned(),
            (false, true) => format!("{authority}:443"),
            (false, false) => format!("{authority}:80"),
        }
    }

    fn is_up(&self) -> bool {
        self.health.as_ref().is_none_or(|health| health.is_up())
    }
}

impl RetryRule {
    /// The settings of an API, within the gateway's limits: a count out of range is the greatest one, statuses out
    /// of range are passed over, and when none is left the gateway's own count.
    fn clamped(count: u32, statuses: &[u16], config: &GatewayConfig) -> RetryRule {
        let statuses: Vec<u16> = statuses.iter().copied().filter(|status| RETRY_STATUSES.contains(status)).collect();
        RetryRule {
            count: count.min(config.upstream.retry_count_max),
            statuses: if statuses.is_empty() { config.upstream.retry_statuses.clone() } else { statuses },
        }
    }
}

/// Clusters that are in use, by what the catalog says of them.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    known: Mutex<Vec<Weak<Backends>>>,
}

impl Clusters {
    fn get_or_make(&self, cluster: &Arc<Cluster>, make: impl FnOnce() -> Backends) -> Arc<Backends> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|backends| backends.strong_count() > 0);
        let found = known.iter().filter_map(Weak::upgrade).find(|known| Arc::ptr_eq(&known.cluster, cluster));
        found.unwrap_or_else(|| {
            let made = Arc::new(make());
            known.push(Arc::downgrade(&made));
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut_once() {
        for (url, prefix, origin, query, connect) in [
            ("http://a", "http://a", 8, None, "a:80"),
            ("HTTPS://a.b/c/", "https://a.b/c", 11, None, "a.b:443"),
            ("http://a:81/c?k=v", "http://a:81/c", 11, Some("k=v"), "a:81"),
            ("WSS://a/b?c", "https://a/b", 9, Some("c"), "a:443"),
            ("http://[::1]:9/x#y", "http://[::1]:9/x", 14, None, "[::1]:9"),
        ] {
            let host = Host::parse(url).expect(url);
            assert_eq!((&*host.prefix, host.origin_bytes, host.query.as_deref()), (prefix, origin, query));
            assert_eq!(host.connect_to(), connect);
        }
        for bad in ["", "a", "ftp://a", "http:///x", "http://a b/"] {
            assert!(Host::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_an_api_asks_for_is_clamped() {
        let config = GatewayConfig::default();
        let rule = |count, statuses: &[u16]| {
            let rule = RetryRule::clamped(count, statuses, &config);
            (rule.count, rule.statuses)
        };
        assert_eq!(rule(2, &[502, 503]), (2, vec![502, 503]));
        assert_eq!(rule(9, &[400, 599]), (5, vec![504]));
    }
}
