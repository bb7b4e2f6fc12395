//! Backends: the extensions, `servers` of version 3, `host` and `schemes` of version 2.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{At, CircuitBreakers, Cluster, ClusterKind, Endpoints, Retry};

use crate::descriptor::endpoint_config::RETRIES_MAX;
use crate::document::Item;
use crate::shared::address;
use crate::{Import, endpoint_security, hint};

/// Statuses Choreo Connect repeats a request for.
const RETRY_STATUSES: std::ops::RangeInclusive<u64> = 401..=598;

/// `x-wso2-production-endpoints` and `x-wso2-sandbox-endpoints` of an API or a path, and `x-wso2-endpoints`.
pub(crate) fn read(import: &mut Import<'_>, root: &Item<'_>, item: &Item<'_>) -> Endpoints {
    let mut endpoints = Endpoints::default();
    for list in item.get("x-wso2-endpoints").iter() {
        let named: Vec<_> = if list.is_list() {
            list.items().flat_map(|one| one.entries()).collect()
        } else {
            list.entries().collect()
        };
        for (name, _, value) in named {
            if let Some(cluster) = cluster(import, root, &value) {
                endpoints.named.push((name.clone(), Arc::new(cluster)));
            }
        }
    }
    let mut of = |key: &str| item.get(key).and_then(|value| cluster(import, root, &value)).map(Arc::new);
    endpoints.production = of("x-wso2-production-endpoints");
    endpoints.sandbox = of("x-wso2-sandbox-endpoints");
    endpoints
}

/// One cluster, or a reference to one.
fn cluster(import: &mut Import<'_>, root: &Item<'_>, item: &Item<'_>) -> Option<Cluster> {
    let at = item.at();
    if let Some(reference) = item.text() {
        let Some(name) = reference.strip_prefix("#/x-wso2-endpoints/") else {
            import.error(&at, format!("`{reference}` must be a mapping with `urls`, or `#/x-wso2-endpoints/NAME`"));
            return None;
        };
        let list = root.get("x-wso2-endpoints");
        let all: Vec<_> = list.iter().flat_map(|list| list.items()).flat_map(|one| one.entries()).collect();
        let Some((_, _, value)) = all.iter().find(|(known, _, _)| &***known == name) else {
            let meant = hint(name, all.iter().map(|(known, _, _)| &***known));
            import.error(&at, format!("`x-wso2-endpoints` has no `{name}`{meant}"));
            return None;
        };
        if value.text().is_some() {
            import.error(&value.at(), format!("`{name}` must be a mapping with `urls`"));
            return None;
        }
        return cluster(import, root, value);
    }
    if !item.is_map() {
        import.error(&at, format!("endpoints must be a mapping with `urls`, not {}", item.kind()));
        return None;
    }
    const KEYS: [&str; 5] = ["urls", "type", "advanceEndpointConfig", "securityConfig", "http2BackendEnabled"];
    for (key, at, _) in item.entries() {
        if !KEYS.contains(&&**key) {
            import.warn(&at, format!("unknown key `{key}` is ignored{}", hint(key, KEYS.into_iter())));
        }
    }
    let list = item.get("urls");
    let mut urls = Vec::new();
    for url in list.iter().flat_map(|list| list.items()) {
        let text = import.text(&url, "urls");
        urls.extend(text.and_then(|text| self::url(import, &text, &url.at())));
    }
    if urls.is_empty() {
        if list.is_none_or(|list| list.items().next().is_none()) {
            import.error(&at, "endpoints need at least one address in `urls`");
        }
        return None;
    }
    let mut cluster = Cluster { urls, at, ..Cluster::default() };
    cluster.kind = kind(import, item);
    if let Some(advanced) = item.get("advanceEndpointConfig") {
        advanced_config(import, &advanced, &mut cluster);
    }
    if let Some(security) = item.get("securityConfig") {
        cluster.security = endpoint_security::read(import, &security);
    }
    Some(cluster)
}

fn kind(import: &mut Import<'_>, item: &Item<'_>) -> ClusterKind {
    match import.text_of(item, "type").as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "load_balance" | "loadbalance" | "http") => ClusterKind::LoadBalance,
        Some("failover") => ClusterKind::Failover,
        Some(other) => {
            let at = item.get("type").map_or_else(|| item.at(), |value| value.at());
            let meant = hint(other, ["load_balance", "failover"].into_iter());
            let message = format!("`type` is `load_balance` or `failover`, not `{other}`{meant}; addresses take turns");
            import.warn(&at, message);
            ClusterKind::LoadBalance
        }
    }
}

