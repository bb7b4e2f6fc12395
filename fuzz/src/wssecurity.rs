//! WS-Security: a request with any Security header is accepted or rejected; any policy is read or
//! reported.

use std::time::{Duration, UNIX_EPOCH};

use penstock_wssecurity::{Keys, Policy, Request, Service};
use penstock_xml::{Document, ParseOptions};

/// Pieces of Security headers and policies.
pub const DICTIONARY: &[&str] = &[
    "<w:Security>",
    "<w:BinarySecurityToken u:Id=\"t\" ValueType=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3\">",
    "<u:Timestamp u:Id=\"s\"><u:Created>2026-11-22T13:00:00Z</u:Created></u:Timestamp>",
    "<w:UsernameToken><w:Username>anna</w:Username><w:Password>secret</w:Password></w:UsernameToken>",
    "<w:SecurityTokenReference><w:Reference URI=\"#t\"/></w:SecurityTokenReference>",
    "<d:Signature><d:SignedInfo><d:Reference URI=\"#b\"/></d:SignedInfo></d:Signature>",
    "<d:CanonicalizationMethod Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/>",
    "<d:SignatureMethod Algorithm=\"http://www.w3.org/2000/09/xmldsig#rsa-sha1\"/>",
    "<e:EncryptedKey><e:CipherData><e:CipherValue>AAAA</e:CipherValue></e:CipherData></e:EncryptedKey>",
    "<e:ReferenceList><e:DataReference URI=\"#d\"/></e:ReferenceList>",
    "<e:EncryptedData Id=\"d\" Type=\"http://www.w3.org/2001/04/xmlenc#Content\">",
    "<sp:AsymmetricBinding>",
    "<wsp:ExactlyOne>",
    "<wsp:Policy>",
];

const CERTIFICATE: &[u8] = include_bytes!("../../crates/wssecurity/tests/vectors/service.der");
const KEY: &[u8] = include_bytes!("../../crates/wssecurity/tests/vectors/service.key.der");

const TOKEN: &str = "<wsp:Policy><sp:X509Token/></wsp:Policy>";

fn policy() -> Option<Policy> {
    let text = format!(
        "<wsp:Policy xmlns:wsp='http://www.w3.org/ns/ws-policy' \
         xmlns:sp='http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702'><sp:AsymmetricBinding><wsp:Policy>\
         <sp:InitiatorToken>{TOKEN}</sp:InitiatorToken><sp:RecipientToken>{TOKEN}</sp:RecipientToken>\
         <sp:AlgorithmSuite><wsp:Policy><sp:Basic128/></wsp:Policy></sp:AlgorithmSuite></wsp:Policy>\
         </sp:AsymmetricBinding><sp:SignedParts><sp:Body/></sp:SignedParts></wsp:Policy>"
    );
    Policy::parse(&Document::parse(text, &ParseOptions::default()).ok()?).ok()
}

/// Reads the bytes as the Security header of a request, and as a policy.
pub fn header(data: &[u8]) {
    if let Ok(document) = Document::parse(data.to_vec(), &ParseOptions::default())
        && let Err(problems) = Policy::parse(&document)
    {
        assert!(!problems.is_empty());
    }
    let mut text =
        b"<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:e='http://www.w3.org/2001/04/xmlenc#' \
        xmlns:d='http://www.w3.org/2000/09/xmldsig#' \
        xmlns:w='http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd' \
        xmlns:u='http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd'><s:Header>"
            .to_vec();
    text.extend_from_slice(data);
    text.extend_from_slice(b"</s:Header><s:Body u:Id='b'><x/></s:Body></s:Envelope>");
    let Ok(document) = Document::parse(text, &ParseOptions::default()) else { return };
    let Some(policy) = policy() else { return };
    let Ok(keys) = Keys::from_der(CERTIFICATE, KEY, &[]) else { return };
    let service = Service::new(policy, Some(keys));
    let now = UNIX_EPOCH + Duration::from_secs(1_795_352_400);
    let request = Request { document: &document, now, over_tls: true, passwords: &|_| None };
    // The fuzzer has no private key of a trusted client, so nothing it writes is signed.
    assert!(service.receive(request).is_err());
}
