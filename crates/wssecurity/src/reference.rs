//! `SecurityTokenReference` and `KeyInfo`: which certificate is meant.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{Document, NodeId};

use crate::certificate::Certificate;
use crate::names::{BASE64_BINARY, DS, SUBJECT_KEY_IDENTIFIER, THUMBPRINT, WSSE, WSSE11, X509_V3};
use crate::refusal::{Refusal, RefusalCode};
use crate::tree::{Ids, binary, child, text};

/// How a message refers to a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenReference {
    IssuerSerial,
    KeyIdentifier,
    Thumbprint,
}

/// The certificate that a `KeyInfo` names.
pub(crate) fn certificate_of(
    document: &Document,
    ids: &Ids<'_>,
    key_info: NodeId,
    known: &[Certificate],
) -> Result<Certificate, Refusal> {
    let holder = child(document, key_info, WSSE, "SecurityTokenReference").unwrap_or(key_info);
    if let Some(reference) = child(document, holder, WSSE, "Reference") {
        let uri = document.attribute(reference, "", "URI").unwrap_or_default();
        let token = ids.get(uri).ok_or_else(unavailable)?;
        return binary_token(document, token);
    }
    if let Some(identifier) = child(document, holder, WSSE, "KeyIdentifier") {
        let value = binary(document, identifier).ok_or_else(malformed)?;
        return match document.attribute(identifier, "", "ValueType").unwrap_or_default() {
            THUMBPRINT => find(known, |one| one.thumbprint() == value),
            SUBJECT_KEY_IDENTIFIER => find(known, |one| one.key_identifier() == value),
            X509_V3 => Certificate::from_der(&value).ok_or_else(malformed),
            _ => Err(Refusal::unsupported("a key identifier of this type is not supported")),
        };
    }
    let data = child(document, holder, DS, "X509Data").ok_or_else(unavailable)?;
    if let Some(certificate) = child(document, data, DS, "X509Certificate") {
        let der = binary(document, certificate).ok_or_else(malformed)?;
        return Certificate::from_der(&der).ok_or_else(malformed);
    }
    let pair = child(document, data, DS, "X509IssuerSerial").ok_or_else(unavailable)?;
    let part = |name: &str| child(document, pair, DS, name).map(|node| text(document, node)).unwrap_or_default();
    let (issuer, serial) = (part("X509IssuerName"), part("X509SerialNumber"));
    find(known, |one| one.has_issuer_serial(&issuer, &serial))
}

/// A `BinarySecurityToken` as a certificate.
pub(crate) fn binary_token(document: &Document, token: NodeId) -> Result<Certificate, Refusal> {
    let name = document.name(token);
    if (name.namespace, name.local) != (WSSE, "BinarySecurityToken") {
        return Err(Refusal::unsupported("the referenced token is not a BinarySecurityToken"));
    }
    if document.attribute(token, "", "ValueType") != Some(X509_V3) {
        return Err(Refusal::unsupported("a BinarySecurityToken of this type is not supported"));
    }
    let der = binary(document, token).ok_or_else(malformed)?;
    Certificate::from_der(&der).ok_or_else(malformed)
}

fn find(known: &[Certificate], is_meant: impl Fn(&Certificate) -> bool) -> Result<Certificate, Refusal> {
    known.iter().find(|one| is_meant(one)).cloned().ok_or_else(unavailable)
}

fn unavailable() -> Refusal {
    Refusal::new(RefusalCode::SecurityTokenUnavailable, "the referenced security token could not be retrieved")
}

fn malformed() -> Refusal {
    Refusal::token("the security token is not a certificate with an RSA key")
}

/// `KeyInfo` that refers to a certificate.
pub(crate) fn key_info(certificate: &Certificate, reference: TokenReference) -> String {
    let mut out = format!("<ds:KeyInfo xmlns:ds=\"{DS}\"><wsse:SecurityTokenReference xmlns:wsse=\"{WSSE}\"");
    match reference {
        TokenReference::IssuerSerial => {
            let mut issuer = Vec::new();
            penstock_xml::escape_text(&mut issuer, &certificate.issuer());
            let _ = write!(
                out,
                "><ds:X509Data><ds:X509IssuerSerial><ds:X509IssuerName>{}</ds:X509IssuerName><ds:X509SerialNumber>{}\
                 </ds:X509SerialNumber></ds:X509IssuerSerial></ds:X509Data>",
                String::from_utf8_lossy(&issuer),
                certificate.serial()
            );
        }
        TokenReference::KeyIdentifier => {
            let _ = write!(
                out,
                "><wsse:KeyIdentifier EncodingType=\"{BASE64_BINARY}\" ValueType=\"{SUBJECT_KEY_IDENTIFIER}\">{}\
                 </wsse:KeyIdentifier>",
                STANDARD.encode(certificate.key_identifier())
            );
        }
        TokenReference::Thumbprint => {
            let _ = write!(
                out,
                " xmlns:wsse11=\"{WSSE11}\"><wsse:KeyIdentifier EncodingType=\"{BASE64_BINARY}\" \
                 ValueType=\"{THUMBPRINT}\">{}</wsse:KeyIdentifier>",
                STANDARD.encode(certificate.thumbprint())
            );
        }
    }
    out.push_str("</wsse:SecurityTokenReference></ds:KeyInfo>");
    out
}

/// `KeyInfo` that refers to an element of the message.
pub(crate) fn local_key_info(id: &str, value_type: &str) -> String {
    format!(
        "<ds:KeyInfo xmlns:ds=\"{DS}\"><wsse:SecurityTokenReference xmlns:wsse=\"{WSSE}\"><wsse:Reference URI=\"#{id}\" \
         ValueType=\"{value_type}\"/></wsse:SecurityTokenReference></ds:KeyInfo>"
    )
}
