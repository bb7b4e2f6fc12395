//! HTTP over real sockets: raw bytes in, raw bytes out.

#![allow(missing_docs, clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests: a panic is the report")]

mod blame;
mod common;
mod http2_backend;
mod http2_frames;
mod http2_requests;
mod listener;
mod passing;
mod proxied;
mod refusals;
mod sender;
mod tls;
mod trailers;
mod websocket;
