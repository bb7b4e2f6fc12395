//! Refusals for clients of gRPC: a response without body whose status is in header fields ("Trailers-Only").

use penstock_message::{Headers, Message};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Whether the field says that a message is one of gRPC over HTTP/2. That of gRPC-Web has its status in the body.
pub(crate) fn is_grpc(headers: &Headers) -> bool {
    const NAME: &str = "application/grpc";
    let content_type = headers.get("content-type").unwrap_or_default();
    let rest = content_type.get(..NAME.len()).filter(|start| start.eq_ignore_ascii_case(NAME));
    rest.is_some_and(|_| matches!(content_type.as_bytes().get(NAME.len()), None | Some(b'+' | b';' | b' ')))
}

/// The response for a status of HTTP.
pub(crate) fn refusal(status: u16, message: &str) -> Message {
    let mut headers = Headers::new();
    headers.set("content-type", "application/grpc");
    headers.set("grpc-status", code(status));
    headers.set("grpc-message", utf8_percent_encode(message, STATUS_MESSAGE).to_string());
    // As from a backend: of a reply made here an empty body would lose its type.
    Message { headers, status: 200, is_reply: true, ..Message::default() }
}

/// The code of gRPC for a status, as its mapping of HTTP statuses has it (`http-grpc-status-mapping.md`).
fn code(status: u16) -> &'static str {
    match status {
        400 => "13",
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502 | 503 | 504 => "14",
        _ => "2",
    }
}

/// Everything but printable ASCII, and `%`, is escaped (gRPC over HTTP/2, `Percent-Encoded`).
const STATUS_MESSAGE: &AsciiSet = &CONTROLS.add(b'%');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_status_in_fields() {
        let refusal = refusal(401, "nö, 100%\n");
        let field = |name: &str| refusal.headers.get(name).map(str::to_owned);
        assert_eq!((refusal.status, field("grpc-status").as_deref()), (200, Some("16")));
        assert_eq!(field("grpc-message").as_deref(), Some("n%C3%B6, 100%25%0A"));
        for (content_type, expected) in [
            ("application/grpc", true),
            ("Application/gRPC+proto", true),
            ("application/grpc; charset=x", true),
            ("application/grpc-web+proto", false),
            ("application/json", false),
            ("", false),
        ] {
            let mut headers = Headers::new();
            headers.set("content-type", content_type);
            assert_eq!(is_grpc(&headers), expected, "{content_type}");
        }
    }
}
