//! The keys of the resident key manager: the RSA key that signs tokens, and the key that client secrets are derived from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, hmac};
use rsa::pkcs8::EncodePrivateKey;
use rsa::rand_core::UnwrapErr;
use serde_json::{Value, json};

use crate::random;

/// Clients of API Manager know RS256 only, and keys of this size are what they expect.
const RSA_BITS: usize = 2048;

const SIGNING_KEY_FILE: &str = "signing-key.pem";

/// What names of files with keys that were replaced begin with.
const RETIRED_PREFIX: &str = "signing-key-retired-";

const SECRET_KEY_FILE: &str = "secret.key";

/// The keys.
pub(crate) struct Keys {
    signing: RsaKeyPair,
    kid: String,
    thumbprint: String,
    /// Keys that signed before: they verify, and are published.
    retired: Vec<RetiredKey>,
    secrets: hmac::Key,
    random: SystemRandom,
}

/// A key that does not sign any more.
struct RetiredKey {
    kid: String,
    public: Vec<u8>,
    components: PublicKeyComponents<Vec<u8>>,
}

impl RetiredKey {
    fn of(pair: &RsaKeyPair) -> RetiredKey {
        let public = pair.public();
        let thumbprint = STANDARD_NO_PAD.encode(random::sha256(public.as_ref()));
        RetiredKey { kid: format!("{thumbprint}_RS256"), public: public.as_ref().to_vec(), components: public.into() }
    }
}

/// A key that signs tokens, from outside.
#[derive(Clone)]
pub struct SigningKey {
    /// The private RSA key, PKCS 8.
    pub pkcs8: Vec<u8>,
    /// Its certificate, DER: the id of the key is derived from it.
    pub certificate: Option<Vec<u8>>,
}

impl Keys {
    /// Reads the keys of a folder, and makes those that are missing. `imported` signs in place of the folder's own.
    pub(crate) fn open(folder: &Path, imported: Option<&SigningKey>) -> Result<Keys, String> {
        let (pkcs8, certificate) = match imported {
            Some(key) => (key.pkcs8.clone(), key.certificate.clone()),
            None => (own_signing_key(folder)?, None),
        };
        let signing = key_pair(&pkcs8)?;
        // The folder's own key signed before another one was imported.
        let mut retired = Vec::new();
        for file in retired_files(folder, imported.is_some())? {
            retired.push(RetiredKey::of(&key_pair(&read_pem(&file)?)?));
        }
        let secret = keep(folder, SECRET_KEY_FILE, || STANDARD.encode(random::bytes::<32>()))?;
        let secret = STANDARD.decode(secret.trim()).map_err(|error| format!("`{SECRET_KEY_FILE}`: {error}"))?;
        // API Manager derives the id from the certificate; without one the public key stands in its place.
        let identified = certificate.as_deref().unwrap_or(signing.public().as_ref());
        let thumbprint = STANDARD_NO_PAD.encode(random::sha256(identified));
        Ok(Keys {
            kid: format!("{thumbprint}_RS256"),
            thumbprint,
            signing,
            retired,
            secrets: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            random: SystemRandom::new(),
        })
    }

    /// Signs claims as a JWT.
    pub(crate) fn sign(&self, media_type: &str, claims: &Value) -> String {
        let header = json!({"x5t": self.thumbprint, "kid": self.kid, "typ": media_type, "alg": "RS256"});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut token = format!("{}.{}", encode(&header), encode(claims));
        let mut signature = vec![0; self.signing.public().modulus_len()];
        self.signing
            .sign(&RSA_PKCS1_SHA256, &self.random, token.as_bytes(), &mut signature)
            .expect("the signature has the length of the modulus");
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        token
    }

