//! X.509 certificates: how messages refer to them, and whether one is trusted.

use std::sync::Arc;
use std::time::SystemTime;

use der::{Decode, Encode};
use ring::signature::{RsaParameters, UnparsedPublicKey};
use x509_cert::ext::pkix::{BasicConstraints, SubjectKeyIdentifier};

use crate::algorithm::Digest;
use crate::rsa::PublicKey;

/// A certificate with an RSA key.
#[derive(Debug, Clone)]
pub struct Certificate {
    der: Arc<[u8]>,
    parsed: Arc<x509_cert::Certificate>,
    /// `RSAPublicKey` of PKCS #1.
    key_der: Arc<[u8]>,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Certificate) -> bool {
        self.der == other.der
    }
}

/// OBJECT IDENTIFIER of RSA keys.
const RSA_ENCRYPTION: &str = "1.2.840.113549.1.1.1";

/// How certificates are signed, by the object identifier.
const CERTIFICATE_SIGNATURES: [(&str, &RsaParameters); 4] = [
    ("1.2.840.113549.1.1.5", &ring::signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
    ("1.2.840.113549.1.1.11", &ring::signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
    ("1.2.840.113549.1.1.12", &ring::signature::RSA_PKCS1_2048_8192_SHA384),
    ("1.2.840.113549.1.1.13", &ring::signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
];

impl Certificate {
    /// Reads DER; `None` when it is no certificate with an RSA key.
    pub fn from_der(der: &[u8]) -> Option<Certificate> {
        let parsed = x509_cert::Certificate::from_der(der).ok()?;
        let info = parsed.tbs_certificate().subject_public_key_info();
        if info.algorithm.oid.to_string() != RSA_ENCRYPTION {
            return None;
        }
        let key_der = info.subject_public_key.as_bytes()?.into();
        Some(Certificate { der: der.into(), key_der, parsed: Arc::new(parsed) })
    }

    /// The DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject, as RFC 4514 writes it.
    pub fn subject(&self) -> String {
        self.parsed.tbs_certificate().subject().to_string()
    }

    pub(crate) fn issuer(&self) -> String {
        self.parsed.tbs_certificate().issuer().to_string()
    }

    /// The serial number in decimal.
    pub(crate) fn serial(&self) -> String {
        decimal(self.parsed.tbs_certificate().serial_number().as_bytes())
    }

    pub(crate) fn thumbprint(&self) -> Vec<u8> {
        Digest::Sha1.hash(&self.der)
    }

    /// The extension, or the digest of the key, which is what the extension mostly is (RFC 5280 §4.2.1.2).
    pub(crate) fn key_identifier(&self) -> Vec<u8> {
        match self.parsed.tbs_certificate().get_extension::<SubjectKeyIdentifier>() {
            Ok(Some((_, found))) => found.0.as_bytes().to_vec(),
            _ => Digest::Sha1.hash(&self.key_der),
        }
    }

    pub(crate) fn public_key(&self) -> Option<PublicKey> {
        PublicKey::from_der(&self.key_der)
    }

    /// Whether a signature with PKCS #1 v1.5 padding is of this certificate's key.
    pub(crate) fn verifies(&self, digest: Digest, message: &[u8], signature: &[u8]) -> bool {
        let parameters = match digest {
            Digest::Sha1 => &ring::signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => &ring::signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            Digest::Sha512 => &ring::signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        };
        UnparsedPublicKey::new(parameters, &*self.key_der).verify(message, signature).is_ok()
    }

    /// Whether the time is within the validity.
    pub(crate) fn is_valid_at(&self, now: SystemTime) -> bool {
        let validity = self.parsed.tbs_certificate().validity();
        validity.not_before.to_system_time() <= now && now <= validity.not_after.to_system_time()
    }

    /// Whether one of the trusted certificates is this one, or a certificate authority that issued it.
    pub(crate) fn is_trusted(&self, trusted: &[Certificate], now: SystemTime) -> bool {
        let issued =
            |issuer: &&Certificate| issuer.is_authority() && issuer.is_valid_at(now) && self.is_issued_by(issuer);
        self.is_valid_at(now) && (trusted.contains(self) || trusted.iter().any(|issuer| issued(&issuer)))
    }

    fn is_authority(&self) -> bool {
        let constraints = self.parsed.tbs_certificate().get_extension::<BasicConstraints>();
        matches!(constraints, Ok(Some((_, found))) if found.ca)
    }

    fn is_issued_by(&self, issuer: &Certificate) -> bool {
        if self.parsed.tbs_certificate().issuer() != issuer.parsed.tbs_certificate().subject() {
            return false;
        }
        let algorithm = self.parsed.signature_algorithm().oid.to_string();
        let parameters = CERTIFICATE_SIGNATURES.iter().find(|(oid, _)| *oid == algorithm).map(|(_, found)| *found);
        let (Some(parameters), Some(signature)) = (parameters, self.parsed.signature().as_bytes()) else {
            return false;
        };
        // The parser refuses what is not DER, so what it writes is what was signed.
        let Ok(signed) = self.parsed.tbs_certificate().to_der() else { return false };
        UnparsedPublicKey::new(parameters, &*issuer.key_der).verify(&signed, signature).is_ok()
    }

    /// Whether an issuer's name and a serial number are this certificate's. Products write names with and without blanks
    /// after commas and in either case of the types.
    pub(crate) fn has_issuer_serial(&self, issuer: &str, serial: &str) -> bool {
        serial.trim() == self.serial() && comparable(issuer) == comparable(&self.issuer())
    }
}

fn comparable(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// A number of big-endian bytes in decimal.
fn decimal(bytes: &[u8]) -> String {
    let mut digits: Vec<u8> = vec![0];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_in_decimal() {
        for (bytes, expected) in [(&[0][..], "0"), (&[1, 0], "256"), (&[0, 255, 255, 255, 255], "4294967295")] {
            assert_eq!(decimal(bytes), expected);
        }
    }
}
