//! The compact form of a signed token (RFC 7515 §7.1), taken apart. Everything in it comes from a stranger until the
//! signature was checked.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::Algorithm;

/// Tokens larger than this are refused unread: four times what the fullest real ones take.
pub const TOKEN_BYTES_MAX: usize = 32 * 1024;

/// RFC 7515 §2 leaves padding out; tokens of API Manager have it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A header names an algorithm and a key; more than this is not one.
const HEADER_BYTES_MAX: usize = 4 * 1024;

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// More than [`TOKEN_BYTES_MAX`].
    TooLong,
    /// Not three parts.
    Parts,
    /// The first part is not base64url of a JSON object.
    Header,
    /// The header has no `alg`, or one that is not supported; `none` and the symmetric ones are never.
    Algorithm,
    /// The header requires extensions (`crit`).
    Critical,
    /// The second part is not base64url of a JSON object.
    Payload,
    /// The third part is not base64url, or empty.
    Signature,
}

impl Malformed {
    /// One line for a person; nothing of the token is in it.
    pub fn reason(self) -> &'static str {
        match self {
            Malformed::TooLong => "the token is too large",
            Malformed::Parts => "the token does not have three parts",
            Malformed::Header => "the header of the token cannot be decoded",
            Malformed::Algorithm => "the token names no algorithm that is supported",
            Malformed::Critical => "the token requires an unknown extension",
            Malformed::Payload => "the claims of the token cannot be decoded",
            Malformed::Signature => "the signature of the token cannot be decoded",
        }
    }
}

/// A token, taken apart, its signature not checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Jws<'t> {
    /// How it says it is signed.
    pub algorithm: Algorithm,
    /// Which key, when it says.
    pub kid: Option<String>,
    /// What it claims.
    pub claims: Map<String, Value>,
    /// What the signature is over.
    pub signed: &'t str,
    /// The signature.
    pub signature: Vec<u8>,
}

impl<'t> Jws<'t> {
    /// Takes a text apart.
    pub fn parse(token: &'t str) -> Result<Jws<'t>, Malformed> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Malformed::Parts)?;
        let (header, payload) = signed.split_once('.').ok_or(Malformed::Parts)?;
        if payload.contains('.') {
            return Err(Malformed::Parts);
        }
        if header.len() > HEADER_BYTES_MAX {
            return Err(Malformed::Header);
        }
        let header = object(header).ok_or(Malformed::Header)?;
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::named);
        let algorithm = algorithm.ok_or(Malformed::Algorithm)?;
        // RFC 7515 §4.1.11: what is critical and not understood makes the token invalid; nothing is understood here.
        if header.contains_key("crit") {
            return Err(Malformed::Critical);
        }
        let kid = header.get("kid").and_then(Value::as_str).map(str::to_owned);
        let claims = object(payload).ok_or(Malformed::Payload)?;
        let signature = BASE64.decode(signature).map_err(|_| Malformed::Signature)?;
        if signature.is_empty() {
            return Err(Malformed::Signature);
        }
        Ok(Jws { algorithm, kid, claims, signed, signature })
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    let bytes = BASE64.decode(part).ok()?;
    match serde_json::from_slice(&bytes).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// A time in a claim, in whole seconds since 1970.
pub fn numeric_date(claims: &Map<String, Value>, name: &str) -> Option<u64> {
    let number = claims.get(name)?;
    let seconds = number.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    Some(seconds as u64)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    fn token(header: &str, payload: &str, signature: &str) -> String {
        let [header, payload] = [header, payload].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{header}.{payload}.{signature}")
    }

    #[track_caller]
    fn refused(token: &str, why: Malformed) {
        assert_eq!(Jws::parse(token), Err(why), "{token:.80}");
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_reason() {
        refused("", Malformed::Parts);
        refused("a.b", Malformed::Parts);
        refused("a.b.c.d", Malformed::Parts);
        refused("aaa.bbb.ccc", Malformed::Header);
        refused(&token("[]", "{}", "AA"), Malformed::Header);
        refused(&token("{}", "{}", "AA"), Malformed::Algorithm);
        for algorithm in ["none", "None", "HS256", "HS512", "rs256", "RS256 ", "ES256K", ""] {
            refused(&token(&format!("{{\"alg\":\"{algorithm}\"}}"), "{}", "AA"), Malformed::Algorithm);
        }
        refused(&token("{\"alg\":[\"RS256\"]}", "{}", "AA"), Malformed::Algorithm);
        refused(&token("{\"alg\":\"RS256\",\"crit\":[\"b64\"]}", "{}", "AA"), Malformed::Critical);
        refused(&token("{\"alg\":\"RS256\"}", "7", "AA"), Malformed::Payload);
        refused(&token("{\"alg\":\"RS256\"}", "{}", ""), Malformed::Signature);
        refused(&token("{\"alg\":\"RS256\"}", "{}", "=="), Malformed::Signature);
        refused(&token("{\"alg\":\"RS256\"}", "{}", "A+/A"), Malformed::Signature);
        refused(&format!("{}.e30.AA", "a".repeat(HEADER_BYTES_MAX + 1)), Malformed::Header);
        refused(&"a".repeat(TOKEN_BYTES_MAX + 1), Malformed::TooLong);
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        refused(&token("{\"alg\":\"RS256\"}", &format!("{{\"a\":{deep}}}"), "AA"), Malformed::Payload);
    }

    #[test]
    fn a_token_is_taken_apart() {
        let text = token("{\"alg\":\"ES256\",\"kid\":\"k\"}", "{\"sub\":\"anna\"}", "AAE");
        let jws = Jws::parse(&text).unwrap();
        assert_eq!((jws.algorithm, jws.kid.as_deref(), jws.signature), (Algorithm::Es256, Some("k"), vec![0, 1]));
        assert_eq!(jws.claims["sub"], "anna");
        assert_eq!(jws.signed, text.rsplit_once('.').unwrap().0);
        let padded = [&b"{\"alg\":\"ES256\"}"[..], b"{\"a\":1}", b"x"].map(|part| URL_SAFE.encode(part)).join(".");
        assert!(padded.ends_with("=="));
        assert_eq!(Jws::parse(&padded).unwrap().signature, b"x");
    }
}
