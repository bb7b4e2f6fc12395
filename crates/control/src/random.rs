//! Ids and secrets from the random numbers of the system.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("a system without random numbers cannot serve TLS either");
    bytes
}

/// An id of version 4 (RFC 9562).
pub(crate) fn uuid() -> String {
    let mut id = bytes::<16>();
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let hex = hex(&id);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A secret with 192 bits.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<24>())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 as hexadecimal digits.
pub(crate) fn sha256(text: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, text).as_ref())
}

/// Whether two texts are the same; the time it takes does not depend on where they differ.
pub(crate) fn is_same(left: &[u8], right: &[u8]) -> bool {
    let hash = |text| ring::digest::digest(&ring::digest::SHA256, text);
    let (left, right) = (hash(left), hash(right));
    left.as_ref().iter().zip(right.as_ref()).fold(0, |different, (one, other)| different | (one ^ other)) == 0
}
