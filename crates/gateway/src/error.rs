//! What a gateway refuses, with the codes and statuses of the originals in one table.

use std::sync::Arc;

use penstock_engine::{Fault, Side};

/// The codes policies raise. Each has one row in [`table`].
pub mod codes {
    /// No such API or resource.
    pub const NOT_FOUND: u32 = 404;
    /// Path known, method not.
    pub const METHOD_NOT_ALLOWED: u32 = 405;
    /// The API is blocked.
    pub const API_BLOCKED: u32 = 700700;
    /// The API's limit.
    pub const API_LIMIT: u32 = 900800;
    /// The backend's limit.
    pub const HARD_LIMIT: u32 = 900801;
    /// The operation's limit.
    pub const RESOURCE_LIMIT: u32 = 900802;
    /// The subscription's limit.
    pub const SUBSCRIPTION_LIMIT: u32 = 900803;
    /// The application's limit.
    pub const APPLICATION_LIMIT: u32 = 900804;
    /// A deny condition.
    pub const BLOCKED: u32 = 900805;
    /// A custom limit.
    pub const CUSTOM_LIMIT: u32 = 900806;
    /// A burst.
    pub const BURST_LIMIT: u32 = 900807;
    /// `Prefer` asks a mock for what it has not.
    pub const MOCK_BAD_PREFERENCE: u32 = 900870;
    /// A mock has no example for the status.
    pub const MOCK_NOT_IMPLEMENTED: u32 = 900871;
    /// Authentication failed for no particular reason.
    pub const UNCLASSIFIED_AUTHENTICATION: u32 = 900900;
    /// The credentials are wrong.
    pub const INVALID_CREDENTIALS: u32 = 900901;
    /// There are no credentials.
    pub const MISSING_CREDENTIALS: u32 = 900902;
    /// The token expired.
    pub const TOKEN_EXPIRED: u32 = 900903;
    /// The token was revoked.
    pub const TOKEN_INACTIVE: u32 = 900904;
    /// The token is of another type.
    pub const WRONG_TOKEN_TYPE: u32 = 900905;
    /// No operation fits.
    pub const NO_MATCHING_RESOURCE: u32 = 900906;
    /// The subscription is blocked.
    pub const SUBSCRIPTION_BLOCKED: u32 = 900907;
    /// There is no subscription.
    pub const FORBIDDEN: u32 = 900908;
    /// The subscription is on hold.
    pub const SUBSCRIPTION_INACTIVE: u32 = 900909;
    /// The token has none of the scopes.
    pub const SCOPE: u32 = 900910;
    /// The token is for another audience.
    pub const AUDIENCE: u32 = 900914;
    /// An operation policy failed.
    pub const MEDIATION: u32 = 901100;
    /// The policy agent refused.
    pub const OPA_REFUSED: u32 = 901101;
    /// The policy agent could not be asked.
    pub const OPA_CALL: u32 = 901102;
    /// The policy agent's answer is not one.
    pub const OPA_REPLY: u32 = 901103;
    /// The backend cannot be reached.
    pub const UPSTREAM_CONNECTION_FAILED: u32 = 102503;
    /// The backend took too long.
    pub const UPSTREAM_TIMEOUT: u32 = 102504;
    /// More requests at once than the circuit breaker lets through.
    pub const UPSTREAM_OVERFLOW: u32 = 102505;
    /// The interceptor service could not be asked.
    pub const INTERCEPTOR_CALL: u32 = 103500;
    /// The interceptor service's answer is not one.
    pub const INTERCEPTOR_REPLY: u32 = 103501;
}

/// What the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayError {
    /// One of [`codes`].
    pub code: u32,
    /// More about it; the table's when absent.
    pub description: Option<Arc<str>>,
}

impl GatewayError {
    /// An error as the table describes it.
    pub fn new(code: u32) -> GatewayError {
        GatewayError { code, description: None }
    }

    /// An error with a description of its own.
    pub fn described(code: u32, description: impl Into<Arc<str>>) -> GatewayError {
        GatewayError { code, description: Some(description.into()) }
    }
}

impl From<GatewayError> for Fault {
    fn from(error: GatewayError) -> Fault {
        let row = row(error.code);
        let mut fault = Fault::coded(error.code, Side::Client, row.message);
        fault.detail = Some(error.description.unwrap_or_else(|| row.description.into()));
        fault
    }
}

/// A row of the table.
pub(crate) struct Row {
    /// The code.
    pub code: u32,
    /// The status.
    pub status: u16,
    /// One line.
    pub message: &'static str,
    /// More.
    pub description: &'static str,
}

/// The row of a code; what is not in the table is our failure.
pub(crate) fn row(code: u32) -> &'static Row {
    const OTHER: Row =
        Row { code: 500, status: 500, message: "Internal Server Error", description: "Internal Server Error" };
    static TABLE: &[Row] = &[
        Row {
            code: codes::NOT_FOUND,
            status: 404,
            message: "Not Found",
            description: "The requested resource is not available.",
        },
        Row {
            code: codes::INVALID_CREDENTIALS,
            status: 401,
            message: "Invalid Credentials",
            description: "Make sure you have provided the correct security credentials",
        },
    ];
    TABLE.iter().find(|row| row.code == code).unwrap_or(&OTHER)
}
