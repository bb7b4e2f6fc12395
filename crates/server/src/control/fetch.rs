//! Requests to addresses that clients of the REST APIs give: definitions by `url`, backends to check, MCP servers.
//!
//! Such an address is foreign input: it could name a port that only this server reaches. So requests go to public addresses
//! only, unless `control.fetch_from` lists the host or its network. The address is checked when it is connected to, after the
//! name was resolved, and again for each redirect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_control::{FetchError, FetchRequest, Fetched};
use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use penstock_transports::http::tls::TlsClient;
use penstock_transports::http::{AddressFilter, HttpSender, PerCore, SenderConfig};

/// From the request to the last byte, redirects included: a client of the REST APIs waits for it.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Redirects of one request; addresses of definitions have one or two.
const REDIRECTS_MAX: usize = 3;

/// Hosts and networks that may be fetched from besides public addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchRules {
    allowed: Vec<Allowed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Everything,
    Host(String),
    /// An address and how many of its leading bits count.
    Network(IpAddr, u8),
}

impl FetchRules {
    /// From `*`, names of hosts, addresses and networks (`10.0.0.0/8`).
    pub fn parse(texts: &[Arc<str>]) -> Result<FetchRules, String> {
        let allowed = texts.iter().map(|text| parse_rule(text)).collect::<Result<_, _>>()?;
        Ok(FetchRules { allowed })
    }

    /// Allows addresses of this machine.
    pub fn allow_loopback(&mut self) {
        self.allowed.push(Allowed::Network(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8));
        self.allowed.push(Allowed::Network(IpAddr::V6(Ipv6Addr::LOCALHOST), 128));
    }

    fn allows_host(&self, host: &str) -> bool {
        self.allowed.iter().any(|rule| match rule {
            Allowed::Everything => true,
            Allowed::Host(known) => known.eq_ignore_ascii_case(host),
            Allowed::Network(..) => false,
        })
    }

    fn allows_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let in_network = |rule: &Allowed| match rule {
            Allowed::Network(network, bits) => is_within(address, *network, *bits),
            Allowed::Everything | Allowed::Host(_) => false,
        };
        is_public(address) || self.allowed.iter().any(in_network)
    }
}

fn parse_rule(text: &str) -> Result<Allowed, String> {
    if text == "*" {
        return Ok(Allowed::Everything);
    }
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    match (address.parse::<IpAddr>(), bits) {
        (Ok(address), bits) => {
            let bits_max = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Ok(bits_max), str::parse).ok().filter(|bits| *bits <= bits_max);
            let bits = bits.ok_or_else(|| format!("`{text}` is not a network"))?;
            Ok(Allowed::Network(address.to_canonical(), bits))
        }
        (Err(_), None) if !text.is_empty() && !text.contains(':') => Ok(Allowed::Host(text.to_owned())),
        (Err(_), _) => Err(format!("`{text}` is neither a host nor a network")),
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32 - u32::from(bits);
            address.to_bits().checked_shr(shift) == network.to_bits().checked_shr(shift)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let shift = 128 - u32::from(bits);
            address.to_bits().checked_shr(shift) == network.to_bits().checked_shr(shift)
        }
        _ => false,
    }
}

/// Whether an address is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            let segments = address.segments();
            // Addresses of IPv4 inside those of IPv6: NAT64 (RFC 6052) and 6to4 (RFC 3056).
            let embedded = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
            match segments {
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
                [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
                [0x2001, 0xdb8, ..] => false,
                // Global unicast addresses are 2000::/3.
                [first, ..] => first & 0xe000 == 0x2000,
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = first == 0
        || first >= 224
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (18..20).contains(&second));
    !(is_special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation())
}

/// Sends a request and follows redirects. It blocks.
pub fn fetch(request: &FetchRequest<'_>, rules: &FetchRules, tls: &Arc<TlsClient>) -> Result<Fetched, FetchError> {
    let failed = |why: &str| FetchError::Failed(why.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error.to_string()))?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let whole = follow(request, rules, tls);
        tokio::time::timeout(TIME_MAX, whole).await.unwrap_or_else(|_| Err(failed("no response in time")))
    })
}

async fn follow(request: &FetchRequest<'_>, rules: &FetchRules, tls: &Arc<TlsClient>) -> Result<Fetched, FetchError> {
    let mut url = request.url.trim().to_owned();
    for _ in 0..=REDIRECTS_MAX {
        let fetched = send(request, &url, rules, tls).await?;
        let location = fetched.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
        match (fetched.status, location) {
            // Credentials in the header fields are meant for the first host.
            (301 | 302 | 303 | 307 | 308, Some((_, location))) if request.headers.is_empty() => {
                // Credentials are for the server that was named.
                if request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
                    return Ok(fetched);
                }
                url = redirected(&url, location);
            }
            _ => return Ok(fetched),
        }
    }
    Err(FetchError::Failed(format!("more than {REDIRECTS_MAX} redirects")))
}

