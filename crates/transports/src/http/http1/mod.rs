//! HTTP/1.1 on a socket: heads, chunks, bodies in both directions.
//!
//! [`parse_request`], [`parse_reply`] and [`ChunkDecoder`] are pure functions of bytes and the place where strictness
//! lives; the rest moves bytes.

mod chunked;
mod fields;
mod head;
mod incoming;
mod outgoing;
mod peek;
mod scan;
mod wire;

pub use chunked::{ChunkDecoder, ChunkError, ChunkStep};
pub(crate) use fields::{announces_trailers, may_follow};
pub use head::{Facts, Field, HeadError, ReplyHead, RequestHead, parse_reply, parse_request};
pub(crate) use head::{parse_reply_into, parse_request_into};
pub(crate) use incoming::{Decoder, Incoming, describe};
pub(crate) use outgoing::{
    BodyEncoder, Framing, PumpError, WireSource, is_ours, poll_pump, poll_stream, push_decimal, push_field,
    push_fields, push_framing, push_lines, remove_named_by_connection,
};
pub(crate) use scan::{is_authority, is_token, is_visible, may_end_head};
pub(crate) use wire::{SharedWire, Socket, Wire};
