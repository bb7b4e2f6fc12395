//! Requests that are passed on as they came: the head is written from the bytes it arrived in, without a message in between.

use std::future::poll_fn;

use penstock_engine::{Fault, Passage};
use penstock_message::Method;

use super::exchange::{Allowance, Exchange, Failure, Start};
use super::request::framing;
use super::url::{PreparedUrl, Url};
use super::{HttpSender, Payload, is_idempotent};
use crate::http::http1::{
    Framing, Incoming, ReplyHead, RequestHead, SharedWire, announces_trailers, is_ours, push_framing, push_lines,
};

/// A request that is passed on.
pub(crate) struct PassedRequest {
    pub(crate) passage: Passage,
    pub(crate) method: Method,
    pub(crate) head: RequestHead,
    /// The bytes of the head and of a short body that came with it.
    pub(crate) block: Vec<u8>,
    /// The length of that body.
    pub(crate) joined: Option<usize>,
    /// The connection on which the body lies or arrives, if there is one.
    pub(crate) body: Option<SharedWire>,
}

impl HttpSender {
    /// Whether this sender can pass a request on: the address is one of HTTP.
    pub(crate) fn can_pass(&self, passage: &Passage) -> bool {
        passage.address().and_then(|address| address.prepared(PreparedUrl::parse)).is_some_and(Option::is_some)
    }

    /// Sends the request and waits for the head of the response.
    pub(crate) async fn pass_on(&self, request: &PassedRequest) -> Result<(Exchange, ReplyHead), Fault> {
        let passage = &request.passage;
        let unknown = || Fault::new("the address of the endpoint is not one of HTTP");
        let address = passage.address().ok_or_else(unknown)?;
        let prepared = address.prepared(PreparedUrl::parse).and_then(Option::as_ref).ok_or_else(unknown)?;
        let url = prepared.url(&address.url);
        let allowance = Allowance::new(&self.core, passage.response_timeout, passage.time_left);
        let backend = self.pool.backend(&url, None);
        let repeatable = is_idempotent(&request.method) && (request.body.is_none() || request.joined.is_some());
        let mut payload = request.body.as_ref().map_or(Payload::Empty, |wire| Payload::Wire(Incoming::new(wire)));
        let mut may_reuse = true;
        loop {
            let pooled = if may_reuse { self.pool.take(&backend) } else { None };
            let reused = pooled.is_some();
            let wire = match pooled {
                Some((wire, _)) => {
                    self.core.counters.reused.add(1);
                    wire
                }
                None => {
                    // Boxed like all that is rare: each request carries the size of this future.
                    let socket = Box::pin(self.connect(&url, &backend, false, &allowance)).await?;
                    self.core.counters.connects.add(1);
                    self.pool.wire(socket, &self.limits, &self.config.timeouts)
                }
            };
            let framing = framing(&payload, &request.method);
            let mut head = self.core.take_scratch();
            write_head(&mut head, &url, request, framing);
            let start = Start {
                wire,
                head,
                framing,
                payload,
                keep: true,
                to_head: false,
                websocket: false,
                allowance,
                write_timeout: self.config.timeouts.write,
            };
            let mut exchange = Exchange::start(&self.core, &self.pool, &backend, start);
            match poll_fn(|cx| exchange.poll_head(cx)).await {
                Ok(head) => return Ok((exchange, head)),
                // See the general way in `HttpSender::exchange`.
                Err(Failure::ClosedBeforeReply) if reused && repeatable => {
                    payload = match request.block.get(request.head.length..) {
                        Some(body @ [_, ..]) => Payload::Bytes(bytes::Bytes::copy_from_slice(body)),
                        _ => Payload::Empty,
                    };
                    may_reuse = false;
                }
                Err(failure) => return Err(failure.into_fault(&url, passage.response_timeout)),
            }
        }
    }
}

/// Writes request line and fields.
fn write_head(head: &mut Vec<u8>, url: &Url<'_>, request: &PassedRequest, framing: Framing) {
    let passage = &request.passage;
    let target = request.block.get(request.head.target.clone()).unwrap_or_default();
    let postfix = target.get(passage.postfix.clone()).unwrap_or_default();
    head.extend_from_slice(request.method.as_str().as_bytes());
    head.push(b' ');
    let line_at = head.len();
    head.extend_from_slice(url.path.as_bytes());
    if passage.slash {
        head.push(b'/');
    }
    head.extend_from_slice(postfix);
    if head.get(line_at) != Some(&b'/') {
        head.insert(line_at, b'/');
    }
    head.extend_from_slice(b" HTTP/1.1\r\n");
    // The address holds no white space and no control character: see `Url::parse`.
    head.extend_from_slice(b"Host: ");
    head.extend_from_slice(url.authority.as_bytes());
    head.extend_from_slice(b"\r\n");
    // RFC 9110 §9.3.1: a GET without a body has no Content-Type, as in the general way.
    let has_type = request.method != Method::Get;
    push_lines(head, &request.block, &request.head.fields, |name, _| {
        (!is_ours(name) || announces_trailers(name, framing))
            && Passage::forwards(name)
            && (has_type || !name.eq_ignore_ascii_case(b"Content-Type"))
    });
    push_framing(head, framing);
    head.extend_from_slice(b"\r\n");
}
