//! XML Signature: what a signature of the Security header covers, and new ones.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{Document, NodeId};

use crate::algorithm::{Digest, SignatureMethod, Suite};
use crate::c14n::{Canonicalization, canonicalize};
use crate::names::{DS, EXCLUSIVE_C14N, STR_TRANSFORM, WSSE};
use crate::refusal::Refusal;
use crate::tree::{Ids, binary, child, children, elements};

/// References of one signature: a message signs its body, a few headers and tokens.
const REFERENCES_MAX: usize = 64;

/// A signature as it stands in a message, before its key is known.
pub(crate) struct Signature {
    pub(crate) method: SignatureMethod,
    pub(crate) value: Vec<u8>,
    pub(crate) key_info: NodeId,
    /// The canonical octets of `SignedInfo`, which the value is over.
    pub(crate) signed_info: Vec<u8>,
    /// The elements whose digests hold.
    pub(crate) covered: Vec<NodeId>,
}

impl Signature {
    /// Reads a signature and checks the digests of all its references.
    pub(crate) fn read(
        document: &Document,
        ids: &Ids<'_>,
        signature: NodeId,
        suite: Suite,
    ) -> Result<Signature, Refusal> {
        let part = |parent: NodeId, name: &'static str| child(document, parent, DS, name).ok_or_else(malformed);
        let info = part(signature, "SignedInfo")?;
        let canonicalization = method_of(document, part(info, "CanonicalizationMethod")?)?;
        let method_node = part(info, "SignatureMethod")?;
        let method = algorithm(document, method_node).and_then(SignatureMethod::from_uri);
        let method = method
            .filter(|method| suite.allows_signature(*method))
            .ok_or_else(|| Refusal::unsupported("the signature algorithm is not allowed"))?;
        if elements(document, method_node).next().is_some() {
            // A truncated hash can be forged (CVE-2009-0217).
            return Err(Refusal::unsupported("parameters of the signature algorithm are not allowed"));
        }
        let value = binary(document, part(signature, "SignatureValue")?).ok_or_else(malformed)?;
        let mut covered = Vec::new();
        for reference in children(document, info, DS, "Reference") {
            if covered.len() == REFERENCES_MAX {
                return Err(Refusal::invalid("the signature has too many references"));
            }
            covered.push(checked(document, ids, reference, suite)?);
        }
        Ok(Signature {
            method,
            value,
            key_info: part(signature, "KeyInfo")?,
            signed_info: canonicalize(document, info, &canonicalization),
            covered,
        })
    }
}

/// The element of a reference, when its digest holds.
fn checked(document: &Document, ids: &Ids<'_>, reference: NodeId, suite: Suite) -> Result<NodeId, Refusal> {
    let part = |name: &'static str| child(document, reference, DS, name).ok_or_else(malformed);
    let uri = document.attribute(reference, "", "URI").unwrap_or_default();
    let mut element =
        ids.get(uri).ok_or_else(|| Refusal::invalid("a signature refers to an element that is not there"))?;
    let mut canonicalization = Canonicalization { exclusive: false, ..Canonicalization::EXCLUSIVE };
    if let Some(transforms) = child(document, reference, DS, "Transforms") {
        let mut all = children(document, transforms, DS, "Transform");
        let only = all.next().filter(|_| all.next().is_none());
        // More than a canonicalization could make the signed octets something else than the element.
        let transform = only.ok_or_else(|| Refusal::unsupported("the transforms of a signature are not supported"))?;
        if algorithm(document, transform) == Some(STR_TRANSFORM) {
            (element, canonicalization) = dereferenced(document, ids, element, transform)?;
        } else {
            canonicalization = method_of(document, transform)?;
        }
    }
    let digest = algorithm(document, part("DigestMethod")?).and_then(Digest::from_uri);
    let digest = digest
        .filter(|digest| suite.allows_digest(*digest))
        .ok_or_else(|| Refusal::unsupported("the digest algorithm is not allowed"))?;
    let expected = binary(document, part("DigestValue")?).ok_or_else(malformed)?;
    if digest.hash(&canonicalize(document, element, &canonicalization)) != expected {
        return Err(Refusal::check());
    }
    Ok(element)
}

