//! What the engine's faults are called by a gateway.

use penstock_engine::{Fault, Side, codes as engine};

use super::table::find;
use super::{Maker, Row, codes, row};
use crate::config::ErrorStyle;

/// What a client is told of a fault.
pub(crate) struct Told {
    /// As it is written.
    pub code: u32,
    /// The status.
    pub status: u16,
    /// One line.
    pub message: &'static str,
    /// More.
    pub description: String,
    /// Who made it in the original.
    pub maker: Maker,
}

/// What a client is told of a fault in a style.
pub(crate) fn told(fault: &Fault, style: ErrorStyle) -> Told {
    let number = fault.number().unwrap_or_default();
    if let Some(row) = find(number) {
        return of_row(row, fault, style);
    }
    let Some(code) = of_engine(number, fault.side) else { return of_row(row(0), fault, style) };
    if style == ErrorStyle::ChoreoConnect {
        return of_row(row(code), &Fault::new(""), style);
    }
    let status = match row(code).status {
        503 if number == engine::MESSAGE_PARSING => 500,
        status => status,
    };
    let description = runtime_error(number).to_owned();
    Told { code: number, status, message: "Runtime Error", description, maker: Maker::Router }
}

fn of_row(row: &'static Row, fault: &Fault, style: ErrorStyle) -> Told {
    let own = fault.detail.as_deref();
    // API Manager repeats the line in front of what to do about it.
    let repeats = matches!(row.code, codes::INVALID_CREDENTIALS | codes::MISSING_CREDENTIALS);
    let description = match style {
        ErrorStyle::ApiManager if repeats => format!("{}. {}", row.message, own.unwrap_or(row.description)),
        _ => own.unwrap_or(row.description).to_owned(),
    };
    let status = row.status_in(style);
    Told { code: row.code, status, message: row.message, description, maker: row.maker() }
}

/// The router's code for a code of the engine.
fn of_engine(number: u32, side: Side) -> Option<u32> {
    Some(match number {
        engine::RECEIVER_IO_SENDING | engine::RECEIVER_IO_RECEIVING => codes::CLIENT_PROTOCOL,
        engine::CONNECTION_FAILED | engine::CONNECT_TIMEOUT | engine::CONNECT_CANCEL => {
            codes::UPSTREAM_CONNECTION_FAILED
        }
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

/// API Manager's words.
fn runtime_error(number: u32) -> &'static str {
    match number {
        engine::CONNECTION_FAILED => "Error connecting to the back end",
        engine::CONNECTION_TIMED_OUT => "Connection timed out",
        engine::CONNECTION_CLOSED => "Connection closed",
        engine::CONNECT_TIMEOUT => "Connection timeout",
        engine::GROUP_NOT_READY | engine::ENDPOINT_NOT_READY => "Currently, Address endpoint is suspended",
        engine::MESSAGE_PARSING => "Error while building message",
        _ => "Error while sending or receiving the message",
    }
}
