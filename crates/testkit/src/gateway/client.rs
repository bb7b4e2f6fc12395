//! A client: one connection that is kept open, with or without TLS.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::PATIENCE;
use super::wire::{self, Socket, read_as};

/// What a client got.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The fields that followed it.
    pub trailers: Vec<(String, String)>,
}

read_as!(Reply);

/// A key and certificate a client shows.
pub struct ClientIdentity {
    /// The certificate in PEM, as a project holds it.
    pub pem: String,
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// A certificate for this name, signed by itself.
    pub fn new(name: &str) -> ClientIdentity {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a name makes a certificate");
        let key = certified.signing_key.serialize_der();
        let key = PrivateKeyDer::try_from(key).expect("what was serialized can be read");
        ClientIdentity { pem: certified.cert.pem(), certificate: certified.cert.der().clone(), key }
    }
}

/// TLS for clients that trust one certificate, perhaps with a certificate of their own.
pub fn client_tls(trusted: &CertificateDer<'static>, identity: Option<&ClientIdentity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("the gateway's certificate can be trusted");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions")
        .with_root_certificates(roots);
    match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(vec![identity.certificate.clone()], identity.key.clone_key())
            .expect("key and certificate fit"),
    }
}

/// A connection to a gateway.
pub struct Client(BufReader<Socket>);

impl Client {
    /// Without TLS.
    pub fn http(port: u16) -> Client {
        Client(BufReader::new(Socket::Plain(connect(port))))
    }

    /// With TLS, perhaps with a certificate of its own.
    pub fn https(port: u16, trusted: &CertificateDer<'static>, identity: Option<&ClientIdentity>) -> Client {
        let config = client_tls(trusted, identity);
        let name = ServerName::try_from("localhost").expect("a host name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("the configuration is complete");
        Client(BufReader::new(Socket::Client(Box::new(StreamOwned::new(tls, connect(port))))))
    }

    /// Sends a GET.
    pub fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.request("GET", path, headers, b"")
    }

    /// Sends a request and reads the reply. `Host: localhost` is added unless it is given.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_request(method, path, headers, body).expect("the gateway answers")
    }

    /// The same, for gateways that may refuse to talk at all.
    pub fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let chunked = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
        if !chunked && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.0.get_mut().write_all(&bytes)?;
        self.0.get_mut().flush()?;
        let mut raw = wire::read_head(&mut self.0)?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let status = raw.first_line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        if method != "HEAD" && !matches!(status, 204 | 304) {
            wire::read_body(&mut self.0, &mut raw, true)?;
        }
        Ok(Reply { status, headers: raw.headers, body: raw.body, trailers: raw.trailers })
    }
}

fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("the gateway listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
    socket.set_nodelay(true).expect("a connected socket");
    socket
}