/// An address of a backend; one without a scheme is meant for plain HTTP, or for WebSocket. What the service registry
/// A Consul address has a default, which is used.
pub(crate) fn url(import: &mut Import<'_>, text: &str, at: &At) -> Option<Arc<str>> {
    let mut text = text.trim();
    if let Some(inside) = text.strip_prefix("consul(").and_then(|inside| inside.strip_suffix(')')) {
        let default = inside.rsplit_once(',').map_or("", |(_, default)| default.trim());
        import.warn(at, format!("Consul is not supported; the default `{default}` is used"));
        text = default;
    }
    let with_scheme;
    if !text.contains("://") && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[') {
        with_scheme = format!("{}://{text}", if import.sockets { "ws" } else { "http" });
        text = &with_scheme;
    }
    match address(text) {
        Some(found) if matches!(found.scheme, "http" | "https") => Some(text.into()),
        Some(found) if matches!(found.scheme, "ws" | "wss") && import.sockets => Some(text.into()),
        Some(found) if matches!(found.scheme, "ws" | "wss") => {
            import.error(at, format!("`{text}` speaks WebSocket, which only APIs of the type `WS` do"));
            None
        }
        _ => {
            import.error(at, format!("an address must be absolute and begin with http:// or https://, not `{text}`"));
            None
        }
    }
}

fn advanced_config(import: &mut Import<'_>, item: &Item<'_>, cluster: &mut Cluster) {
    for (key, at, value) in item.entries() {
        match &**key {
            "timeoutInMillis" => {
                let timeout = import.number_of(item, "timeoutInMillis").filter(|millis| *millis > 0);
                cluster.timeout = timeout.map(Duration::from_millis);
            }
            "retryConfig" => cluster.retry = Some(retry(import, &value)),
            "circuitBreakers" => cluster.circuit_breakers = Some(circuit_breakers(import, &value)),
            other => {
                let meant = hint(other, ["timeoutInMillis", "retryConfig", "circuitBreakers"].into_iter());
                import.warn(&at, format!("unknown key `{other}` is ignored{meant}"));
            }
        }
    }
}

fn retry(import: &mut Import<'_>, item: &Item<'_>) -> Retry {
    let count = match item.get("count").map(|count| (count.at(), count.number())) {
        None => 0,
        Some((_, Some(count))) if count <= RETRIES_MAX => count as u32,
        Some((at, _)) => {
            import.warn(&at, format!("`count` must be 0 to {RETRIES_MAX}; {RETRIES_MAX} is used"));
            RETRIES_MAX as u32
        }
    };
    let mut statuses = Vec::new();
    for status in item.get("statusCodes").iter().flat_map(|list| list.items()) {
        match status.number() {
            Some(number) if RETRY_STATUSES.contains(&number) => statuses.push(number as u16),
            _ => import.warn(&status.at(), "a status to retry must be 401 to 598; it is ignored"),
        }
    }
    Retry { count, statuses }
}

fn circuit_breakers(import: &mut Import<'_>, item: &Item<'_>) -> CircuitBreakers {
    let mut number = |key: &str| {
        let found = import.number_of(item, key).and_then(|number| u32::try_from(number).ok());
        found.filter(|number| *number > 0)
    };
    let found = CircuitBreakers {
        connections_max: number("maxConnections"),
        requests_max: number("maxRequests"),
        pending_max: number("maxPendingRequests"),
        retries_max: number("maxRetries"),
    };
    if let Some(pools) = item.get("maxConnectionPools") {
        import.warn(&pools.at(), "`maxConnectionPools` is ignored: there is one pool for each core and backend");
    }
    found
}

/// The backend that `servers` name: those that are absolute, and with a configured base (`gateway.servers_base`) also those
/// that are relative. Also what they say of the base path: the last absolute one, or else the last of all.
pub(super) fn servers(import: &mut Import<'_>, item: &Item<'_>) -> (Option<Cluster>, Arc<str>) {
    let (mut urls, mut base, mut relative) = (Vec::<Arc<str>>::new(), None, Arc::from("/"));
    let Some(list) = item.get("servers") else { return (None, relative) };
    for server in list.items() {
        let Some(url) = import.text_of(&server, "url") else { continue };
        let at = server.get("url").map_or_else(|| server.at(), |url| url.at());
        let mut url = variables(url.trim(), &server);
        let of_base = import.config.servers_base.clone();
        if let Some(rest) = url.strip_prefix("//") {
            // RFC 3986 §4.2: the scheme is that of the document, which only the configured base has.
            let scheme = of_base.as_deref().and_then(address).map_or("http", |base| base.scheme);
            url = format!("{scheme}://{rest}");
        } else if names_a_host(&url) {
            url = format!("http://{url}");
        }
        match address(&url) {
            Some(found) if matches!(found.scheme, "http" | "https") => {
                base = Some(Arc::from(found.path));
                urls.push(url.trim_end_matches('/').into());
            }
            Some(found) => import.warn(&at, format!("a server over `{}` is ignored", found.scheme)),
            // A relative address says where the definition itself is served.
            None if is_relative(&url) => {
                if !url.is_empty() {
                    relative = format!("/{}", url.trim_start_matches("./").trim_start_matches('/')).into();
                }
                if let Some(base) = of_base {
                    urls.push(resolved(&base, &url));
                }
            }
            None => import.warn(&at, format!("`{url}` is not an address; the server is ignored")),
        }
    }
    // Backends of one cluster do the same work at the same path.
    let first = urls.first().and_then(|url| address(url).map(|found| found.path.to_owned()));
    let before = urls.len();
    urls.retain(|url| address(url).map(|found| found.path.to_owned()) == first);
    if urls.len() < before {
        import.warn(&list.at(), "servers with another path than the first are ignored");
    }
    let cluster = (!urls.is_empty()).then(|| Cluster { urls, at: list.at(), ..Cluster::default() });
    (cluster, base.unwrap_or(relative))
}

