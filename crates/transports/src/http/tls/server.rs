//! The configuration of listeners.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DistinguishedName, RootCertStore, ServerConfig};

use super::{Identity, TlsError, provider, refused};

/// What clients must show.
#[derive(Debug, Clone, Default)]
pub enum ClientCertificates {
    /// Nothing.
    #[default]
    None,
    /// A certificate of these authorities if they have one.
    Optional(Vec<CertificateDer<'static>>),
    /// A certificate of these authorities.
    Required(Vec<CertificateDer<'static>>),
    /// Any certificate, while the flag is set: the reader of the request decides about it.
    Any(Arc<AtomicBool>),
}

/// What a listener shows: a certificate by server name (SNI), and a default.
#[derive(Debug, Clone)]
pub struct Identities {
    /// For names that have none of their own, and clients that ask for no name.
    pub default: Identity,
    /// Names as in certificates: `api.example.com`, or `*.example.com` for one label more.
    pub hosts: Vec<(String, Identity)>,
}

impl From<&Identity> for Identities {
    fn from(identity: &Identity) -> Identities {
        Identities { default: identity.clone(), hosts: Vec::new() }
    }
}

impl From<&Identities> for Identities {
    fn from(identities: &Identities) -> Identities {
        identities.clone()
    }
}

/// TLS of a listener, shared by all cores. Connections that are open keep what they began with.
#[derive(Debug)]
pub struct TlsServer {
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsServer {
    /// With these certificates. `http2` offers `h2` beside `http/1.1`.
    pub fn new(
        identities: impl Into<Identities>,
        clients: &ClientCertificates,
        http2: bool,
    ) -> Result<TlsServer, TlsError> {
        Ok(TlsServer { current: RwLock::new(configure(identities.into(), clients, http2)?) })
    }

    /// Takes other certificates for connections to come. When they cannot be used, the old ones stay.
    pub fn replace(
        &self,
        identities: impl Into<Identities>,
        clients: &ClientCertificates,
        http2: bool,
    ) -> Result<(), TlsError> {
        let config = configure(identities.into(), clients, http2)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Selects a certificate by server name.
#[derive(Debug)]
struct ByName {
    default: Arc<CertifiedKey>,
    hosts: HashMap<String, Arc<CertifiedKey>>,
}

impl ByName {
    fn new(identities: Identities) -> Result<ByName, TlsError> {
        let certified = |identity: Identity| {
            CertifiedKey::from_der(identity.chain, identity.key, &provider()).map(Arc::new).map_err(refused)
        };
        let mut hosts = HashMap::new();
        for (host, identity) in identities.hosts {
            hosts.insert(host.to_ascii_lowercase(), certified(identity)?);
        }
        Ok(ByName { default: certified(identities.default)?, hosts })
    }

    fn choose(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let found = name.map(str::to_ascii_lowercase).and_then(|name| {
            let wildcard = || name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
            self.hosts.get(&name).or_else(|| self.hosts.get(&wildcard()?))
        });
        found.unwrap_or(&self.default).clone()
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.choose(hello.server_name()))
    }
}

fn configure(identities: Identities, clients: &ClientCertificates, http2: bool) -> Result<Arc<ServerConfig>, TlsError> {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(refused)?;
    let builder = match clients {
        ClientCertificates::None => builder.with_no_client_auth(),
        ClientCertificates::Any(wanted) => {
            let wanted = wanted.clone();
            builder.with_client_cert_verifier(Arc::new(AnyClient { wanted, provider: provider() }))
        }
        ClientCertificates::Optional(authorities) | ClientCertificates::Required(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in authorities {
                roots.add(authority.clone()).map_err(refused)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier = match clients {
                ClientCertificates::Optional(_) => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            builder.with_client_cert_verifier(verifier.build().map_err(refused)?)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName::new(identities)?));
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Arc::new(config))
}

/// Checks that a client holds the key of the certificate it shows, and nothing about the certificate.
#[derive(Debug)]
struct AnyClient {
    wanted: Arc<AtomicBool>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyClient {
    fn offer_client_auth(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    super::signatures::checked_by_the_provider!();
}
