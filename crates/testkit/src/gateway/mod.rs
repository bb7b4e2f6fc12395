//! A gateway in this process, with real sockets and real TLS, a backend and a client.
//!
//! ```no_run
//! use penstock_testkit::gateway::{Backend, Setup, TestGateway, api};
//!
//! let backend = Backend::echo();
//! let gateway = TestGateway::start(Setup::of([api("/pets", &backend.url(), &["GET /pet/{id}"])]));
//! let reply = gateway.client().get("/pets/pet/1", &[]);
//! assert_eq!(reply.status, 204);
//! ```
//!
//! Start reading at [`Setup`] and [`TestGateway`].

mod backend;
mod client;
mod wire;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use penstock_catalog::{Api, Cluster, Endpoints, IpRange, Operation};
use penstock_compile::{ArtifactStatus, CompileOptions, Compiler, Front, Input, InputKind, Severity, compile_with};
use penstock_engine::ports::{Environment, Level, LogSink, Record, Service};
use penstock_engine::{Core, Current, Dispatcher, ForwardedField, Metrics, TrustedProxies};
use penstock_gateway::security::{Claims, Encoding, issue};
use penstock_gateway::{Gateway, GatewayConfig, GatewayState};
use penstock_transports::http::tls::{ClientCertificates, ClientTrust, Identity, TlsClient, TlsServer};
use penstock_transports::http::{HttpListener, HttpSender, ListenerConfig, PerCore, SenderConfig, ShutdownTrigger};
use rustls::pki_types::CertificateDer;
use tokio::runtime::LocalOptions;

pub use backend::{Answer, Backend, Gate, NOWHERE, Received, echo};
pub use client::{Client, ClientIdentity, Reply, client_tls};

/// Nothing that is waited for in a test takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a gateway is started with.
pub struct Setup {
    /// How it behaves; the ports are filled in.
    pub config: GatewayConfig,
    /// What it keeps across deployments.
    pub state: Arc<GatewayState>,
    /// APIs made in code.
    pub apis: Vec<Api>,
    /// Files of projects, see [`project`].
    pub inputs: Vec<Input>,
    /// Certificates of backends to trust.
    pub trust: Vec<CertificateDer<'static>>,
    /// What the gateway shows to backends that ask who it is.
    pub identity: Option<Identity>,
    /// The proxies whose reports of clients count.
    pub proxies: TrustedProxies,
}

impl Setup {
    /// With APIs made in code.
    pub fn of(apis: impl IntoIterator<Item = Api>) -> Setup {
        Setup {
            config: GatewayConfig::default(),
            state: Arc::default(),
            apis: apis.into_iter().collect(),
            inputs: Vec::new(),
            trust: Vec::new(),
            identity: None,
            proxies: TrustedProxies::default(),
        }
    }

    /// Behind proxies with these addresses.
    pub fn behind(mut self, ranges: &[&str]) -> Setup {
        let range = |text: &&str| IpRange::parse(text).map(|range| range.first..=range.last).expect("a range");
        self.proxies = TrustedProxies::new(ranges.iter().map(range).collect(), ForwardedField::Either);
        self
    }

    /// With files of a project.
    pub fn project(files: &[(&str, &str)]) -> Setup {
        Setup { inputs: project("project", files), ..Setup::of([]) }
    }

    /// With a changed configuration.
    pub fn configured(mut self, change: impl FnOnce(&mut GatewayConfig)) -> Setup {
        change(&mut self.config);
        self
    }

    /// With APIs that are served although a policy of theirs cannot be enforced.
    pub fn serving_unprotected(self, names: &[&str]) -> Setup {
        self.configured(|config| config.serve_unprotected.extend(names.iter().map(|name| (*name).into())))
    }

    /// With a backend's certificate trusted.
    pub fn trusting(mut self, backend: &Backend) -> Setup {
        self.trust.extend(backend.certificate().cloned());
        self
    }
}

/// The files of a project as the loader would give them: paths inside the project, and texts.
pub fn project(name: &str, files: &[(&str, &str)]) -> Vec<Input> {
    let input = |(path, text): &(&str, &str)| Input {
        file: format!("{name}/{path}").into(),
        bytes: text.as_bytes().to_vec().into(),
        kind: InputKind::Api { project: name.into(), path: (*path).to_owned() },
    };
    files.iter().map(input).collect()
}

