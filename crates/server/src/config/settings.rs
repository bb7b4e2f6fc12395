//! The settings, with their defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{ConnectionFactory, Level};
use penstock_engine::{ForwardedField, Limits, TrustedProxies};
use penstock_gateway::{GatewayConfig, GatewayState};
use penstock_message::Conversion;
use penstock_sql::Mapping;
use penstock_transports::http::{HttpLimits, HttpTimeouts};

use super::{Adapter, Management, Opening};

use super::security::SecuritySettings;
use crate::control::FetchRules;

/// Micro Integrator's offset when nothing is said.
const OFFSET: u16 = 10;
const HTTP_PORT: u16 = 8280;
const HTTPS_PORT: u16 = 8243;
const ADMIN_PORT: u16 = 9191;
const MANAGEMENT_PORT: u16 = 9154;

/// Ports that a file names. The offset of the command line does not move them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedPorts {
    /// `gateway.http_port`.
    pub gateway_http: bool,
    /// `gateway.https_port`.
    pub gateway_https: bool,
    /// `adapter.port`.
    pub adapter: bool,
}

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Added to the ports that are not given.
    pub offset: u16,
    /// Which of the other ports are given.
    pub named_ports: NamedPorts,
    /// The address integrations are served on.
    pub host: IpAddr,
    /// The port for HTTP, when it is given.
    pub http_port: Option<u16>,
    /// The port for HTTPS, when it is given.
    pub https_port: Option<u16>,
    /// Micro Integrator writes ports without the offset.
    pub http_port_base: Option<u16>,
    /// See `http_port_base`.
    pub https_port_base: Option<u16>,
    /// Whether there is an HTTPS port at all.
    pub https: bool,
    /// The address of probes and metrics.
    pub admin_host: IpAddr,
    /// The port of probes and metrics, when it is given.
    pub admin_port: Option<u16>,
    /// The name clients know this server by; goes into WSDL addresses.
    pub hostname: String,
    /// Where resources are kept that flows write to the registry.
    pub registry_folder: Option<PathBuf>,
    /// The database that keeps the messages of in-memory message stores; without it they are in memory.
    pub in_memory_database: Option<String>,
    /// Which node of a cluster runs tasks, message processors and polling inbound endpoints.
    pub coordination: CoordinationSettings,
    /// Whether `/services/` lists the proxy services.
    pub list_services: bool,
    /// Whether clients may speak HTTP/2.
    pub http2: bool,
    /// Connections at once, all cores together.
    pub connections_max: usize,
    /// The proxies that may report the addresses of clients.
    pub trusted_proxies: Vec<RangeInclusive<IpAddr>>,
    /// In which field they do.
    pub forwarded_field: ForwardedField,
    /// Whether connections of trusted proxies to integrations begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// The same for managed APIs.
    pub gateway_proxy_protocol: bool,
    /// Names and passwords for what the admin port shows beside probes and metrics.
    pub admin_users: Vec<(String, String)>,
    /// The management API of Micro Integrator.
    pub management: Management,
    /// Certificate and key of the HTTPS port.
    pub keystore: Option<Keystore>,
    /// Certificates for names that clients ask for (SNI).
    pub tls_hosts: Vec<(String, Keystore)>,
    /// Certificates of backends that are trusted besides the well-known ones: PEM or a keystore.
    pub trust: Option<PathBuf>,
    /// The password of the keystore in `trust`.
    pub trust_password: String,
    /// Whether certificates of backends are not checked.
    pub trust_all: bool,
    /// Threads that serve; one per core when it is not given.
    pub workers: Option<usize>,
    /// Sizes.
    pub limits: HttpLimits,
    /// Times.
    pub timeouts: HttpTimeouts,
    /// What one message may use up.
    pub flow: Limits,
    /// What the process may use; as the machine has when it is not given.
    pub total_memory: Option<usize>,
    /// How bodies are converted.
    pub conversion: Conversion,
    /// The quietest lines that are written.
    pub log_level: Level,
    /// How a line looks.
    pub log_format: LogFormat,
    /// A file in place of standard error.
    pub log_file: Option<PathBuf>,
    /// Where finished requests are noted.
    pub access_log: Option<AccessTarget>,
    /// Names and passwords for UsernameToken and basic authentication.
    pub users: Vec<(String, String)>,
    /// Names of users by role.
    pub roles: penstock_engine::Roles,
    /// WebAssembly modules that stand for classes: the name of the class, and the file.
    pub classes: Vec<(String, PathBuf)>,
    /// Which database a data source is.
    pub databases: Mapping,
    /// Connections of brokers that artifacts refer to by name.
    pub connection_factories: Vec<ConnectionFactory>,
    /// Whether changed files are reloaded.
    pub watch: bool,
    /// Whether faulty artifacts make the server not ready.
    pub strict_ready: bool,
    /// Secrets by alias.
    pub secrets: penstock_engine::Secrets,
    /// How managed APIs are served.
    pub gateway: Arc<GatewayConfig>,
    /// Whether the ports of managed APIs are open.
    pub gateway_opening: Opening,
    /// How APIs are deployed over HTTPS.
    pub adapter: Adapter,
    /// The address of the control plane, when it is served.
    pub control: Option<SocketAddr>,
    /// Hosts and networks that the control plane may fetch from besides public addresses.
    pub fetch_from: FetchRules,
    /// Keys, revoked tokens and applications of managed APIs.
    pub security: SecuritySettings,
    /// What managed APIs keep across reloads.
    pub gateway_state: Arc<GatewayState>,
}

