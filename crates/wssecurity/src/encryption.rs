//! XML Encryption: EncryptedKey and EncryptedData.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{Document, NodeId};

use crate::algorithm::{DataEncryption, Digest, KeyTransport, Suite};
use crate::cipher;
use crate::keys::Keys;
use crate::names::{DS, ENCRYPTED_CONTENT, ENCRYPTED_ELEMENT, XENC};
use crate::refusal::Refusal;
use crate::signature::algorithm;
use crate::tree::{Ids, binary, child, children, elements, options, replace};

/// Keys of one message: each costs an operation with the private key.
const KEYS_MAX: usize = 2;

/// Encrypted parts of one message.
const PARTS_MAX: usize = 32;

/// A key that came in a message.
pub(crate) struct ReceivedKey {
    pub(crate) key: Vec<u8>,
    /// The encrypted octets, whose digest a response may name the key by.
    pub(crate) cipher: Vec<u8>,
}

/// A message whose encrypted parts were decrypted.
pub(crate) struct Decrypted {
    pub(crate) document: Document,
    /// The EncryptedData elements of the encrypted tree.
    pub(crate) parts: Vec<NodeId>,
}

/// Decrypts the keys in the Security header.
pub(crate) fn keys(
    document: &Document,
    security: NodeId,
    suite: Suite,
    keys: &Keys,
    lengths: &[usize],
) -> Result<Vec<(NodeId, ReceivedKey)>, Refusal> {
    let mut found = Vec::new();
    for node in children(document, security, XENC, "EncryptedKey") {
        if found.len() == KEYS_MAX {
            return Err(Refusal::invalid("the message has too many encrypted keys"));
        }
        let method = child(document, node, XENC, "EncryptionMethod").ok_or_else(malformed)?;
        let transport = algorithm(document, method).and_then(KeyTransport::from_uri);
        let transport = transport
            .filter(|transport| *transport == suite.transport)
            .ok_or_else(|| Refusal::unsupported("the key encryption algorithm is not allowed"))?;
        for parameter in elements(document, method) {
            let is_sha1 = (document.namespace(parameter), document.local_name(parameter)) == (DS, "DigestMethod")
                && algorithm(document, parameter) == Some(Digest::Sha1.uri());
            if !is_sha1 {
                return Err(Refusal::unsupported("a parameter of the key encryption is not supported"));
            }
        }
        let cipher = cipher_value(document, node)?;
        let key = keys.private.decrypt(transport, &cipher, lengths)?;
        found.push((node, ReceivedKey { key, cipher }));
    }
    Ok(found)
}

/// The parts that a ReferenceList below `holder` names.
pub(crate) fn referenced(document: &Document, ids: &Ids<'_>, holder: NodeId) -> Result<Vec<NodeId>, Refusal> {
    let list = match document.local_name(holder) {
        "ReferenceList" => Some(holder),
        _ => child(document, holder, XENC, "ReferenceList"),
    };
    let mut found = Vec::new();
    for reference in list.into_iter().flat_map(|list| children(document, list, XENC, "DataReference")) {
        let part = document.attribute(reference, "", "URI").and_then(|uri| ids.get(uri)).ok_or_else(malformed)?;
        if (document.namespace(part), document.local_name(part)) != (XENC, "EncryptedData") || found.len() == PARTS_MAX
        {
            return Err(malformed());
        }
        found.push(part);
    }
    Ok(found)
}

