//! WS-SecurityPolicy: what a policy document requires of requests and responses.
//!
//! Every assertion is read or reported: a policy that is understood in part is not enforced at all.

use std::time::Duration;

use penstock_xml::{Document, NodeId, Position};

use crate::algorithm::Suite;
use crate::reference::TokenReference;
use crate::tree::{elements, text};

mod assertions;
mod normal;
mod rampart;

use assertions::AssertionReader;

pub(crate) const WSP: [&str; 2] = ["http://schemas.xmlsoap.org/ws/2004/09/policy", "http://www.w3.org/ns/ws-policy"];

/// Versions 1.1 to 1.3 of WS-SecurityPolicy.
pub(crate) const SP: [&str; 4] = [
    "http://schemas.xmlsoap.org/ws/2005/07/securitypolicy",
    "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200512",
    "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702",
    "http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200802",
];

/// Why a policy cannot be enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Where in the document.
    pub position: Position,
    /// What is wrong.
    pub message: String,
}

/// What keeps the messages together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// TLS.
    Transport,
    /// A certificate of each side.
    Asymmetric(Asymmetric),
    /// A key that the client makes and encrypts for the service's certificate.
    Symmetric(X509Token),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asymmetric {
    /// The client's certificate.
    pub(crate) initiator: X509Token,
    /// The service's certificate.
    pub(crate) recipient: X509Token,
}

/// An X.509 token assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct X509Token {
    /// Whether the service's messages carry the certificate, or refer to it.
    pub(crate) included_in_response: bool,
    pub(crate) reference: TokenReference,
    pub(crate) derived_keys: bool,
}

/// Parts of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    pub(crate) body: bool,
    /// All header blocks.
    pub(crate) all_headers: bool,
    /// Header blocks by namespace and name; without a name all of the namespace.
    pub(crate) headers: Vec<(String, Option<String>)>,
}

/// A UsernameToken assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UsernameAssertion {
    /// A digest of the password is required.
    pub(crate) hashed: bool,
    /// The signature of the message covers the token.
    pub(crate) signed: bool,
    /// The token is encrypted.
    pub(crate) encrypted: bool,
}

/// What `RampartConfig` sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// How long a message is valid after it was created.
    pub(crate) ttl: Duration,
    /// How far the clocks of client and service may differ.
    pub(crate) skew: Duration,
    /// How long a nonce is remembered.
    pub(crate) nonce_life: Duration,
}

/// What Rampart takes without a setting.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

impl Default for Settings {
    fn default() -> Settings {
        Settings { ttl: FIVE_MINUTES, skew: FIVE_MINUTES, nonce_life: FIVE_MINUTES }
    }
}

/// What a policy document requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub(crate) binding: Binding,
    pub(crate) suite: Suite,
    pub(crate) timestamp: bool,
    pub(crate) encrypts_first: bool,
    pub(crate) encrypts_signature: bool,
    pub(crate) confirms_signatures: bool,
    pub(crate) protects_tokens: bool,
    pub(crate) signed: Parts,
    pub(crate) encrypts_body: bool,
    pub(crate) required_headers: Vec<(String, Option<String>)>,
    pub(crate) username: Option<UsernameAssertion>,
    pub(crate) settings: Settings,
}

impl Policy {
    /// Reads a policy document. Of several alternatives the first that is understood is enforced.
    pub fn parse(document: &Document) -> Result<Policy, Vec<PolicyProblem>> {
        let root = document.root_element().unwrap_or(Document::ROOT);
        Policy::of_element(document, root)
    }

    /// Reads a policy that is an element of a document.
    pub fn of_element(document: &Document, root: NodeId) -> Result<Policy, Vec<PolicyProblem>> {
        let problem = |message: &str| PolicyProblem { position: document.position(root), message: message.to_owned() };
        if !WSP.contains(&document.namespace(root)) || document.local_name(root) != "Policy" {
            return Err(vec![problem("the security policy is not a <wsp:Policy>")]);
        }
        let alternatives = normal::alternatives(document, root).map_err(|problem| vec![problem])?;
        let mut problems = Vec::new();
        for alternative in &alternatives {
            match AssertionReader::read(document, root, alternative) {
                Ok(policy) => return Ok(policy),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            problems.push(problem("the security policy has no alternative"));
        }
        problems.dedup();
        Err(problems)
    }

    /// Whether messages must come over TLS: the binding requires it, or a password would be readable otherwise.
    pub fn needs_tls(&self) -> bool {
        let reveals_password = self.username.is_some_and(|username| !username.encrypted && !username.hashed);
        self.binding == Binding::Transport || reveals_password
    }

    /// Whether the service needs a private key.
    pub fn needs_keys(&self) -> bool {
        self.binding != Binding::Transport
    }

    /// Whether anything of a response is secured.
    pub fn secures_responses(&self) -> bool {
        self.timestamp || self.binding != Binding::Transport
    }
}

impl Parts {
    pub(crate) fn is_empty(&self) -> bool {
        !self.body && !self.all_headers && self.headers.is_empty()
    }

    /// Whether a header block is one of the parts.
    pub(crate) fn has_header(&self, document: &Document, block: NodeId) -> bool {
        self.all_headers || self.headers.iter().any(|wanted| is_header(document, block, wanted))
    }
}

/// Whether a header block has the namespace, and the name where one is given.
pub(crate) fn is_header(document: &Document, block: NodeId, (namespace, name): &(String, Option<String>)) -> bool {
    document.namespace(block) == namespace && name.as_ref().is_none_or(|name| document.local_name(block) == name)
}

/// The texts of child elements in a namespace, for settings.
fn settings_of<'d>(document: &'d Document, parent: NodeId) -> impl Iterator<Item = (&'d str, String, NodeId)> + 'd {
    elements(document, parent).map(|node| (document.local_name(node), text(document, node), node))
}

#[cfg(test)]
mod tests;
