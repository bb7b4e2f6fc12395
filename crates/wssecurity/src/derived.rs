//! Derived keys of WS-SecureConversation §7: `P_SHA-1` of TLS over the key of a message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{Document, NodeId};
use ring::hmac;

use crate::names::{WSC, WSSE, WSU};
use crate::refusal::Refusal;
use crate::tree::{binary, child, text};

/// The label of both sides where a token has none.
const LABEL: &str = "WS-SecureConversationWS-SecureConversation";

/// Longest derived key, with its offset: a block cipher and a hash need 64 bytes together.
const BYTES_MAX: usize = 256;

/// Bytes of nonces.
const NONCE_BYTES: usize = 16;

/// How a DerivedKeyToken derives its key, and what from.
pub(crate) struct Derivation {
    /// The SecurityTokenReference of the key it comes from.
    pub(crate) source: NodeId,
    seed: Vec<u8>,
    offset: usize,
    length: usize,
}

impl Derivation {
    /// Reads a `DerivedKeyToken`.
    pub(crate) fn read(document: &Document, token: NodeId) -> Result<Derivation, Refusal> {
        let malformed = || Refusal::token("the derived key is malformed");
        let namespace = document.namespace(token);
        if !WSC.contains(&namespace) || document.local_name(token) != "DerivedKeyToken" {
            return Err(malformed());
        }
        let part = |name: &str| child(document, token, namespace, name);
        let number = |name: &str, default: usize| match part(name) {
            None => Ok(default),
            Some(node) => text(document, node).parse().map_err(|_| malformed()),
        };
        let (offset, length) = (number("Offset", 0)?, number("Length", 32)?);
        if part("Generation").is_some() || length == 0 || offset.saturating_add(length) > BYTES_MAX {
            return Err(malformed());
        }
        let nonce = part("Nonce").and_then(|nonce| binary(document, nonce)).ok_or_else(malformed)?;
        let label = part("Label").map_or_else(|| LABEL.to_owned(), |node| text(document, node));
        let source = child(document, token, WSSE, "SecurityTokenReference").ok_or_else(malformed)?;
        Ok(Derivation { source, seed: [label.as_bytes(), &nonce].concat(), offset, length })
    }

    pub(crate) fn derive(&self, secret: &[u8]) -> Vec<u8> {
        let mut all = expand(secret, &self.seed, self.offset + self.length);
        all.drain(..self.offset);
        all
    }
}

/// `P_hash` of RFC 2246 §5 with SHA-1.
fn expand(secret: &[u8], seed: &[u8], length: usize) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let mut out = Vec::with_capacity(length);
    let mut step = hmac::sign(&key, seed);
    while out.len() < length {
        out.extend_from_slice(hmac::sign(&key, &[step.as_ref(), seed].concat()).as_ref());
        step = hmac::sign(&key, step.as_ref());
    }
    out.truncate(length);
    out
}

/// A new derived key and its token, which refers to the source by `reference`.
pub(crate) fn derive(secret: &[u8], id: &str, length: usize, reference: &str) -> Result<(Vec<u8>, String), Refusal> {
    let nonce = crate::rsa::random(NONCE_BYTES)?;
    let key = expand(secret, &[LABEL.as_bytes(), &nonce].concat(), length);
    let token = format!(
        "<wsc:DerivedKeyToken xmlns:wsc=\"{}\" xmlns:wsu=\"{WSU}\" wsu:Id=\"{id}\">{reference}<wsc:Offset>0</wsc:Offset>\
         <wsc:Length>{length}</wsc:Length><wsc:Nonce>{}</wsc:Nonce></wsc:DerivedKeyToken>",
        WSC[0],
        STANDARD.encode(nonce)
    );
    Ok((key, token))
}