/// WS-Security §8.3: the token that a SecurityTokenReference names is what is signed.
fn dereferenced(
    document: &Document,
    ids: &Ids<'_>,
    reference: NodeId,
    transform: NodeId,
) -> Result<(NodeId, Canonicalization), Refusal> {
    let unsupported = || Refusal::unsupported("an STR-Transform is supported for tokens inside the message only");
    let parameters = child(document, transform, WSSE, "TransformationParameters").ok_or_else(malformed)?;
    let method = child(document, parameters, DS, "CanonicalizationMethod").ok_or_else(malformed)?;
    if (document.namespace(reference), document.local_name(reference)) != (WSSE, "SecurityTokenReference") {
        return Err(malformed());
    }
    let target = child(document, reference, WSSE, "Reference").ok_or_else(unsupported)?;
    let token = document.attribute(target, "", "URI").and_then(|uri| ids.get(uri)).ok_or_else(unsupported)?;
    Ok((token, method_of(document, method)?))
}

/// The method of a `CanonicalizationMethod` or `Transform`, with its list of prefixes.
fn method_of(document: &Document, node: NodeId) -> Result<Canonicalization, Refusal> {
    let unsupported = || Refusal::unsupported("the canonicalization algorithm is not supported");
    let mut found = algorithm(document, node).and_then(Canonicalization::from_algorithm).ok_or_else(unsupported)?;
    if let Some(list) = child(document, node, EXCLUSIVE_C14N, "InclusiveNamespaces") {
        let prefixes = document.attribute(list, "", "PrefixList").unwrap_or_default();
        let prefix = |word: &str| if word == "#default" { String::new() } else { word.to_owned() };
        found.prefixes = prefixes.split_ascii_whitespace().map(prefix).collect();
    }
    Ok(found)
}

pub(crate) fn algorithm(document: &Document, node: NodeId) -> Option<&str> {
    document.attribute(node, "", "Algorithm")
}

fn malformed() -> Refusal {
    Refusal::invalid("the signature is malformed")
}

/// `SignedInfo` over elements with these identifiers, in its canonical form.
pub(crate) fn signed_info(
    document: &Document,
    ids: &[String],
    method: SignatureMethod,
    digest: Digest,
) -> Result<String, Refusal> {
    let index = Ids::collect(document);
    let mut out = format!(
        "<ds:SignedInfo xmlns:ds=\"{DS}\"><ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE_C14N}\">\
         </ds:CanonicalizationMethod><ds:SignatureMethod Algorithm=\"{}\"></ds:SignatureMethod>",
        method.uri()
    );
    for id in ids {
        let uri = format!("#{id}");
        let element = index.get(&uri).ok_or_else(malformed)?;
        let value = digest.hash(&canonicalize(document, element, &Canonicalization::EXCLUSIVE));
        let _ = write!(
            out,
            "<ds:Reference URI=\"{uri}\"><ds:Transforms><ds:Transform Algorithm=\"{EXCLUSIVE_C14N}\"></ds:Transform>\
             </ds:Transforms><ds:DigestMethod Algorithm=\"{}\"></ds:DigestMethod><ds:DigestValue>{}</ds:DigestValue>\
             </ds:Reference>",
            digest.uri(),
            STANDARD.encode(value)
        );
    }
    out.push_str("</ds:SignedInfo>");
    Ok(out)
}

/// A whole signature.
pub(crate) fn element(id: &str, signed_info: &str, value: &[u8], key_info: &str) -> String {
    format!(
        "<ds:Signature xmlns:ds=\"{DS}\" Id=\"{id}\">{signed_info}<ds:SignatureValue>{}</ds:SignatureValue>{key_info}\
         </ds:Signature>",
        STANDARD.encode(value)
    )
}
