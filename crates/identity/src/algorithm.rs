//! Signature algorithms of RFC 7518 and RFC 8037, and the keys they are checked with. There is no symmetric one, so a
//! public key can never be taken for a secret.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_engine::der::split;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

use super::certificate::{Certificate, key_parts, pem_blocks};

/// OBJECT IDENTIFIER 1.2.840.113549.1.1.1, rsaEncryption, as an algorithm identifier begins.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
/// OBJECT IDENTIFIER 1.2.840.10045.2.1, id-ecPublicKey.
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23];
/// OBJECT IDENTIFIER 1.3.101.112, id-Ed25519.
const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];

/// An algorithm a token may be signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS 1 v1.5, SHA-256.
    Rs256,
    /// The same with SHA-384.
    Rs384,
    /// The same with SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// The same with SHA-384.
    Ps384,
    /// The same with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// Ed25519.
    EdDsa,
}

const NAMES: &[(&str, Algorithm)] = &[
    ("RS256", Algorithm::Rs256),
    ("RS384", Algorithm::Rs384),
    ("RS512", Algorithm::Rs512),
    ("PS256", Algorithm::Ps256),
    ("PS384", Algorithm::Ps384),
    ("PS512", Algorithm::Ps512),
    ("ES256", Algorithm::Es256),
    ("ES384", Algorithm::Es384),
    ("ES512", Algorithm::Es512),
    ("EdDSA", Algorithm::EdDsa),
];

impl Algorithm {
    /// The algorithm a header names. Names are case-sensitive (RFC 7515 §4.1.1).
    pub fn named(name: &str) -> Option<Algorithm> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            _ => return None,
        })
    }
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// RSA of 2048 bits or more: modulus and exponent, without leading zeros.
    Rsa(Arc<[u8]>, Arc<[u8]>),
    /// A point on P-256, uncompressed.
    P256(Arc<[u8]>),
    /// A point on P-384, uncompressed.
    P384(Arc<[u8]>),
    /// A point on P-521, uncompressed.
    P521(Arc<[u8]>),
    /// Ed25519.
    Ed25519(Arc<[u8]>),
}

