//! The configuration of listeners.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
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
    /// Any certificate they have, while the flag is set: whoever reads it from a request decides whether it counts.
    Any(Arc<AtomicBool>),
}

/// TLS of a listener, shared by all cores. Connections that are open keep what they began with.
#[derive(Debug)]
pub struct TlsServer {
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsServer {
    /// With this identity. `http2` offers `h2` beside `http/1.1`.
    pub fn new(identity: &Identity, clients: &ClientCertificates, http2: bool) -> Result<TlsServer, TlsError> {
        Ok(TlsServer { current: RwLock::new(configure(identity, clients, http2)?) })
    }

    /// Takes another identity for connections to come. When it cannot be used, the old one stays.
    pub fn replace(&self, identity: &Identity, clients: &ClientCertificates, http2: bool) -> Result<(), TlsError> {
        let config = configure(identity, clients, http2)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn configure(identity: &Identity, clients: &ClientCertificates, http2: bool) -> Result<Arc<ServerConfig>, TlsError> {
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
    let mut config = builder.with_single_cert(identity.chain.clone(), identity.key.clone_key()).map_err(refused)?;
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
