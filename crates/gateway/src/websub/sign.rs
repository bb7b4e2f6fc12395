//! Signatures of events: `sha1=0a1b…`, as WebSub and most publishers of webhooks write them.

use penstock_catalog::SigningAlgorithm;
use ring::hmac;

use crate::hex::hex;

fn method(algorithm: SigningAlgorithm) -> (&'static str, hmac::Algorithm) {
    match algorithm {
        SigningAlgorithm::Sha1 => ("sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        SigningAlgorithm::Sha256 => ("sha256", hmac::HMAC_SHA256),
        SigningAlgorithm::Sha384 => ("sha384", hmac::HMAC_SHA384),
        SigningAlgorithm::Sha512 => ("sha512", hmac::HMAC_SHA512),
    }
}

/// The signature of a body.
pub(super) fn signature(algorithm: SigningAlgorithm, secret: &str, body: &[u8]) -> String {
    let (name, algorithm) = method(algorithm);
    let tag = hmac::sign(&hmac::Key::new(algorithm, secret.as_bytes()), body);
    format!("{name}={}", hex(tag.as_ref()))
}

/// Whether a signature is that of a body.
pub(super) fn is_signed(algorithm: SigningAlgorithm, secret: &str, body: &[u8], sent: &str) -> bool {
    let (name, algorithm) = method(algorithm);
    let Some((sent_name, digits)) = sent.trim().split_once('=') else { return false };
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    let Some(tag) = pairs.collect::<Option<Vec<u8>>>() else { return false };
    // Compares in a time that says nothing about the tag.
    let key = hmac::Key::new(algorithm, secret.as_bytes());
    sent_name.eq_ignore_ascii_case(name) && hmac::verify(&key, body, &tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_others() {
        // RFC 2202 and RFC 4231, test case 2.
        let sha1 = "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79";
        assert_eq!(signature(SigningAlgorithm::Sha1, "Jefe", b"what do ya want for nothing?"), sha1);
        let sha256 = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature(SigningAlgorithm::Sha256, "Jefe", b"what do ya want for nothing?"), sha256);
        let body = b"what do ya want for nothing?";
        assert!(is_signed(SigningAlgorithm::Sha1, "Jefe", body, &sha1.to_uppercase()));
        for bad in ["", "sha1=", "sha1", "sha256=00", &sha1[..44], &format!("{sha1}00"), "sha1=zz", "sha1=é", sha256] {
            assert!(!is_signed(SigningAlgorithm::Sha1, "Jefe", body, bad), "{bad}");
        }
    }
}
