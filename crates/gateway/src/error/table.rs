//! The codes with their statuses and texts, one row each.

use super::codes;
use crate::ErrorStyle;

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
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

/// Which part of Choreo Connect made an error: each writes its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// What decides over requests: `error_message`, `code`, `error_description`.
    Enforcer,
    /// What talks to backends: `code`, `message`, `description`.
    Router,
    /// The interceptor client: as the first, in another order and with blanks.
    Interceptor,
}

impl Row {
    const fn new(code: u32, status: u16, message: &'static str, description: &'static str) -> Row {
        Row { code, status, message, description }
    }

    /// The status in a style; few differ.
    pub(crate) fn status_in(&self, style: ErrorStyle) -> u16 {
        match (style, self.code) {
            (ErrorStyle::ChoreoConnect, codes::INVALID_QUERY) => 400,
            (ErrorStyle::ApiManager, codes::UNCLASSIFIED_AUTHENTICATION) => 500,
            (ErrorStyle::ApiManager, codes::SUBSCRIPTION_INACTIVE) => 401,
            (ErrorStyle::ApiManager, codes::NO_MATCHING_RESOURCE) => 403,
            _ => self.status,
        }
    }

    /// Who made it in Choreo Connect.
    pub(crate) fn maker(&self) -> Maker {
        match self.code {
            102500..=102599 => Maker::Router,
            codes::INTERCEPTOR_CALL | codes::INTERCEPTOR_REPLY => Maker::Interceptor,
            _ => Maker::Enforcer,
        }
    }
}

/// The row of a code; what is not in the table is our failure.
pub(crate) fn row(code: u32) -> &'static Row {
    find(code).unwrap_or(const { &Row::new(500, 500, "Internal Server Error", "Internal Server Error") })
}

/// The row of a code.
pub(super) fn find(code: u32) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.code == code)
}

const QUOTA: &str = "You have exceeded your quota";
const THROTTLED: &str = "Message throttled out";
const INTERNAL: &str = "Internal Server Error";
/// As API Manager and Choreo Connect write it. Choreo Connect says no more of a credential that is not for the API.
pub(crate) const RESOURCE_FORBIDDEN: &str = "Resource forbidden ";
const NOT_SUBSCRIBED: &str = "User is NOT authorized to access the Resource. API Subscription validation failed.";

/// What Envoy says of a backend, which Choreo Connect passes on.
macro_rules! reset {
    ($reason:literal) => {
        concat!("upstream connect error or disconnect/reset before headers. reset reason: ", $reason)
    };
}