/// An API made in code: a base path, the address of its backend, `METHOD /path` for each operation. No credentials
/// prove anything to it.
pub fn api(base_path: &str, backend: &str, operations: &[&str]) -> Api {
    let cluster = Cluster { urls: vec![backend.into()], ..Cluster::default() };
    let operation = |line: &&str| {
        let (method, path) = line.split_once(' ').expect("`METHOD /path`");
        Arc::new(Operation { method: method.into(), path: path.into(), ..Operation::default() })
    };
    Api {
        name: base_path.trim_start_matches('/').into(),
        version: "1.0.0".into(),
        base_path: base_path.into(),
        endpoints: Endpoints { production: Some(Arc::new(cluster)), ..Endpoints::default() },
        operations: operations.iter().map(operation).collect(),
        ..Api::default()
    }
}

/// The same, secured as APIs are that say nothing about it: it takes tokens.
pub fn secured_api(base_path: &str, backend: &str, operations: &[&str]) -> Api {
    let mut api = api(base_path, backend, operations);
    for operation in &mut api.operations {
        Arc::make_mut(operation).secured = true;
    }
    api
}

/// A running gateway. It ends when it is dropped.
pub struct TestGateway {
    /// The HTTP port.
    pub http: u16,
    /// The HTTPS port.
    pub https: u16,
    /// The certificate it shows.
    pub certificate: CertificateDer<'static>,
    /// What the compiler said about the last deployment.
    pub diagnostics: Vec<String>,
    gateway: Gateway,
    current: Arc<Current>,
    log: Arc<Lines>,
    trigger: Option<ShutdownTrigger>,
    thread: Option<JoinHandle<()>>,
}

impl TestGateway {
    /// Starts on free ports. Panics when something cannot be served.
    pub fn start(setup: Setup) -> TestGateway {
        let (gateway, faulty) = TestGateway::try_start(setup);
        assert!(faulty.is_empty(), "{}", gateway.diagnostics.join("\n"));
        gateway
    }

    /// Starts on free ports; also tells what cannot be served.
    pub fn try_start(setup: Setup) -> (TestGateway, Vec<String>) {
        let Setup { mut config, state, apis, inputs, trust, identity, proxies } = setup;
        let proxies = Arc::new(proxies);
        let server = Identity::self_signed(&["localhost".to_owned()]).expect("a certificate");
        let certificate = CertificateDer::from(server.certificate_der().expect("it has one").to_vec());
        let asked = ClientCertificates::Any(state.security.wants_certificates());
        let tls = TlsServer::new(&server, &asked, true).expect("the certificate is usable");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let bind = |tls| {
            let config = ListenerConfig { tls, trusted_proxies: proxies.clone(), ..ListenerConfig::default() };
            HttpListener::bind(any, config).expect("a free port")
        };
        let (plain, secure) = (bind(None), bind(Some(Arc::new(tls))));
        (config.http_port, config.https_port) = (plain.local_addr().port(), secure.local_addr().port());
        let gateway = Gateway::new(Arc::new(config), state);
        let built = build(&gateway, &inputs, &apis);
        let current = Current::new(Arc::new(built.program));
        let log = Arc::new(Lines::default());
        let (ready, started) = mpsc::channel();
        let worker = Worker {
            listeners: vec![plain, secure],
            tls: ClientTrust { extra_roots: trust, identity, ..ClientTrust::default() },
            log: log.clone(),
            current: current.clone(),
            state: gateway.state.clone(),
        };
        let thread = std::thread::spawn(move || worker.run(ready));
        let trigger = started.recv_timeout(PATIENCE).expect("the gateway starts");
        let gateway = TestGateway {
            http: gateway.config.http_port,
            https: gateway.config.https_port,
            certificate,
            diagnostics: built.diagnostics,
            gateway,
            current,
            log,
            trigger: Some(trigger),
            thread: Some(thread),
        };
        (gateway, built.faulty)
    }

    /// Replaces what is served; tells what cannot be.
    pub fn deploy(&mut self, inputs: &[Input], apis: &[Api]) -> Vec<String> {
        let built = build(&self.gateway, inputs, apis);
        self.diagnostics = built.diagnostics;
        self.current.swap(Arc::new(built.program));
        built.faulty
    }

    /// A connection without TLS.
    pub fn client(&self) -> Client {
        Client::http(self.http)
    }

    /// A connection with TLS.
    pub fn tls_client(&self) -> Client {
        Client::https(self.https, &self.certificate, None)
    }