    /// The claims of a JWT with a signature of ours. Padding is tolerated: published token generators write it.
    pub(crate) fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        if header.get("alg").and_then(Value::as_str) != Some("RS256") {
            return None;
        }
        let signature = decode(signature)?;
        let verifies = |public: &[u8]| {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public).verify(signed.as_bytes(), &signature).is_ok()
        };
        let kid = header.get("kid").and_then(Value::as_str);
        let mut retired = self.retired.iter().filter(|key| kid == Some(&key.kid));
        if !verifies(self.signing.public().as_ref()) && !retired.any(|key| verifies(&key.public)) {
            return None;
        }
        serde_json::from_slice(&decode(claims)?).ok()
    }

    /// The public keys as JWKs; the first one signs.
    pub(crate) fn jwks(&self) -> Vec<Value> {
        let components: PublicKeyComponents<Vec<u8>> = self.signing.public().into();
        let retired = self.retired.iter().map(|key| jwk(&key.kid, &key.components));
        std::iter::once(jwk(&self.kid, &components)).chain(retired).collect()
    }

    /// The secret of a client. It is computed, so that nothing in the database is worth stealing, and still can be shown again.
    pub(crate) fn client_secret(&self, client: &str, number: u64) -> String {
        let tag = hmac::sign(&self.secrets, format!("client {client} {number}").as_bytes());
        URL_SAFE_NO_PAD.encode(&tag.as_ref()[..24])
    }

    /// Text that leaves the server and comes back, with a tag that only this server can make. A purpose keeps what was made
    /// for one use from another.
    pub(crate) fn seal(&self, purpose: &str, text: &str) -> String {
        let text = URL_SAFE_NO_PAD.encode(text);
        let tag = hmac::sign(&self.secrets, format!("{purpose} {text}").as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }

    /// The text of [`Keys::seal`].
    pub(crate) fn unseal(&self, purpose: &str, sealed: &str) -> Option<String> {
        let (text, tag) = sealed.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.secrets, format!("{purpose} {text}").as_bytes(), &tag).ok()?;
        String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// The hash of half of a token, for `at_hash` of an ID token (OpenID Connect Core §3.1.3.6).
    pub(crate) fn half_hash(token: &str) -> String {
        let hash = digest::digest(&digest::SHA256, token.as_bytes());
        URL_SAFE_NO_PAD.encode(&hash.as_ref()[..16])
    }
}

fn own_signing_key(folder: &Path) -> Result<Vec<u8>, String> {
    let make = || {
        let mut random = UnwrapErr(getrandom::SysRng);
        let key = rsa::RsaPrivateKey::new(&mut random, RSA_BITS).map_err(|error| error.to_string());
        key.and_then(|key| key.to_pkcs8_der().map_err(|error| error.to_string()))
    };
    let file = folder.join(SIGNING_KEY_FILE);
    let pem = match std::fs::read_to_string(&file) {
        Ok(pem) => pem,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let key = make().map_err(|error| format!("the signing key cannot be generated: {error}"))?;
            keep(folder, SIGNING_KEY_FILE, || pem("PRIVATE KEY", key.as_bytes()))?
        }
        Err(error) => return Err(format!("`{}`: {error}", file.display())),
    };
    decode_pem(&file, &pem)
}

/// Replaces the signing key of a folder. The one before is kept: tokens that it signed are accepted until its file is removed.
pub fn rotate_signing_key(folder: &Path) -> Result<(), String> {
    let file = folder.join(SIGNING_KEY_FILE);
    let failed = |error: std::io::Error| format!("`{}`: {error}", file.display());
    let name = format!("{RETIRED_PREFIX}{}.pem", crate::clock::now_ms());
    match std::fs::rename(&file, folder.join(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    own_signing_key(folder).map(|_| ())
}

/// The files of keys that do not sign any more.
fn retired_files(folder: &Path, is_imported: bool) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("`{}`: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if (name.starts_with(RETIRED_PREFIX) && name.ends_with(".pem")) || (is_imported && name == SIGNING_KEY_FILE) {
            files.push(path);
        }
    }
    files.sort_unstable_by(|left, right| right.cmp(left));
    Ok(files)
}

/// Whether a file of a state folder has a key.
pub(crate) fn is_key_file(name: &str) -> bool {
    name == SIGNING_KEY_FILE || name == SECRET_KEY_FILE || (name.starts_with(RETIRED_PREFIX) && name.ends_with(".pem"))
}

fn key_pair(pkcs8: &[u8]) -> Result<RsaKeyPair, String> {
    let pair = RsaKeyPair::from_pkcs8(pkcs8).or_else(|_| RsaKeyPair::from_der(pkcs8));
    pair.map_err(|error| format!("the signing key must be an RSA key of 2048 bits or more: {error}"))
}

