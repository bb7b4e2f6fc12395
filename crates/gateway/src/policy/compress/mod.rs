//! Answers in gzip, for clients that take it: streamed, so that a body is never collected for it.

mod config;

use std::any::Any;
use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{BodyError, BodyStream, Form, Headers, Message, SizeHint};

use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, Gateway, Site};

pub use config::CompressionConfig;

/// The kind. It stands near the front, so that it is near the end of what answers run.
pub const KIND: PolicyKind = PolicyKind {
    name: "compress",
    applies_to: ApiKinds::MESSAGES.and(ApiKinds::PLATFORM).and(ApiKinds::MCP_OPEN),
    phase: Phase::Client,
    request: Some(note),
    response: Some(compile),
};

/// Notes whether the client takes gzip, while its fields are at hand.
struct Note;

/// Compresses.
struct Compress(CompressionConfig);

fn note(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    gateway.config.compression.enabled.then(|| Box::new(Note) as Box<dyn Mediator>)
}

fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let config = &gateway.config.compression;
    config.enabled.then(|| Box::new(Compress(config.clone())) as Box<dyn Mediator>)
}

impl Mediator for Note {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.message.headers.get("Accept-Encoding").is_some_and(takes_gzip) {
            CallContext::of(exchange)?.takes_gzip.set(true);
        }
        Ok(Flow::Next)
    }
}

impl Mediator for Compress {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if CallContext::of(exchange)?.takes_gzip.get() && self.gains(&exchange.message) {
            let message = &mut exchange.message;
            let form = match message.body.take() {
                Form::Bytes(bytes) => Form::Bytes(all(&bytes)),
                Form::Stream { head, rest } => {
                    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
                    let zipped = Zipped { head, rest, encoder: Some(encoder), unflushed: false };
                    Form::Stream { head: Bytes::new(), rest: Box::new(zipped) }
                }
                other => other,
            };
            message.body.put(form);
            message.headers.set("content-encoding", "gzip");
            message.headers.append("vary", "accept-encoding");
            // A strong validator names the bytes, and these are others now (RFC 9110 §8.8.3.3).
            if message.headers.get("ETag").is_some_and(|tag| !tag.starts_with("W/")) {
                message.headers.remove("ETag");
            }
        }
        Ok(Flow::Next)
    }
}

impl Compress {
    fn gains(&self, message: &Message) -> bool {
        let headers = &message.headers;
        let length = match message.body.form() {
            Form::Bytes(bytes) => Some(bytes.len() as u64),
            Form::Stream { head, rest } => match rest.size_hint() {
                SizeHint::Exact(size) => Some(size + head.len() as u64),
                SizeHint::Unknown => None,
            },
            _ => return false,
        };
        let essence = headers.get("Content-Type").map(|value| value.split(';').next().unwrap_or_default().trim());
        let partial = message.status == 206 || headers.contains("Content-Range");
        length.is_none_or(|length| length >= self.0.bytes_min)
            && !partial
            && !headers.contains("Content-Encoding")
            && !headers.get("Cache-Control").is_some_and(|value| value.contains("no-transform"))
            && essence.is_some_and(|essence| self.0.types.iter().any(|kind| kind.eq_ignore_ascii_case(essence)))
    }
}

/// RFC 9110 §12.5.3: named, or any, and not with a weight of nothing.
fn takes_gzip(field: &str) -> bool {
    let mut any = false;
    for coding in field.split(',') {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0_f32)));
        if name.eq_ignore_ascii_case("gzip") {
            return !refused;
        }
        any |= name == "*" && !refused;
    }
    any
}

fn all(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::fast());
    // Writing to a `Vec` cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default().into()
}

/// A body that is compressed as it arrives.
struct Zipped {
    head: Bytes,
    rest: Box<dyn BodyStream>,
    /// Absent once the body has ended.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Whether the encoder holds something that was not given yet.
    unflushed: bool,
}

impl BodyStream for Zipped {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let Some(encoder) = &mut self.encoder else { return Poll::Ready(None) };
        loop {
            let chunk = match std::mem::take(&mut self.head) {
                head if head.is_empty() => self.rest.poll_chunk(cx),
                head => Poll::Ready(Some(Ok(head))),
            };
            match chunk {
                Poll::Ready(Some(Ok(chunk))) => {
                    // Writing to a `Vec` cannot fail.
                    let _ = encoder.write_all(&chunk);
                    self.unflushed = true;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let last = self.encoder.take().and_then(|encoder| encoder.finish().ok()).unwrap_or_default();
                    return Poll::Ready(Some(Ok(last.into())));
                }
                // What is here goes on before more is waited for.
                Poll::Pending if self.unflushed => {
                    let _ = encoder.flush();
                    self.unflushed = false;
                }
                Poll::Pending => return Poll::Pending,
            }
            if !encoder.get_ref().is_empty() {
                return Poll::Ready(Some(Ok(std::mem::take(encoder.get_mut()).into())));
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.rest.trailers()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_whether_it_takes_gzip() {
        for (field, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("*", true),
            ("*;q=0", false),
            ("gzip;q=0, *", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(field), expected, "{field}");
        }
    }
}
