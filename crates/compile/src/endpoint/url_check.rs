//! Warnings about addresses that no message can be sent to, as far as their constant beginning shows.

use penstock_engine::Place;

use crate::diagnostic::suggestion;
use crate::{Compiler, TransportKind};

/// The schemes of the transports of Micro Integrator, those that do not run here included: an address with one is no mistake.
const SCHEMES: [&str; 28] = [
    "amqp", "amqps", "dummy", "file", "fix", "ftp", "ftps", "hl7", "http", "https", "idoc", "bapi", "jms", "kafka",
    "local", "mailto", "mqtt", "msmq", "rabbitmq", "sftp", "smb", "smtp", "tcp", "udp", "vfs", "ws", "wss", "xmpp",
];

/// Warns when an address is no URL.
pub(super) fn report(cx: &mut Compiler<'_>, text: &str, at: &Place) {
    if let Some(problem) = problem(text, cx.registry.transports) {
        cx.warn(at.clone(), format!("the address `{text}` is not a URL: {problem}"));
    }
}

fn problem(text: &str, transports: &[TransportKind]) -> Option<String> {
    let text = text.trim().trim_start_matches("legacy-encoding:");
    if text.is_empty() {
        return Some("it is empty".to_owned());
    }
    // What is computed may be anything, so only the text before it is checked.
    let computed = text.find(['{', '$']);
    let constant = &text[..computed.unwrap_or(text.len())];
    let Some((scheme, rest)) = constant.split_once(':').filter(|(scheme, _)| !scheme.contains(['/', '?', '#'])) else {
        let may_follow = computed.is_some() && !constant.contains(['/', '?', '#']);
        return (!may_follow).then(without_scheme);
    };
    if rest.starts_with(|next: char| next.is_ascii_digit()) {
        return Some(without_scheme());
    }
    let scheme = scheme.to_ascii_lowercase();
    let known = transports.iter().flat_map(|transport| transport.schemes).copied().chain(SCHEMES);
    if !known.clone().any(|known| known == scheme) {
        let meant = suggestion(&scheme, ["http", "https"].into_iter()).or_else(|| suggestion(&scheme, known));
        let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        return Some(format!("unknown scheme `{scheme}`{hint}"));
    }
    if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
        return None;
    }
    let Some(authority) = rest.strip_prefix("//") else {
        let may_follow = computed.is_some() && "//".starts_with(rest);
        return (!may_follow).then(|| format!("`{scheme}:` must be followed by `//` and a host"));
    };
    match authority.find(['/', '?', '#']) {
        Some(end) => authority_problem(&authority[..end]),
        None if computed.is_none() => authority_problem(authority),
        None => None,
    }
}

fn without_scheme() -> String {
    "it does not begin with a scheme such as `http://`".to_owned()
}

/// What is wrong with `USER@HOST:PORT`.
fn authority_problem(authority: &str) -> Option<String> {
    let host_port = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match host_port.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (host_port, ""),
    };
    if host.is_empty() {
        return Some("it has no host".to_owned());
    }
    if host.contains(char::is_whitespace) {
        return Some(format!("`{host}` is not a host"));
    }
    let is_port = port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    (!is_port).then(|| format!("`{port}` is not a port from 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::{TransportKind, problem};

    #[test]
    fn addresses_that_are_no_urls_are_reported() {
        for (text, expected) in [
            ("localhost:9000", "it does not begin with a scheme such as `http://`"),
            ("backend", "it does not begin with a scheme such as `http://`"),
            ("/services/Orders", "it does not begin with a scheme such as `http://`"),
            ("/orders/{uri.var.id}", "it does not begin with a scheme such as `http://`"),
            ("htp://localhost/x", "unknown scheme `htp`, did you mean `http`?"),
            ("gopher://localhost/x", "unknown scheme `gopher`"),
            ("http:/localhost", "`http:` must be followed by `//` and a host"),
            ("http:///x", "it has no host"),
            ("http://my host/x", "`my host` is not a host"),
            ("http://localhost:99999/x", "`99999` is not a port from 1 to 65535"),
            ("http://localhost:port/{x}", "`port` is not a port from 1 to 65535"),
            (" ", "it is empty"),
        ] {
            assert_eq!(problem(text, &[]).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn computed_addresses_and_other_transports_are_not() {
        for text in [
            "http://localhost:9000/x",
            "HTTPS://u:p@[::1]:8443/a b",
            "legacy-encoding:http://h/{uri.var.q}",
            "{uri.var.host}:9000/x",
            "${properties.base}/x",
            "http:{uri.var.rest}",
            "http://{uri.var.host}:{uri.var.port}/x",
            "http://localhost:{uri.var.port}/x",
            "$SYSTEM:BACKEND",
            "api-{uri.var.name}",
            "jms:/Orders?transport.jms.DestinationType=queue",
            "vfs:file:///tmp/out",
            "mailto:someone@example.org",
            "local:///services/Orders",
            "tcp://localhost:6060",
        ] {
            assert_eq!(problem(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn a_transport_adds_its_schemes() {
        let pigeon = TransportKind { schemes: &["pigeon"], ..TransportKind::new("pigeon") };
        assert_eq!(problem("pigeon:loft", &[]).as_deref(), Some("unknown scheme `pigeon`"));
        assert_eq!(problem("pigeon:loft", &[pigeon]), None);
    }
}
