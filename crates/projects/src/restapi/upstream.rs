//! `upstream` and `upstreamDefinitions`: the backends of a `RestApi`.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{At, Cluster, Endpoints};

use super::{known_keys, mapping};
use crate::document::Item;
use crate::duration::go_duration;
use crate::shared::address;
use crate::{Import, hint};

/// Addresses of one definition. Weights become repetitions, at most 100.
const ADDRESSES_MAX: usize = 1_000;

/// Reads the backends. Every definition can be chosen by its name; so can what stands beside `main` and `sandbox`.
pub(super) fn read(import: &mut Import<'_>, spec: &Item<'_>) -> Endpoints {
    let mut endpoints = Endpoints { named: definitions(import, spec), ..Endpoints::default() };
    let Some(upstream) = mapping(import, spec, "upstream", spec.at()) else { return endpoints };
    for (key, at, item) in upstream.entries() {
        let cluster = target(import, key, &item, &endpoints.named).map(Arc::new);
        match &**key {
            "main" => endpoints.production = cluster.map(|cluster| shared(cluster, &endpoints.named)),
            "sandbox" => endpoints.sandbox = cluster.map(|cluster| shared(cluster, &endpoints.named)),
            name if endpoints.named.iter().any(|(known, _)| &**known == name) => {
                import.error(&at, format!("a backend of the name `{name}` is defined already"));
            }
            _ => endpoints.named.extend(cluster.map(|cluster| (key.clone(), cluster))),
        }
    }
    if endpoints.production.is_none() && !import.failed() {
        import.error(&upstream.at(), "`upstream` needs `main`");
    }
    endpoints
}

/// The backends of an operation: its own, and those of the API where it has none; `None` when it has none at all.
pub(super) fn of_operation(import: &mut Import<'_>, item: &Item<'_>, of_api: &Endpoints) -> Option<Endpoints> {
    item.get("upstream")?;
    let upstream = mapping(import, item, "upstream", item.at())?;
    known_keys(import, &upstream, &["main", "sandbox"]);
    if upstream.entries().next().is_none() {
        import.error(&upstream.at(), "`upstream` of an operation needs `main` or `sandbox`");
    }
    let mut own = |key: &str| {
        let cluster = target(import, key, &upstream.get(key)?, &of_api.named).map(Arc::new)?;
        Some(shared(cluster, &of_api.named))
    };
    let (main, sandbox) = (own("main"), own("sandbox"));
    Some(Endpoints {
        production: main.or_else(|| of_api.production.clone()),
        sandbox: sandbox.or_else(|| of_api.sandbox.clone()),
        named: Vec::new(),
    })
}

/// The same cluster when a definition is referred to, so that both count together.
fn shared(cluster: Arc<Cluster>, named: &[(Arc<str>, Arc<Cluster>)]) -> Arc<Cluster> {
    named.iter().find(|(_, known)| *known == cluster).map_or(cluster, |(_, known)| known.clone())
}

fn target(import: &mut Import<'_>, name: &str, item: &Item<'_>, named: &[(Arc<str>, Arc<Cluster>)]) -> Option<Cluster> {
    if !item.is_map() {
        import.error(&item.at(), format!("`{name}` must be a mapping, not {}", item.kind()));
        return None;
    }
    known_keys(import, item, &["url", "ref", "hostRewrite", "auth", "timeout", "tls"]);
    let keeps_host = match import.text_of(item, "hostRewrite").as_deref() {
        None | Some("auto") => false,
        Some("manual") => true,
        Some(other) => {
            let at = item.get("hostRewrite").map_or_else(|| item.at(), |rewrite| rewrite.at());
            import.error(&at, format!("`hostRewrite` must be `auto` or `manual`, not `{other}`"));
            false
        }
    };
    for key in ["auth", "tls"] {
        if let Some(found) = item.get(key) {
            import.error(
                &found.at(),
                format!("`{key}` of a backend is not supported; `set-headers` can give it credentials"),
            );
        }
    }
    match (import.some_text_of(item, "url"), import.some_text_of(item, "ref")) {
        (Some(url), None) => {
            let at = item.get("url").map_or_else(|| item.at(), |url| url.at());
            let url = checked(import, &url, &at)?;
            let Times { request, connect } = times(import, item);
            Some(Cluster {
                urls: vec![url],
                timeout: request,
                connect_timeout: connect,
                keeps_host,
                at: item.at(),
                ..Cluster::default()
            })
        }
        (None, Some(name)) => match named.iter().find(|(known, _)| **known == *name) {
            Some((_, cluster)) => Some(Cluster { keeps_host, ..(**cluster).clone() }),
            None => {
                let meant = hint(&name, named.iter().map(|(known, _)| &**known));
                import.error(&item.at(), format!("`upstreamDefinitions` has no `{name}`{meant}"));
                None
            }
        },
        (Some(_), Some(_)) => {
            import.error(&item.at(), format!("`{name}` has both `url` and `ref`; one of them is expected"));
            None
        }
        (None, None) => {
            import.error(&item.at(), format!("`{name}` needs `url` or `ref`"));
            None
        }
    }
}

