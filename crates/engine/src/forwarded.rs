//! The address of a client: the socket's, or what a trusted proxy reports of a request that it forwards.
//!
//! [`TrustedProxies::client_address`] is the only place that decides it. Listeners call it once for each request and keep
//! the result in [`crate::ports::Client::address`]; limits, conditions, logins, properties and logs read it there.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use penstock_message::Headers;

/// Proxies of one chain. Entries to the left of these are not read: a longer chain is made up.
const HOPS_MAX: usize = 32;

/// The field in which proxies report the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedField {
    /// `X-Forwarded-For`; `Forwarded` when the request has no `X-Forwarded-For`.
    #[default]
    Either,
    /// `X-Forwarded-For` only.
    XForwardedFor,
    /// `Forwarded` (RFC 7239) only.
    Forwarded,
}

/// The proxies whose reports count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    ranges: Vec<RangeInclusive<IpAddr>>,
    field: ForwardedField,
}

impl TrustedProxies {
    /// Trusts the addresses of these ranges. Each range has both ends in one version of IP.
    pub fn new(ranges: Vec<RangeInclusive<IpAddr>>, field: ForwardedField) -> TrustedProxies {
        TrustedProxies { ranges, field }
    }

    /// Whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a proxy with this address is trusted.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.ranges.iter().any(|range| address.is_ipv4() == range.start().is_ipv4() && range.contains(&address))
    }

    /// The client's address. Entries are read from the right, where the proxy nearest to us writes; the first that is no
    /// trusted proxy is the client. What is no address ends the chain: everything to its left may be made up.
    pub fn client_address(&self, peer: IpAddr, headers: &Headers) -> IpAddr {
        let peer = peer.to_canonical();
        if self.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let field = match self.field {
            ForwardedField::XForwardedFor => ForwardedField::XForwardedFor,
            ForwardedField::Forwarded => ForwardedField::Forwarded,
            ForwardedField::Either if headers.contains("x-forwarded-for") => ForwardedField::XForwardedFor,
            ForwardedField::Either => ForwardedField::Forwarded,
        };
        let name = if field == ForwardedField::Forwarded { "forwarded" } else { "x-forwarded-for" };
        let lines: Vec<&[u8]> = headers.get_all(name).collect();
        let entries = lines.iter().rev().flat_map(|line| split_outside_quotes(line, b',').into_iter().rev());
        let mut client = peer;
        for entry in entries.take(HOPS_MAX) {
            let Ok(entry) = std::str::from_utf8(entry) else { break };
            let node = if field == ForwardedField::Forwarded { for_parameter(entry) } else { Some(entry.trim()) };
            let Some(address) = node.and_then(node_address) else { break };
            client = address.to_canonical();
            if !self.trusts(client) {
                break;
            }
        }
        client
    }
}

/// The `for` parameter of an element of `Forwarded` (RFC 7239 §4).
fn for_parameter(element: &str) -> Option<&str> {
    split_outside_quotes(element.as_bytes(), b';').into_iter().find_map(|pair| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    })
}

/// The address of a node (RFC 7239 §6), with or without quotes, brackets and a port. `unknown` and hidden names have none.
fn node_address(node: &str) -> Option<IpAddr> {
    let node = node.strip_prefix('"').map_or(Some(node), |rest| rest.strip_suffix('"'))?.trim();
    if let Some(rest) = node.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let port_is_valid = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
        return address.parse().ok().filter(|address: &IpAddr| address.is_ipv6() && port_is_valid);
    }
    node.parse().or_else(|_| node.parse().map(|address: SocketAddr| address.ip())).ok()
}

/// Splits at a separator that does not stand between quotes.
fn split_outside_quotes(text: &[u8], separator: u8) -> Vec<&[u8]> {
    let (mut parts, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            byte if *byte == separator && !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(field: ForwardedField) -> TrustedProxies {
        let range = |first: &str, last: &str| first.parse().unwrap()..=last.parse().unwrap();
        TrustedProxies::new(vec![range("10.0.0.0", "10.255.255.255"), range("fd00::", "fdff::")], field)
    }

    fn address(field: ForwardedField, peer: &str, fields: &[(&str, &str)]) -> String {
        let mut headers = Headers::new();
        fields.iter().for_each(|(name, value)| headers.append(name, value));
        proxies(field).client_address(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_report_clients() {
        for (peer, forwarded, expected) in [
            ("192.0.2.1", "10.9.9.9", "192.0.2.1"),
            ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
            ("::ffff:10.0.0.1", "192.0.2.7", "192.0.2.7"),
            ("fd00::1", "2001:db8::1", "2001:db8::1"),
            ("10.0.0.1", "1.1.1.1, 192.0.2.7", "192.0.2.7"),
            ("10.0.0.1", "1.1.1.1, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "192.0.2.7:4711", "192.0.2.7"),
            ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("10.0.0.1", "1.1.1.1, nonsense, 10.0.0.2", "10.0.0.2"),
            ("10.0.0.1", "1.1.1.1, ", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            assert_eq!(
                address(ForwardedField::Either, peer, &[("X-Forwarded-For", forwarded)]),
                expected,
                "{forwarded}"
            );
        }
    }

    #[test]
    fn repeated_fields_are_one_list() {
        let fields = [("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "192.0.2.7, 10.0.0.2")];
        assert_eq!(address(ForwardedField::Either, "10.0.0.1", &fields), "192.0.2.7");
    }

    #[test]
    fn forwarded_is_read_by_its_grammar() {
        for (forwarded, expected) in [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=1.1.1.1, proto=https;for=192.0.2.60", "192.0.2.60"),
            ("for=1.1.1.1;host=\"a,for=9.9.9.9\"", "1.1.1.1"),
            ("for=192.0.2.60, for=10.0.0.2", "192.0.2.60"),
            ("for=_hidden", "10.0.0.1"),
            ("for=unknown, for=10.0.0.2", "10.0.0.2"),
            ("for=\"192.0.2.60", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            assert_eq!(
                address(ForwardedField::Either, "10.0.0.1", &[("Forwarded", forwarded)]),
                expected,
                "{forwarded}"
            );
        }
    }

    #[test]
    fn the_field_is_chosen() {
        let both = [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.2")];
        assert_eq!(address(ForwardedField::Either, "10.0.0.1", &both), "192.0.2.1");
        assert_eq!(address(ForwardedField::XForwardedFor, "10.0.0.1", &both), "192.0.2.1");
        assert_eq!(address(ForwardedField::Forwarded, "10.0.0.1", &both), "192.0.2.2");
        assert_eq!(address(ForwardedField::XForwardedFor, "10.0.0.1", &both[1..]), "10.0.0.1");
    }

    #[test]
    fn a_chain_is_read_to_a_limit() {
        let long = format!("192.0.2.1{}", ", 10.0.0.2".repeat(HOPS_MAX));
        assert_eq!(address(ForwardedField::Either, "10.0.0.1", &[("X-Forwarded-For", &long)]), "10.0.0.2");
    }
}
