//! Hubs of WebSub: topics that some publish events of, and others subscribe to.

use std::sync::Arc;

use crate::{At, Secret};

/// The path publishers post to.
pub const RECEIVER_PATH: &str = "/webhooks_events_receiver_resource";

/// A topic's name as it is compared: publishers and subscribers write it with a slash before it or without, and in
/// small letters or not.
pub fn topic_name(text: &str) -> String {
    text.trim().trim_start_matches('/').to_lowercase()
}

/// What a hub passes on, and how publishers prove who they are.
#[derive(Debug, Clone, Default)]
pub struct WebSub {
    /// The topics.
    pub topics: Vec<Topic>,
    /// The publishers' key; without it no signature is required.
    pub secret: Option<Secret>,
    /// How they sign.
    pub algorithm: SigningAlgorithm,
    /// The header field of their signature.
    pub signature_header: Arc<str>,
    /// Whether callbacks are verified (`enableSubscriberVerification`).
    pub verifies: bool,
}

/// A topic.
#[derive(Debug, Clone, Default)]
pub struct Topic {
    /// Its name, without a slash before it.
    pub name: Arc<str>,
    /// Whether subscribers need credentials.
    pub secured: bool,
    /// Scopes of which a subscriber's token must have one.
    pub scopes: Vec<Arc<str>>,
    /// Where it was written.
    pub at: At,
}

/// How something is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SigningAlgorithm {
    /// HMAC with SHA-1, which most publishers of webhooks use.
    #[default]
    Sha1,
    /// HMAC with SHA-256.
    Sha256,
    /// HMAC with SHA-384.
    Sha384,
    /// HMAC with SHA-512.
    Sha512,
}