fn definitions(import: &mut Import<'_>, spec: &Item<'_>) -> Vec<(Arc<str>, Arc<Cluster>)> {
    let mut found: Vec<(Arc<str>, Arc<Cluster>)> = Vec::new();
    for item in spec.get("upstreamDefinitions").iter().flat_map(|list| list.items()) {
        known_keys(import, &item, &["name", "basePath", "timeout", "upstreams"]);
        let Some(name) = import.some_text_of(&item, "name") else {
            import.error(&item.at(), "an upstream definition needs `name`");
            continue;
        };
        if found.iter().any(|(known, _)| *known == name) {
            import.error(&item.at(), format!("the upstream definition `{name}` is given twice"));
            continue;
        }
        let base = import.some_text_of(&item, "basePath").unwrap_or_default();
        let mut weighted: Vec<(Arc<str>, u64)> = Vec::new();
        for one in item.get("upstreams").iter().flat_map(|list| list.items()) {
            known_keys(import, &one, &["url", "urls", "weight"]);
            let weight = import.number_of(&one, "weight").unwrap_or(100);
            if weight > 100 {
                import.error(&one.at(), "`weight` is a number from 0 to 100");
            }
            let urls = import.some_text_of(&one, "url").into_iter().chain(import.texts_of(&one, "urls"));
            for url in urls.collect::<Vec<_>>() {
                let joined = format!("{}{base}", url.trim_end_matches('/'));
                weighted.extend(checked(import, &joined, &one.at()).map(|url| (url, weight.min(100))));
            }
        }
        if weighted.iter().all(|(_, weight)| *weight == 0) {
            import.error(&item.at(), format!("the upstream definition `{name}` has no address"));
            continue;
        }
        let Times { request, connect } = times(import, &item);
        let cluster = Cluster {
            urls: by_weight(&weighted),
            timeout: request,
            connect_timeout: connect,
            at: item.at(),
            ..Cluster::default()
        };
        found.push((name, Arc::new(cluster)));
    }
    found
}

/// Addresses take turns; one with twice the weight stands there twice.
fn by_weight(weighted: &[(Arc<str>, u64)]) -> Vec<Arc<str>> {
    let divisor = weighted.iter().fold(0, |divisor, (_, weight)| greatest_divisor(divisor, *weight)).max(1);
    let times = |weight: u64| (weight / divisor) as usize;
    let repeated = weighted.iter().flat_map(|(url, weight)| std::iter::repeat_n(url.clone(), times(*weight)));
    repeated.take(ADDRESSES_MAX).collect()
}

fn greatest_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_divisor(right, left % right) }
}

fn checked(import: &mut Import<'_>, url: &str, at: &At) -> Option<Arc<str>> {
    let url = url.trim();
    match address(url) {
        Some(address) if matches!(address.scheme, "http" | "https") => Some(url.into()),
        _ => {
            import.error(
                at,
                format!("`{url}` is not the address of a backend: http:// or https:// and a host are expected"),
            );
            None
        }
    }
}

/// The timeouts of a backend; the gateway's where absent.
struct Times {
    /// For the whole answer.
    request: Option<Duration>,
    connect: Option<Duration>,
}

/// Reads `timeout`: a mapping, or the time for the whole answer. A time of zero is the gateway's.
fn times(import: &mut Import<'_>, item: &Item<'_>) -> Times {
    let Some(timeout) = item.get("timeout") else { return Times { request: None, connect: None } };
    if !timeout.is_map() {
        return Times { request: duration(import, &timeout), connect: None };
    }
    known_keys(import, &timeout, &["connect", "request", "idle"]);
    if let Some(idle) = timeout.get("idle") {
        import.warn(&idle.at(), "`idle` of a backend is ignored; `resilience.idleTimeout` limits pauses of answers");
    }
    let mut time = |key: &str| timeout.get(key).and_then(|found| duration(import, &found));
    Times { request: time("request"), connect: time("connect") }
}

fn duration(import: &mut Import<'_>, item: &Item<'_>) -> Option<Duration> {
    let text = import.text(item, "timeout")?;
    let found = go_duration(&text);
    if found.is_none() {
        import.error(&item.at(), format!("a time is expected, as `5s` or `500ms`, not `{text}`"));
    }
    found.filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_repetitions() {
        let urls = |weights: &[(&str, u64)]| {
            let weighted: Vec<(Arc<str>, u64)> = weights.iter().map(|(url, weight)| ((*url).into(), *weight)).collect();
            by_weight(&weighted).iter().map(|url| url.to_string()).collect::<String>()
        };
        assert_eq!(urls(&[("a", 100), ("b", 100)]), "ab");
        assert_eq!(urls(&[("a", 80), ("b", 20)]), "aaaab");
        assert_eq!(urls(&[("a", 0), ("b", 7)]), "b");
    }
}
