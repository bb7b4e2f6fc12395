//! What policies read of a client's request: its origin, path, host and body.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use penstock_catalog::{Api, ApiKind};
use penstock_engine::{Exchange, Fault};
use penstock_message::{Form, Shape, push_decimal};

use crate::router::without_port;
use crate::{ErrorStyle, Site};

/// The host of an API that names none.
const ANY_HOST: &str = "localhost";

/// `http` or `https`.
pub(crate) fn scheme(exchange: &Exchange) -> &'static str {
    if exchange.client.line.secure { "https" } else { "http" }
}

/// Scheme, host and port as the client knows them: what it sent, or what a proxy says that it sent.
pub(crate) fn origin(exchange: &Exchange, trusts_forwarded: bool) -> String {
    let headers = &exchange.message.headers;
    let forwarded = |name: &str| {
        let list = headers.get(name).filter(|_| trusts_forwarded)?;
        // The first proxy's word, as with addresses.
        list.split(',').next().map(str::trim)
    };
    let host = forwarded("x-forwarded-host").filter(|host| is_host(host));
    let host = host.or_else(|| headers.get("host").filter(|host| is_host(host)));
    let host = host.map_or_else(|| exchange.client.local.to_string(), str::to_owned);
    let scheme = match forwarded("x-forwarded-proto") {
        Some(proxy) if proxy.eq_ignore_ascii_case("https") => "https",
        Some(proxy) if proxy.eq_ignore_ascii_case("http") => "http",
        _ => scheme(exchange),
    };
    format!("{scheme}://{host}")
}

/// Whether a text is a host that may be put into an address: letters, digits, dots, hyphens, and a port.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    !name.is_empty() && name.bytes().all(letters) && port.parse::<u16>().is_ok()
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

/// Path and query as a backend gets them. A slash at the end means nothing when an operation is looked for; a path that
/// no policy changed reaches the backend of Choreo Connect as the template writes it.
pub(crate) fn for_backend<'a>(exchange: &'a Exchange, site: &Site, style: ErrorStyle) -> Cow<'a, str> {
    let now = below_now(exchange, site);
    let (path, query) = now.split_at(now.find('?').unwrap_or(now.len()));
    let wanted = match site.pattern.slash_at_end() {
        Some(wanted) if style == ErrorStyle::ChoreoConnect && site.api.kind == ApiKind::Http => wanted,
        _ => return Cow::Borrowed(now),
    };
    let is_as_sent = || {
        exchange.message.url_postfix.is_none()
            || below(exchange.client.line.path(), site).is_some_and(|sent| sent == path)
    };
    match path.strip_suffix('/') {
        Some(bare) if !wanted && is_as_sent() => Cow::Owned(format!("{bare}{query}")),
        None if wanted && is_as_sent() => Cow::Owned(format!("{path}/{query}")),
        _ => Cow::Borrowed(now),
    }
}

/// The client: its address and port, or the address alone when a trusted proxy reports it, which names no port.
pub(crate) fn source(exchange: &Exchange) -> String {
    let client = &exchange.client;
    if client.peer.ip().to_canonical() == client.address { address(client.peer) } else { client.address.to_string() }
}

fn address(peer: SocketAddr) -> String {
    let address = match peer.ip().to_canonical() {
        IpAddr::V4(address) => address,
        other => return SocketAddr::new(other, peer.port()).to_string(),
    };
    let mut text = String::with_capacity("255.255.255.255:65535".len());
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        push_decimal(&mut text, octet.into());
    }
    text.push(':');
    push_decimal(&mut text, peer.port().into());
    text
}

/// The virtual host a request was for.
pub(crate) fn vhost<'a>(exchange: &Exchange, api: &'a Api) -> &'a str {
    api.vhosts.get(vhost_index(exchange, api)).map_or(ANY_HOST, |vhost| vhost)
}

/// Which virtual host of the API that is; the first when none fits.
pub(crate) fn vhost_index(exchange: &Exchange, api: &Api) -> usize {
    if api.vhosts.len() < 2 {
        return 0;
    }
    let sent = exchange.message.headers.get("host").unwrap_or_default();
    let name = without_port(sent);
    let fits = |vhost: &Arc<str>| vhost.eq_ignore_ascii_case(name) || vhost.eq_ignore_ascii_case(sent);
    api.vhosts.iter().position(fits).unwrap_or(0)
}

/// The virtual hosts requests may be for, in the order of [`vhost_index`].
pub(crate) fn vhosts(api: &Api) -> impl Iterator<Item = &str> {
    let none = api.vhosts.is_empty().then_some(ANY_HOST);
    api.vhosts.iter().map(|vhost| &**vhost).chain(none)
}

/// What Choreo Connect calls the backends of an operation; empty when there are none.
pub(crate) fn cluster_name(site: &Site, vhost: &str, sandbox: bool) -> String {
    let api = &site.api;
    let endpoints = site.operation.endpoints.as_ref().unwrap_or(&api.endpoints);
    let (kind, cluster) = if sandbox { ("Sand", &endpoints.sandbox) } else { ("Prod", &endpoints.production) };
    if cluster.is_none() {
        return String::new();
    }
    format!("{}_cluster{kind}_{vhost}_{}{}", api.organization, api.name, api.version)
}

/// The body without its `Content-Encoding`, for readers. It has been buffered.
pub(crate) fn body_decoded(exchange: &mut Exchange) -> Result<Bytes, Fault> {
    body_bytes(exchange)?;
    let program = exchange.program().clone();
    Ok(exchange.message.decoded_bytes(&program.conversion)?)
}

/// The body as it would be sent on. It has been buffered.
pub(crate) fn body_bytes(exchange: &mut Exchange) -> Result<Bytes, Fault> {
    if let Form::Bytes(bytes) = exchange.message.body.form() {
        return Ok(bytes.clone());
    }
    if exchange.message.body.is_empty() {
        return Ok(Bytes::new());
    }
    // A mediation policy gave it another form; what it stands for is settled now.
    let program = exchange.program().clone();
    let output = exchange.message.output(&program.conversion, Shape::Same)?;
    if let Some(content_type) = output.content_type {
        exchange.message.headers.set("Content-Type", content_type);
    }
    if output.decoded {
        exchange.message.headers.remove("Content-Encoding");
    }
    let bytes = match output.form {
        Form::Bytes(bytes) => bytes,
        Form::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
        _ => Bytes::new(),
    };
    exchange.message.body.set(Form::Bytes(bytes.clone()));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_gets_into_an_address() {
        for good in ["localhost", "a.example.com:8243", "127.0.0.1:1"] {
            assert!(is_host(good), "{good}");
        }
        for bad in ["", ":1", "a:b", "a:99999", "a/b", "a\"", "evil.com\\", "a@b"] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn addresses_are_written_as_the_library_writes_them() {
        for text in ["0.0.0.0:0", "127.0.0.1:80", "10.200.30.4:65535", "[::1]:9", "[2001:db8::1]:443"] {
            assert_eq!(address(text.parse().expect(text)), text);
        }
        assert_eq!(address("[::ffff:192.0.2.1]:8080".parse().expect("an address")), "192.0.2.1:8080");
    }
}
