//! Namespaces and identifiers of the specifications.

pub(crate) const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
pub(crate) const WSSE11: &str = "http://docs.oasis-open.org/wss/oasis-wss-wssecurity-secext-1.1.xsd";
pub(crate) const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
pub(crate) const DS: &str = "http://www.w3.org/2000/09/xmldsig#";
pub(crate) const XENC: &str = "http://www.w3.org/2001/04/xmlenc#";

pub(crate) const EXCLUSIVE_C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
pub(crate) const EXCLUSIVE_C14N_WITH_COMMENTS: &str = "http://www.w3.org/2001/10/xml-exc-c14n#WithComments";
pub(crate) const C14N: &str = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315";
pub(crate) const C14N_WITH_COMMENTS: &str = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments";
pub(crate) const STR_TRANSFORM: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#STR-Transform";

pub(crate) const BASE64_BINARY: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-soap-message-security-1.0#Base64Binary";
pub(crate) const X509_V3: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509v3";
pub(crate) const SUBJECT_KEY_IDENTIFIER: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-x509-token-profile-1.0#X509SubjectKeyIdentifier";
pub(crate) const THUMBPRINT: &str = "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#ThumbprintSHA1";
pub(crate) const PASSWORD_TEXT: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText";
pub(crate) const PASSWORD_DIGEST: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordDigest";

/// EncryptedData stands for the content of an element, or for the element itself.
pub(crate) const ENCRYPTED_CONTENT: &str = "http://www.w3.org/2001/04/xmlenc#Content";
pub(crate) const ENCRYPTED_ELEMENT: &str = "http://www.w3.org/2001/04/xmlenc#Element";
pub(crate) const ENCRYPTED_KEY_SHA1: &str =
    "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#EncryptedKeySHA1";
pub(crate) const ENCRYPTED_KEY: &str =
    "http://docs.oasis-open.org/wss/oasis-wss-soap-message-security-1.1#EncryptedKey";

/// WS-SecureConversation, February 2005 and 1.3: derived keys only.
pub(crate) const WSC: [&str; 2] =
    ["http://schemas.xmlsoap.org/ws/2005/02/sc", "http://docs.oasis-open.org/ws-sx/ws-secureconversation/200512"];