/// The address that a redirect names, which may be a path only.
fn redirected(from: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let authority_at = from.find("://").map_or(0, |at| at + 3);
    let path_at = from[authority_at..].find('/').map_or(from.len(), |at| authority_at + at);
    if location.starts_with('/') {
        return format!("{}{location}", &from[..path_at]);
    }
    let folder = from[path_at..].rfind('/').map_or("/", |end| &from[path_at..=path_at + end]);
    format!("{}{folder}{location}", &from[..path_at])
}

/// The host of an address of HTTP.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // Credentials in an address would be sent to a host that a reader takes for another one.
    if authority.contains('@') {
        return None;
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

async fn send(
    request: &FetchRequest<'_>,
    url: &str,
    rules: &FetchRules,
    tls: &Arc<TlsClient>,
) -> Result<Fetched, FetchError> {
    let host = host_of(url).ok_or_else(|| FetchError::Malformed(format!("`{url}` is not an address of HTTP")))?;
    let mut config = SenderConfig { tls: tls.clone(), ..SenderConfig::default() };
    if !rules.allows_host(host) {
        let rules = rules.clone();
        config.address_filter = Some(AddressFilter::new(move |address| rules.allows_address(address)));
        check_resolved(url, host, &config).await?;
    }
    let sender: Rc<dyn Outbound> = Rc::new(HttpSender::new(&PerCore::start(), config));
    let mut headers = Headers::new();
    for (name, value) in &request.headers {
        headers.append(name, value);
    }
    let method = Method::parse(request.method);
    let body = if request.body.is_empty() { Body::default() } else { Body::bytes(request.body.clone()) };
    let outgoing = Outgoing {
        url: url.into(),
        method: method.clone(),
        message: Message { headers, body, method, ..Message::default() },
        options: SendOptions::within(TIME_MAX),
    };
    let mut reply = sender.send(outgoing).await.map_err(|fault| FetchError::Failed(fault.message.to_string()))?;
    let bytes_max = request.bytes_max;
    let pulled = std::future::poll_fn(|cx| reply.body.poll_pull(cx, usize::MAX, bytes_max)).await;
    pulled.map_err(|_| FetchError::TooLarge)?;
    let body = match reply.body.take() {
        Form::Bytes(bytes) => bytes,
        _ => Bytes::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = reply.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
    Ok(Fetched { status: reply.status, headers, body })
}

/// Resolves a name before the request, for an error that says what is not allowed. The sender checks the address again.
async fn check_resolved(url: &str, host: &str, config: &SenderConfig) -> Result<(), FetchError> {
    let Some(filter) = &config.address_filter else { return Ok(()) };
    let port = if url.starts_with("https://") { 443 } else { 80 };
    let found = tokio::net::lookup_host((host, port)).await;
    let mut found =
        found.map_err(|error| FetchError::Failed(format!("the host `{host}` cannot be resolved: {error}")))?;
    match found.all(|address| filter.allows(address.ip())) {
        true => Ok(()),
        false => Err(FetchError::NotAllowed(format!(
            "requests to `{host}` are not allowed; `control.fetch_from` lists hosts and networks that are"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> FetchRules {
        let texts: Vec<Arc<str>> = texts.iter().map(|text| (*text).into()).collect();
        FetchRules::parse(&texts).unwrap()
    }

    #[test]
    fn only_public_addresses_and_those_of_the_rules_are_allowed() {
        let own = rules(&["10.1.0.0/16", "192.168.1.7", "fd00::/8"]);
        for (address, expected) in [
            ("93.184.216.34", true),
            ("2606:2800:220:1::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:a00:1::", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("fe80::1", false),
            ("224.0.0.1", false),
            ("10.1.2.3", true),
            ("10.2.2.3", false),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("fd12::1", true),
        ] {
            assert_eq!(own.allows_address(address.parse().unwrap()), expected, "{address}");
        }
        let mut demo = rules(&[]);
        demo.allow_loopback();
        assert!(demo.allows_address("127.0.0.1".parse().unwrap()) && demo.allows_address("::1".parse().unwrap()));
        assert!(rules(&["*"]).allows_host("internal") && !rules(&["other"]).allows_host("internal"));
        for wrong in ["", "10.0.0.0/33", "a:1", "x/8"] {
            assert!(FetchRules::parse(&[wrong.into()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_have_a_host() {
        for (url, expected) in [
            ("https://a.b:8/c", Some("a.b")),
            ("http://[::1]:8/c", Some("::1")),
            ("http://user@a/", None),
            ("file:///etc/passwd", None),
            ("http:///x", None),
        ] {
            assert_eq!(host_of(url), expected, "{url}");
        }
        assert_eq!(redirected("http://a/b/c?x=1", "d"), "http://a/b/d");
        assert_eq!(redirected("http://a", "/d"), "http://a/d");
        assert_eq!(redirected("http://a/b", "https://c/d"), "https://c/d");
    }
}
