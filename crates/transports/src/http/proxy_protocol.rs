//! The PROXY protocol, versions 1 and 2: before the first byte of a connection a proxy reports whom it connected for.
//!
//! <https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt>. Read only on listeners configured for it, and only from
//! trusted proxies, which must send it: a receiver that guesses can be deceived (section 4 of the specification).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A header of version 1, its line end included (section 2.1).
const V1_BYTES_MAX: usize = 107;

/// What a header of version 2 begins with (section 2.2).
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The fixed part of version 2.
const V2_FIXED_BYTES: usize = 16;

/// Addresses and extensions of version 2. Extensions carry names and certificates of clients; none is used here.
const V2_REST_BYTES_MAX: usize = 4096;

/// A header that was read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Its length; the client's first byte follows.
    pub length: usize,
    /// Whom the proxy connected for; `None` when it connected for itself or does not know.
    pub source: Option<SocketAddr>,
}

/// Why the bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyError {
    /// They begin like none.
    Missing,
    /// The header is longer than allowed.
    TooLong,
    /// A part has no valid value.
    Malformed,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ProxyError::Missing => "the connection does not begin with a header of the PROXY protocol",
            ProxyError::TooLong => "the header of the PROXY protocol is too long",
            ProxyError::Malformed => "the header of the PROXY protocol is malformed",
        })
    }
}

impl std::error::Error for ProxyError {}

impl ProxyHeader {
    /// Reads the header at the beginning of a connection; `None` while it is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
        const V1_BEGIN: &[u8] = b"PROXY ";
        if begins_like(bytes, V2_SIGNATURE) {
            return parse_v2(bytes);
        }
        if begins_like(bytes, V1_BEGIN) {
            return parse_v1(bytes);
        }
        Err(ProxyError::Missing)
    }
}

/// Whether bytes begin with a text, as far as they are there.
fn begins_like(bytes: &[u8], text: &[u8]) -> bool {
    let length = bytes.len().min(text.len());
    bytes[..length] == text[..length]
}

