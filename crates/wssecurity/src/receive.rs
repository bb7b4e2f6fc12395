//! A request: decrypted, verified, and held against the policy.

use std::time::SystemTime;

use penstock_xml::{Document, NodeId};
use ring::hmac;

use crate::algorithm::{Digest, SignatureMethod};
use crate::derived::Derivation;
use crate::encryption::{self, Decrypted, ReceivedKey};
use crate::names::{DS, ENCRYPTED_CONTENT, ENCRYPTED_KEY_SHA1, WSSE, WSU, XENC};
use crate::policy::{Binding, is_header};
use crate::reference;
use crate::refusal::{Refusal, RefusalCode};
use crate::service::{Request, SecurityContext, Service, Soap};
use crate::signature::Signature;
use crate::time;
use crate::tree::{Ids, binary, child, children, elements, text};
use crate::username_token;

/// Signatures of one message.
const SIGNATURES_MAX: usize = 2;

/// Lengths of a symmetric key that clients make: for each cipher, and for HMAC-SHA1.
const SECRET_BYTES: [usize; 5] = [32, 16, 24, 20, 64];

/// A request that the policy lets in.
pub struct Received {
    /// The envelope when parts of it were decrypted; otherwise the request is as it came.
    pub document: Option<Document>,
    /// What the response needs to know.
    pub context: SecurityContext,
}

impl Service {
    /// Checks a request against the policy and decrypts it.
    pub fn receive(&self, request: Request<'_>) -> Result<Received, Refusal> {
        let policy = &self.policy;
        if policy.needs_tls() && !request.over_tls {
            return Err(Refusal::invalid("the policy requires HTTPS"));
        }
        let document = request.document;
        let soap = Soap::find(document)?;
        let security = security_of(document, soap)?;
        // Before anything secret is touched: an old message costs no private operation.
        self.check_timestamp(document, security, request.now)?;
        if policy.binding == Binding::Transport {
            let mut context = SecurityContext::default();
            self.check_username(document, security, &request, &mut context)?;
            return Ok(Received { document: None, context });
        }
        self.check_encrypted(document, soap, security)?;
        let has_ciphertext = children(document, security, XENC, "EncryptedKey").next().is_some();
        let opened = self.open(&request, soap, security);
        // What follows from a decryption is refused in one way.
        opened.map_err(|refusal| if has_ciphertext { refusal.after_decryption() } else { refusal })
    }

    /// Decrypts and verifies, in the order of the policy.
    fn open(&self, request: &Request<'_>, soap: Soap, security: NodeId) -> Result<Received, Refusal> {
        let document = request.document;
        let ids = Ids::collect(document);
        let keys = self.received_keys(document, security)?;
        let mut context = SecurityContext::default();
        if self.policy.encrypts_first {
            self.verify(document, soap, security, &keys, request, &mut context)?;
        }
        let decrypted = self.decrypt(document, &ids, soap, security, &keys)?;
        let read = decrypted.as_ref().map_or(document, |decrypted| &decrypted.document);
        let inner = Soap::find(read)?;
        let inner_security = security_of(read, inner)?;
        if !self.policy.encrypts_first {
            self.verify(read, inner, inner_security, &keys, request, &mut context)?;
        }
        self.check_username(read, inner_security, request, &mut context)?;
        context.key = keys.into_iter().next().map(|(_, key)| key);
        Ok(Received { document: decrypted.map(|decrypted| decrypted.document), context })
    }

    fn received_keys(&self, document: &Document, security: NodeId) -> Result<Vec<(NodeId, ReceivedKey)>, Refusal> {
        let exact = [self.policy.suite.encryption.key_bytes()];
        let lengths = match self.policy.binding {
            Binding::Symmetric(_) => &SECRET_BYTES[..],
            _ => &exact[..],
        };
        encryption::keys(document, security, self.policy.suite, self.keys()?, lengths)
    }

