//! Inbound endpoints of the protocols `http` and `https`: a port of their own.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use penstock_compile::{Compiler, Feed, InboundEndpoint, InboundKind, Parameters};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::entrance::{Entrance, EntranceRule, Opening};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_xml::{Document, ParseOptions};

use super::tls::{ClientCertificates, Identity, TlsServer, read_certificates};

/// HTTP.
pub const HTTP: InboundKind =
    InboundKind { protocols: &["http", "httpws"], classes: &[], ignored: IGNORED, build: build_http };

/// HTTPS.
pub const HTTPS: InboundKind =
    InboundKind { protocols: &["https", "httpswss"], classes: &[], ignored: IGNORED, build: build_https };

/// Threads of Micro Integrator; here each core serves each port. Versions and ciphers of TLS are those of rustls.
const IGNORED: &[&str] = &[
    "inbound.worker.pool.size.core",
    "inbound.worker.pool.size.max",
    "inbound.worker.thread.keep.alive.sec",
    "inbound.worker.pool.queue.length",
    "inbound.thread.group.id",
    "inbound.thread.id",
    "interval",
    "sequential",
    "protocolVersion",
    "SSLProtocol",
    "HttpsProtocols",
    "PreferredCiphers",
    "CertificateRevocationVerifier",
];

/// A port of an inbound endpoint.
struct Port {
    number: u16,
    entrance: Arc<Entrance>,
    keys: Option<Keys>,
}

/// Where the keys of a port are.
#[derive(Debug, Clone)]
struct Keys {
    keystore: Store,
    truststore: Option<Store>,
    clients: Verify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verify {
    None,
    Optional,
    Require,
}

#[derive(Debug, Clone, Default)]
struct Store {
    location: PathBuf,
    password: String,
    key_password: Option<String>,
    is_pem: bool,
}

fn build_http(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    build(endpoint, parameters, None, cx)
}

fn build_https(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let el = &endpoint.el;
    let clients = match parameters.get("SSLVerifyClient").map(str::to_ascii_lowercase).as_deref() {
        None | Some("none" | "false") => Verify::None,
        Some("optional") => Verify::Optional,
        Some("require" | "true") => Verify::Require,
        Some(other) => {
            let text = format!("`SSLVerifyClient` is `{other}`, not `none`, `optional` or `require`");
            cx.error(parameters.place("SSLVerifyClient", el), text);
            return None;
        }
    };
    let keystore = store("keystore", parameters, endpoint, cx)?;
    let truststore = match parameters.get("truststore") {
        Some(_) => Some(store("truststore", parameters, endpoint, cx)?),
        None if clients == Verify::None => None,
        None => {
            cx.error(el.place(), "`SSLVerifyClient` needs the parameter `truststore`");
            return None;
        }
    };
    build(endpoint, parameters, Some(Keys { keystore, truststore, clients }), cx)
}

fn build(
    endpoint: &InboundEndpoint<'_>,
    parameters: &Parameters,
    keys: Option<Keys>,
    cx: &mut Compiler<'_>,
) -> Option<Feed> {
    let el = &endpoint.el;
    // `httpws` has the short name.
    let name = if parameters.get("port").is_some() { "port" } else { "inbound.http.port" };
    parameters.required(name, el, cx)?;
    let number: u16 = parameters.number(name, el, cx)?;
    let rule = match parameters.get("dispatch.filter.pattern") {
        None => EntranceRule::Sequence(endpoint.sequence.clone()),
        Some(pattern) => match regex::Regex::new(&format!("^(?:{pattern})$")) {
            Ok(regex) => EntranceRule::Services(Box::new(move |path| regex.is_match(path))),
            Err(error) => {
                let at = parameters.place("dispatch.filter.pattern", el);
                cx.error(at, format!("`{pattern}` is not a regular expression: {error}"));
                return None;
            }
        },
    };
    let offers_apis = parameters.flag("api.dispatching.enabled", false);
    let entrance = Entrance { source: endpoint.source.clone(), rule, offers_apis };
    Some(Feed::Service(Arc::new(Port { number, entrance: Arc::new(entrance), keys })))
}

/// `<KeyStore><Location/><Type/><Password/><KeyPassword/></KeyStore>`.
fn store(name: &str, parameters: &Parameters, endpoint: &InboundEndpoint<'_>, cx: &mut Compiler<'_>) -> Option<Store> {
    let text = parameters.required(name, &endpoint.el, cx)?;
    let mut store = Store::default();
    if let Ok(document) = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default())
        && let Some(root) = document.root_element()
    {
        for child in document.children(root).filter(|child| document.is_element(*child)) {
            let value = document.string_value(child).trim().to_owned();
            match document.local_name(child) {
                "Location" => store.location = value.into(),
                "Type" => store.is_pem = value.eq_ignore_ascii_case("PEM"),
                "Password" => store.password = value,
                "KeyPassword" => store.key_password = Some(value),
                _ => {}
            }
        }
    }
    if store.location.as_os_str().is_empty() {
        let text = format!("the parameter `{name}` has no <Location>");
        cx.error(parameters.place(name, &endpoint.el), text);
        return None;
    }
    Some(store)
}