    /// A connection with TLS that shows a certificate.
    pub fn certified_client(&self, identity: &ClientIdentity) -> Client {
        Client::https(self.https, &self.certificate, Some(identity))
    }

    /// A token of the gateway's own issuer with these claims besides; it is good for an hour unless they say otherwise.
    pub fn token(&self, claims: &serde_json::Value) -> String {
        let mut all = Claims::lasting(3600);
        all.set("iss", &*self.gateway.config.security.own_issuer);
        for (name, value) in claims.as_object().into_iter().flatten() {
            all.set(name, value.clone());
        }
        issue(&self.state().security.signer(), &all, Encoding::Base64Url).expect("the gateway has a key")
    }

    /// The same as the value of `Authorization`.
    pub fn bearer(&self, claims: &serde_json::Value) -> String {
        format!("Bearer {}", self.token(claims))
    }

    /// Everything that was logged, a line each.
    pub fn log(&self) -> String {
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// What it keeps across deployments.
    pub fn state(&self) -> &Arc<GatewayState> {
        &self.gateway.state
    }

    /// How it behaves.
    pub fn config(&self) -> &Arc<GatewayConfig> {
        &self.gateway.config
    }

    /// Stops the gateway, as a process that ends does.
    pub fn stop(&mut self) {
        if let Some(trigger) = self.trigger.take() {
            trigger.stop();
        }
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A request that hangs must not hang the test that made it.
            let end = Instant::now() + Duration::from_secs(2);
            while !thread.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// APIs from files and from code as one front.
struct All<'g> {
    gateway: &'g Gateway,
    apis: Vec<Arc<Api>>,
}

impl Front for All<'_> {
    fn compile(&self, inputs: &[Input], cx: &mut Compiler<'_>) -> Vec<ArtifactStatus> {
        self.gateway.compile_with(inputs, &self.apis, cx)
    }
}

struct Built {
    program: penstock_engine::Program,
    diagnostics: Vec<String>,
    faulty: Vec<String>,
}

fn build(gateway: &Gateway, inputs: &[Input], apis: &[Api]) -> Built {
    let front = All { gateway, apis: apis.iter().cloned().map(Arc::new).collect() };
    let options =
        CompileOptions { serve_unprotected: gateway.config.serve_unprotected.clone(), ..CompileOptions::default() };
    let compiled = compile_with(inputs, &crate::REGISTRY, &options, &[&front]);
    let bad = compiled.artifacts.iter().filter(|artifact| !artifact.good).map(|artifact| artifact.name.clone());
    let errors = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let faulty = bad.chain(errors.map(ToString::to_string)).collect();
    let diagnostics = compiled.diagnostics.iter().map(ToString::to_string).collect();
    Built { program: compiled.program, diagnostics, faulty }
}

/// The thread that serves.
struct Worker {
    listeners: Vec<HttpListener>,
    tls: ClientTrust,
    log: Arc<Lines>,
    current: Arc<Current>,
    state: Arc<GatewayState>,
}

impl Worker {
    fn run(self, ready: mpsc::Sender<ShutdownTrigger>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .expect("a runtime");
        runtime.block_on(self.serve(ready));
    }

    async fn serve(self, ready: mpsc::Sender<ShutdownTrigger>) {
        let per_core = PerCore::start();
        let config = SenderConfig { tls: Arc::new(TlsClient::new(self.tls)), ..SenderConfig::default() };
        let sender = Rc::new(HttpSender::new(&per_core, config));
        let (state, outbound) = (self.state, sender.clone());
        tokio::task::spawn_local(async move { state.run_background(outbound).await });
        let environment = Arc::new(Environment::default());
        let core = Core::new(sender, self.log, environment, Arc::new(Metrics::default()), self.current);
        let service: Rc<dyn Service> = Dispatcher::new(core);
        let (trigger, stop) = penstock_transports::http::shutdown();
        let mut serving = tokio::task::JoinSet::new();
        for listener in self.listeners {
            serving.spawn_local(listener.serve(per_core.clone(), service.clone(), None, stop.clone()));
        }
        ready.send(trigger).expect("the test waits for it");
        while serving.join_next().await.is_some() {}
    }
}

/// Keeps log lines of the default level.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl LogSink for Lines {
    fn write(&self, record: &Record<'_>) {
        let line = format!("{:?} {} {} {}", record.level, record.logger, record.service, record.text);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Info
    }
}