/// Certificate and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keystore {
    /// A PKCS12 or JKS file, or the PEM file of the certificate chain.
    pub file: PathBuf,
    /// The PEM file of the key, when it is not in `file`.
    pub key: Option<PathBuf>,
    /// The password of a keystore.
    pub password: String,
    /// Which key of a keystore; the first one otherwise.
    pub alias: Option<String>,
    /// The password of the key, when it is another one.
    pub key_password: Option<String>,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// As Micro Integrator writes it.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the access log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessTarget {
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File(PathBuf),
}

/// `[coordination]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinationSettings {
    /// The database with the leases: the name of a data source, or an address.
    pub database: Option<String>,
    /// The name of this node in the log and in the table of leases.
    pub node: Option<String>,
    /// How long a lease lasts after it was extended.
    pub lease: Duration,
}

impl Default for CoordinationSettings {
    fn default() -> CoordinationSettings {
        // Micro Integrator takes a node for dead after three heartbeats of 5 s.
        CoordinationSettings { database: None, node: None, lease: Duration::from_secs(15) }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            offset: OFFSET,
            named_ports: NamedPorts::default(),
            host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            http_port: None,
            https_port: None,
            http_port_base: None,
            https_port_base: None,
            https: true,
            admin_host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            admin_port: None,
            hostname: "localhost".to_owned(),
            registry_folder: None,
            in_memory_database: None,
            coordination: CoordinationSettings::default(),
            list_services: true,
            http2: true,
            // Memory for heads and buffers stays within a few hundred megabytes.
            connections_max: 20_000,
            trusted_proxies: Vec::new(),
            forwarded_field: ForwardedField::default(),
            proxy_protocol: false,
            gateway_proxy_protocol: false,
            admin_users: Vec::new(),
            management: Management::default(),
            keystore: None,
            tls_hosts: Vec::new(),
            trust: None,
            trust_password: String::new(),
            trust_all: false,
            workers: None,
            limits: HttpLimits::default(),
            timeouts: HttpTimeouts::default(),
            flow: Limits::default(),
            total_memory: None,
            conversion: Conversion::default(),
            log_level: Level::Info,
            log_format: LogFormat::Text,
            log_file: None,
            access_log: None,
            users: Vec::new(),
            roles: Default::default(),
            classes: Vec::new(),
            databases: Mapping::default(),
            connection_factories: Vec::new(),
            watch: true,
            strict_ready: false,
            secrets: penstock_engine::Secrets::default(),
            gateway: Arc::default(),
            gateway_opening: Opening::default(),
            adapter: Adapter::default(),
            control: None,
            fetch_from: FetchRules::default(),
            security: SecuritySettings::default(),
            gateway_state: Arc::default(),
        }
    }
}