impl RunService for Port {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (number, entrance, keys) = (self.number, self.entrance.clone(), self.keys.clone());
        Box::pin(serve(number, entrance, keys, control))
    }

    fn opens_port(&self) -> bool {
        true
    }
}

async fn serve(
    port: u16,
    entrance: Arc<Entrance>,
    keys: Option<Keys>,
    mut control: Control,
) -> Result<(), ServiceError> {
    while control.next().await {
        let tls: Option<Arc<dyn Any + Send + Sync>> = match &keys {
            None => None,
            Some(keys) => Some(keys.read(&control)?),
        };
        let opening = Opening { port, entrance: entrance.clone(), tls };
        let open = control.core().entrances()?.open(opening)?;
        control.working();
        control.log(Level::Info, &format!("listening on port {}", open.port()));
        control.until(std::future::pending::<()>()).await;
        open.close().await;
    }
    Ok(())
}

impl Keys {
    fn read(&self, control: &Control) -> Result<Arc<TlsServer>, ServiceError> {
        let (location, bytes) = self.keystore.bytes(control)?;
        let wrong = |error: super::tls::TlsError| ServiceError::temporary(format!("`{location}`: {error}"));
        let identity = if self.keystore.is_pem {
            Identity::from_pem(&bytes, &bytes)
        } else {
            let key_password = self.keystore.key_password.as_deref();
            Identity::from_keystore(&bytes, &self.keystore.password, key_password, None)
        };
        let identity = identity.map_err(wrong)?;
        let authorities = match &self.truststore {
            None => Vec::new(),
            Some(store) => read_certificates(&store.bytes(control)?.1, &store.password).map_err(wrong)?,
        };
        let clients = match self.clients {
            Verify::None => ClientCertificates::None,
            Verify::Optional => ClientCertificates::Optional(authorities),
            Verify::Require => ClientCertificates::Required(authorities),
        };
        TlsServer::new(&identity, &clients, true).map(Arc::new).map_err(wrong)
    }
}

impl Store {
    /// The file, relative to the working folder or to the home of Micro Integrator. It is read when the endpoint starts; it
    /// may appear later.
    fn bytes(&self, control: &Control) -> Result<(String, Vec<u8>), ServiceError> {
        let system = &control.core().environment.system;
        let home = system.read().unwrap_or_else(std::sync::PoisonError::into_inner).get("carbon.home").cloned();
        let in_home = home.map(|home| PathBuf::from(home).join(&self.location)).filter(|path| path.exists());
        let path = in_home.filter(|_| self.location.is_relative()).unwrap_or_else(|| self.location.clone());
        let bytes = std::fs::read(&path).map_err(|error| {
            ServiceError::temporary(format!("the keystore `{}` cannot be read: {error}", path.display()))
        })?;
        Ok((path.display().to_string(), bytes))
    }
}
