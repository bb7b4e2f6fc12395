//! Opening connections to backends: names, addresses, attempts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_engine::ports::TlsProfile;
use penstock_engine::{Fault, codes};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::backend_fault;
use super::url::Url;
use crate::http::http1::Socket;
use crate::http::tls::TlsClient;
use crate::http::{AddressFilter, SenderConfig};

/// Lifetime of resolved addresses. Short, because the system's resolver has no lifetime.
const NAME_LIFETIME: Duration = Duration::from_secs(10);

/// What one address gets when there are more to try.
const ATTEMPT: Duration = Duration::from_secs(2);

pub(crate) struct Connector {
    tls: Arc<TlsClient>,
    descriptors_max: Option<RawFd>,
    filter: Option<AddressFilter>,
    names: RefCell<HashMap<(String, u16), Resolved>>,
}

/// The addresses of a name, and when they were resolved.
type Resolved = (Instant, Vec<SocketAddr>);

impl Connector {
    pub(crate) fn new(config: &SenderConfig) -> Connector {
        Connector {
            tls: config.tls.clone(),
            descriptors_max: config.descriptors_max,
            filter: config.address_filter.clone(),
            names: RefCell::default(),
        }
    }

    pub(crate) async fn connect(
        &self,
        url: &Url<'_>,
        tls: Option<&TlsProfile>,
        http2: bool,
        time: Duration,
    ) -> Result<Socket, Fault> {
        match tokio::time::timeout(time, self.open(url, tls, http2)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("connecting to `{}` took longer than {time:?}", url.authority);
                Err(backend_fault(codes::CONNECT_TIMEOUT, message).retryable())
            }
        }
    }

    async fn open(&self, url: &Url<'_>, tls: Option<&TlsProfile>, http2: bool) -> Result<Socket, Fault> {
        let addresses = self.resolve(url).await.map_err(|error| {
            let message = format!("the host `{}` cannot be resolved: {error}", url.host);
            backend_fault(codes::CONNECTION_FAILED, message).retryable()
        })?;
        if let Some(filter) = &self.filter
            && addresses.iter().any(|address| !filter.allows(address.ip()))
        {
            let message = format!("connections to the address of `{}` are not allowed", url.host);
            return Err(backend_fault(codes::CONNECTION_FAILED, message));
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for (index, address) in addresses.iter().enumerate() {
            let attempt = TcpStream::connect(address);
            let outcome = if index + 1 < addresses.len() {
                tokio::time::timeout(ATTEMPT, attempt).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            } else {
                attempt.await
            };
            match outcome {
                Ok(tcp) if self.descriptors_max.is_some_and(|max| tcp.as_raw_fd() >= max) => {
                    last = io::Error::other("the process has no file descriptors left for connections");
                    break;
                }
                Ok(tcp) => {
                    // Without it the last piece of a body waits for an acknowledgement.
                    let _ = tcp.set_nodelay(true);
                    return if url.secure { self.secure(url, tls, http2, tcp).await } else { Ok(Socket::Plain(tcp)) };
                }
                Err(error) => last = error,
            }
        }
        self.names.borrow_mut().remove(&(url.host.to_owned(), url.port));
        let message = format!("connecting to `{}` failed: {last}", url.authority);
        Err(backend_fault(codes::CONNECTION_FAILED, message).retryable())
    }

    async fn secure(
        &self,
        url: &Url<'_>,
        tls: Option<&TlsProfile>,
        http2: bool,
        tcp: TcpStream,
    ) -> Result<Socket, Fault> {
        let failed = |why: String| {
            backend_fault(codes::CONNECTION_FAILED, format!("no secure connection to `{}`: {why}", url.authority))
        };
        let config = match tls {
            None => self.tls.config(),
            Some(profile) => self.tls.config_of(profile),
        };
        let mut config = config.map_err(|error| failed(error.to_string()))?;
        if http2 {
            let mut offering = (*config).clone();
            offering.alpn_protocols.insert(0, b"h2".to_vec());
            config = Arc::new(offering);
        }
        let name = ServerName::try_from(url.host.to_owned()).map_err(|error| failed(error.to_string()))?;
        let stream = TlsConnector::from(config).connect(name, tcp).await;
        let stream = stream.map_err(|error| failed(error.to_string()).retryable())?;
        Ok(Socket::Tls(Box::new(stream.into())))
    }

    async fn resolve(&self, url: &Url<'_>) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = url.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, url.port)]);
        }
        let key = (url.host.to_owned(), url.port);
        if let Some((since, addresses)) = self.names.borrow().get(&key)
            && since.elapsed() < NAME_LIFETIME
        {
            return Ok(addresses.clone());
        }
        let addresses: Vec<_> = tokio::net::lookup_host((url.host, url.port)).await?.collect();
        self.names.borrow_mut().insert(key, (Instant::now(), addresses.clone()));
        Ok(addresses)
    }
}
