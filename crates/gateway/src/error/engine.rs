//! What the engine's faults are called by a gateway.

use penstock_engine::{Fault, Side, codes as engine};

use super::api_manager::{self, ErrorSequence};
use super::table::find;
use super::{Maker, Row, codes, row};
use crate::ErrorStyle;

/// The error response to a fault.
pub(crate) struct ErrorResponse {
    /// As it is written.
    pub code: u32,
    /// The status.
    pub status: u16,
    /// One line.
    pub message: &'static str,
    /// More.
    pub description: String,
    /// Who made it in Choreo Connect.
    pub maker: Maker,
    /// The sequence of API Manager that sends it.
    pub sequence: ErrorSequence,
}

/// The error response to a fault in a style.
pub(crate) fn error_response(fault: &Fault, style: ErrorStyle) -> ErrorResponse {
    let number = fault.number().unwrap_or_default();
    let (row, own) = match find(number) {
        Some(row) => (row, fault.detail.as_deref()),
        // The message of a fault of the engine is for the log.
        None => (row(of_engine(number, fault.side).unwrap_or_default()), None),
    };
    let error = match style {
        ErrorStyle::ApiManager => api_manager::error_response(fault, row.maker()),
        ErrorStyle::ChoreoConnect => of_row(row, own),
    };
    // A body that the client sent late, cut off, malformed or too large.
    ErrorResponse { status: fault.status.unwrap_or(error.status), ..error }
}

fn of_row(row: &'static Row, own: Option<&str>) -> ErrorResponse {
    let description = own.unwrap_or(row.description).to_owned();
    let status = row.status_in(ErrorStyle::ChoreoConnect);
    ErrorResponse {
        code: row.code,
        status,
        message: row.message,
        description,
        maker: row.maker(),
        sequence: ErrorSequence::Fault,
    }
}

