//! The head of a request to a backend.

use penstock_engine::ports::Outgoing;
use penstock_message::{Method, SizeHint};

use super::Payload;
use super::url::Url;
use crate::http::http1::{Framing, announces_trailers, is_ours, push_field, push_fields, push_framing};

/// How the body of a request is framed.
pub(crate) fn framing(payload: &Payload, method: &Method) -> Framing {
    match payload {
        // RFC 9110 §8.6: methods that anticipate a body say that there is none.
        Payload::Empty => match method {
            Method::Post | Method::Put | Method::Patch => Framing::Length(0),
            _ => Framing::None,
        },
        Payload::Bytes(bytes) => Framing::Length(bytes.len() as u64),
        Payload::Wire(incoming) => of_hint(penstock_message::BodyStream::size_hint(incoming), 0),
        Payload::Stream { head, rest } => of_hint(rest.size_hint(), head.len() as u64),
    }
}

fn of_hint(hint: SizeHint, more: u64) -> Framing {
    match hint {
        SizeHint::Exact(size) => Framing::Length(size.saturating_add(more)),
        SizeHint::Unknown => Framing::Chunked,
    }
}

/// Writes request line and fields.
pub(crate) fn write_head(head: &mut Vec<u8>, url: &Url<'_>, outgoing: &Outgoing, framing: Framing) {
    let options = &outgoing.options;
    head.extend_from_slice(outgoing.method.as_str().as_bytes());
    head.push(b' ');
    if options.http.absolute_form {
        head.extend_from_slice(if url.secure { b"https://".as_slice() } else { b"http://" });
        head.extend_from_slice(url.authority.as_bytes());
    }
    if !url.path.starts_with('/') {
        head.push(b'/');
    }
    head.extend_from_slice(url.path.as_bytes());
    head.extend_from_slice(if options.http.http10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    let headers = &outgoing.message.headers;
    if !headers.contains("Host") {
        push_field(head, b"Host", url.authority.as_bytes());
    }
    push_fields(head, headers, |name| {
        (!is_ours(name) && !name.eq_ignore_ascii_case(b"Expect")) || announces_trailers(name, framing)
    });
    push_framing(head, framing);
    if options.http.websocket {
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    } else if options.http.close || options.http.http10 {
        head.extend_from_slice(b"Connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
}
