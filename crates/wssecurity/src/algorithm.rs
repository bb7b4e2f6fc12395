//! The algorithms of a suite, WS-SecurityPolicy 1.2 §6.1, and their identifiers in messages.

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digest {
    Sha1,
    Sha256,
    Sha512,
}

impl Digest {
    pub(crate) fn from_uri(uri: &str) -> Option<Digest> {
        [Digest::Sha1, Digest::Sha256, Digest::Sha512].into_iter().find(|digest| digest.uri() == uri)
    }

    pub(crate) fn uri(self) -> &'static str {
        match self {
            Digest::Sha1 => "http://www.w3.org/2000/09/xmldsig#sha1",
            Digest::Sha256 => "http://www.w3.org/2001/04/xmlenc#sha256",
            Digest::Sha512 => "http://www.w3.org/2001/04/xmlenc#sha512",
        }
    }

    pub(crate) fn ring(self) -> &'static ring::digest::Algorithm {
        match self {
            Digest::Sha1 => &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
            Digest::Sha256 => &ring::digest::SHA256,
            Digest::Sha512 => &ring::digest::SHA512,
        }
    }

    pub(crate) fn hash(self, bytes: &[u8]) -> Vec<u8> {
        ring::digest::digest(self.ring(), bytes).as_ref().to_vec()
    }
}

/// A signature: RSA with PKCS #1 v1.5 padding, or a keyed hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureMethod {
    Rsa(Digest),
    Hmac(Digest),
}

impl SignatureMethod {
    const ALL: [SignatureMethod; 5] = [
        SignatureMethod::Rsa(Digest::Sha1),
        SignatureMethod::Rsa(Digest::Sha256),
        SignatureMethod::Rsa(Digest::Sha512),
        SignatureMethod::Hmac(Digest::Sha1),
        SignatureMethod::Hmac(Digest::Sha256),
    ];

    pub(crate) fn from_uri(uri: &str) -> Option<SignatureMethod> {
        SignatureMethod::ALL.into_iter().find(|method| method.uri() == uri)
    }

    pub(crate) fn uri(self) -> &'static str {
        match self {
            SignatureMethod::Rsa(Digest::Sha1) => "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
            SignatureMethod::Rsa(Digest::Sha256) => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            SignatureMethod::Rsa(Digest::Sha512) => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
            SignatureMethod::Hmac(Digest::Sha1) => "http://www.w3.org/2000/09/xmldsig#hmac-sha1",
            SignatureMethod::Hmac(Digest::Sha256) => "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256",
            SignatureMethod::Hmac(Digest::Sha512) => "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512",
        }
    }
}

/// How data is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataEncryption {
    TripleDes,
    Aes128Cbc,
    Aes192Cbc,
    Aes256Cbc,
    Aes128Gcm,
    Aes192Gcm,
    Aes256Gcm,
}

impl DataEncryption {
    const ALL: [DataEncryption; 7] = [
        DataEncryption::TripleDes,
        DataEncryption::Aes128Cbc,
        DataEncryption::Aes192Cbc,
        DataEncryption::Aes256Cbc,
        DataEncryption::Aes128Gcm,
        DataEncryption::Aes192Gcm,
        DataEncryption::Aes256Gcm,
    ];

    pub(crate) fn from_uri(uri: &str) -> Option<DataEncryption> {
        DataEncryption::ALL.into_iter().find(|method| method.uri() == uri)
    }

    pub(crate) fn uri(self) -> &'static str {
        match self {
            DataEncryption::TripleDes => "http://www.w3.org/2001/04/xmlenc#tripledes-cbc",
            DataEncryption::Aes128Cbc => "http://www.w3.org/2001/04/xmlenc#aes128-cbc",
            DataEncryption::Aes192Cbc => "http://www.w3.org/2001/04/xmlenc#aes192-cbc",
            DataEncryption::Aes256Cbc => "http://www.w3.org/2001/04/xmlenc#aes256-cbc",
            DataEncryption::Aes128Gcm => "http://www.w3.org/2009/xmlenc11#aes128-gcm",
            DataEncryption::Aes192Gcm => "http://www.w3.org/2009/xmlenc11#aes192-gcm",
            DataEncryption::Aes256Gcm => "http://www.w3.org/2009/xmlenc11#aes256-gcm",
        }
    }

    pub(crate) fn key_bytes(self) -> usize {
        match self {
            DataEncryption::Aes128Cbc | DataEncryption::Aes128Gcm => 16,
            DataEncryption::TripleDes | DataEncryption::Aes192Cbc | DataEncryption::Aes192Gcm => 24,
            DataEncryption::Aes256Cbc | DataEncryption::Aes256Gcm => 32,
        }
    }
}

