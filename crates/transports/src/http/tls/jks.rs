//! Java keystores (`JKS`): the format of Carbon's `wso2carbon.jks` and `client-truststore.jks`.
//!
//! The format and the protection of keys are what `sun.security.provider.JavaKeyStore` and `KeyProtector` write:
//! big-endian fields, a SHA-1 over everything with the password at the end, keys under a SHA-1 key stream. Read only.

use penstock_engine::der::split;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::CertificateDer;

use super::TlsError;

const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];

/// What the password is followed by in the digest over the keystore.
const SALT_TEXT: &[u8] = b"Mighty Aphrodite";

const DIGEST_BYTES: usize = 20;

/// OBJECT IDENTIFIER 1.3.6.1.4.1.42.2.17.1.1, in DER.
const KEY_PROTECTOR: &[u8] = &[0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];

/// What a keystore holds.
pub(super) struct Jks {
    pub(super) keys: Vec<KeyEntry>,
    /// Trusted certificates.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// A protected key with its certificates.
pub(super) struct KeyEntry {
    pub(super) alias: String,
    pub(super) protected_key: Vec<u8>,
    pub(super) chain: Vec<CertificateDer<'static>>,
}

pub(super) fn is_jks(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl Jks {
    pub(super) fn parse(bytes: &[u8], password: &str) -> Result<Jks, TlsError> {
        let length = bytes.len().checked_sub(DIGEST_BYTES).ok_or_else(truncated)?;
        let (content, digest) = bytes.split_at(length);
        let mut sum = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        sum.update(&utf16(password));
        sum.update(SALT_TEXT);
        sum.update(content);
        if sum.finish().as_ref() != digest {
            return Err(TlsError::Password);
        }
        let mut reader = JksReader(content);
        reader.take(MAGIC.len())?;
        let version = reader.number()?;
        let mut store = Jks { keys: Vec::new(), certificates: Vec::new() };
        for _ in 0..reader.number()? {
            let kind = reader.number()?;
            let alias = reader.text()?;
            // When it was made, in milliseconds.
            reader.take(8)?;
            match kind {
                1 => {
                    let protected_key = reader.block()?.to_vec();
                    let chain = (0..reader.number()?).map(|_| reader.certificate(version)).collect::<Result<_, _>>()?;
                    store.keys.push(KeyEntry { alias, protected_key, chain });
                }
                2 => store.certificates.push(reader.certificate(version)?),
                other => {
                    return Err(TlsError::Format(format!("the JKS keystore has an entry of the unknown kind {other}")));
                }
            }
        }
        store.keys.sort_by(|one, two| one.alias.cmp(&two.alias));
        Ok(store)
    }
}

/// Undoes `KeyProtector`: 20 bytes of salt, the key under a stream of SHA-1 digests, a digest of password and key.
pub(super) fn decrypt_key(protected: &[u8], password: &str) -> Result<Vec<u8>, TlsError> {
    let octets = encrypted_octets(protected)?;
    let count = octets.len().checked_sub(2 * DIGEST_BYTES).ok_or_else(truncated)?;
    let (salt, rest) = octets.split_at(DIGEST_BYTES);
    let (cipher, check) = rest.split_at(count);
    let password = utf16(password);
    let mut stream = salt.to_vec();
    let mut key = Vec::with_capacity(count);
    for block in cipher.chunks(DIGEST_BYTES) {
        stream = sha1(&password, &stream);
        key.extend(block.iter().zip(&stream).map(|(byte, mask)| byte ^ mask));
    }
    if sha1(&password, &key) == check { Ok(key) } else { Err(TlsError::Password) }
}

fn sha1(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut sum = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    sum.update(one);
    sum.update(two);
    sum.finish().as_ref().to_vec()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// EncryptedPrivateKeyInfo ::= SEQUENCE { SEQUENCE { OID, NULL }, OCTET STRING }
fn encrypted_octets(der: &[u8]) -> Result<&[u8], TlsError> {
    let (_, info, _) = split(der).ok_or_else(truncated)?;
    let (_, algorithm, rest) = split(info).ok_or_else(truncated)?;
    if !algorithm.starts_with(KEY_PROTECTOR) {
        return Err(TlsError::Format("the private key of the JKS keystore is protected in an unknown way".into()));
    }
    split(rest).map(|(_, octets, _)| octets).ok_or_else(truncated)
}

fn truncated() -> TlsError {
    TlsError::Format("the JKS keystore is cut off".into())
}

struct JksReader<'a>(&'a [u8]);

impl<'a> JksReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], TlsError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, TlsError> {
        Ok(self.take(4)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn text(&mut self) -> Result<String, TlsError> {
        let length = self.take(2)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn block(&mut self) -> Result<&'a [u8], TlsError> {
        let length = self.number()?;
        self.take(length as usize)
    }

    fn certificate(&mut self, version: u32) -> Result<CertificateDer<'static>, TlsError> {
        if version > 1 {
            // Its kind, always X.509.
            self.text()?;
        }
        Ok(self.block()?.to_vec().into())
    }
}
