//! The ports: bound before anything is served, for every core, so that a taken port is told at once and by name.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use penstock_gateway::GatewayPorts;
use penstock_transports::http::tls::{
    ClientCertificates, ClientTrust, Identity, TlsClient, TlsServer, read_certificates,
};
use penstock_transports::http::{HttpListener, ListenError, ListenerConfig};

use super::Served;
use crate::command::Failure;
use crate::config::{Keystore, Settings};

/// Everything that is bound.
pub(super) struct Ports {
    /// The listeners of each worker.
    pub(super) workers: Vec<Vec<HttpListener>>,
    /// Probes and metrics.
    pub(super) admin: HttpListener,
    /// Where APIs are deployed, when they may be.
    pub(super) adapter: Option<HttpListener>,
    /// TLS towards backends.
    pub(super) tls_client: Arc<TlsClient>,
    /// Whether the certificate was made on the spot.
    pub(super) self_signed: bool,
    http: u16,
    https: Option<u16>,
    /// For managed APIs, once they are wanted.
    pub(super) gateway: Opener,
}

/// Opens the ports of managed APIs, at the start or when the first API is deployed.
#[derive(Clone)]
pub(super) struct Opener {
    settings: Settings,
    tls: Option<Arc<TlsServer>>,
    http: u16,
    https: Option<u16>,
}

impl Opener {
    /// Binds the ports for every worker, those excepted that serve integrations already: with the offset 0 both have the
    /// same numbers, and APIs are looked for first.
    pub(super) fn open(&self) -> Result<(GatewayPorts, Vec<Vec<HttpListener>>), Failure> {
        let settings = &self.settings;
        let count = settings.worker_count();
        let (http_port, https_port) = (settings.gateway.http_port, settings.gateway.https_port);
        let mut ports = GatewayPorts { http: http_port, https: https_port, shared: false };
        let mut spreads = Vec::new();
        if http_port != 0 && http_port == self.http {
            ports.shared = true;
        } else {
            let config = listener_config(settings, count, None);
            spreads.push(Spread::new(settings.host, http_port, config, "gateway.http_port", settings)?);
        }
        if https_port != 0 && Some(https_port) == self.https {
            ports.shared = true;
        } else if let Some(tls) = &self.tls {
            let config = listener_config(settings, count, Some(tls.clone()));
            spreads.push(Spread::new(settings.host, https_port, config, "gateway.https_port", settings)?);
        }
        let mut workers = Vec::with_capacity(count);
        for _ in 0..count {
            workers.push(spreads.iter_mut().map(Spread::next).collect::<Result<Vec<_>, _>>()?);
        }
        for spread in &spreads {
            let port = spread.address.port();
            if spread.key == "gateway.http_port" { ports.http = port } else { ports.https = port }
        }
        Ok((ports, workers))
    }
}

impl Ports {
    /// Binds all of them.
    pub(super) fn bind(settings: &Settings) -> Result<Ports, Failure> {
        let tls_client = Arc::new(client_tls(settings)?);
        let tls = if settings.https { Some(Arc::new(server_tls(settings)?)) } else { None };
        let count = settings.worker_count();
        let plain = listener_config(settings, count, None);
        let mut http = Spread::new(settings.host, settings.http_port(), plain, "listener.http_port", settings)?;
        let mut https = match &tls {
            Some(tls) => {
                let config = listener_config(settings, count, Some(tls.clone()));
                Some(Spread::new(settings.host, settings.https_port(), config, "listener.https_port", settings)?)
            }
            None => None,
        };
        let admin_config = ListenerConfig { http2: false, connections_max: 1_000, ..plain_config(settings) };
        let admin =
            Spread::new(settings.admin_host, settings.admin_port(), admin_config, "admin.port", settings)?.next()?;
        let adapter = match settings.adapter.enabled {
            true => {
                let tls = Some(Arc::new(server_tls(settings)?));
                let config = ListenerConfig { http2: false, connections_max: 1_000, tls, ..plain_config(settings) };
                let (host, port) = (settings.adapter.host, settings.adapter.port);
                Some(Spread::new(host, port, config, "adapter.port", settings)?.next()?)
            }
            false => None,
        };
        let mut workers = Vec::with_capacity(count);
        for _ in 0..count {
            let mut listeners = vec![http.next()?];
            if let Some(https) = &mut https {
                listeners.push(https.next()?);
            }
            workers.push(listeners);
        }
        let port = |spread: &Spread<'_>| spread.address.port();
        let (http_port, https_port) = (port(&http), https.as_ref().map(port));
        let gateway = Opener { settings: settings.clone(), tls, http: http_port, https: https_port };
        Ok(Ports {
            workers,
            admin,
            adapter,
            tls_client,
            self_signed: settings.https && settings.keystore.is_none(),
            http: http_port,
            https: https_port,
            gateway,
        })
    }