/// Decrypts parts, each with its key, and puts the plaintext in their place.
pub(crate) fn decrypt(document: &Document, parts: &[(NodeId, &[u8])], suite: Suite) -> Result<Decrypted, Refusal> {
    let mut replacements = HashMap::new();
    for (part, key) in parts {
        let method = child(document, *part, XENC, "EncryptionMethod").ok_or_else(malformed)?;
        let method = algorithm(document, method).and_then(DataEncryption::from_uri);
        let method = method
            .filter(|method| *method == suite.encryption)
            .ok_or_else(|| Refusal::unsupported("the encryption algorithm is not allowed"))?;
        let kind = document.attribute(*part, "", "Type").unwrap_or(ENCRYPTED_ELEMENT);
        if kind != ENCRYPTED_CONTENT && kind != ENCRYPTED_ELEMENT {
            return Err(Refusal::unsupported("encrypted data of this type is not supported"));
        }
        let plaintext = cipher::decrypt(method, key, &cipher_value(document, *part)?)?;
        let content = content(document, *part, &plaintext)?;
        if kind == ENCRYPTED_ELEMENT && content.root_element().map(|root| elements(&content, root).count()) != Some(1) {
            return Err(Refusal::check());
        }
        replacements.insert(*part, content);
    }
    let parts = parts.iter().map(|(part, _)| *part).collect();
    Ok(Decrypted { document: replace(document, &replacements), parts })
}

/// Plaintext as the children of a root, in the namespaces that are in scope where it stood.
fn content(document: &Document, part: NodeId, plaintext: &[u8]) -> Result<Document, Refusal> {
    let mut source = b"<content".to_vec();
    let parent = document.parent(part).unwrap_or(Document::ROOT);
    for declaration in document.in_scope_namespaces(parent) {
        match document.local_name(declaration) {
            "xml" => continue,
            "" => source.extend_from_slice(b" xmlns=\""),
            prefix => source.extend_from_slice(format!(" xmlns:{prefix}=\"").as_bytes()),
        }
        penstock_xml::escape_attribute(&mut source, document.text(declaration));
        source.push(b'"');
    }
    source.push(b'>');
    source.extend_from_slice(plaintext);
    source.extend_from_slice(b"</content>");
    Document::parse(source, &options()).map_err(|_| Refusal::check())
}

fn cipher_value(document: &Document, node: NodeId) -> Result<Vec<u8>, Refusal> {
    let data = child(document, node, XENC, "CipherData").ok_or_else(malformed)?;
    // A CipherReference would be fetched; nothing is fetched for a document.
    let value = child(document, data, XENC, "CipherValue").ok_or_else(malformed)?;
    binary(document, value).ok_or_else(malformed)
}

fn malformed() -> Refusal {
    Refusal::invalid("the encrypted data is malformed")
}

/// EncryptedData that stands for the content of an element.
pub(crate) fn encrypted_content(
    id: &str,
    method: DataEncryption,
    key: &[u8],
    plaintext: &[u8],
    key_info: &str,
) -> Result<String, Refusal> {
    let value = STANDARD.encode(cipher::encrypt(method, key, plaintext)?);
    Ok(format!(
        "<xenc:EncryptedData xmlns:xenc=\"{XENC}\" Id=\"{id}\" Type=\"{ENCRYPTED_CONTENT}\"><xenc:EncryptionMethod \
         Algorithm=\"{}\"/>{key_info}<xenc:CipherData><xenc:CipherValue>{value}</xenc:CipherValue></xenc:CipherData>\
         </xenc:EncryptedData>",
        method.uri()
    ))
}

/// EncryptedKey with the parts it is for.
pub(crate) fn encrypted_key(
    id: &str,
    transport: KeyTransport,
    cipher: &[u8],
    key_info: &str,
    parts: &[&str],
) -> String {
    let references: String = parts.iter().map(|part| format!("<xenc:DataReference URI=\"#{part}\"/>")).collect();
    let list = match references.as_str() {
        "" => String::new(),
        references => format!("<xenc:ReferenceList>{references}</xenc:ReferenceList>"),
    };
    format!(
        "<xenc:EncryptedKey xmlns:xenc=\"{XENC}\" Id=\"{id}\"><xenc:EncryptionMethod Algorithm=\"{}\"/>{key_info}\
         <xenc:CipherData><xenc:CipherValue>{}</xenc:CipherValue></xenc:CipherData>{list}</xenc:EncryptedKey>",
        transport.uri(),
        STANDARD.encode(cipher)
    )
}
