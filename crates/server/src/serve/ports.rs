//! The ports: bound before anything is served, for every core, so that a taken port is reported at once and by name.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use penstock_gateway::GatewayPorts;
use penstock_transports::http::{HttpListener, HttpTimeouts, ListenError, ListenerConfig, LiveConfig};

use super::Served;
use super::certificates::{Certificates, Tls};
use super::descriptors::Descriptors;
use crate::command::Failure;
use crate::config::Settings;

/// The admin port lives in the reserve of descriptors: clients that keep its connections idle must not use it up.
const ADMIN_IDLE: std::time::Duration = std::time::Duration::from_secs(10);

/// The same for a head that does not arrive.
const ADMIN_HEAD: std::time::Duration = std::time::Duration::from_secs(5);

/// Connections of the adapter, and of the management API, at once.
const MANAGEMENT_CONNECTIONS_MAX: usize = 1_000;

/// Everything that is bound.
pub(super) struct Ports {
    /// The listeners of each worker.
    pub(super) workers: Vec<Vec<HttpListener>>,
    /// Probes and metrics.
    pub(super) admin: HttpListener,
    /// Where APIs are deployed, when they may be.
    pub(super) adapter: Option<HttpListener>,
    /// The management API, when it is served.
    pub(super) management: Option<HttpListener>,
    /// The REST APIs of the control plane, when it is served.
    pub(super) control: Option<HttpListener>,
    /// What all of them take from the settings while they run.
    pub(super) live: Live,
    /// Whether the certificate was made on the spot.
    pub(super) self_signed: bool,
    http: u16,
    https: Option<u16>,
    /// For managed APIs, once they are wanted.
    pub(super) gateway: Opener,
}

/// Which listener a configuration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Integrations { secure: bool },
    Gateway { secure: bool },
    Admin,
    Adapter,
    Management,
}

/// What listeners take from the settings while they run.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) tls: Tls,
    pub(super) descriptors: Descriptors,
    listeners: Vec<(Role, Arc<LiveConfig>)>,
}

impl Live {
    fn new(settings: &Settings, tls: Tls, descriptors: Descriptors) -> Live {
        let mut live = Live { tls, descriptors, listeners: Vec::new() };
        let roles = [
            Role::Integrations { secure: false },
            Role::Integrations { secure: true },
            Role::Gateway { secure: false },
            Role::Gateway { secure: true },
            Role::Admin,
            Role::Adapter,
            Role::Management,
        ];
        live.listeners = roles.map(|role| (role, live.config(role, settings).into())).into();
        live
    }

    /// Gives other settings to connections to come.
    pub(super) fn apply(&self, settings: &Settings) {
        for (role, listener) in &self.listeners {
            listener.replace(self.config(*role, settings));
        }
    }

    /// What ports of inbound endpoints have in common with the HTTP port.
    pub(super) fn integrations(&self) -> Arc<LiveConfig> {
        self.get(Role::Integrations { secure: false })
    }

    fn get(&self, role: Role) -> Arc<LiveConfig> {
        let found = self.listeners.iter().find(|(known, _)| *known == role);
        found.map(|(_, config)| config.clone()).unwrap_or_else(|| ListenerConfig::default().into())
    }

    fn config(&self, role: Role, settings: &Settings) -> ListenerConfig {
        let common = ListenerConfig {
            limits: settings.limits.clone(),
            timeouts: settings.timeouts.clone(),
            trusted_proxies: settings.trusted_proxies(),
            descriptors_max: self.descriptors.connections_max,
            ..ListenerConfig::default()
        };
        let for_traffic = |secure: bool, proxy_protocol: bool| ListenerConfig {
            connections_max: settings.connections_max.div_ceil(settings.worker_count()),
            http2: settings.http2,
            tls: self.tls.server.clone().filter(|_| secure),
            proxy_protocol,
            ..common.clone()
        };
        match role {
            Role::Integrations { secure } => for_traffic(secure, settings.proxy_protocol),
            Role::Gateway { secure } => for_traffic(secure, settings.gateway_proxy_protocol),
            Role::Adapter | Role::Management => ListenerConfig {
                http2: false,
                connections_max: MANAGEMENT_CONNECTIONS_MAX,
                tls: self.tls.server.clone(),
                ..common
            },
            Role::Admin => ListenerConfig {
                http2: false,
                connections_max: self.descriptors.admin_connections_max,
                descriptors_max: None,
                timeouts: HttpTimeouts { idle: ADMIN_IDLE, head: ADMIN_HEAD, ..common.timeouts },
                ..common
            },
        }
    }
}

/// Opens the ports of managed APIs, at the start or when the first API is deployed.
#[derive(Clone)]
pub(super) struct Opener {
    settings: Settings,
    live: Live,
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
            let config = self.live.get(Role::Gateway { secure: false });
            spreads.push(Spread::new(settings.host, http_port, config, "gateway.http_port", settings)?);
        }
        if https_port != 0 && Some(https_port) == self.https {
            ports.shared = true;
        } else if settings.https {
            let config = self.live.get(Role::Gateway { secure: true });
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
    pub(super) fn bind(settings: &Settings, descriptors: Descriptors) -> Result<Ports, Failure> {
        let live = Live::new(settings, Certificates::read(settings)?.into_tls()?, descriptors);
        let count = settings.worker_count();
        let spread = |role, host, port, key| Spread::new(host, port, live.get(role), key, settings);
        let integrations = |secure| Role::Integrations { secure };
        let mut http = spread(integrations(false), settings.host, settings.http_port(), "listener.http_port")?;
        let mut https = match settings.https {
            true => Some(spread(integrations(true), settings.host, settings.https_port(), "listener.https_port")?),
            false => None,
        };
        let admin = spread(Role::Admin, settings.admin_host, settings.admin_port(), "admin.port")?.next()?;
        let adapter = match settings.adapter.enabled {
            true => Some(spread(Role::Adapter, settings.adapter.host, settings.adapter.port, "adapter.port")?.next()?),
            false => None,
        };
        let management = match settings.opens_management() {
            true => {
                let (host, port) = (settings.management.host, settings.management_port());
                Some(spread(Role::Management, host, port, "management.port")?.next()?)
            }
            false => None,
        };
        let control = match settings.control {
            Some(address) => Some(spread(Role::Adapter, address.ip(), address.port(), "--offset")?.next()?),
            None => None,
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
        let gateway = Opener { settings: settings.clone(), live: live.clone(), http: http_port, https: https_port };
        Ok(Ports {
            workers,
            admin,
            adapter,
            management,
            control,
            live,
            self_signed: settings.https && settings.keystore.is_none(),
            http: http_port,
            https: https_port,
            gateway,
        })
    }

    /// The numbers.
    pub(super) fn served(&self) -> Served {
        let management = self.management.as_ref().map(|listener| listener.local_addr().port());
        Served { http: self.http, https: self.https, admin: self.admin.local_addr().port(), management }
    }
}

/// One address, bound once for every worker.
struct Spread<'s> {
    address: SocketAddr,
    config: Arc<LiveConfig>,
    key: &'static str,
    settings: &'s Settings,
}

impl<'s> Spread<'s> {
    fn new(
        host: IpAddr,
        port: u16,
        config: Arc<LiveConfig>,
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
