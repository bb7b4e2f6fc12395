//! A response: signed and encrypted as the policy wants it.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{Document, NodeId, TreeBuilder, WriteOptions};
use ring::hmac;

use crate::algorithm::{Digest, SignatureMethod};
use crate::derived;
use crate::encryption;
use crate::names::{BASE64_BINARY, ENCRYPTED_KEY_SHA1, WSC, WSSE, WSSE11, WSU, X509_V3};
use crate::policy::{Binding, X509Token};
use crate::receive::hash_of;
use crate::reference::{key_info, local_key_info};
use crate::refusal::Refusal;
use crate::rsa::random;
use crate::service::{SecurityContext, Service, Soap};
use crate::signature;
use crate::time;
use crate::tree::{elements, open_copy, options};

/// A response while its Security header grows.
struct Draft<'d> {
    document: &'d Document,
    soap: Soap,
    body_id: String,
    /// The blocks that are signed, with the identifiers they get.
    blocks: Vec<(NodeId, String)>,
    /// The children of the Security header, in order.
    security: Vec<String>,
    /// The encrypted content of the body.
    content: Option<String>,
    /// What is signed, by identifier.
    signed: Vec<String>,
}

/// How the response is signed, and for whom it is encrypted.
enum Means<'c> {
    /// Own key, and the certificate of the request's signer.
    Certificates { own: X509Token, client: X509Token, to: Option<&'c crate::Certificate> },
    /// The key of the request.
    Shared { key: &'c [u8], reference: String, derives: bool },
}

impl Service {
    /// Secures a response to the request of `context`.
    pub fn send(&self, document: &Document, context: &SecurityContext, now: SystemTime) -> Result<Document, Refusal> {
        let policy = &self.policy;
        let soap = Soap::find(document)?;
        let mut draft = Draft {
            document,
            soap,
            body_id: id("Body")?,
            blocks: Vec::new(),
            security: Vec::new(),
            content: None,
            signed: Vec::new(),
        };
        if policy.timestamp {
            draft.timestamp(now, policy.settings.ttl)?;
        }
        if policy.binding == Binding::Transport {
            return draft.build();
        }
        let means = self.means(context)?;
        let is_signed = !policy.signed.is_empty();
        if policy.signed.body {
            draft.signed.push(draft.body_id.clone());
        }
        for block in soap.header.into_iter().flat_map(|header| elements(document, header)) {
            if policy.signed.has_header(document, block) && !is_security(document, block) {
                let id = id("Header")?;
                draft.signed.push(id.clone());
                draft.blocks.push((block, id));
            }
        }
        if policy.confirms_signatures && is_signed {
            draft.confirm(context)?;
        }
        if policy.encrypts_first {
            self.encrypt(&mut draft, &means)?;
        }
        let at = draft.security.len();
        if is_signed {
            self.sign(&mut draft, &means, context)?;
        }
        if !policy.encrypts_first {
            let signed = draft.security.split_off(at);
            self.encrypt(&mut draft, &means)?;
            draft.security.extend(signed);
        }
        draft.build()
    }

    fn means<'c>(&self, context: &'c SecurityContext) -> Result<Means<'c>, Refusal> {
        let no_key = || Refusal::invalid("the request left no key for its response");
        Ok(match &self.policy.binding {
            Binding::Asymmetric(tokens) => {
                Means::Certificates { own: tokens.recipient, client: tokens.initiator, to: context.signer.as_ref() }
            }
            Binding::Symmetric(token) => {
                let received = context.key.as_ref().ok_or_else(no_key)?;
                let reference = format!(
                    "<wsse:SecurityTokenReference xmlns:wsse=\"{WSSE}\" xmlns:wsse11=\"{WSSE11}\" \
                     wsse11:TokenType=\"{}\"><wsse:KeyIdentifier ValueType=\"{ENCRYPTED_KEY_SHA1}\" \
                     EncodingType=\"{BASE64_BINARY}\">{}</wsse:KeyIdentifier></wsse:SecurityTokenReference>",
                    crate::names::ENCRYPTED_KEY,
                    STANDARD.encode(Digest::Sha1.hash(&received.cipher))
                );
                Means::Shared { key: &received.key, reference, derives: token.derived_keys }
            }
            Binding::Transport => return Err(no_key()),
        })
    }

    fn encrypt(&self, draft: &mut Draft<'_>, means: &Means<'_>) -> Result<(), Refusal> {
        if !self.policy.encrypts_body {
            return Ok(());
        }
        let suite = self.policy.suite;
        let method = suite.encryption;
        let (data_id, plaintext) = (id("ED")?, draft.plaintext());
        match means {
            Means::Certificates { client, to, .. } => {
                let to = to.ok_or_else(|| Refusal::invalid("the request left no certificate for its response"))?;
                let public = to.public_key().ok_or_else(Refusal::check)?;
                let key = random(method.key_bytes())?;
                let cipher = public.encrypt(suite.transport, &key)?;
                let key_id = id("EK")?;
                let element = encryption::encrypted_key(
                    &key_id,
                    suite.transport,
                    &cipher,
                    &key_info(to, client.reference),
                    &[&data_id],
                );
                draft.security.push(element);
                let info = local_key_info(&key_id, crate::names::ENCRYPTED_KEY);
                draft.content = Some(encryption::encrypted_content(&data_id, method, &key, &plaintext, &info)?);
            }
            Means::Shared { key, reference, derives } => {
                let (key, info) = shared(draft, key, reference, *derives, method.key_bytes())?;
                draft.content = Some(encryption::encrypted_content(&data_id, method, &key, &plaintext, &info)?);
                draft.security.push(format!(
                    "<xenc:ReferenceList xmlns:xenc=\"{}\"><xenc:DataReference URI=\"#{data_id}\"/></xenc:ReferenceList>",
                    crate::names::XENC
                ));
            }
        }
        Ok(())
    }

    fn sign(&self, draft: &mut Draft<'_>, means: &Means<'_>, context: &SecurityContext) -> Result<(), Refusal> {
        let digest = self.policy.suite.digest;
        // The algorithm that the client used, so that one with a newer reading of the suites understands the response.
        let method = context.signatures.first().map(|(method, _)| *method);
        let element = match means {
            Means::Certificates { own, .. } => {
                let keys = self.keys()?;
                let hash = match method {
                    Some(SignatureMethod::Rsa(hash)) => hash,
                    _ => Digest::Sha1,
                };
                let info = if own.included_in_response {
                    let token = id("X509")?;
                    draft.security.push(format!(
                        "<wsse:BinarySecurityToken xmlns:wsse=\"{WSSE}\" xmlns:wsu=\"{WSU}\" EncodingType=\
                         \"{BASE64_BINARY}\" ValueType=\"{X509_V3}\" wsu:Id=\"{token}\">{}</wsse:BinarySecurityToken>",
                        STANDARD.encode(keys.certificate.der())
                    ));
                    if self.policy.protects_tokens {
                        draft.signed.push(token.clone());
                    }
                    local_key_info(&token, X509_V3)
                } else {
                    key_info(&keys.certificate, own.reference)
                };
                let over = signature::signed_info(&draft.build()?, &draft.signed, SignatureMethod::Rsa(hash), digest)?;
                let value = keys.private.sign(hash, over.as_bytes())?;
                signature::element(&id("SIG")?, &over, &value, &info)
            }
            Means::Shared { key, reference, derives } => {
                let hash = match method {
                    Some(SignatureMethod::Hmac(hash)) => hash,
                    _ => Digest::Sha1,
                };
                let (key, info) = shared(draft, key, reference, *derives, HASH_KEY_BYTES)?;
                let over = signature::signed_info(&draft.build()?, &draft.signed, SignatureMethod::Hmac(hash), digest)?;
                let value = hmac::sign(&hmac::Key::new(hash_of(hash), &key), over.as_bytes());
                signature::element(&id("SIG")?, &over, value.as_ref(), &info)
            }
        };
        draft.security.push(element);
        Ok(())
    }
}

