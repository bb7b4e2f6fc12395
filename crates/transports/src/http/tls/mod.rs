//! TLS on both sides: who we are, whom we trust, and the two configurations that follow from it.
//!
//! [`Identity`] is a key with its certificates, from PEM, PKCS12, JKS or made on the spot. [`TlsServer`] holds the
//! configuration of listeners and can be given another identity while they run; [`TlsClient`] that of the sender.

mod client;
mod ec;
mod identity;
mod jks;
mod server;
mod signatures;

use std::fmt;

pub use client::{ClientTrust, TlsClient};
pub use identity::{Identity, certificates_to_pem, read_certificates};
pub use server::{ClientCertificates, Identities, TlsServer};

/// Why keys or certificates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsError {
    /// The file is not what it should be; the text says what was expected.
    Format(String),
    /// The password does not open the keystore.
    Password,
    /// The keystore has no such entry; the entries it has.
    Alias {
        /// The requested one.
        wanted: String,
        /// What is there.
        present: Vec<String>,
    },
    /// The parts do not fit together or are refused by the TLS library.
    Refused(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Format(why) => write!(out, "{why}"),
            TlsError::Password => write!(out, "the password does not open the keystore"),
            TlsError::Alias { wanted, present } if present.is_empty() => {
                write!(out, "the keystore has no private key, `{wanted}` is wanted")
            }
            TlsError::Alias { wanted, present } => {
                write!(out, "the keystore has no private key `{wanted}`, it has `{}`", present.join("`, `"))
            }
            TlsError::Refused(why) => write!(out, "the certificate or key cannot be used: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

fn refused(error: impl fmt::Display) -> TlsError {
    TlsError::Refused(error.to_string())
}

fn provider() -> std::sync::Arc<rustls::crypto::CryptoProvider> {
    std::sync::Arc::new(rustls::crypto::ring::default_provider())
}
