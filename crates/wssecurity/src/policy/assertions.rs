//! The assertions of one alternative.

use penstock_xml::{Document, NodeId};

use super::{
    Asymmetric, Binding, Parts, Policy, PolicyProblem, SP, Settings, UsernameAssertion, WSP, X509Token, normal, rampart,
};
use crate::algorithm::Suite;
use crate::reference::TokenReference;
use crate::tree::elements;

/// The custom suites of CXF.
const CXF: &str = "http://cxf.apache.org/custom/security-policy";

/// Assertions that describe what a client may do, and need nothing of a service that accepts every way.
const PERMISSIONS: [&str; 8] = [
    "MustSupportRefKeyIdentifier",
    "MustSupportRefIssuerSerial",
    "MustSupportRefExternalURI",
    "MustSupportRefEmbeddedToken",
    "MustSupportRefThumbprint",
    "MustSupportRefEncryptedKey",
    "MustSupportIssuedTokens",
    "OnlySignEntireHeadersAndBody",
];

/// Collects what an alternative says.
pub(super) struct AssertionReader<'d> {
    document: &'d Document,
    problems: Vec<PolicyProblem>,
    binding: Option<Binding>,
    suite: Option<Suite>,
    timestamp: bool,
    encrypts_first: bool,
    encrypts_signature: bool,
    confirms_signatures: bool,
    protects_tokens: bool,
    signed: Parts,
    encrypted: Parts,
    required_headers: Vec<(String, Option<String>)>,
    username: Option<UsernameAssertion>,
    settings: Settings,
}

impl<'d> AssertionReader<'d> {
    pub(super) fn read(
        document: &'d Document,
        root: NodeId,
        alternative: &[NodeId],
    ) -> Result<Policy, Vec<PolicyProblem>> {
        let mut reader = AssertionReader {
            document,
            problems: Vec::new(),
            binding: None,
            suite: None,
            timestamp: false,
            encrypts_first: false,
            encrypts_signature: false,
            confirms_signatures: false,
            protects_tokens: false,
            signed: Parts::default(),
            encrypted: Parts::default(),
            required_headers: Vec::new(),
            username: None,
            settings: Settings::default(),
        };
        for assertion in alternative {
            reader.top(*assertion);
        }
        reader.finish(root)
    }

    fn problem(&mut self, node: NodeId, message: impl Into<String>) {
        self.problems.push(PolicyProblem { position: self.document.position(node), message: message.into() });
    }

    fn not_supported(&mut self, node: NodeId) {
        let name = self.document.local_name(node);
        self.problem(node, format!("the assertion `{name}` is not supported"));
    }