    /// The numbers.
    pub(super) fn served(&self) -> Served {
        Served { http: self.http, https: self.https, admin: self.admin.local_addr().port() }
    }
}

/// One address, bound once for every worker.
struct Spread<'s> {
    address: SocketAddr,
    config: ListenerConfig,
    key: &'static str,
    settings: &'s Settings,
}

impl<'s> Spread<'s> {
    fn new(
        host: IpAddr,
        port: u16,
        config: ListenerConfig,
        key: &'static str,
        settings: &'s Settings,
    ) -> Result<Spread<'s>, Failure> {
        let spread = Spread { address: SocketAddr::new(host, port), config, key, settings };
        if port != 0 {
            HttpListener::check_free(spread.address).map_err(|error| spread.refused(&error))?;
        }
        Ok(spread)
    }

    fn next(&mut self) -> Result<HttpListener, Failure> {
        let listener = HttpListener::bind(self.address, self.config.clone()).map_err(|error| self.refused(&error))?;
        // A port of 0 is chosen once; the other workers share it.
        self.address = listener.local_addr();
        Ok(listener)
    }

    fn refused(&self, error: &ListenError) -> Failure {
        let hint = match error.cause.kind() {
            std::io::ErrorKind::AddrInUse => {
                let (port, key) = (self.address.port(), self.key);
                let other = self.settings.offset.saturating_add(100);
                // The offset moves integrations; managed APIs have the ports of the other product.
                let offset = if key.starts_with("gateway.") || key == "adapter.port" {
                    String::new()
                } else {
                    format!(", or start with `--offset {other}`")
                };
                format!(
                    ": another program listens there (`ss -ltnp 'sport = :{port}'` names it); end it{offset}, or set `{key}` \
                     in penstock.toml"
                )
            }
            std::io::ErrorKind::PermissionDenied => {
                format!(": ports below 1024 belong to root; set `{}` in penstock.toml to a higher one", self.key)
            }
            _ => String::new(),
        };
        Failure::environment(format!("{error}{hint}"))
    }
}

fn plain_config(settings: &Settings) -> ListenerConfig {
    ListenerConfig { limits: settings.limits.clone(), timeouts: settings.timeouts.clone(), ..ListenerConfig::default() }
}

fn listener_config(settings: &Settings, workers: usize, tls: Option<Arc<TlsServer>>) -> ListenerConfig {
    let connections_max = settings.connections_max.div_ceil(workers);
    ListenerConfig { connections_max, http2: settings.http2, tls, ..plain_config(settings) }
}

fn server_tls(settings: &Settings) -> Result<TlsServer, Failure> {
    let refused =
        |file: &Path, why: &dyn std::fmt::Display| Failure::environment(format!("`{}`: {why}", file.display()));
    let identity = match &settings.keystore {
        None => {
            let names = [settings.hostname.clone(), "localhost".to_owned(), "127.0.0.1".to_owned()];
            Identity::self_signed(&names)
                .map_err(|error| Failure::environment(format!("no certificate could be made: {error}")))?
        }
        Some(keystore) => identity(keystore)?,
    };
    let file = settings.keystore.as_ref().map_or(Path::new("the certificate"), |keystore| &keystore.file);
    let asked = ClientCertificates::Any(settings.gateway_state.security.wants_certificates());
    TlsServer::new(&identity, &asked, settings.http2).map_err(|error| refused(file, &error))
}

fn identity(keystore: &Keystore) -> Result<Identity, Failure> {
    let file = &keystore.file;
    let bytes = read(file)?;
    let is_pem = bytes.windows(10).any(|window| window == b"-----BEGIN");
    let identity = if is_pem {
        let key = match &keystore.key {
            Some(key) => read(key)?,
            None => bytes.clone(),
        };
        Identity::from_pem(&bytes, &key)
    } else {
        Identity::from_keystore(&bytes, &keystore.password, keystore.key_password.as_deref(), keystore.alias.as_deref())
    };
    identity.map_err(|error| Failure::environment(format!("`{}`: {error}", file.display())))
}

fn client_tls(settings: &Settings) -> Result<TlsClient, Failure> {
    let mut trust = ClientTrust { trust_everything: settings.trust_all, ..ClientTrust::default() };
    if let Some(file) = &settings.trust {
        let bytes = read(file)?;
        trust.extra_roots = read_certificates(&bytes, &settings.trust_password)
            .map_err(|error| Failure::environment(format!("`{}`: {error}", file.display())))?;
    }
    // As the originals do: whoever asks among the backends is shown the server's own certificate.
    trust.identity = settings.keystore.as_ref().map(identity).transpose()?;
    Ok(TlsClient::new(trust))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|cause| Failure::from(crate::load::LoadError { path: file.to_owned(), cause }))
}
