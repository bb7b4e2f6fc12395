//! What the control plane needs of the program around it.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use penstock_catalog::{Access, AccessChange};
use serde_json::Value;

/// What became of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Name and password are right.
    Accepted,
    /// They are not.
    Refused,
    /// Too many failed; the next attempt counts after so many seconds.
    BackOff(u64),
}

/// An API that is deployed: the files of an API project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedApi {
    /// A name for diagnostics.
    pub name: String,
    /// Path and content of each file.
    pub files: Vec<(String, Bytes)>,
}

/// A plan by its level, its name and its limit in the notation of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanText {
    /// What it is counted for.
    pub level: penstock_catalog::PlanLevel,
    /// The name.
    pub name: String,
    /// `5000/1m`, `unlimited`.
    pub text: String,
}

/// A key manager of another product, whose tokens count for the APIs that name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalIssuer {
    /// What APIs call it.
    pub name: String,
    /// `iss` of its tokens.
    pub issuer: String,
    /// Where its keys are published.
    pub jwks_url: Option<String>,
    /// Its certificate or public key, PEM or base64 of it.
    pub pem: Option<String>,
    /// The claim with the consumer key.
    pub consumer_key_claim: String,
    /// The claim with the scopes.
    pub scopes_claim: String,
    /// Names of claims: theirs, ours.
    pub claim_mapping: Vec<(String, String)>,
}

/// What the gateway serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// APIs. One that did not change is the same as in the snapshot before.
    pub apis: Vec<Arc<DeployedApi>>,
    /// Plans.
    pub plans: Vec<PlanText>,
    /// Deny conditions in the notation of the configuration.
    pub denials: Vec<String>,
    /// Key managers of other products.
    pub issuers: Vec<ExternalIssuer>,
}

/// A snapshot that was compiled; calling it serves it.
pub type Prepared = Box<dyn FnOnce() + Send>;

/// The program around the control plane.
pub trait Host: Send + Sync {
    /// Counts failed logins. `verify` compares the password; it is not called during a back-off.
    fn login(&self, account: &str, client: IpAddr, verify: &mut dyn FnMut() -> bool) -> Login;

    /// Reads YAML or JSON.
    fn parse_yaml(&self, text: &[u8]) -> Result<Value, String>;

    /// Reads a zip archive within limits: path and content of each file.
    fn unzip(&self, archive: Bytes) -> Result<Vec<(String, Bytes)>, String>;

    /// Compiles a snapshot. Nothing changes before the result is called; the errors name file and place.
    fn prepare(&self, snapshot: &Snapshot) -> Result<Prepared, Vec<String>>;

    /// Replaces applications and subscriptions; the next request sees them.
    fn set_access(&self, access: Access);

    /// Changes applications, keys and subscriptions; the next request sees it.
    fn change_access(&self, steps: Vec<AccessChange>);

    /// Revokes an access token by its id, until its end.
    fn revoke(&self, id: &str, ends: u64);

    /// Writes a line to the log. It contains no secrets.
    fn report_error(&self, text: &str);
}
