//! X.509 certificates that clients upload, in PEM or DER.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::clock;
use crate::problem::Problem;
use crate::store::Object;

/// A certificate with a long chain of extensions has a few kilobytes.
pub(crate) const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// Where the certificate of an object is kept among its files.
pub(crate) const FILE: &str = "certificate.crt";

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// What the resources of certificates show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    subject: String,
    starts_ms: i64,
    ends_ms: i64,
    version: u8,
}

impl Described {
    /// Reads a certificate; PEM may have text around it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Described, Problem> {
        if bytes.len() > CERTIFICATE_BYTES_MAX {
            return Err(Problem::too_large(CERTIFICATE_BYTES_MAX));
        }
        let malformed = || Problem::bad_request("The file is not an X.509 certificate");
        let der = der(bytes).ok_or_else(malformed)?;
        let parsed = Certificate::from_der(&der).map_err(|_| malformed())?;
        let certificate = parsed.tbs_certificate();
        let validity = certificate.validity();
        let ms = |since: std::time::Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Ok(Described {
            subject: certificate.subject().to_string(),
            starts_ms: ms(validity.not_before.to_unix_duration()),
            ends_ms: ms(validity.not_after.to_unix_duration()),
            version: certificate.version() as u8 + 1,
        })
    }

    /// The same, of a certificate that has not expired.
    pub(crate) fn parse_valid(bytes: &[u8]) -> Result<Described, Problem> {
        let described = Described::parse(bytes)?;
        if described.ends_ms < clock::now_ms() {
            return Err(Problem::bad_request("Error while adding the certificate. The certificate has expired."));
        }
        Ok(described)
    }

    /// As responses have it.
    pub(crate) fn body(&self) -> Value {
        let is_active = (self.starts_ms..=self.ends_ms).contains(&clock::now_ms());
        json!({
            "status": if is_active { "Active" } else { "Expired" },
            "validity": {"from": clock::shown(self.starts_ms), "to": clock::shown(self.ends_ms)},
            "version": self.version.to_string(),
            "subject": self.subject,
        })
    }
}

fn der(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some(bytes.to_vec()) };
    let Some((_, rest)) = text.split_once(BEGIN) else { return Some(bytes.to_vec()) };
    let (body, _) = rest.split_once(END)?;
    let body: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(body).ok()
}

/// The name of the file of a certificate in a project: its alias in characters that every file system has.
pub(crate) fn file_name(certificate: &Object) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let alias: String = certificate.name.chars().map(plain).collect();
    format!("{alias}.crt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A self-signed certificate with an EC key, valid from 2026 for a hundred years.
    pub(crate) const PEM: &str = include_str!("../tests/certificate.pem");

    #[test]
    fn certificates_are_read_in_both_forms() {
        let described = Described::parse_valid(PEM.as_bytes()).unwrap();
        assert_eq!(described.subject, "CN=backend.example");
        assert_eq!(described.body()["status"], "Active");
        assert_eq!(described.body()["version"], "3");
        let der = der(PEM.as_bytes()).unwrap();
        assert_eq!(Described::parse(&der).unwrap(), described);
        for broken in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"] {
            assert_eq!(Described::parse(broken.as_bytes()).unwrap_err().status, 400, "{broken}");
        }
        assert_eq!(Described::parse(&vec![b'x'; CERTIFICATE_BYTES_MAX + 1]).unwrap_err().status, 413);
    }
}