fn parse_v1(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let Some(end) = bytes.iter().take(V1_BYTES_MAX).position(|byte| *byte == b'\n') else {
        return if bytes.len() < V1_BYTES_MAX { Ok(None) } else { Err(ProxyError::TooLong) };
    };
    let line = bytes[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok());
    let mut parts = line.ok_or(ProxyError::Malformed)?.split(' ').skip(1);
    let mut part = || parts.next().unwrap_or_default();
    let length = end + 1;
    let kind = part();
    if kind == "UNKNOWN" {
        // Section 2.1: what follows is not looked at.
        return Ok(Some(ProxyHeader { length, source: None }));
    }
    let (source, destination, source_port, destination_port) = (part(), part(), part(), part());
    let address = |text: &str| -> Option<IpAddr> {
        match kind {
            "TCP4" => text.parse().ok().map(IpAddr::V4),
            "TCP6" => text.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let port = |text: &str| text.parse::<u16>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let source = address(source).zip(port(source_port)).ok_or(ProxyError::Malformed)?;
    address(destination).zip(port(destination_port)).ok_or(ProxyError::Malformed)?;
    match parts.next() {
        None => Ok(Some(ProxyHeader { length, source: Some(source.into()) })),
        Some(_) => Err(ProxyError::Malformed),
    }
}

fn parse_v2(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let Some((fixed, rest)) = bytes.split_at_checked(V2_FIXED_BYTES) else { return Ok(None) };
    let &[version_and_command, family_and_transport, high, low] = &fixed[V2_SIGNATURE.len()..] else {
        return Err(ProxyError::Malformed);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let is_local = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyError::Malformed),
    };
    if length > V2_REST_BYTES_MAX {
        return Err(ProxyError::TooLong);
    }
    let Some(rest) = rest.get(..length) else { return Ok(None) };
    let source = match family_and_transport {
        _ if is_local => None,
        // Unspecified, or a Unix socket: there is no address of a client.
        0x00 => None,
        0x31 if rest.len() >= 216 => None,
        0x11 => {
            let (address, ports) = rest.first_chunk::<4>().zip(rest.get(8..12)).ok_or(ProxyError::Malformed)?;
            Some(SocketAddr::from((Ipv4Addr::from(*address), u16::from_be_bytes([ports[0], ports[1]]))))
        }
        0x21 => {
            let (address, ports) = rest.first_chunk::<16>().zip(rest.get(32..36)).ok_or(ProxyError::Malformed)?;
            Some(SocketAddr::from((Ipv6Addr::from(*address), u16::from_be_bytes([ports[0], ports[1]]))))
        }
        _ => return Err(ProxyError::Malformed),
    };
    Ok(Some(ProxyHeader { length: V2_FIXED_BYTES + length, source }))
}

/// Takes the header off a connection, and not a byte more: TLS or HTTP begins behind it.
pub(crate) async fn read_header(tcp: &mut TcpStream) -> io::Result<ProxyHeader> {
    let mut bytes = Vec::new();
    let mut piece = [0; 256];
    loop {
        // Looked at before it is taken: the length is known only when the header is whole.
        let seen = tcp.peek(&mut piece).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = bytes.len();
        bytes.extend_from_slice(&piece[..seen]);
        let header = ProxyHeader::parse(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let belongs = header.map_or(seen, |header| header.length - taken);
        tcp.read_exact(&mut piece[..belongs]).await?;
        if let Some(header) = header {
            return Ok(header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v1(line: &str) -> Result<Option<Option<String>>, ProxyError> {
        let found = ProxyHeader::parse(line.as_bytes())?;
        Ok(found.map(|header| header.source.map(|source| source.to_string())))
    }

    #[test]
    fn version_1() {
        let source = |text: &str| Ok(Some(Some(text.to_owned())));
        assert_eq!(v1("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\nGET"), source("192.0.2.1:56324"));
        assert_eq!(v1("PROXY TCP6 2001:db8::1 ::1 56324 443\r\n"), source("[2001:db8::1]:56324"));
        assert_eq!(v1("PROXY UNKNOWN\r\n"), Ok(Some(None)));
        assert_eq!(v1("PROXY UNKNOWN ffff::1 x\r\n"), Ok(Some(None)));
        for incomplete in ["", "PRO", "PROXY ", "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r"] {
            assert_eq!(v1(incomplete), Ok(None), "{incomplete}");
        }
        for malformed in [
            "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\n",
            "PROXY TCP4 2001:db8::1 ::1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 +6324 443\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 66324 443\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 10.0.0.1 56324 443 x\r\n",
            "PROXY TCP4  192.0.2.1 10.0.0.1 56324 443\r\n",
            "PROXY UDP4 192.0.2.1 10.0.0.1 56324 443\r\n",
        ] {
            assert_eq!(v1(malformed), Err(ProxyError::Malformed), "{malformed}");
        }
        assert_eq!(v1("GET / HTTP/1.1\r\n"), Err(ProxyError::Missing));
        assert_eq!(v1(&format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES_MAX))), Err(ProxyError::TooLong));
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2_SIGNATURE.as_slice(), &[command, family, length[0], length[1]], rest].concat()
    }

    #[test]
    fn version_2() {
        let four = [192, 0, 2, 1, 10, 0, 0, 1, 0xdc, 4, 1, 187];
        let six = [[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].as_slice(), &[0; 16], &[0xdc, 4, 1, 187]]
            .concat();
        let with_extension = [four.as_slice(), &[4, 0, 1, 9]].concat();
        for (bytes, source) in [
            (v2(0x21, 0x11, &four), Some("192.0.2.1:56324")),
            (v2(0x21, 0x11, &with_extension), Some("192.0.2.1:56324")),
            (v2(0x21, 0x21, &six), Some("[2001:db8::1]:56324")),
            (v2(0x20, 0x11, &four), None),
            (v2(0x20, 0, &[]), None),
            (v2(0x21, 0, &[]), None),
            (v2(0x21, 0x31, &[0; 216]), None),
        ] {
            let header = ProxyHeader { length: bytes.len(), source: source.map(|source| source.parse().unwrap()) };
            let followed = [bytes.as_slice(), b"GET"].concat();
            assert_eq!(ProxyHeader::parse(&followed), Ok(Some(header)), "{source:?}");
            for end in 0..bytes.len() {
                assert_eq!(ProxyHeader::parse(&bytes[..end]), Ok(None), "{end} bytes");
            }
        }
        for bytes in [v2(0x11, 0x11, &four), v2(0x22, 0x11, &four), v2(0x21, 0x12, &four), v2(0x21, 0x11, &four[1..])] {
            assert_eq!(ProxyHeader::parse(&bytes), Err(ProxyError::Malformed), "{bytes:?}");
        }
        let long = [V2_SIGNATURE.as_slice(), &[0x21, 0x11, 0xff, 0xff]].concat();
        assert_eq!(ProxyHeader::parse(&long), Err(ProxyError::TooLong));
    }
}