    fn decrypt(
        &self,
        document: &Document,
        ids: &Ids<'_>,
        soap: Soap,
        security: NodeId,
        keys: &[(NodeId, ReceivedKey)],
    ) -> Result<Option<Decrypted>, Refusal> {
        let mut parts: Vec<(NodeId, Vec<u8>)> = Vec::new();
        for (node, key) in keys {
            let named = encryption::referenced(document, ids, *node)?;
            parts.extend(named.into_iter().map(|part| (part, key.key.clone())));
        }
        for list in children(document, security, XENC, "ReferenceList") {
            for part in encryption::referenced(document, ids, list)? {
                let key_info = child(document, part, DS, "KeyInfo");
                let key = key_info.ok_or_else(|| Refusal::invalid("encrypted data names no key"))?;
                parts.push((part, secret(document, ids, key, keys)?));
            }
        }
        for (index, (part, _)) in parts.iter().enumerate() {
            let is_again = parts[..index].iter().any(|(other, _)| other == part);
            let parent = document.parent(*part);
            if is_again || (parent != Some(soap.body) && parent != Some(security)) {
                return Err(Refusal::invalid("encrypted data stands where none is expected"));
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let parts: Vec<(NodeId, &[u8])> = parts.iter().map(|(part, key)| (*part, key.as_slice())).collect();
        let decrypted = encryption::decrypt(document, &parts, self.policy.suite)?;
        if self.policy.encrypts_body && !decrypted.parts.iter().any(|part| document.parent(*part) == Some(soap.body)) {
            return Err(Refusal::invalid("the body is not encrypted"));
        }
        Ok(Some(decrypted))
    }

    /// What must be encrypted is: nothing of it is readable before decryption.
    fn check_encrypted(&self, document: &Document, soap: Soap, security: NodeId) -> Result<(), Refusal> {
        let is_missing =
            |name: &'static str, namespace: &'static str| child(document, security, namespace, name).is_some();
        if self.policy.encrypts_body {
            let mut content = elements(document, soap.body);
            let part = content.next().filter(|_| content.next().is_none());
            let is_encrypted = part.is_some_and(|part| {
                (document.namespace(part), document.local_name(part)) == (XENC, "EncryptedData")
                    && document.attribute(part, "", "Type") == Some(ENCRYPTED_CONTENT)
            });
            let has_text = document
                .children(soap.body)
                .any(|node| !document.is_element(node) && !document.text(node).trim().is_empty());
            if !is_encrypted || has_text {
                return Err(Refusal::invalid("the body is not encrypted"));
            }
        }
        if self.policy.encrypts_signature && is_missing("Signature", DS) {
            return Err(Refusal::invalid("the signature is not encrypted"));
        }
        if self.policy.username.is_some_and(|username| username.encrypted) && is_missing("UsernameToken", WSSE) {
            return Err(Refusal::invalid("the UsernameToken is not encrypted"));
        }
        Ok(())
    }

    /// Verifies the signatures and that they cover what the policy wants signed: the very elements that are processed.
    fn verify(
        &self,
        document: &Document,
        soap: Soap,
        security: NodeId,
        keys: &[(NodeId, ReceivedKey)],
        request: &Request<'_>,
        context: &mut SecurityContext,
    ) -> Result<(), Refusal> {
        let policy = &self.policy;
        let ids = Ids::collect(document);
        let mut covered = Vec::new();
        for node in children(document, security, DS, "Signature") {
            if context.signatures.len() == SIGNATURES_MAX {
                return Err(Refusal::invalid("the message has too many signatures"));
            }
            let signature = Signature::read(document, &ids, node, policy.suite)?;
            match (&policy.binding, signature.method) {
                (Binding::Asymmetric(_), SignatureMethod::Rsa(digest)) => {
                    let signer = self.signer(document, &ids, &signature, digest, request.now)?;
                    // Two signers would leave open whose message it is.
                    if context.signer.replace(signer.clone()).is_some_and(|other| other != signer) {
                        return Err(Refusal::invalid("the message has two signers"));
                    }
                }
                (Binding::Symmetric(_), SignatureMethod::Hmac(digest)) => {
                    let key = secret(document, &ids, signature.key_info, keys)?;
                    verify_hash(digest, &key, &signature)?;
                }
                _ => return Err(Refusal::unsupported("the signature algorithm is not allowed")),
            }
            covered.extend(signature.covered);
            context.signatures.push((signature.method, signature.value));
        }
        let is_covered = |node: NodeId| covered.contains(&node);
        let blocks = || soap.header.into_iter().flat_map(|header| elements(document, header));
        if policy.signed.body && !is_covered(soap.body) {
            return Err(Refusal::invalid("the body is not signed"));
        }
        let unsigned =
            |block: NodeId| block != security && policy.signed.has_header(document, block) && !is_covered(block);
        if blocks().any(unsigned) {
            return Err(Refusal::invalid("a header is not signed"));
        }
        for wanted in &policy.required_headers {
            if !blocks().any(|block| is_header(document, block, wanted)) {
                return Err(Refusal::invalid("a required header is missing"));
            }
        }
        if covered.is_empty() {
            // A policy that encrypts and signs nothing has no signature.
            return Ok(());
        }
        let token = child(document, security, WSSE, "BinarySecurityToken");
        let must = [
            (policy.timestamp, child(document, security, WSU, "Timestamp")),
            (policy.protects_tokens, token),
            (policy.username.is_some_and(|username| username.signed), child(document, security, WSSE, "UsernameToken")),
        ];
        for (_, node) in must.into_iter().filter(|(wanted, _)| *wanted) {
            if node.is_some_and(|node| !is_covered(node)) {
                return Err(Refusal::invalid("a part of the Security header is not signed"));
            }
        }
        Ok(())
    }

    /// The trusted certificate whose key made a signature.
    fn signer(
        &self,
        document: &Document,
        ids: &Ids<'_>,
        signature: &Signature,
        digest: Digest,
        now: SystemTime,
    ) -> Result<crate::Certificate, Refusal> {
        let trusted = &self.keys()?.trusted;
        let certificate = reference::certificate_of(document, ids, signature.key_info, trusted)?;
        if !certificate.verifies(digest, &signature.signed_info, &signature.value) {
            return Err(Refusal::check());
        }
        if !certificate.is_trusted(trusted, now) {
            return Err(Refusal::authentication("the certificate of the signature is not trusted"));
        }
        Ok(certificate)
    }

    fn check_username(
        &self,
        document: &Document,
        security: NodeId,
        request: &Request<'_>,
        context: &mut SecurityContext,
    ) -> Result<(), Refusal> {
        let Some(assertion) = self.policy.username else { return Ok(()) };
        let (passwords, now, settings) = (request.passwords, request.now, &self.policy.settings);
        let (_, user) = username_token::check(document, security, assertion, settings, passwords, &self.nonces, now)?;
        context.user = Some(user);
        Ok(())
    }

    /// A present timestamp is checked, even if the policy requires none.
    fn check_timestamp(&self, document: &Document, security: NodeId, now: SystemTime) -> Result<(), Refusal> {
        let settings = &self.policy.settings;
        let expired = |reason| Refusal::new(RefusalCode::MessageExpired, reason);
        let mut all = children(document, security, WSU, "Timestamp");
        let timestamp = match (all.next(), all.next()) {
            (None, _) if !self.policy.timestamp => return Ok(()),
            (Some(timestamp), None) => timestamp,
            _ => return Err(Refusal::invalid("the Security header must have one Timestamp")),
        };
        let at = |name: &str| child(document, timestamp, WSU, name).map(|node| time::parse(&text(document, node)));
        let malformed = || Refusal::invalid("the Timestamp is malformed");
        let created = at("Created").flatten().ok_or_else(malformed)?;
        if created > now + settings.skew {
            return Err(expired("the Timestamp is in the future"));
        }
        if created + settings.ttl + settings.skew < now {
            return Err(expired("the message has expired"));
        }
        if let Some(expires) = at("Expires") {
            let expires = expires.ok_or_else(malformed)?;
            if expires < created || expires + settings.skew < now {
                return Err(expired("the message has expired"));
            }
        }
        Ok(())
    }
}

/// The Security header that is meant for this service: one without an actor or role.
fn security_of(document: &Document, soap: Soap) -> Result<NodeId, Refusal> {
    let header = soap.header.ok_or_else(no_header)?;
    let is_ours = |node: &NodeId| {
        let mut names = document.attributes(*node).map(|attribute| document.local_name(attribute));
        !names.any(|name| matches!(name, "actor" | "role"))
    };
    let mut found = children(document, header, WSSE, "Security").filter(is_ours);
    let security = found.next().ok_or_else(no_header)?;
    match found.next() {
        None => Ok(security),
        Some(_) => Err(Refusal::invalid("the request has two Security headers")),
    }
}

fn no_header() -> Refusal {
    Refusal::invalid("the request has no Security header")
}

/// The symmetric key that a `KeyInfo` names: one that the message brought, or one derived from it.
fn secret(
    document: &Document,
    ids: &Ids<'_>,
    key_info: NodeId,
    keys: &[(NodeId, ReceivedKey)],
) -> Result<Vec<u8>, Refusal> {
    let unavailable =
        || Refusal::new(RefusalCode::SecurityTokenUnavailable, "the referenced security token could not be retrieved");
    let holder = child(document, key_info, WSSE, "SecurityTokenReference").ok_or_else(unavailable)?;
    if let Some(found) = received(document, ids, holder, keys) {
        return Ok(found.key.clone());
    }
    let reference = child(document, holder, WSSE, "Reference").ok_or_else(unavailable)?;
    let token = document.attribute(reference, "", "URI").and_then(|uri| ids.get(uri)).ok_or_else(unavailable)?;
    let derivation = Derivation::read(document, token)?;
    let source = received(document, ids, derivation.source, keys).ok_or_else(unavailable)?;
    Ok(derivation.derive(&source.key))
}

/// The key of the message that a SecurityTokenReference names.
fn received<'k>(
    document: &Document,
    ids: &Ids<'_>,
    holder: NodeId,
    keys: &'k [(NodeId, ReceivedKey)],
) -> Option<&'k ReceivedKey> {
    if let Some(reference) = child(document, holder, WSSE, "Reference") {
        let node = ids.get(document.attribute(reference, "", "URI")?)?;
        return keys.iter().find(|(one, _)| *one == node).map(|(_, key)| key);
    }
    let identifier = child(document, holder, WSSE, "KeyIdentifier")?;
    if document.attribute(identifier, "", "ValueType") != Some(ENCRYPTED_KEY_SHA1) {
        return None;
    }
    let value = binary(document, identifier)?;
    keys.iter().find(|(_, key)| Digest::Sha1.hash(&key.cipher) == value).map(|(_, key)| key)
}

fn verify_hash(digest: Digest, key: &[u8], signature: &Signature) -> Result<(), Refusal> {
    let key = hmac::Key::new(hash_of(digest), key);
    hmac::verify(&key, &signature.signed_info, &signature.value).map_err(|_| Refusal::check())
}

pub(crate) fn hash_of(digest: Digest) -> hmac::Algorithm {
    match digest {
        Digest::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Digest::Sha256 => hmac::HMAC_SHA256,
        Digest::Sha512 => hmac::HMAC_SHA512,
    }
}
