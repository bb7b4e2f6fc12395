//! Private keys on elliptic curves as Java writes them: without the public key, which the TLS library requires. It is copied
//! from the certificate.

use penstock_engine::der::split;
use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const BIT_STRING: u8 = 0x03;
/// Context-specific, constructed: `[0]` and `[1]`.
const TAG_0: u8 = 0xa0;
const TAG_1: u8 = 0xa1;

/// OBJECT IDENTIFIER 1.2.840.10045.2.1, id-ecPublicKey.
const EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// The PKCS8 key with the public key of `certificate` in it; `None` when the key is of another kind or complete.
pub(super) fn with_public_key(pkcs8: &[u8], certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    // PrivateKeyInfo ::= SEQUENCE { version, algorithm, OCTET STRING { ECPrivateKey } }, RFC 5958.
    let (_, info, _) = split(pkcs8)?;
    let (_, _, after_version) = split(info)?;
    let (_, algorithm, after_algorithm) = split(after_version)?;
    if !algorithm.starts_with(EC_PUBLIC_KEY) {
        return None;
    }
    let (OCTET_STRING, key, _) = split(after_algorithm)? else { return None };
    // ECPrivateKey ::= SEQUENCE { version, OCTET STRING, [0] curve, [1] BIT STRING public key }, RFC 5915.
    let (_, key, _) = split(key)?;
    let (_, _, after_version) = split(key)?;
    let (OCTET_STRING, secret, mut rest) = split(after_version)? else { return None };
    while let Some((tag, _, next)) = split(rest) {
        if tag == TAG_1 {
            return None;
        }
        rest = next;
    }
    let public = wrap(TAG_1, &[&wrap(BIT_STRING, &[public_key(certificate)?])]);
    let key = wrap(SEQUENCE, &[&wrap(INTEGER, &[&[1]]), &wrap(OCTET_STRING, &[secret]), &public]);
    Some(wrap(SEQUENCE, &[&wrap(INTEGER, &[&[0]]), &wrap(SEQUENCE, &[algorithm]), &wrap(OCTET_STRING, &[&key])]))
}

/// The bits of the public key of a certificate, RFC 5280 §4.1.
fn public_key<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    let (_, certificate, _) = split(certificate)?;
    let (_, mut rest, _) = split(certificate)?;
    if rest.first() == Some(&TAG_0) {
        rest = split(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity, subject.
    for _ in 0..5 {
        rest = split(rest)?.2;
    }
    let (_, info, _) = split(rest)?;
    let (_, _, after_algorithm) = split(info)?;
    match split(after_algorithm)? {
        (BIT_STRING, bits, _) => Some(bits),
        _ => None,
    }
}

fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut der = vec![tag];
    // DER wants the shortest form of the length.
    let bytes = (content.len() as u32).to_be_bytes();
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == 0).count().min(3)..];
    if significant.len() > 1 || significant[0] > 0x7f {
        der.push(0x80 + significant.len() as u8);
    }
    der.extend_from_slice(significant);
    der.extend_from_slice(&content);
    der
}