impl PublicKey {
    /// Whether a signature over a message was made with its other half. Keys only do what they are for.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let unparsed = |verification: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(verification, key).verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (PublicKey::Rsa(n, e), _) => algorithm.rsa().is_some_and(|parameters| {
                let (n, e) = (&**n, &**e);
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
            }),
            (PublicKey::P256(point), Algorithm::Es256) => unparsed(&signature::ECDSA_P256_SHA256_FIXED, point),
            (PublicKey::P384(point), Algorithm::Es384) => unparsed(&signature::ECDSA_P384_SHA384_FIXED, point),
            (PublicKey::P521(point), Algorithm::Es512) => verifies_p521(point, message, signature),
            (PublicKey::Ed25519(key), Algorithm::EdDsa) => unparsed(&signature::ED25519, key),
            _ => false,
        }
    }

    /// From a certificate or a public key in PEM, or a certificate in DER.
    pub fn parse(bytes: &[u8]) -> Result<PublicKey, String> {
        let public = pem_blocks(bytes).into_iter().find(|(label, _)| label == "PUBLIC KEY");
        let (algorithm, key) = match public {
            Some((_, der)) => {
                let info = split(&der).map(|(_, info, _)| info);
                info.and_then(key_parts).ok_or("the public key in the PEM file cannot be read")?
            }
            None => {
                let certificate = Certificate::parse(bytes)?;
                (certificate.key_algorithm, certificate.key)
            }
        };
        PublicKey::from_parts(&algorithm, &key)
    }

    /// From an algorithm identifier and the bits of a SubjectPublicKeyInfo.
    fn from_parts(algorithm: &[u8], key: &[u8]) -> Result<PublicKey, String> {
        if algorithm.starts_with(RSA) {
            return PublicKey::from_pkcs1(key).ok_or_else(|| "the RSA key cannot be read".to_owned());
        }
        match algorithm.strip_prefix(EC) {
            Some(curve) if curve.starts_with(P256) => return PublicKey::point(key, 32, PublicKey::P256),
            Some(curve) if curve.starts_with(P384) => return PublicKey::point(key, 48, PublicKey::P384),
            Some(curve) if curve.starts_with(P521) => return PublicKey::point(key, 66, PublicKey::P521),
            Some(_) => return Err("the key is on a curve that is not P-256, P-384 or P-521".to_owned()),
            None => {}
        }
        if algorithm.starts_with(ED25519) && key.len() == 32 {
            return Ok(PublicKey::Ed25519(key.into()));
        }
        Err("the key is neither RSA nor EC nor Ed25519".to_owned())
    }

    /// RSAPublicKey ::= SEQUENCE { modulus, publicExponent }, RFC 8017 §A.1.1.
    pub(super) fn from_pkcs1(der: &[u8]) -> Option<PublicKey> {
        let (_, numbers, _) = split(der)?;
        let (_, n, rest) = split(numbers)?;
        let (_, e, _) = split(rest)?;
        Some(PublicKey::rsa(n, e))
    }

    pub(super) fn rsa(n: &[u8], e: &[u8]) -> PublicKey {
        let number = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>().into();
        PublicKey::Rsa(number(n), number(e))
    }

    fn point(key: &[u8], coordinate: usize, make: fn(Arc<[u8]>) -> PublicKey) -> Result<PublicKey, String> {
        if key.len() != 1 + 2 * coordinate || key.first() != Some(&4) {
            return Err("the point of the EC key is not uncompressed".to_owned());
        }
        Ok(make(key.into()))
    }

    /// From a JWK (RFC 7517, RFC 7518 §6); `None` for kinds of keys that sign no token.
    pub fn from_jwk(jwk: &Value) -> Option<PublicKey> {
        let field = |name: &str| URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?.trim_end_matches('=')).ok();
        let curve = || jwk.get("crv").and_then(Value::as_str);
        match jwk.get("kty")?.as_str()? {
            "RSA" => Some(PublicKey::rsa(&field("n")?, &field("e")?)),
            "EC" => {
                let point = [vec![4], field("x")?, field("y")?].concat();
                match curve()? {
                    "P-256" => PublicKey::point(&point, 32, PublicKey::P256).ok(),
                    "P-384" => PublicKey::point(&point, 48, PublicKey::P384).ok(),
                    "P-521" => PublicKey::point(&point, 66, PublicKey::P521).ok(),
                    _ => None,
                }
            }
            "OKP" if curve()? == "Ed25519" => {
                let key = field("x")?;
                (key.len() == 32).then(|| PublicKey::Ed25519(key.into()))
            }
            _ => None,
        }
    }

    /// As a JWK without `kid` and `use`, members in the order of RFC 7638.
    pub fn to_jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let curve = |name: &str, point: &[u8], coordinate: usize| {
            let (x, y) = point.get(1..).unwrap_or_default().split_at_checked(coordinate).unwrap_or_default();
            serde_json::json!({"crv": name, "kty": "EC", "x": text(x), "y": text(y)})
        };
        match self {
            PublicKey::Rsa(n, e) => serde_json::json!({"e": text(e), "kty": "RSA", "n": text(n)}),
            PublicKey::P256(point) => curve("P-256", point, 32),
            PublicKey::P384(point) => curve("P-384", point, 48),
            PublicKey::P521(point) => curve("P-521", point, 66),
            PublicKey::Ed25519(key) => serde_json::json!({"crv": "Ed25519", "kty": "OKP", "x": text(key)}),
        }
    }
}

/// RFC 7518 §3.4: two numbers of 66 bytes.
fn verifies_p521(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    use p521::ecdsa::signature::Verifier;
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
    let signature = p521::ecdsa::Signature::from_slice(signature);
    key.is_ok_and(|key| signature.is_ok_and(|signature| key.verify(message, &signature).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key and a token that OpenSSL made.
    #[test]
    fn a_signature_on_p521_is_checked() {
        let key = PublicKey::parse(include_bytes!("../../testkit/tests/keys/p521.pub.pem")).expect("a key");
        assert_eq!(PublicKey::from_jwk(&key.to_jwk()).as_ref(), Some(&key));
        let token = include_str!("../../testkit/tests/keys/p521.jwt").trim();
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        let checks = |algorithm, signed: &str, signature: &[u8]| key.verifies(algorithm, signed.as_bytes(), signature);
        assert!(checks(Algorithm::Es512, signed, &signature));
        let mut flipped = signature.clone();
        flipped[131] ^= 1;
        let zero = [0; 132];
        for bad in [&flipped[..], &signature[..131], &zero, &[]] {
            assert!(!checks(Algorithm::Es512, signed, bad), "{} bytes", bad.len());
        }
        assert!(!checks(Algorithm::Es512, &signed[1..], &signature));
        // Keys only do what they are for.
        for other in [Algorithm::Es256, Algorithm::Es384, Algorithm::Rs512, Algorithm::EdDsa] {
            assert!(!checks(other, signed, &signature), "{}", other.name());
        }
        let PublicKey::P521(point) = &key else { panic!("a key on P-521") };
        let mut elsewhere = point.to_vec();
        elsewhere[70] ^= 1;
        assert!(!PublicKey::P521(elsewhere.into()).verifies(Algorithm::Es512, signed.as_bytes(), &signature));
    }
}
