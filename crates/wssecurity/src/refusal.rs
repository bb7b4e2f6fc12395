//! Why a message is refused, in the fault codes of WS-Security 1.1 §12.

use std::fmt;

/// The fault codes of WS-Security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCode {
    /// The Security header is missing, malformed, or not what the policy requires.
    InvalidSecurity,
    /// An algorithm or token that is not supported, or that the policy does not allow.
    UnsupportedAlgorithm,
    /// A token that cannot be read.
    InvalidSecurityToken,
    /// A token that could not be authenticated.
    FailedAuthentication,
    /// A signature or an encryption that does not hold.
    FailedCheck,
    /// A token that a reference names and that is not there.
    SecurityTokenUnavailable,
    /// The message is too old.
    MessageExpired,
}

impl RefusalCode {
    /// The local name in the namespace of WS-Security.
    pub fn name(self) -> &'static str {
        match self {
            RefusalCode::InvalidSecurity => "InvalidSecurity",
            RefusalCode::UnsupportedAlgorithm => "UnsupportedAlgorithm",
            RefusalCode::InvalidSecurityToken => "InvalidSecurityToken",
            RefusalCode::FailedAuthentication => "FailedAuthentication",
            RefusalCode::FailedCheck => "FailedCheck",
            RefusalCode::SecurityTokenUnavailable => "SecurityTokenUnavailable",
            RefusalCode::MessageExpired => "MessageExpired",
        }
    }
}

/// A message that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The fault code.
    pub code: RefusalCode,
    /// What the client gets to read.
    pub reason: &'static str,
    /// What the log says, where that is more.
    pub detail: &'static str,
}

/// The reason of every refusal that follows from a decryption.
const CHECK: &str = "the signature or decryption was invalid";

impl Refusal {
    pub(crate) fn new(code: RefusalCode, reason: &'static str) -> Refusal {
        Refusal { code, reason, detail: reason }
    }

    pub(crate) fn invalid(reason: &'static str) -> Refusal {
        Refusal::new(RefusalCode::InvalidSecurity, reason)
    }

    pub(crate) fn unsupported(reason: &'static str) -> Refusal {
        Refusal::new(RefusalCode::UnsupportedAlgorithm, reason)
    }

    pub(crate) fn token(reason: &'static str) -> Refusal {
        Refusal::new(RefusalCode::InvalidSecurityToken, reason)
    }

    pub(crate) fn authentication(reason: &'static str) -> Refusal {
        Refusal::new(RefusalCode::FailedAuthentication, reason)
    }

    pub(crate) fn check() -> Refusal {
        Refusal::new(RefusalCode::FailedCheck, CHECK)
    }

    /// The same for the log, and for the client the one refusal of everything that follows from a decryption: which step
    /// failed would reveal the plaintext (padding of the key, padding of the data, well-formedness).
    pub(crate) fn after_decryption(self) -> Refusal {
        Refusal { code: RefusalCode::FailedCheck, reason: CHECK, detail: self.detail }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "wsse:{}: {}", self.code.name(), self.detail)
    }
}

impl std::error::Error for Refusal {}
