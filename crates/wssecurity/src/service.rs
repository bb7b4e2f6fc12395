//! A secured service: its policy, its keys and the nonces it has seen.

use std::time::SystemTime;

use penstock_xml::{Document, NodeId};

use crate::algorithm::SignatureMethod;
use crate::certificate::Certificate;
use crate::encryption::ReceivedKey;
use crate::keys::Keys;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::tree::child;
use crate::username_token::{NonceCache, Passwords};

/// A service that a policy secures.
#[derive(Debug)]
pub struct Service {
    pub(crate) policy: Policy,
    pub(crate) keys: Option<Keys>,
    pub(crate) nonces: NonceCache,
}

/// A request as it came.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The SOAP envelope.
    pub document: &'a Document,
    /// The time.
    pub now: SystemTime,
    /// Whether it came over TLS.
    pub over_tls: bool,
    /// The passwords of users.
    pub passwords: Passwords<'a>,
}

/// What a response needs to know of its request.
#[derive(Default)]
pub struct SecurityContext {
    /// The user of a UsernameToken.
    pub user: Option<String>,
    /// The certificate that signed the request.
    pub(crate) signer: Option<Certificate>,
    pub(crate) signatures: Vec<(SignatureMethod, Vec<u8>)>,
    pub(crate) key: Option<ReceivedKey>,
}

impl Service {
    /// A service. `keys` may be absent when the policy needs none.
    pub fn new(policy: Policy, keys: Option<Keys>) -> Service {
        Service { policy, keys, nonces: NonceCache::default() }
    }

    /// Whether operations with keys are part of it, which take milliseconds.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn keys(&self) -> Result<&Keys, Refusal> {
        self.keys.as_ref().ok_or_else(|| Refusal::invalid("the service has no keys"))
    }
}

/// Envelope, Header and Body of a SOAP message.
#[derive(Clone, Copy)]
pub(crate) struct Soap {
    pub(crate) envelope: NodeId,
    pub(crate) header: Option<NodeId>,
    pub(crate) body: NodeId,
}

pub(crate) const SOAP: [&str; 2] =
    ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];

impl Soap {
    pub(crate) fn find(document: &Document) -> Result<Soap, Refusal> {
        let no_soap = || Refusal::invalid("the message is not a SOAP envelope");
        let envelope = document.root_element().ok_or_else(no_soap)?;
        let namespace = document.namespace(envelope);
        if !SOAP.contains(&namespace) || document.local_name(envelope) != "Envelope" {
            return Err(no_soap());
        }
        let count = |name: &str| crate::tree::children(document, envelope, namespace, name).count();
        // Of two bodies one could be verified and the other processed.
        if count("Body") != 1 || count("Header") > 1 {
            return Err(no_soap());
        }
        let body = child(document, envelope, namespace, "Body").ok_or_else(no_soap)?;
        Ok(Soap { envelope, header: child(document, envelope, namespace, "Header"), body })
    }
}