    /// The local name of an assertion of WS-SecurityPolicy.
    fn name(&self, node: NodeId) -> Option<&'d str> {
        SP.contains(&self.document.namespace(node)).then(|| self.document.local_name(node))
    }

    /// The assertions of the policy inside an assertion; of several alternatives there the first.
    fn nested(&mut self, node: NodeId) -> Vec<NodeId> {
        let document = self.document;
        let mut inner = elements(document, node);
        let policy = inner.find(|child| WSP.contains(&document.namespace(*child)));
        let Some(policy) = policy else { return Vec::new() };
        match normal::alternatives(document, policy) {
            Ok(mut found) if found.len() == 1 => found.pop().unwrap_or_default(),
            Ok(_) => {
                self.problem(policy, "alternatives inside an assertion are not supported");
                Vec::new()
            }
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        }
    }

    fn top(&mut self, node: NodeId) {
        let Some(name) = self.name(node) else {
            if !rampart::read(self.document, node, &mut self.settings, &mut self.problems) {
                self.not_supported(node);
            }
            return;
        };
        match name {
            "TransportBinding" => {
                self.binding_of(node, |_, _| Some(Binding::Transport));
            }
            "AsymmetricBinding" => {
                self.binding_of(node, |tokens, _| {
                    let of = |names: [&str; 3]| names.iter().find_map(|name| tokens.get(name));
                    let initiator = of(["InitiatorToken", "InitiatorSignatureToken", "InitiatorEncryptionToken"]);
                    let recipient = of(["RecipientToken", "RecipientSignatureToken", "RecipientEncryptionToken"]);
                    Some(Binding::Asymmetric(Asymmetric { initiator: initiator?, recipient: recipient? }))
                });
            }
            "SymmetricBinding" => {
                self.binding_of(node, |tokens, _| tokens.get("ProtectionToken").map(Binding::Symmetric));
            }
            "SignedParts" => {
                let found = self.parts(node);
                self.add_signed(found);
            }
            "EncryptedParts" => self.encrypted = self.parts(node),
            "RequiredParts" => self.required_headers = self.parts(node).headers,
            "SupportingTokens" => self.supporting(node, UsernameAssertion::default()),
            "SignedSupportingTokens" => {
                self.supporting(node, UsernameAssertion { signed: true, ..UsernameAssertion::default() });
            }
            "EncryptedSupportingTokens" => {
                self.supporting(node, UsernameAssertion { encrypted: true, ..UsernameAssertion::default() });
            }
            "SignedEncryptedSupportingTokens" => {
                let both = UsernameAssertion { signed: true, encrypted: true, ..UsernameAssertion::default() };
                self.supporting(node, both);
            }
            "Wss10" | "Wss11" | "Trust10" | "Trust13" => self.options(node, name),
            _ => self.not_supported(node),
        }
    }

    /// `Wss10`, `Wss11`, `Trust10`: options.
    fn options(&mut self, node: NodeId, kind: &str) {
        for option in self.nested(node) {
            match self.name(option) {
                Some("RequireSignatureConfirmation") => self.confirms_signatures = true,
                Some(name) if PERMISSIONS.contains(&name) => {}
                // They concern a security token service, which the policy then needs tokens of.
                Some(
                    "MustSupportClientChallenge"
                    | "MustSupportServerChallenge"
                    | "RequireClientEntropy"
                    | "RequireServerEntropy",
                ) if kind.starts_with("Trust") => {}
                _ => self.not_supported(option),
            }
        }
    }

    fn add_signed(&mut self, found: Parts) {
        self.signed.body |= found.body;
        self.signed.all_headers |= found.all_headers;
        self.signed.headers.extend(found.headers);
    }

    /// `SignedParts`, `EncryptedParts`, `RequiredParts`.
    fn parts(&mut self, node: NodeId) -> Parts {
        let document = self.document;
        let mut found = Parts::default();
        let mut is_empty = true;
        for part in elements(document, node) {
            is_empty = false;
            match self.name(part) {
                Some("Body") => found.body = true,
                Some("Header") => {
                    let namespace = document.attribute(part, "", "Namespace").unwrap_or_default().to_owned();
                    let name = document.attribute(part, "", "Name").filter(|name| !name.is_empty());
                    found.headers.push((namespace, name.map(str::to_owned)));
                }
                _ => self.not_supported(part),
            }
        }
        if is_empty {
            // WS-SecurityPolicy §4.1.1: without children the body and every header.
            found.body = true;
            found.all_headers = true;
        }
        found
    }

    /// Tokens beside that of the binding.
    fn supporting(&mut self, node: NodeId, mut assertion: UsernameAssertion) {
        for inner in self.nested(node) {
            match self.name(inner) {
                Some("UsernameToken") => {
                    self.username_token(inner, &mut assertion);
                    if self.username.replace(assertion).is_some() {
                        self.problem(inner, "more than one UsernameToken is not supported");
                    }
                }
                Some("AlgorithmSuite") => self.suite(inner),
                Some("SignedParts") => {
                    let found = self.parts(inner);
                    self.add_signed(found);
                }
                _ => self.not_supported(inner),
            }
        }
    }

    fn username_token(&mut self, node: NodeId, assertion: &mut UsernameAssertion) {
        for option in self.nested(node) {
            match self.name(option) {
                Some("HashPassword") => assertion.hashed = true,
                Some("WssUsernameToken10" | "WssUsernameToken11") => {}
                _ => self.not_supported(option),
            }
        }
        // Without a nested policy some products write the options as children.
        let document = self.document;
        for option in elements(document, node).filter(|child| !WSP.contains(&document.namespace(*child))) {
            self.not_supported(option);
        }
    }

    fn binding_of(&mut self, node: NodeId, make: impl FnOnce(&Tokens, &Self) -> Option<Binding>) {
        let mut tokens = Tokens::default();
        for part in self.nested(node) {
            let Some(name) = self.name(part) else {
                self.not_supported(part);
                continue;
            };
            match name {
                "InitiatorToken"
                | "InitiatorSignatureToken"
                | "InitiatorEncryptionToken"
                | "RecipientToken"
                | "RecipientSignatureToken"
                | "RecipientEncryptionToken"
                | "ProtectionToken" => {
                    if let Some(token) = self.x509(part) {
                        tokens.0.push((name.to_owned(), token));
                    }
                }
                "TransportToken" => self.transport_token(part),
                "AlgorithmSuite" => self.suite(part),
                "Layout" => self.layout(part),
                "IncludeTimestamp" => self.timestamp = true,
                "EncryptSignature" => self.encrypts_signature = true,
                "EncryptBeforeSigning" => self.encrypts_first = true,
                "SignBeforeEncrypting" => self.encrypts_first = false,
                "ProtectTokens" => self.protects_tokens = true,
                "OnlySignEntireHeadersAndBody" => {}
                _ => self.not_supported(part),
            }
        }
        let found = make(&tokens, self);
        if found.is_none() {
            self.problem(node, "the binding has no X.509 token for each side");
        }
        if self.binding.is_some() {
            self.problem(node, "the security policy has two bindings");
        }
        self.binding = found;
    }

    fn transport_token(&mut self, node: NodeId) {
        for token in self.nested(node) {
            if self.name(token) != Some("HttpsToken") {
                self.not_supported(token);
                continue;
            }
            let required = self.document.attribute(token, "", "RequireClientCertificate");
            let is_required = required.is_some_and(|text| matches!(text.trim(), "true" | "1"));
            let inner = self.nested(token);
            if is_required || !inner.is_empty() {
                self.problem(token, "an HttpsToken that requires credentials of the client is not supported");
            }
        }
    }

    fn suite(&mut self, node: NodeId) {
        for suite in self.nested(node) {
            let name = self.document.local_name(suite);
            let found = match self.document.namespace(suite) {
                CXF => Suite::from_gcm_name(name),
                _ => self.name(suite).and_then(Suite::from_name),
            };
            match (found, self.name(suite)) {
                (Some(found), _) => self.suite = Some(found),
                // Ways of canonicalization and of naming parts that every message here already has.
                (None, Some("InclusiveC14N" | "SOAPNormalization10" | "STRTransform10")) => {}
                _ => self.problem(suite, format!("the algorithm suite `{name}` is not supported")),
            }
        }
    }

    fn layout(&mut self, node: NodeId) {
        for layout in self.nested(node) {
            // Strict and Lax differ in the order of elements, which is not significant to what is verified.
            if !matches!(self.name(layout), Some("Strict" | "Lax" | "LaxTsFirst" | "LaxTimestampFirst")) {
                self.not_supported(layout);
            }
        }
    }

    /// The X.509 token of a side.
    fn x509(&mut self, side: NodeId) -> Option<X509Token> {
        let mut found = None;
        for token in self.nested(side) {
            if self.name(token) != Some("X509Token") {
                self.not_supported(token);
                continue;
            }
            let document = self.document;
            let included =
                document.attributes(token).find(|attribute| document.local_name(*attribute) == "IncludeToken");
            let included = included.map_or("", |attribute| document.text(attribute).trim());
            let included = included.rsplit('/').next().unwrap_or_default();
            // `AlwaysToRecipient` and `Once` concern the client's messages.
            let included_in_response = matches!(included, "Always" | "AlwaysToInitiator");
            let mut one =
                X509Token { included_in_response, reference: TokenReference::IssuerSerial, derived_keys: false };
            for option in self.nested(token) {
                match self.name(option) {
                    Some("RequireThumbprintReference") => one.reference = TokenReference::Thumbprint,
                    Some("RequireKeyIdentifierReference") => one.reference = TokenReference::KeyIdentifier,
                    Some("RequireIssuerSerialReference" | "RequireEmbeddedTokenReference") => {}
                    Some("RequireDerivedKeys") => one.derived_keys = true,
                    Some("WssX509V3Token10" | "WssX509V3Token11") => {}
                    _ => self.not_supported(option),
                }
            }
            found = Some(one);
        }
        if found.is_none() {
            self.problem(side, "an X.509 token is expected");
        }
        found
    }

    fn finish(mut self, root: NodeId) -> Result<Policy, Vec<PolicyProblem>> {
        if self.encrypted.all_headers && self.encrypted.body {
            self.encrypted.all_headers = false;
        }
        if self.encrypted.all_headers || !self.encrypted.headers.is_empty() {
            self.problem(root, "encrypted headers are not supported");
        }
        // A token alone is one over TLS, as products take it.
        let binding = match (self.binding.take(), self.username) {
            (Some(binding), _) => binding,
            (None, Some(_)) => Binding::Transport,
            (None, None) => {
                self.problem(root, "the security policy has neither a binding nor a UsernameToken");
                Binding::Transport
            }
        };
        let suite = match (self.suite, &binding) {
            (Some(suite), _) => suite,
            (None, Binding::Transport) => Suite::DEFAULT,
            (None, _) => {
                self.problem(root, "the binding has no algorithm suite");
                Suite::DEFAULT
            }
        };
        if self.encrypts_first && self.encrypts_signature {
            self.problem(root, "EncryptBeforeSigning with EncryptSignature is not supported");
        }
        let token = match &binding {
            Binding::Transport => None,
            Binding::Asymmetric(both) => Some(both.initiator.derived_keys || both.recipient.derived_keys),
            Binding::Symmetric(_) => Some(false),
        };
        if token == Some(true) {
            self.problem(root, "derived keys are supported in a symmetric binding only");
        }
        if token.is_some() && self.signed.is_empty() && !self.encrypted.body {
            self.problem(root, "the binding protects no part of the message");
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(Policy {
            binding,
            suite,
            timestamp: self.timestamp,
            encrypts_first: self.encrypts_first,
            encrypts_signature: self.encrypts_signature,
            confirms_signatures: self.confirms_signatures,
            protects_tokens: self.protects_tokens,
            signed: self.signed,
            encrypts_body: self.encrypted.body,
            required_headers: self.required_headers,
            username: self.username,
            settings: self.settings,
        })
    }
}

/// The tokens of a binding by their side.
#[derive(Default)]
struct Tokens(Vec<(String, X509Token)>);

impl Tokens {
    fn get(&self, side: &str) -> Option<X509Token> {
        self.0.iter().find(|(name, _)| name == side).map(|(_, token)| *token)
    }
}
