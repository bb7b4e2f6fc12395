//! TLS to database servers.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

/// Whether the certificate of a database server is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// The connection is encrypted and the certificate is not checked, as libpq and JDBC understand `require`.
    None,
    /// The certificate must be trusted and carry the name of the server: `verify-full`, `VERIFY_IDENTITY`.
    Certificate,
}

/// The TLS configuration of the process.
pub trait ServerTls: Send + Sync {
    /// The configuration for a connection.
    fn config(&self, verification: Verification) -> Result<Arc<ClientConfig>, String>;

    /// The authorities that servers' certificates are checked against.
    fn roots(&self) -> Vec<CertificateDer<'static>>;
}

/// No TLS: for pages and tests, whose databases are on this machine.
pub(crate) struct NoTls;

impl ServerTls for NoTls {
    fn config(&self, verification: Verification) -> Result<Arc<ClientConfig>, String> {
        match verification {
            Verification::Certificate => Err("TLS to databases is not configured".to_owned()),
            Verification::None => {
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
                let builder = builder.map_err(|error| error.to_string())?;
                Ok(Arc::new(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()))
            }
        }
    }

    fn roots(&self) -> Vec<CertificateDer<'static>> {
        Vec::new()
    }
}
