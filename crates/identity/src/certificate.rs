//! X.509 certificates and keys in PEM: the public key, the subject and the validity. TLS verifies chains; a certificate here
//! is trusted because it is configured.

use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::der::split;

const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// Context-specific, constructed: `[0]`.
const TAG_0: u8 = 0xa0;

/// A block of a PEM file larger than this is no certificate and no key.
const PEM_BLOCK_BYTES_MAX: usize = 64 * 1024;

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The whole in DER.
    pub der: Arc<[u8]>,
    /// The subject as RFC 2253 writes it: `CN=app,O=Example`.
    pub subject: Arc<str>,
    /// The times from and until which it is valid, in seconds since 1970.
    pub validity: (i64, i64),
    /// The algorithm identifier of its key, without the outer sequence.
    pub(super) key_algorithm: Vec<u8>,
    /// The bits of its key.
    pub(super) key: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate in PEM or DER.
    pub fn parse(bytes: &[u8]) -> Result<Certificate, String> {
        if bytes.first() == Some(&0x30) {
            return Certificate::from_der(bytes).ok_or_else(|| "not an X.509 certificate".to_owned());
        }
        let blocks = pem_blocks(bytes);
        let Some((_, der)) = blocks.iter().find(|(label, _)| label == "CERTIFICATE") else {
            return Err("there is no certificate in the PEM file".to_owned());
        };
        Certificate::from_der(der).ok_or_else(|| "the certificate in the PEM file is not one of X.509".to_owned())
    }

    /// RFC 5280 §4.1.
    fn from_der(der: &[u8]) -> Option<Certificate> {
        let (_, certificate, after) = split(der)?;
        if !after.is_empty() {
            return None;
        }
        let (_, mut rest, _) = split(certificate)?;
        if rest.first() == Some(&TAG_0) {
            rest = split(rest)?.2;
        }
        // Serial number, signature algorithm, issuer.
        for _ in 0..3 {
            rest = split(rest)?.2;
        }
        let (_, validity, rest) = split(rest)?;
        let (_, subject, rest) = split(rest)?;
        let (_, key_info, _) = split(rest)?;
        let (key_algorithm, key) = key_parts(key_info)?;
        let (from_tag, from, after_from) = split(validity)?;
        let (until_tag, until, _) = split(after_from)?;
        Some(Certificate {
            der: der.into(),
            subject: distinguished_name(subject).into(),
            validity: (time(from_tag, from)?, time(until_tag, until)?),
            key_algorithm,
            key,
        })
    }

    /// Whether it is valid at a time, in seconds since 1970.
    pub fn is_valid_at(&self, unix: u64) -> bool {
        let unix = i64::try_from(unix).unwrap_or(i64::MAX);
        self.validity.0 <= unix && unix <= self.validity.1
    }
}

/// Algorithm identifier and key bits of the content of a SubjectPublicKeyInfo.
pub(super) fn key_parts(info: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (_, algorithm, rest) = split(info)?;
    let (BIT_STRING, bits, _) = split(rest)? else { return None };
    let (0, key) = bits.split_first().map(|(unused, key)| (*unused, key))? else { return None };
    Some((algorithm.to_vec(), key.to_vec()))
}

/// The blocks of a PEM file: label and bytes. Other text is skipped.
pub fn pem_blocks(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let text = String::from_utf8_lossy(bytes);
    let mut blocks = Vec::new();
    let mut rest = &*text;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((label, after)) = after.split_once("-----") else { break };
        let end = format!("-----END {label}-----");
        let Some((body, after)) = after.split_once(&end) else { break };
        let digits: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        if digits.len() <= PEM_BLOCK_BYTES_MAX
            && let Ok(decoded) = STANDARD.decode(digits)
        {
            blocks.push((label.to_owned(), decoded));
        }
        rest = after;
    }
    blocks
}

/// The most specific part first, as RFC 2253 §2.1 orders them.
fn distinguished_name(mut sequence: &[u8]) -> String {
    let mut parts = Vec::new();
    while let Some((_, mut set, rest)) = split(sequence) {
        sequence = rest;
        let mut attributes = Vec::new();
        while let Some((_, attribute, more)) = split(set) {
            set = more;
            let Some((OBJECT_IDENTIFIER, name, value)) = split(attribute) else { continue };
            let Some((_, value, _)) = split(value) else { continue };
            attributes.push(format!("{}={}", attribute_name(name), escaped(&String::from_utf8_lossy(value))));
        }
        parts.push(attributes.join("+"));
    }
    parts.reverse();
    parts.join(",")
}

fn attribute_name(oid: &[u8]) -> String {
    match oid {
        [0x55, 4, 3] => "CN".to_owned(),
        [0x55, 4, 5] => "SERIALNUMBER".to_owned(),
        [0x55, 4, 6] => "C".to_owned(),
        [0x55, 4, 7] => "L".to_owned(),
        [0x55, 4, 8] => "ST".to_owned(),
        [0x55, 4, 9] => "STREET".to_owned(),
        [0x55, 4, 10] => "O".to_owned(),
        [0x55, 4, 11] => "OU".to_owned(),
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID".to_owned(),
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC".to_owned(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "EMAILADDRESS".to_owned(),
        other => dotted(other),
    }
}

fn dotted(oid: &[u8]) -> String {
    let mut out = String::new();
    let mut value = 0u64;
    for byte in oid {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        // Writing to a `String` cannot fail.
        let _ = match out.is_empty() {
            true => write!(out, "{}.{}", (value / 40).min(2), value - 40 * (value / 40).min(2)),
            false => write!(out, ".{value}"),
        };
        value = 0;
    }
    out
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, the only forms RFC 5280 §4.1.2.5 allows.
fn time(tag: u8, content: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME if text.len() == 12 => {
            let year: i64 = text.get(..2)?.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
        }
        GENERALIZED_TIME if text.len() == 14 => (text.get(..4)?.parse().ok()?, text.get(4..)?),
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2).and_then(|digits| digits.parse::<u32>().ok());
    let days = penstock_engine::clock::days_of(year, two(0)?, two(2)?);
    Some(days * 86_400 + i64::from(two(4)? * 3_600 + two(6)? * 60 + two(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_a_subject_and_a_validity() {
        let mut parameters = rcgen::CertificateParams::new(["app".to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "Rivers, Ltd");
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "app");
        parameters.not_before = rcgen::date_time_ymd(2020, 2, 29);
        parameters.not_after = rcgen::date_time_ymd(2051, 3, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = parameters.self_signed(&key).unwrap();
        let read = Certificate::parse(made.pem().as_bytes()).unwrap();
        assert_eq!(&*read.der, &made.der()[..]);
        assert_eq!(&*read.subject, "CN=app,O=Rivers\\, Ltd");
        assert_eq!(read.validity, (1_582_934_400, 2_561_241_600));
        assert!(
            read.is_valid_at(1_700_000_000) && !read.is_valid_at(1_582_934_399) && !read.is_valid_at(2_561_241_601)
        );
        assert_eq!(Certificate::parse(made.der()).unwrap(), read);
    }

    #[test]
    fn malformed_certificates_are_refused() {
        for bad in [
            &b""[..],
            b"hello",
            b"0\x80",
            b"0\x03\x02\x01\x01",
            b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----",
        ] {
            assert!(Certificate::parse(bad).is_err(), "{bad:?}");
        }
    }
}
