//! The gateway's own key: it signs backend tokens, development tokens and API keys.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};

use super::{Algorithm, PublicKey, pem_blocks};

/// A private key.
pub struct Signer {
    key: Key,
    algorithm: Algorithm,
    public: PublicKey,
    kid: String,
    random: SystemRandom,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignerError(String);

impl fmt::Display for SignerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl std::error::Error for SignerError {}

impl Signer {
    /// A new key on P-256, and the key itself in PEM to be kept.
    pub fn generate() -> Result<(Signer, String), SignerError> {
        let failed = |_| SignerError("the system gives no random numbers".to_owned());
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let pkcs8 = pkcs8.map_err(failed)?;
        let digits = STANDARD.encode(pkcs8.as_ref());
        let lines: Vec<&str> = digits.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"));
        Ok((Signer::from_der(pkcs8.as_ref())?, pem))
    }

    /// From PEM: `PRIVATE KEY` (RSA, P-256, P-384, Ed25519) or `RSA PRIVATE KEY`.
    pub fn from_pem(pem: &[u8]) -> Result<Signer, SignerError> {
        let blocks = pem_blocks(pem);
        let found = blocks.iter().find(|(label, _)| label == "PRIVATE KEY" || label == "RSA PRIVATE KEY");
        match found {
            Some((_, der)) => Signer::from_der(der),
            None => Err(SignerError("there is no `PRIVATE KEY` in the PEM file".to_owned())),
        }
    }

    /// From PKCS 8, or PKCS 1 for RSA.
    pub fn from_der(der: &[u8]) -> Result<Signer, SignerError> {
        let random = SystemRandom::new();
        if let Ok(key) = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der)) {
            let public = PublicKey::from_pkcs1(key.public_key().as_ref());
            let public = public.ok_or_else(|| SignerError("the RSA key cannot be read".to_owned()))?;
            return Ok(Signer::new(Key::Rsa(Box::new(key)), Algorithm::Rs256, public, random));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, der, &random) {
            let public = PublicKey::P256(key.public_key().as_ref().into());
            return Ok(Signer::new(Key::Ecdsa(key), Algorithm::Es256, public, random));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, der, &random) {
            let public = PublicKey::P384(key.public_key().as_ref().into());
            return Ok(Signer::new(Key::Ecdsa(key), Algorithm::Es384, public, random));
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            let public = PublicKey::Ed25519(key.public_key().as_ref().into());
            return Ok(Signer::new(Key::Ed25519(key), Algorithm::EdDsa, public, random));
        }
        let kinds = "RSA from 2048 bits on, EC on P-256 or P-384, or Ed25519";
        Err(SignerError(format!("the private key is not one of {kinds}")))
    }

    fn new(key: Key, algorithm: Algorithm, public: PublicKey, random: SystemRandom) -> Signer {
        // RFC 7638: the hash of the members that make the key, in their order.
        let thumbprint = ring::digest::digest(&ring::digest::SHA256, public.to_jwk().to_string().as_bytes());
        Signer { key, algorithm, public, kid: URL_SAFE_NO_PAD.encode(thumbprint), random }
    }

    /// Signs.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        let failed = |_| SignerError("signing failed".to_owned());
        match &self.key {
            Key::Rsa(key) => {
                let mut out = vec![0; key.public().modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA256, &self.random, message, &mut out).map_err(failed)?;
                Ok(out)
            }
            Key::Ecdsa(key) => key.sign(&self.random, message).map(|made| made.as_ref().to_vec()).map_err(failed),
            Key::Ed25519(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }

    /// How it signs.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The other half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// What its tokens call it.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The set of keys to publish.
    pub fn jwks(&self) -> serde_json::Value {
        let mut jwk = self.public.to_jwk();
        if let Some(members) = jwk.as_object_mut() {
            members.insert("kid".to_owned(), self.kid.clone().into());
            members.insert("use".to_owned(), "sig".into());
            members.insert("alg".to_owned(), self.algorithm.name().into());
        }
        serde_json::json!({ "keys": [jwk] })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signer({} {})", self.algorithm.name(), self.kid)
    }
}
