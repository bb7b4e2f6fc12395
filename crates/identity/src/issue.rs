//! Makes tokens.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::config::Encoding;
use super::{Signer, SignerError, unix_now};

/// The claims of a token to be made.
#[derive(Debug, Clone, Default)]
pub struct Claims(pub Map<String, Value>);

impl Claims {
    /// With `iat`, `exp` and `jti`.
    pub fn lasting(seconds: u64) -> Claims {
        let now = unix_now();
        let mut claims = Claims::default();
        claims.set("iat", now);
        claims.set("exp", now + seconds);
        claims.set("jti", random_id());
        claims
    }

    /// Sets a claim.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

/// Signs claims.
pub fn issue(signer: &Signer, claims: &Claims, encoding: Encoding) -> Result<String, SignerError> {
    let header = serde_json::json!({"typ": "JWT", "alg": signer.algorithm().name(), "kid": signer.kid()});
    let encode = |bytes: &[u8]| match encoding {
        Encoding::Base64 => STANDARD.encode(bytes),
        Encoding::Base64Url => URL_SAFE_NO_PAD.encode(bytes),
    };
    let payload = Value::Object(claims.0.clone()).to_string();
    let mut token = format!("{}.{}", encode(header.to_string().as_bytes()), encode(payload.as_bytes()));
    let signature = signer.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&encode(&signature));
    Ok(token)
}

/// An unguessable id.
fn random_id() -> String {
    use ring::rand::SecureRandom;
    let mut bytes = [0; 16];
    // Without random numbers the id is the time: still an id, and tokens cannot be signed then anyway.
    if ring::rand::SystemRandom::new().fill(&mut bytes).is_err() {
        bytes[..8].copy_from_slice(&unix_now().to_be_bytes());
    }
    URL_SAFE_NO_PAD.encode(bytes)
}