impl Settings {
    /// Applies the offset of the command line to every port that no file names.
    pub fn move_ports(&mut self, offset: u16) {
        self.offset = offset;
        let gateway = Arc::make_mut(&mut self.gateway);
        let ports = [
            (self.named_ports.gateway_http, &mut gateway.http_port),
            (self.named_ports.gateway_https, &mut gateway.https_port),
            (self.named_ports.adapter, &mut self.adapter.port),
        ];
        for (_, port) in ports.into_iter().filter(|(named, _)| !named) {
            *port = port.saturating_add(offset);
        }
    }

    /// The port for HTTP.
    pub fn http_port(&self) -> u16 {
        self.http_port.unwrap_or_else(|| self.http_port_base.unwrap_or(HTTP_PORT).saturating_add(self.offset))
    }

    /// The port for HTTPS.
    pub fn https_port(&self) -> u16 {
        self.https_port.unwrap_or_else(|| self.https_port_base.unwrap_or(HTTPS_PORT).saturating_add(self.offset))
    }

    /// The port of probes and metrics.
    pub fn admin_port(&self) -> u16 {
        self.admin_port.unwrap_or_else(|| ADMIN_PORT.saturating_add(self.offset))
    }

    /// The port of the management API.
    pub fn management_port(&self) -> u16 {
        self.management.port.unwrap_or_else(|| MANAGEMENT_PORT.saturating_add(self.offset))
    }

    /// Whether the management API is served: it is never open, so it needs a user.
    pub fn opens_management(&self) -> bool {
        self.management.enabled.unwrap_or(true) && !self.management.users.is_empty()
    }

    /// Whether the ports of managed APIs are open, given whether there is one.
    pub fn opens_gateway(&self, there_is_one: bool) -> bool {
        match self.gateway_opening {
            Opening::Always => true,
            Opening::WhenNeeded => there_is_one || self.adapter.enabled,
            Opening::Never => false,
        }
    }

    /// Threads that serve.
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// The proxies that may report the addresses of clients.
    pub fn trusted_proxies(&self) -> Arc<TrustedProxies> {
        Arc::new(TrustedProxies::new(self.trusted_proxies.clone(), self.forwarded_field))
    }

    /// What does not go together.
    pub(super) fn check(&self) -> Vec<String> {
        let mut mistakes = super::security::check(self);
        if let Some(keystore) = &self.keystore
            && keystore.file.as_os_str().is_empty()
        {
            mistakes.push(
                "the key or password of a keystore is given, and no file (`tls.keystore` or `tls.certificate`)"
                    .to_owned(),
            );
        }
        for (host, keystore) in &self.tls_hosts {
            if keystore.file.as_os_str().is_empty() {
                mistakes.push(format!("`tls.hosts.{host}` has no file (`keystore` or `certificate`)"));
            }
        }
        if (self.proxy_protocol || self.gateway_proxy_protocol) && self.trusted_proxies.is_empty() {
            mistakes.push(
                "`proxy_protocol` needs `listener.trusted_proxies`: only from these addresses it is read".to_owned(),
            );
        }
        for entry in self.databases.entries.iter().filter(|entry| entry.url.is_empty()) {
            mistakes.push(format!("`databases.{}` has no `url`", entry.name));
        }
        for factory in self.connection_factories.iter().filter(|factory| factory.transport.is_empty()) {
            mistakes.push(format!("`connections.{}` has no `transport`", factory.name));
        }
        mistakes.extend(self.management.check());
        if self.adapter.enabled && self.adapter.users.is_empty() {
            mistakes.push("`adapter.enabled` needs a user in `[adapter.users]`".to_owned());
        }
        mistakes
    }
}
