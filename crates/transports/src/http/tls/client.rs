//! The configuration of the sender.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use penstock_engine::ports::TlsProfile;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, RootCertStore};

use super::identity::DER_SEQUENCE;
use super::{Identity, TlsError, provider, read_certificates, refused};

/// Whom the sender trusts.
#[derive(Debug, Clone, Default)]
pub struct ClientTrust {
    /// Certificates to trust beside those of the machine: a truststore.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Trusts `extra_roots` only.
    pub only_extra_roots: bool,
    /// Believes any certificate. For tests; a setting of the user, never a default.
    pub trust_everything: bool,
    /// What to show to backends that ask who we are.
    pub identity: Option<Identity>,
}

/// TLS of the sender, shared by all cores. Made when the first HTTPS backend is called, because reading the
/// authorities of the machine takes milliseconds that a start does not have.
#[derive(Debug, Default)]
pub struct TlsClient {
    current: RwLock<Arc<Configured>>,
}

#[derive(Debug, Default)]
struct Configured {
    trust: ClientTrust,
    config: OnceLock<Result<Arc<ClientConfig>, TlsError>>,
}

impl TlsClient {
    /// With this trust.
    pub fn new(trust: ClientTrust) -> TlsClient {
        let configured = Configured { trust, config: OnceLock::new() };
        TlsClient { current: RwLock::new(Arc::new(configured)) }
    }

    /// Takes another trust for connections to come. Routes that name certificates of their own see it once they are
    /// compiled again.
    pub fn replace(&self, trust: ClientTrust) {
        let configured = Arc::new(Configured { trust, config: OnceLock::new() });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = configured;
    }

    fn current(&self) -> Arc<Configured> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The configuration of connections.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let current = self.current();
        current.config.get_or_init(|| configure(&current.trust)).clone()
    }

    /// The authorities that certificates are checked against, for clients that make their own configuration.
    pub fn roots(&self) -> Vec<CertificateDer<'static>> {
        let trust = &self.current().trust;
        let mut roots = trust.extra_roots.clone();
        if !trust.only_extra_roots {
            roots.extend(rustls_native_certs::load_native_certs().certs);
        }
        roots
    }

    /// The configuration for requests whose route says whom to trust. Who we are stays the same.
    pub(crate) fn config_of(&self, profile: &TlsProfile) -> Result<Arc<ClientConfig>, TlsError> {
        let made = profile.prepared(|| self.configure_for(profile));
        made.map_or_else(|| self.config(), |made| (*made).clone())
    }

    fn configure_for(&self, profile: &TlsProfile) -> Result<Arc<ClientConfig>, TlsError> {
        let mut trust = self.current().trust.clone();
        if !profile.also_common {
            trust.extra_roots.clear();
            trust.only_extra_roots = true;
        }
        for root in &profile.roots {
            match root.first() {
                Some(&DER_SEQUENCE) => trust.extra_roots.push(CertificateDer::from(root.to_vec())),
                _ => trust.extra_roots.extend(read_certificates(root, "")?),
            }
        }
        configure(&trust)
    }
}

fn configure(trust: &ClientTrust) -> Result<Arc<ClientConfig>, TlsError> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(refused)?;
    let builder = if trust.trust_everything {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustEverything { provider: provider() }))
    } else {
        let mut roots = RootCertStore::empty();
        if !trust.only_extra_roots {
            // Some of the machine's may be unusable; a backend that needs one of those fails with its own error.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for root in &trust.extra_roots {
            roots.add(root.clone()).map_err(refused)?;
        }
        if trust.extra_roots.is_empty() {
            builder.with_root_certificates(roots)
        } else {
            let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            let usual = usual.map_err(refused)?;
            // Beyond the standard checks it accepts only configured certificates.
            let verifier = Arc::new(Known { usual, provider: provider(), known: trust.extra_roots.clone() });
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
    };
    let mut config = match &trust.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key()).map_err(refused)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The standard checks; a certificate that is itself configured as trusted is accepted for its names. People
/// trust the certificate of a backend that signed itself, and tools make such certificates those of an authority, which
/// no server may show as its own (RFC 5280 §4.2.1.9).
#[derive(Debug)]
struct Known {
    usual: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    known: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let usual = self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match usual {
            Err(_) if self.known.iter().any(|known| known.as_ref() == end_entity.as_ref()) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    super::signatures::checked_by_the_provider!();
}

/// Checks that the peer holds the key of its certificate, and nothing about the certificate.
#[derive(Debug)]
struct TrustEverything {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustEverything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    super::signatures::checked_by_the_provider!();
}
