//! What both sides of HTTP/2 share.

mod body;

use std::future::poll_fn;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::SendStream;
use penstock_message::{HeaderBlock, Headers};

use super::http1::{Field, Framing, announces_trailers, is_ours, may_follow};
pub(super) use body::{Refusal, StreamBody};

/// Header fields in one block.
pub(super) fn headers_of(map: &http::HeaderMap) -> Headers {
    let mut block = BytesMut::new();
    let mut fields: Vec<Field> = Vec::with_capacity(map.len());
    let mut push = |bytes: &[u8]| {
        let start = block.len() as u32;
        block.extend_from_slice(bytes);
        start..block.len() as u32
    };
    let mut after_cookie = false;
    for (name, value) in map {
        let is_cookie = name == http::header::COOKIE;
        match fields.last_mut() {
            // RFC 9113 §8.2.3: cut apart for compression; outside of HTTP/2 it is one field.
            Some((_, whole)) if is_cookie && after_cookie => {
                push(b"; ");
                whole.end = push(value.as_bytes()).end;
            }
            _ => fields.push((push(name.as_str().as_bytes()), push(value.as_bytes()))),
        }
        after_cookie = is_cookie;
    }
    Headers::from_block(HeaderBlock { bytes: block.freeze(), fields })
}

/// The fields that may cross before a body of that framing. What cannot be a field in HTTP/2 is left out, as in HTTP/1.1.
pub(super) fn fields_of(
    headers: &Headers,
    framing: Framing,
) -> impl Iterator<Item = (http::HeaderName, http::HeaderValue)> {
    headers.iter().filter(move |(name, _)| !is_ours(name) || announces_trailers(name, framing)).filter_map(field_of)
}

fn field_of((name, value): (&[u8], &[u8])) -> Option<(http::HeaderName, http::HeaderValue)> {
    Some((http::HeaderName::from_bytes(name).ok()?, http::HeaderValue::from_bytes(value).ok()?))
}

/// Whether a value begins or ends with white space, which HTTP/2 forbids (RFC 9113 §8.2.1) and HTTP/1 strips.
pub(super) fn has_outer_blank(value: &http::HeaderValue) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.as_bytes().first()) || is_blank(value.as_bytes().last())
}

/// Sends as the window of the peer allows; `last` ends the stream. `on_sent` hears how many bytes the window took each time.
pub(super) async fn send_piece(
    sink: &mut SendStream<Bytes>,
    mut piece: Bytes,
    last: bool,
    timeout: Duration,
    on_sent: impl Fn(usize),
) -> Result<(), h2::Error> {
    while !piece.is_empty() {
        sink.reserve_capacity(piece.len());
        let room = match tokio::time::timeout(timeout, poll_fn(|cx| sink.poll_capacity(cx))).await {
            Ok(Some(room)) => room?,
            Ok(None) | Err(_) => return Err(h2::Reason::CANCEL.into()),
        };
        let now = piece.split_to(room.min(piece.len()));
        on_sent(now.len());
        sink.send_data(now, last && piece.is_empty())?;
    }
    Ok(())
}

/// Ends a body, with the fields that may follow it.
pub(super) fn end(sink: &mut SendStream<Bytes>, trailers: Option<&Headers>) -> Result<(), h2::Error> {
    match trailers {
        None => sink.send_data(Bytes::new(), true),
        Some(trailers) => {
            let fields = trailers.iter().filter(|(name, _)| may_follow(name)).filter_map(field_of);
            sink.send_trailers(fields.collect())
        }
    }
}
