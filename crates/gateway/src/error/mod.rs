//! What a gateway refuses, with the codes and statuses of API Manager and Choreo Connect in one table (`table.rs`), what faults of the
//! engine are called here (`engine.rs`), and where API Manager has words of its own (`api_manager.rs`).

mod api_manager;
mod engine;
pub(crate) mod grpc;
mod table;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_engine::{Fault, Side};

pub(crate) use api_manager::{ErrorSequence, NO_PRODUCTION, NO_RESOURCE, NO_SANDBOX};
pub(crate) use engine::{ErrorResponse, error_response};
pub use penstock_catalog::ErrorStyle;
pub(crate) use table::{Maker, RESOURCE_FORBIDDEN, Row, row};

/// The codes policies raise. Each has one row in `table`.
pub mod codes {
    /// The request is not what the definition says.
    pub const SCHEMA_REQUEST: u32 = 400;
    /// The API is not served over this transport.
    pub const TRANSPORT_DENIED: u32 = 403;
    /// No such API or resource.
    pub const NOT_FOUND: u32 = 404;
    /// The answer is not what the definition says.
    pub const SCHEMA_RESPONSE: u32 = 500;
    /// Path known, method not.
    pub const METHOD_NOT_ALLOWED: u32 = 405;
    /// The path speaks WebSocket, and the request does not ask for it.
    pub const UPGRADE_REQUIRED: u32 = 426;
    /// The API is blocked.
    pub const API_BLOCKED: u32 = 700700;
    /// A guardrail found something in the payload. The description is the whole answer.
    pub const GUARDRAIL: u32 = 900514;
    /// A guardrail could not look at the payload.
    pub const GUARDRAIL_FAILED: u32 = 900967;
    /// The query is not GraphQL.
    pub const INVALID_QUERY: u32 = 900422;
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
    /// More subscriptions to topics than the plan allows.
    pub const SUBSCRIBERS_LIMIT: u32 = 900808;
    /// The query is nested too deep.
    pub const QUERY_TOO_DEEP: u32 = 900820;
    /// The query is too complex.
    pub const QUERY_TOO_COMPLEX: u32 = 900821;
    /// `Prefer` names an unknown example.
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
    /// The API has no definition to look at.
    pub const MISSING_DEFINITION: u32 = 900911;
    /// The token's claim is not the one that an operation policy requires.
    pub const CLAIM_MISMATCH: u32 = 900912;
    /// The token lacks the claim that an operation policy requires.
    pub const CLAIM_MISSING: u32 = 900913;
    /// The token is for another audience.
    pub const AUDIENCE: u32 = 900914;
    /// An operation policy failed.
    pub const MEDIATION: u32 = 901100;
    /// The policy agent refused.
    pub const OPA_REFUSED: u32 = 901101;
    /// The policy agent could not be called.
    pub const OPA_CALL: u32 = 901102;
    /// The policy agent's answer is not one.
    pub const OPA_REPLY: u32 = 901103;
    /// The gateway itself failed while it decided.
    pub const DECISION_FAILED: u32 = 102500;
    /// The backend cannot be reached.
    pub const UPSTREAM_CONNECTION_FAILED: u32 = 102503;
    /// The backend took too long.
    pub const UPSTREAM_TIMEOUT: u32 = 102504;
    /// More requests at once than the circuit breaker lets through.
    pub const UPSTREAM_OVERFLOW: u32 = 102505;
    /// Every attempt failed.
    pub const UPSTREAM_RETRIES: u32 = 102506;
    /// There is no backend.
    pub const NO_CLUSTER: u32 = 102507;
    /// No backend is healthy.
    pub const NO_HEALTHY_UPSTREAM: u32 = 102508;
    /// The backend reset the connection.
    pub const UPSTREAM_RESET: u32 = 102509;
    /// The backend closed the connection.
    pub const UPSTREAM_CLOSED: u32 = 102510;
    /// The gateway reset the connection.
    pub const LOCAL_RESET: u32 = 102511;
    /// A header field of the client is not one.
    pub const INVALID_HEADER: u32 = 102512;
    /// Nothing moved for too long.
    pub const STREAM_IDLE: u32 = 102513;
    /// The client broke the protocol.
    pub const CLIENT_PROTOCOL: u32 = 102514;
    /// The backend broke the protocol.
    pub const UPSTREAM_PROTOCOL: u32 = 102515;
    /// The backend's answer lasted too long.
    pub const UPSTREAM_DURATION: u32 = 102516;
    /// The interceptor service could not be called.
    pub const INTERCEPTOR_CALL: u32 = 103500;
    /// The interceptor service's answer is not one.
    pub const INTERCEPTOR_REPLY: u32 = 103501;
}

