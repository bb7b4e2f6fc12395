//! Error texts of API Manager's gateway: of its handlers and sequences.

use penstock_engine::{Fault, codes as engine};

use super::table::find;
use super::{ErrorResponse, codes, row};
use crate::ErrorStyle;

/// The sequence of API Manager that sends an error. Each has its own format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorSequence {
    /// `_auth_failure_handler_`: who calls is not let in.
    AuthFailure,
    /// `_throttle_out_handler_`: there were too many requests.
    ThrottleOut,
    /// `_threat_fault_`, and others that write as little: the message is not what it should be.
    Threat,
    /// `_block_api_handler_`.
    Blocked,
    /// `fault`: a backend or a policy failed, or an API has no such resource.
    Fault,
    /// `main`: there is no such API.
    Main,
}

/// The description for an unknown resource.
pub(crate) const NO_RESOURCE: &str = "No matching resource found for given API Request";
/// The description for a key of a type without a backend.
pub(crate) const NO_SANDBOX: &str = "Sandbox key offered to the API with no sandbox endpoint";
/// The other way round.
pub(crate) const NO_PRODUCTION: &str = "Production key offered to the API with no production endpoint";

/// All that `fault` says in its one line.
const RUNTIME_ERROR: &str = "Runtime Error";

/// The description for all failures of the subscription check.
const NOT_SUBSCRIBED: &str = "User is NOT authorized to access the Resource. API Subscription validation failed.";

/// The error response to a fault.
pub(super) fn error_response(fault: &Fault, maker: super::Maker) -> ErrorResponse {
    let number = fault.number().unwrap_or_default();
    let own = fault.detail.as_deref();
    let (code, status, message, description, sequence) = match number {
        codes::NOT_FOUND if own == Some(NO_RESOURCE) => {
            (404, 404, RUNTIME_ERROR, NO_RESOURCE.into(), ErrorSequence::Fault)
        }
        codes::METHOD_NOT_ALLOWED => (405, 405, RUNTIME_ERROR, row(number).description.into(), ErrorSequence::Fault),
        codes::INVALID_CREDENTIALS if matches!(own, Some(NO_SANDBOX | NO_PRODUCTION)) => {
            (number, 403, RUNTIME_ERROR, own.unwrap_or_default().into(), ErrorSequence::Fault)
        }
        codes::UPSTREAM_CONNECTION_FAILED => of_backend(engine::CONNECTION_FAILED, "Error connecting to the back end"),
        codes::UPSTREAM_TIMEOUT => of_backend(engine::CONNECTION_TIMED_OUT, "Send timeout"),
        codes::NO_HEALTHY_UPSTREAM => of_backend(engine::ENDPOINT_NOT_READY, SUSPENDED),
        _ if find(number).is_some() => of_handler(number, own),
        _ if is_of_backend(number) => of_backend(number, fault.synapse_message().unwrap_or_else(|| word(number))),
        _ => of_handler(500, None),
    };
    ErrorResponse { code, status, message, description, maker, sequence }
}

type Words = (u32, u16, &'static str, String, ErrorSequence);

/// `fault` always responds with 500.
fn of_backend(number: u32, description: &str) -> Words {
    (number, 500, RUNTIME_ERROR, description.to_owned(), ErrorSequence::Fault)
}

const SUSPENDED: &str = "Currently , Address endpoint : [ State : SUSPENDED ]";

fn is_of_backend(number: u32) -> bool {
    matches!(number, 101_000..=101_999 | 303_000..=305_999 | engine::MESSAGE_PARSING)
}

/// What was not recorded of API Manager, in its manner.
fn word(number: u32) -> &'static str {
    match number {
        engine::ENDPOINT_AUTHENTICATION => "No token for the back end",
        engine::GROUP_NOT_READY | engine::ENDPOINT_NOT_READY => SUSPENDED,
        engine::MESSAGE_PARSING => "Error while building message",
        _ => "Error while sending or receiving the message",
    }
}

/// What handlers refuse.
fn of_handler(code: u32, own: Option<&str>) -> Words {
    let row = row(code);
    let (mut message, mut description) = (row.message, own.unwrap_or(row.description).to_owned());
    match code {
        // Some say the line again, and then what to do about it.
        codes::INVALID_CREDENTIALS => {
            description = format!("{}. {}", own.unwrap_or(row.message), row.description);
        }
        // Which fields the API takes is said by who misses them.
        codes::MISSING_CREDENTIALS => {
            description = format!("Invalid Credentials. {}", own.unwrap_or(row.description));
        }
        codes::TOKEN_EXPIRED | codes::TOKEN_INACTIVE | codes::NO_MATCHING_RESOURCE => {
            description = format!("{}. {}", own.unwrap_or(row.message), row.description);
        }
        codes::FORBIDDEN => message = "Resource forbidden ",
        codes::AUDIENCE => (message, description) = ("Access Denied", row.message.to_owned()),
        codes::HARD_LIMIT => (message, description) = ("API Limit Reached", "API not accepting requests".to_owned()),
        codes::SCHEMA_RESPONSE if own.is_some() => message = "Bad Response",
        _ => {}
    }
    if matches!(code, codes::SUBSCRIPTION_BLOCKED | codes::SUBSCRIPTION_INACTIVE) && own.is_none() {
        description = NOT_SUBSCRIBED.to_owned();
    }
    let sequence = match code {
        codes::INVALID_QUERY | codes::QUERY_TOO_DEEP | codes::QUERY_TOO_COMPLEX => ErrorSequence::AuthFailure,
        900_800..=900_808 => ErrorSequence::ThrottleOut,
        900_000..=900_999 => ErrorSequence::AuthFailure,
        codes::SCHEMA_REQUEST | 901_100..=901_199 => ErrorSequence::Threat,
        codes::SCHEMA_RESPONSE if own.is_some() => ErrorSequence::Threat,
        codes::API_BLOCKED => ErrorSequence::Blocked,
        codes::NOT_FOUND | codes::TRANSPORT_DENIED => ErrorSequence::Main,
        _ => ErrorSequence::Fault,
    };
    (code, row.status_in(ErrorStyle::ApiManager), message, description, sequence)
}