fn jwk(kid: &str, public: &PublicKeyComponents<Vec<u8>>) -> Value {
    json!({
        "kty": "RSA", "e": URL_SAFE_NO_PAD.encode(&public.e), "n": URL_SAFE_NO_PAD.encode(&public.n), "use": "sig",
        "alg": "RS256", "kid": kid,
    })
}

fn read_pem(file: &Path) -> Result<Vec<u8>, String> {
    let pem = std::fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
    decode_pem(file, &pem)
}

fn decode_pem(file: &Path, pem: &str) -> Result<Vec<u8>, String> {
    let digits: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    STANDARD.decode(digits).map_err(|error| format!("`{}`: {error}", file.display()))
}

fn pem(label: &str, der: &[u8]) -> String {
    let digits = STANDARD.encode(der);
    let lines: Vec<&str> = digits.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// The text of a file; it is made when it is not there. Only its owner may read it.
fn keep(folder: &Path, name: &str, make: impl FnOnce() -> String) -> Result<String, String> {
    let file = folder.join(name);
    let failed = |error: std::io::Error| format!("`{}`: {error}", file.display());
    match std::fs::read_to_string(&file) {
        Ok(text) => return Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let text = make();
    // Written whole before it has its name: a crash must not leave half a key.
    let draft = folder.join(format!("{name}.unfinished"));
    let mut out =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(failed)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
    std::fs::rename(&draft, &file).map_err(failed)?;
    Ok(text)
}

/// A key for tests: generating one takes seconds without optimization.
#[cfg(test)]
pub(crate) fn test_key() -> SigningKey {
    let text = include_str!("../../tests/signing-key.pem");
    let digits: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    SigningKey { pkcs8: STANDARD.decode(digits).unwrap(), certificate: None }
}

/// Another key for tests.
#[cfg(test)]
pub(crate) fn other_test_key() -> SigningKey {
    let text = include_str!("../../tests/other-signing-key.pem");
    SigningKey { pkcs8: decode_pem(Path::new("other"), text).unwrap(), certificate: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    #[test]
    fn what_was_signed_is_verified() {
        let folder = scratch("keys");
        let keys = Keys::open(&folder.0, Some(&test_key())).unwrap();
        let token = keys.sign("at+jwt", &json!({"sub": "anna"}));
        assert_eq!(keys.verified(&token).unwrap()["sub"], "anna");
        let parts: Vec<&str> = token.split('.').collect();
        let other = URL_SAFE_NO_PAD.encode(r#"{"sub":"otto"}"#);
        assert!(keys.verified(&format!("{}.{other}.{}", parts[0], parts[2])).is_none());
        let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        assert!(keys.verified(&format!("{unsigned}.{}.", parts[1])).is_none());
        assert!(keys.verified("a.b").is_none());
    }

    #[test]
    fn a_replaced_key_still_verifies_and_is_published() {
        let folder = scratch("rotation");
        let text = include_str!("../../tests/signing-key.pem");
        std::fs::write(folder.0.join(format!("{RETIRED_PREFIX}1.pem")), text).unwrap();
        let before = Keys::open(&scratch("before").0, Some(&test_key())).unwrap();
        let token = before.sign("at+jwt", &json!({"sub": "anna"}));
        let after = Keys::open(&folder.0, Some(&other_test_key())).unwrap();
        assert_eq!(after.verified(&token).unwrap()["sub"], "anna");
        assert_eq!(after.jwks().len(), 2);
        assert_eq!(after.jwks()[1]["n"], before.jwks()[0]["n"]);
        assert!(before.verified(&after.sign("at+jwt", &json!({}))).is_none());
        let sealed = after.seal("login", "text");
        assert_eq!(after.unseal("login", &sealed).as_deref(), Some("text"));
        assert_eq!(after.unseal("consent", &sealed), None);
    }

    #[test]
    fn secrets_of_clients_outlive_a_restart() {
        let folder = scratch("secrets");
        let open = || Keys::open(&folder.0, Some(&test_key())).unwrap();
        let secret = open().client_secret("key", 0);
        assert_eq!(open().client_secret("key", 0), secret);
        assert_ne!(open().client_secret("key", 1), secret);
    }
}
