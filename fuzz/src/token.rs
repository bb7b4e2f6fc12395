//! Tokens, certificates and published keys: any input is rejected or parsed, and never trusted for
//! an algorithm that is none.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_gateway::security::{Certificate, Jws, PublicKey, TOKEN_BYTES_MAX, pem_blocks};

/// Pieces of tokens and keys.
pub const DICTIONARY: &[&str] = &[
    "eyJhbGciOiJSUzI1NiJ9",
    ".",
    "..",
    "none",
    "HS256",
    "RS256",
    "ES384",
    "EdDSA",
    "\"alg\"",
    "\"kid\"",
    "\"crit\"",
    "b64",
    "\"exp\"",
    "1e999",
    "-1",
    "null",
    "[[[[",
    "{\"a\":",
    "\\u0000",
    "=",
    "+",
    "/",
    "-----BEGIN CERTIFICATE-----",
    "-----END CERTIFICATE-----",
    "MII",
    "\"kty\"",
    "RSA",
    "OKP",
    "P-256",
    "\n",
];

/// The text as it is; and its lines as header, claims and signature of a token.
pub fn token(data: &[u8]) {
    let _ = (Certificate::parse(data).is_ok(), pem_blocks(data).len());
    let _ = PublicKey::parse(data).map(|key| PublicKey::from_jwk(&key.to_jwk()) == Some(key));
    let Ok(text) = std::str::from_utf8(data) else { return };
    look(text);
    let mut lines = text.lines().map(|line| URL_SAFE_NO_PAD.encode(line));
    let mut line = || lines.next().unwrap_or_default();
    look(&format!("{}.{}.{}", line(), line(), line()));
    if let Ok(jwk) = serde_json::from_str(text)
        && let Some(key) = PublicKey::from_jwk(&jwk)
    {
        assert_eq!(PublicKey::from_jwk(&key.to_jwk()).as_ref(), Some(&key));
    }
}

fn look(text: &str) {
    let Ok(jws) = Jws::parse(text) else { return };
    assert!(text.len() <= TOKEN_BYTES_MAX && !jws.signature.is_empty());
    let (signed, signature) = text.rsplit_once('.').expect("it has three parts");
    let bare = |part: &str| part.trim_end_matches('=').to_owned();
    assert_eq!((jws.signed, URL_SAFE_NO_PAD.encode(&jws.signature).len()), (signed, bare(signature).len()));
    let header = URL_SAFE_NO_PAD.decode(bare(signed.split('.').next().unwrap_or_default())).expect("it was decoded");
    let header: serde_json::Value = serde_json::from_slice(&header).expect("it was read");
    assert_eq!(header["alg"], jws.algorithm.name());
    assert!(header.get("crit").is_none());
}