/// The router's code for a code of the engine.
fn of_engine(number: u32, side: Side) -> Option<u32> {
    Some(match number {
        engine::RECEIVER_IO_SENDING | engine::RECEIVER_IO_RECEIVING => codes::CLIENT_PROTOCOL,
        // Without a token requests do not reach the backend.
        engine::CONNECTION_FAILED
        | engine::CONNECT_TIMEOUT
        | engine::CONNECT_CANCEL
        | engine::ENDPOINT_AUTHENTICATION => codes::UPSTREAM_CONNECTION_FAILED,
        engine::CONNECTION_TIMED_OUT => codes::UPSTREAM_TIMEOUT,
        engine::SENDER_IO_SENDING | engine::CONNECTION_CLOSED => codes::UPSTREAM_CLOSED,
        engine::SENDER_IO_RECEIVING | engine::SEND_ABORTED => codes::UPSTREAM_RESET,
        engine::PROTOCOL_VIOLATION | engine::RESPONSE_PROCESSING => codes::UPSTREAM_PROTOCOL,
        engine::GROUP_NOT_READY | engine::ENDPOINT_NOT_READY => codes::NO_HEALTHY_UPSTREAM,
        engine::FAILOVER_FAILED | engine::LOAD_BALANCE_FAILED => codes::UPSTREAM_RETRIES,
        engine::MESSAGE_PARSING if side == Side::Backend => codes::UPSTREAM_PROTOCOL,
        engine::MESSAGE_PARSING => codes::CLIENT_PROTOCOL,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::TABLE;
    use super::*;
    use crate::error::GatewayError;

    /// Code, status in the style of Choreo Connect, and in that of API Manager.
    #[rustfmt::skip]
    const STATUSES: &[(u32, u16, u16)] = &[
        (400, 400, 400), (500, 500, 500), (403, 403, 403), (404, 404, 404), (405, 405, 405), (426, 426, 426), (700700, 503, 503), (900422, 400, 422),
        (900800, 429, 429), (900801, 503, 503), (900802, 429, 429), (900803, 429, 429), (900804, 429, 429),
        (900805, 403, 403), (900806, 429, 429), (900807, 429, 429), (900808, 429, 429), (900820, 400, 400), (900821, 400, 400),
        (900514, 446, 446), (900967, 500, 500), (900912, 403, 403), (900913, 403, 403), (900870, 400, 400), (900871, 501, 501),
        (900900, 401, 500), (900901, 401, 401), (900902, 401, 401), (900903, 401, 401), (900904, 401, 401),
        (900905, 401, 401), (900906, 404, 403), (900907, 401, 401), (900908, 403, 403), (900909, 403, 401),
        (900910, 403, 403), (900911, 500, 500), (900914, 403, 403),
        (901100, 500, 500), (901101, 403, 403), (901102, 500, 500), (901103, 500, 500),
        (102500, 500, 500), (102503, 503, 500), (102504, 504, 500), (102505, 503, 503), (102506, 500, 500),
        (102507, 500, 500), (102508, 503, 500), (102509, 503, 503), (102510, 503, 503), (102511, 503, 503),
        (102512, 400, 400), (102513, 500, 500), (102514, 500, 500), (102515, 500, 500), (102516, 500, 500),
        (103500, 500, 500), (103501, 500, 500),
    ];

    /// API Manager has Synapse's codes for backends.
    fn in_api_manager(code: u32) -> u32 {
        match code {
            102503 => 101503,
            102504 => 101504,
            102508 => 303001,
            _ => code,
        }
    }

    #[test]
    fn every_code_has_its_status_in_either_style() {
        for (code, choreo_connect, api_manager) in STATUSES {
            let fault = GatewayError::new(*code).into();
            let styles = [ErrorStyle::ChoreoConnect, ErrorStyle::ApiManager].map(|style| error_response(&fault, style));
            let [first, second] = &styles;
            assert_eq!((first.code, second.code), (*code, in_api_manager(*code)));
            assert_eq!((first.status, second.status), (*choreo_connect, *api_manager), "{code}");
            assert!(!first.message.is_empty() && !first.description.is_empty(), "{code}");
        }
        let listed: Vec<u32> = STATUSES.iter().map(|(code, ..)| *code).collect();
        let rows: Vec<u32> = TABLE.iter().map(|row| row.code).collect();
        assert!(rows.iter().all(|code| listed.contains(code)) && rows.len() == listed.len(), "{rows:?}");
    }

    #[test]
    fn faults_of_the_engine_have_the_routers_codes_or_api_managers_own() {
        for (number, side, code, status) in [
            (engine::CONNECTION_FAILED, Side::Backend, 102503, 503),
            (engine::CONNECT_TIMEOUT, Side::Backend, 102503, 503),
            (engine::CONNECTION_TIMED_OUT, Side::Backend, 102504, 504),
            (engine::CONNECTION_CLOSED, Side::Backend, 102510, 503),
            (engine::SENDER_IO_RECEIVING, Side::Backend, 102509, 503),
            (engine::PROTOCOL_VIOLATION, Side::Backend, 102515, 500),
            (engine::ENDPOINT_NOT_READY, Side::Backend, 102508, 503),
            (engine::MESSAGE_PARSING, Side::Client, 102514, 500),
            (engine::MESSAGE_PARSING, Side::Backend, 102515, 500),
        ] {
            let fault = Fault::coded(number, side, "x");
            let router = error_response(&fault, ErrorStyle::ChoreoConnect);
            assert_eq!((router.code, router.status, router.maker), (code, status, Maker::Router), "{number}");
            let synapse = error_response(&fault, ErrorStyle::ApiManager);
            assert_eq!((synapse.code, synapse.status, synapse.message), (number, 500, "Runtime Error"));
        }
        assert_eq!(
            error_response(&Fault::new("secret of ours"), ErrorStyle::ChoreoConnect).description,
            "Internal Server Error"
        );
    }
}