/// Whether an address is a path, from the root or from where the definition stands.
fn is_relative(url: &str) -> bool {
    let has_good_path = url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b'?' | b'#'));
    let leaves = url.split('/').any(|segment| segment == "..");
    has_good_path && !leaves && !url.contains(':')
}

/// A relative address below the configured base: a path from the root takes the place of that of the base (RFC 3986 §5.2).
fn resolved(base: &str, url: &str) -> Arc<str> {
    let base = base.trim_end_matches('/');
    let path = url.trim_start_matches("./");
    let resolved = match path.strip_prefix('/') {
        Some(path) => {
            let origin_bytes = base.find("://").map_or(0, |at| at + 3);
            let end = base[origin_bytes..].find('/').map_or(base.len(), |slash| origin_bytes + slash);
            format!("{}/{path}", &base[..end])
        }
        None => format!("{base}/{path}"),
    };
    resolved.trim_end_matches('/').into()
}

/// Whether an address without a scheme begins with a host, as Choreo Connect takes all that do not begin with a slash. One
/// word before the slash may be a folder as well, so a dot or a port decides.
fn names_a_host(url: &str) -> bool {
    let host = url.split(['/', '?']).next().unwrap_or_default();
    let begins = host.starts_with(|first: char| first.is_ascii_alphanumeric());
    begins && !url.contains("://") && (host.contains(['.', ':']) || host == "localhost")
}

/// The address of a server with the defaults of its variables.
pub(crate) fn variables(url: &str, server: &Item<'_>) -> String {
    let mut url = url.to_owned();
    for (name, _, variable) in server.get("variables").iter().flat_map(|all| all.entries()) {
        if let Some(default) = variable.get("default").and_then(|default| default.text().cloned()) {
            url = url.replace(&format!("{{{name}}}"), &default);
        }
    }
    url
}

/// The backend that `host`, `basePath` and `schemes` of version 2 name.
pub(super) fn host(import: &mut Import<'_>, root: &Item<'_>) -> Option<Cluster> {
    let item = root.get("host")?;
    let host = import.text(&item, "host")?;
    let schemes = import.texts_of(root, "schemes");
    let scheme = match () {
        _ if schemes.iter().any(|scheme| &**scheme == "https") => "https",
        _ if schemes.is_empty() || schemes.iter().any(|scheme| &**scheme == "http") => "http",
        _ => {
            import.warn(&item.at(), format!("`schemes` names neither http nor https; `{host}` is ignored"));
            return None;
        }
    };
    let base = root.get("basePath").and_then(|base| base.text().cloned()).unwrap_or_default();
    let url: Arc<str> = format!("{scheme}://{host}{}", base.trim_end_matches('/')).into();
    if address(&url).is_none() {
        import.warn(&item.at(), format!("`{url}` is not an address; `host` is ignored"));
        return None;
    }
    Some(Cluster { urls: vec![url], at: item.at(), ..Cluster::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_addresses_are_resolved_below_the_base() {
        for (base, url, expected) in [
            ("https://b.example.com", "/v1", "https://b.example.com/v1"),
            ("https://b.example.com/root/", "/v1/", "https://b.example.com/v1"),
            ("https://b.example.com/root", "v1", "https://b.example.com/root/v1"),
            ("https://b.example.com/root", "./v1", "https://b.example.com/root/v1"),
            ("https://b.example.com/root", "", "https://b.example.com/root"),
            ("http://b:81", "/", "http://b:81"),
        ] {
            assert_eq!(&*resolved(base, url), expected, "{base} {url}");
        }
        for (url, expected) in
            [("/v1", true), ("v1", true), ("", true), ("../v1", false), ("mailto:x", false), ("/{tenant}", false)]
        {
            assert_eq!(is_relative(url), expected, "{url}");
        }
    }
}
