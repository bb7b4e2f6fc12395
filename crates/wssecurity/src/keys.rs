//! The keys of a service, and whom it trusts.

use std::fmt;

use crate::certificate::Certificate;
use crate::rsa::PrivateKey;

/// Why keys cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// The certificate is not one with an RSA key.
    Certificate,
    /// The private key is not an RSA key of 1024 to 8192 bits.
    PrivateKey,
    /// Certificate and private key are not of one pair.
    Pair,
}

impl fmt::Display for KeyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            KeyError::Certificate => "the certificate is not one with an RSA key",
            KeyError::PrivateKey => "the private key is not an RSA key of 1024 to 8192 bits",
            KeyError::Pair => "the certificate is not that of the private key",
        })
    }
}

impl std::error::Error for KeyError {}

/// The private key of a service with its certificate, and trusted certificates.
#[derive(Debug)]
pub struct Keys {
    pub(crate) certificate: Certificate,
    pub(crate) private: PrivateKey,
    pub(crate) trusted: Vec<Certificate>,
}

impl Keys {
    /// From DER. The own certificate is trusted, too; trusted certificates without an RSA key are of no use here.
    pub fn from_der(certificate: &[u8], key: &[u8], trusted: &[Vec<u8>]) -> Result<Keys, KeyError> {
        let certificate = Certificate::from_der(certificate).ok_or(KeyError::Certificate)?;
        let private = PrivateKey::from_der(key).ok_or(KeyError::PrivateKey)?;
        let probe = private.sign(crate::algorithm::Digest::Sha256, b"").map_err(|_| KeyError::PrivateKey)?;
        if !certificate.verifies(crate::algorithm::Digest::Sha256, b"", &probe) {
            return Err(KeyError::Pair);
        }
        let mut all = vec![certificate.clone()];
        all.extend(trusted.iter().filter_map(|der| Certificate::from_der(der)));
        Ok(Keys { certificate, private, trusted: all })
    }
}
