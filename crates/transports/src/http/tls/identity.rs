//! A private key with its certificates, and where they come from.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::ec::with_public_key;
use super::{TlsError, jks, refused};

/// A private key and the certificates that vouch for it, the own one first.
#[derive(Debug)]
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// From PEM: certificates, and a key in PKCS8, PKCS1 or SEC1. Both may stand in one file.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Identity, TlsError> {
        let chain = pem_certificates(certificates)?;
        if chain.is_empty() {
            return Err(TlsError::Format("there is no certificate in the PEM file".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError::Format(format!("there is no usable private key in the PEM file: {error}")))?;
        Ok(Identity { chain, key })
    }

    /// From a PKCS12 or JKS keystore, distinguished by their first bytes. Without `alias` the first private key by name
    /// counts; without `key_password` that of the keystore opens the key, too.
    pub fn from_keystore(
        bytes: &[u8],
        password: &str,
        key_password: Option<&str>,
        alias: Option<&str>,
    ) -> Result<Identity, TlsError> {
        if jks::is_jks(bytes) {
            let store = jks::Jks::parse(bytes, password)?;
            let names = store.keys.iter().map(|entry| entry.alias.clone()).collect();
            let entry = store.keys.into_iter().find(|entry| is_wanted(&entry.alias, alias));
            let entry = entry.ok_or_else(|| missing(alias, names))?;
            let key = jks::decrypt_key(&entry.protected_key, key_password.unwrap_or(password))?;
            return Identity::new(entry.chain, key);
        }
        let store = open_pkcs12(bytes, password)?;
        let chains = || {
            store.entries().filter_map(|(name, entry)| match entry {
                KeyStoreEntry::PrivateKeyChain(chain) => Some((name, chain)),
                KeyStoreEntry::Certificate(_) | KeyStoreEntry::Secret(_) => None,
            })
        };
        let names = chains().map(|(name, _)| name.clone()).collect();
        let (_, chain) = chains().find(|(name, _)| is_wanted(name, alias)).ok_or_else(|| missing(alias, names))?;
        let certificates = chain.certs().iter().map(|certificate| certificate.as_der().to_vec().into()).collect();
        Identity::new(certificates, chain.key().as_der().to_vec())
    }

    /// A key and a certificate for `names`, generated and self-signed: for development. The caller logs it
    /// aloud.
    pub fn self_signed(names: &[String]) -> Result<Identity, TlsError> {
        let certified = rcgen::generate_simple_self_signed(names).map_err(refused)?;
        Identity::new(vec![certified.cert.der().clone()], certified.signing_key.serialize_der())
    }

    fn new(chain: Vec<CertificateDer<'static>>, pkcs8: Vec<u8>) -> Result<Identity, TlsError> {
        if chain.is_empty() {
            return Err(TlsError::Format("the private key has no certificate".into()));
        }
        let pkcs8 = chain.first().and_then(|own| with_public_key(&pkcs8, own)).unwrap_or(pkcs8);
        Ok(Identity { chain, key: PrivatePkcs8KeyDer::from(pkcs8).into() })
    }

    /// The private key in the form it has in its file: PKCS 8, PKCS 1 or SEC 1.
    pub fn key_der(&self) -> &[u8] {
        self.key.secret_der()
    }

    /// The certificates and the key in PEM, for clients of other protocols.
    pub fn to_pem(&self) -> (String, String) {
        let label = match &self.key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        (certificates_to_pem(&self.chain), pem(label, self.key.secret_der()))
    }

    /// The own certificate in PEM, to be trusted by clients.
    pub fn certificate_der(&self) -> Option<&[u8]> {
        self.chain.first().map(|certificate| certificate.as_ref())
    }
}

/// Certificates to trust, from PEM, PKCS12 or JKS. The password is for keystores only.
pub fn read_certificates(bytes: &[u8], password: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    if jks::is_jks(bytes) {
        return Ok(jks::Jks::parse(bytes, password)?.certificates);
    }
    if bytes.first() != Some(&DER_SEQUENCE) {
        let found = pem_certificates(bytes)?;
        return if found.is_empty() {
            Err(TlsError::Format("there is no certificate in the PEM file".into()))
        } else {
            Ok(found)
        };
    }
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Raw).map_err(keystore_error)?;
    let certificates = store.entries().filter_map(|(_, entry)| match entry {
        KeyStoreEntry::Certificate(certificate) => Some(certificate.as_der().to_vec().into()),
        KeyStoreEntry::PrivateKeyChain(_) | KeyStoreEntry::Secret(_) => None,
    });
    Ok(certificates.collect())
}

/// Certificates in PEM.
pub fn certificates_to_pem(certificates: &[CertificateDer<'_>]) -> String {
    certificates.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect()
}

/// RFC 7468 §3: lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<String> =
        encoded.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// How every DER structure of interest begins, PKCS12 among them; PEM never does.
pub(super) const DER_SEQUENCE: u8 = 0x30;

fn pem_certificates(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::Format(format!("the PEM file cannot be read: {error}")))
}

fn open_pkcs12(bytes: &[u8], password: &str) -> Result<KeyStore, TlsError> {
    if bytes.first() != Some(&DER_SEQUENCE) {
        return Err(TlsError::Format("the file is neither a PKCS12 nor a JKS keystore".into()));
    }
    KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Strict).map_err(keystore_error)
}

fn keystore_error(error: p12_keystore::error::Error) -> TlsError {
    match error {
        p12_keystore::error::Error::MacError(_) => TlsError::Password,
        other => TlsError::Format(format!("the PKCS12 keystore cannot be read: {other}")),
    }
}

/// Java keystores compare names without case.
fn is_wanted(name: &str, alias: Option<&str>) -> bool {
    alias.is_none_or(|alias| alias.eq_ignore_ascii_case(name))
}

fn missing(alias: Option<&str>, present: Vec<String>) -> TlsError {
    TlsError::Alias { wanted: alias.unwrap_or("*").to_owned(), present }
}