/// How the key of encrypted data is encrypted for its recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyTransport {
    /// OAEP with SHA-1 and MGF1 with SHA-1.
    RsaOaep,
    Rsa15,
}

impl KeyTransport {
    pub(crate) fn from_uri(uri: &str) -> Option<KeyTransport> {
        [KeyTransport::RsaOaep, KeyTransport::Rsa15].into_iter().find(|transport| transport.uri() == uri)
    }

    pub(crate) fn uri(self) -> &'static str {
        match self {
            KeyTransport::RsaOaep => "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p",
            KeyTransport::Rsa15 => "http://www.w3.org/2001/04/xmlenc#rsa-1_5",
        }
    }
}

/// An algorithm suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suite {
    pub(crate) digest: Digest,
    pub(crate) encryption: DataEncryption,
    pub(crate) transport: KeyTransport,
}

impl Suite {
    /// What a policy without a suite gets, where no algorithm of it is used.
    pub(crate) const DEFAULT: Suite =
        Suite { digest: Digest::Sha1, encryption: DataEncryption::Aes256Cbc, transport: KeyTransport::RsaOaep };

    /// The suite of an assertion such as `Basic256Sha256Rsa15`.
    pub fn from_name(name: &str) -> Option<Suite> {
        let (rest, transport) = match name.strip_suffix("Rsa15") {
            Some(rest) => (rest, KeyTransport::Rsa15),
            None => (name, KeyTransport::RsaOaep),
        };
        let (rest, digest) = match rest.strip_suffix("Sha256") {
            Some(rest) => (rest, Digest::Sha256),
            None => (rest, Digest::Sha1),
        };
        let encryption = match rest {
            "Basic256" => DataEncryption::Aes256Cbc,
            "Basic192" => DataEncryption::Aes192Cbc,
            "Basic128" => DataEncryption::Aes128Cbc,
            "TripleDes" => DataEncryption::TripleDes,
            _ => return None,
        };
        Some(Suite { digest, encryption, transport })
    }

    /// A suite of CXF with authenticated encryption, such as `Basic256GCMSha256`.
    pub(crate) fn from_gcm_name(name: &str) -> Option<Suite> {
        let plain = name.replacen("GCM", "", 1);
        let suite = Suite::from_name(&plain).filter(|_| plain != name)?;
        let encryption = match suite.encryption {
            DataEncryption::Aes128Cbc => DataEncryption::Aes128Gcm,
            DataEncryption::Aes192Cbc => DataEncryption::Aes192Gcm,
            DataEncryption::Aes256Cbc => DataEncryption::Aes256Gcm,
            _ => return None,
        };
        Some(Suite { encryption, ..suite })
    }

    /// Whether a message may be signed by a method: RSA-SHA1 is what every suite names, and the longer hashes, which newer
    /// clients use with them, are stronger.
    pub(crate) fn allows_signature(self, method: SignatureMethod) -> bool {
        match method {
            SignatureMethod::Rsa(_) | SignatureMethod::Hmac(Digest::Sha1 | Digest::Sha256) => true,
            SignatureMethod::Hmac(Digest::Sha512) => false,
        }
    }

    /// Whether a digest is that of the suite or stronger.
    pub(crate) fn allows_digest(self, digest: Digest) -> bool {
        digest == self.digest || digest != Digest::Sha1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_by_name() {
        for (name, expected) in [
            ("Basic256", Some((Digest::Sha1, DataEncryption::Aes256Cbc, KeyTransport::RsaOaep))),
            ("Basic128Rsa15", Some((Digest::Sha1, DataEncryption::Aes128Cbc, KeyTransport::Rsa15))),
            ("Basic192Sha256", Some((Digest::Sha256, DataEncryption::Aes192Cbc, KeyTransport::RsaOaep))),
            ("TripleDesSha256Rsa15", Some((Digest::Sha256, DataEncryption::TripleDes, KeyTransport::Rsa15))),
            ("Basic512", None),
            ("", None),
        ] {
            let found = Suite::from_name(name).map(|suite| (suite.digest, suite.encryption, suite.transport));
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(
            Suite::from_gcm_name("Basic256GCMSha256").map(|suite| suite.encryption),
            Some(DataEncryption::Aes256Gcm)
        );
        assert_eq!(Suite::from_gcm_name("Basic256"), None);
    }
}