/// Bytes of a derived key for a keyed hash.
const HASH_KEY_BYTES: usize = 24;

/// The key of the request, or one derived from it, with its `KeyInfo`.
fn shared(
    draft: &mut Draft<'_>,
    key: &[u8],
    reference: &str,
    derives: bool,
    length: usize,
) -> Result<(Vec<u8>, String), Refusal> {
    if derives {
        let token = id("DK")?;
        let (key, element) = derived::derive(key, &token, length, reference)?;
        draft.security.push(element);
        return Ok((key, local_key_info(&token, &format!("{}/dk", WSC[0]))));
    }
    let key = match length {
        HASH_KEY_BYTES => key,
        length => key.get(..length).ok_or_else(|| Refusal::invalid("the key of the request is too short"))?,
    };
    Ok((key.to_vec(), format!("<ds:KeyInfo xmlns:ds=\"{}\">{reference}</ds:KeyInfo>", crate::names::DS)))
}

impl Draft<'_> {
    fn timestamp(&mut self, now: SystemTime, ttl: std::time::Duration) -> Result<(), Refusal> {
        let id = id("TS")?;
        self.security.push(format!(
            "<wsu:Timestamp xmlns:wsu=\"{WSU}\" wsu:Id=\"{id}\"><wsu:Created>{}</wsu:Created><wsu:Expires>{}</wsu:Expires>\
             </wsu:Timestamp>",
            time::format(now),
            time::format(now + ttl)
        ));
        self.signed.push(id);
        Ok(())
    }

    /// WS-Security 1.1 §8.5: the values of the request's signatures, or that there were none.
    fn confirm(&mut self, context: &SecurityContext) -> Result<(), Refusal> {
        let values = context.signatures.iter().map(|(_, value)| format!(" Value=\"{}\"", STANDARD.encode(value)));
        let mut values: Vec<String> = values.collect();
        if values.is_empty() {
            values.push(String::new());
        }
        for value in values {
            let id = id("SC")?;
            self.security.push(format!(
                "<wsse11:SignatureConfirmation xmlns:wsse11=\"{WSSE11}\" xmlns:wsu=\"{WSU}\" wsu:Id=\"{id}\"{value}/>"
            ));
            self.signed.push(id);
        }
        Ok(())
    }

    /// The content of the body, each child with the namespaces it needs.
    fn plaintext(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for child in self.document.children(self.soap.body) {
            penstock_xml::write_to(&mut out, self.document, child, &WriteOptions::default());
        }
        out
    }

    /// The envelope with the Security header as it is so far.
    fn build(&self) -> Result<Document, Refusal> {
        let (document, soap) = (self.document, self.soap);
        let namespace = document.namespace(soap.envelope);
        let prefix = document.prefix(soap.envelope);
        let mut builder = TreeBuilder::new();
        open_copy(&mut builder, document, soap.envelope);
        match soap.header {
            Some(header) => open_copy(&mut builder, document, header),
            None => builder.start_element(prefix, "Header", namespace),
        }
        builder.start_element("wsse", "Security", WSSE);
        // An attribute in a namespace needs a prefix, also where the envelope has the default one.
        let attribute_prefix = if prefix.is_empty() { "soapenv" } else { prefix };
        builder.attribute(attribute_prefix, "mustUnderstand", namespace, "1");
        for part in &self.security {
            append(&mut builder, part)?;
        }
        builder.end_element();
        for block in soap.header.into_iter().flat_map(|header| elements(document, header)) {
            if is_security(document, block) {
                continue;
            }
            match self.blocks.iter().find(|(signed, _)| *signed == block) {
                Some((_, id)) => {
                    open_copy(&mut builder, document, block);
                    builder.attribute("wsu", "Id", WSU, id);
                    builder.copy_children(document, block);
                    builder.end_element();
                }
                None => builder.copy(document, block),
            }
        }
        builder.end_element();
        open_copy(&mut builder, document, soap.body);
        builder.attribute("wsu", "Id", WSU, &self.body_id);
        match &self.content {
            Some(content) => append(&mut builder, content)?,
            None => builder.copy_children(document, soap.body),
        }
        builder.end_element();
        builder.end_element();
        Ok(builder.finish())
    }
}

/// Adds an element that is written as text.
fn append(builder: &mut TreeBuilder, element: &str) -> Result<(), Refusal> {
    let parsed = Document::parse(element.to_owned(), &options()).map_err(|_| Refusal::check())?;
    builder.copy_children(&parsed, Document::ROOT);
    Ok(())
}

/// A Security header without an actor, which this response replaces.
fn is_security(document: &Document, block: NodeId) -> bool {
    (document.namespace(block), document.local_name(block)) == (WSSE, "Security")
}

/// A new identifier.
fn id(kind: &str) -> Result<String, Refusal> {
    let bytes = random(12)?;
    Ok(bytes.iter().fold(format!("{kind}-"), |text, byte| format!("{text}{byte:02x}")))
}
