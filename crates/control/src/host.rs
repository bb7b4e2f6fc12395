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

/// A request to an address that a client of the REST APIs gave: a definition by `url`, a backend to check, an MCP server.
#[derive(Debug, Clone)]
pub struct FetchRequest<'r> {
    /// The method.
    pub method: &'static str,
    /// The address, not checked.
    pub url: &'r str,
    /// Header fields.
    pub headers: Vec<(&'r str, &'r str)>,
    /// The body; empty for none.
    pub body: Bytes,
    /// The most bytes of a response body.
    pub bytes_max: usize,
}

/// A response to a [`FetchRequest`].
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchError {
    /// The text is not an address of HTTP.
    Malformed(String),
    /// The configuration does not allow requests to the address.
    NotAllowed(String),
    /// The server did not respond, or not in time.
    Failed(String),
    /// The response is larger than allowed.
    TooLarge,
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FetchError::Malformed(why) | FetchError::NotAllowed(why) | FetchError::Failed(why) => f.write_str(why),
            FetchError::TooLarge => f.write_str("the response is too large"),
        }
    }
}

/// A snapshot that was compiled; calling it serves it.
pub type Prepared = Box<dyn FnOnce() + Send>;

/// The program around the control plane.
pub trait Host: Send + Sync {
    /// Counts failed logins. `verify` compares the password; it is not called during a back-off.
    fn login(&self, account: &str, client: IpAddr, verify: &mut dyn FnMut() -> bool) -> Login;

    /// Reads YAML or JSON.
    fn parse_yaml(&self, text: &[u8]) -> Result<Value, String>;

    /// Sends a request to an address that a client gave, within the limits and rules of the host; redirects are followed.
    fn fetch(&self, request: &FetchRequest<'_>) -> Result<Fetched, FetchError>;

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

    /// Forgets what a user of an application used of its plan in the present window.
    fn reset_application_plan(&self, application: &str, user: &str);

    /// Writes a line to the log. It contains no secrets.
    fn report_error(&self, text: &str);
}