/// The codes of callers who are not let in.
const REFUSED_CALLERS_FIRST: u32 = codes::UNCLASSIFIED_AUTHENTICATION;
const REFUSED_CALLERS_LAST: u32 = codes::AUDIENCE;

/// Warnings about rejected callers per second and core, where Choreo Connect warns of each. The others are logged at the level
/// DEBUG; access log and metrics have all of them.
const WARNINGS_MAX: u32 = 10;

/// The response to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayError {
    /// One of [`codes`].
    pub code: u32,
    /// More about it; the table's when absent.
    pub description: Option<Arc<str>>,
    /// The reason, for the log and explanations, not for the client.
    pub reason: Option<Arc<str>>,
}

impl GatewayError {
    /// An error as the table describes it.
    pub fn new(code: u32) -> GatewayError {
        GatewayError { code, description: None, reason: None }
    }

    /// An error with a description of its own.
    pub fn described(code: u32, description: impl Into<Arc<str>>) -> GatewayError {
        GatewayError { code, description: Some(description.into()), reason: None }
    }

    /// A token without any of the required scopes.
    pub(crate) fn missing_scope(resource: &str) -> GatewayError {
        let text = format!("User is NOT authorized to access the Resource: {resource}. Scope validation failed.");
        GatewayError::described(codes::SCOPE, text).because("the token has none of the scopes")
    }

    /// With a reason for the log.
    pub fn because(mut self, reason: &str) -> GatewayError {
        self.reason = Some(reason.into());
        self
    }

    /// The status of the response.
    pub fn status(&self, style: ErrorStyle) -> u16 {
        row(self.code).status_in(style)
    }
}

impl From<GatewayError> for Fault {
    fn from(error: GatewayError) -> Fault {
        let row = row(error.code);
        let mut fault = Fault::coded(error.code, Side::Client, error.reason.unwrap_or_else(|| row.message.into()));
        // Without its own description that of the style is sent.
        fault.detail = error.description;
        fault.quiet = match error.code {
            codes::SCHEMA_REQUEST
            | codes::TRANSPORT_DENIED
            | codes::NOT_FOUND
            | codes::METHOD_NOT_ALLOWED
            | codes::INVALID_QUERY => true,
            900_800..=900_821 => true,
            REFUSED_CALLERS_FIRST..=REFUSED_CALLERS_LAST => !is_worth_a_warning(Instant::now()),
            _ => false,
        };
        fault
    }
}

/// Whether one more refused caller is warned of. Who tries passwords or tokens shall be seen and must not fill the log.
fn is_worth_a_warning(now: Instant) -> bool {
    thread_local! {
        static SECOND: Cell<Option<(Instant, u32)>> = const { Cell::new(None) };
    }
    let (since, told) = SECOND.get().filter(|(since, _)| now - *since < Duration::from_secs(1)).unwrap_or((now, 0));
    SECOND.set(Some((since, told.saturating_add(1))));
    told < WARNINGS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_callers_are_warned_of_until_they_are_too_many() {
        let now = Instant::now();
        let warnings = |at: u64| (0..100).filter(|_| is_worth_a_warning(now + Duration::from_millis(at))).count();
        assert_eq!([0, 900, 1000, 1999, 2500].map(warnings), [10, 0, 10, 0, 10]);
        let quiet = |code: u32| (0..100).filter(|_| Fault::from(GatewayError::new(code)).quiet).count();
        assert_eq!(quiet(codes::API_LIMIT), 100);
        assert!(quiet(codes::INVALID_CREDENTIALS) >= 90);
        assert_eq!(quiet(codes::UPSTREAM_TIMEOUT), 0);
    }
}