/// All rows.
#[rustfmt::skip]
pub(super) static TABLE: &[Row] = &[
    Row::new(codes::SCHEMA_REQUEST, 400, "Bad Request", "The request violates the definition of the API"),
    Row::new(codes::SCHEMA_RESPONSE, 500, INTERNAL, "The response of the backend violates the definition of the API"),
    Row::new(codes::TRANSPORT_DENIED, 403, "Forbidden", "Unsupported Transport. The requested resource is not available."),
    Row::new(codes::NOT_FOUND, 404, "Not Found", "The requested resource is not available."),
    Row::new(codes::METHOD_NOT_ALLOWED, 405, "Method Not Allowed", "Method not allowed for given API resource"),
    Row::new(codes::UPGRADE_REQUIRED, 426, "Upgrade Required", "The API requires a WebSocket handshake"),
    Row::new(codes::API_BLOCKED, 503, "API blocked", "This API has been blocked temporarily. Please try again later or contact the system administrators."),
    Row::new(codes::GUARDRAIL, 446, "Guardrail", "The payload violates a guardrail"),
    Row::new(codes::GUARDRAIL_FAILED, 500, INTERNAL, "A guardrail could not look at the payload"),
    Row::new(codes::INVALID_QUERY, 422, "INVALID QUERY", "The query is not valid for the schema of the API"),
    Row::new(codes::API_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::HARD_LIMIT, 503, THROTTLED, "Maximum backend throughput limit is exceeded"),
    Row::new(codes::RESOURCE_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::SUBSCRIPTION_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::APPLICATION_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::BLOCKED, 403, "Message blocked", "You have been blocked from accessing the resource"),
    Row::new(codes::CUSTOM_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::BURST_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::SUBSCRIBERS_LIMIT, 429, THROTTLED, QUOTA),
    Row::new(codes::QUERY_TOO_DEEP, 400, "QUERY TOO DEEP", "The query is deeper than the depth allowed"),
    Row::new(codes::QUERY_TOO_COMPLEX, 400, "QUERY TOO COMPLEX", "The query is more complex than the complexity allowed"),
    Row::new(codes::MOCK_BAD_PREFERENCE, 400, "Bad Request", "The preference in the request cannot be understood"),
    Row::new(codes::MOCK_NOT_IMPLEMENTED, 501, "Not Implemented", "Mock response is not implemented for this resource."),
    Row::new(codes::UNCLASSIFIED_AUTHENTICATION, 401, "Unclassified Authentication Failure", "Unclassified Authentication Failure"),
    Row::new(codes::INVALID_CREDENTIALS, 401, "Invalid Credentials", "Make sure you have provided the correct security credentials"),
    Row::new(codes::MISSING_CREDENTIALS, 401, "Missing Credentials", "Make sure your API invocation call has a header: 'Authorization : Bearer ACCESS_TOKEN' or 'Authorization : Basic ACCESS_TOKEN' or 'ApiKey : API_KEY'"),
    Row::new(codes::TOKEN_EXPIRED, 401, "Access Token Expired", "Renew the access token and try again"),
    Row::new(codes::TOKEN_INACTIVE, 401, "Access Token Inactive", "Generate a new access token and try again"),
    Row::new(codes::WRONG_TOKEN_TYPE, 401, "Incorrect Access Token Type is provided", "Incorrect Access Token Type is provided"),
    Row::new(codes::NO_MATCHING_RESOURCE, 404, "No matching resource found for given API Request", "Check the API documentation and add a proper REST resource path to the invocation URL"),
    Row::new(codes::SUBSCRIPTION_BLOCKED, 401, "The requested API is temporarily blocked", "API Subscription is blocked"),
    Row::new(codes::FORBIDDEN, 403, RESOURCE_FORBIDDEN, NOT_SUBSCRIBED),
    Row::new(codes::SUBSCRIPTION_INACTIVE, 403, "The subscription to the API is inactive", NOT_SUBSCRIBED),
    Row::new(codes::SCOPE, 403, "The access token does not allow you to access the requested resource", "User is NOT authorized to access the Resource. Scope validation failed."),
    Row::new(codes::MISSING_DEFINITION, 500, "Missing OpenAPI definition", "The definition of the API is not available"),
    Row::new(codes::CLAIM_MISMATCH, 403, "Claim Mismatch", "The claim configured in the system and the claim provided in the token do not align. Please ensure the claims match."),
    Row::new(codes::CLAIM_MISSING, 403, "Claim Invalid", "The configured resource access validation claim is not present in the token."),
    Row::new(codes::AUDIENCE, 403, "The access token does not allow you to access the requested resource", "The audience of the access token is not one of the API"),
    Row::new(codes::MEDIATION, 500, "Mediation Policy Error", "An operation policy failed"),
    Row::new(codes::OPA_REFUSED, 403, "Forbidden", "You are not authorized to access the resource"),
    Row::new(codes::OPA_CALL, 500, INTERNAL, INTERNAL),
    Row::new(codes::OPA_REPLY, 500, INTERNAL, INTERNAL),
    Row::new(codes::DECISION_FAILED, 500, "Unclassified Validation Failure", "Error during validating the request"),
    Row::new(codes::UPSTREAM_CONNECTION_FAILED, 503, "Upstream connection failed", reset!("connection failure")),
    Row::new(codes::UPSTREAM_TIMEOUT, 504, "Upstream connection timeout", "upstream request timeout"),
    Row::new(codes::UPSTREAM_OVERFLOW, 503, "Upstream overflow", reset!("overflow")),
    Row::new(codes::UPSTREAM_RETRIES, 500, "Upstream maximum connect attempts reached", "every attempt to reach the backend failed"),
    Row::new(codes::NO_CLUSTER, 500, "Upstream not configured for the resource", "there is no backend for the request"),
    Row::new(codes::NO_HEALTHY_UPSTREAM, 503, "No healthy upstream", "no healthy upstream"),
    Row::new(codes::UPSTREAM_RESET, 503, "Upstream connection reset by the remote", reset!("remote reset")),
    Row::new(codes::UPSTREAM_CLOSED, 503, "Upstream connection termination", reset!("connection termination")),
    Row::new(codes::LOCAL_RESET, 503, "Connection reset by the gateway", reset!("local reset")),
    Row::new(codes::INVALID_HEADER, 400, "Strictly checked header validation failure", "a header field of the request is not valid"),
    Row::new(codes::STREAM_IDLE, 500, "Stream idle timeout", "stream timeout"),
    Row::new(codes::CLIENT_PROTOCOL, 500, "HTTP protocol error in downstream request", "the request breaks the protocol"),
    Row::new(codes::UPSTREAM_PROTOCOL, 500, "HTTP protocol error in upstream request", reset!("protocol error")),
    Row::new(codes::UPSTREAM_DURATION, 500, "Upstream request reached max stream duration", "upstream max stream duration reached"),
    Row::new(codes::INTERCEPTOR_CALL, 500, INTERNAL, INTERNAL),
    Row::new(codes::INTERCEPTOR_REPLY, 500, INTERNAL, INTERNAL),
];
