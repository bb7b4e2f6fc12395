//! HTTP/2 for clients that negotiate it: framing by the `h2` crate, one local task per stream, the same service.

mod frames;
mod hpack;
mod socket;
mod watch;

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use h2::server::{Connection, SendResponse};
use h2::{RecvStream, SendStream};
use penstock_engine::ports::{Client, Request};
use penstock_message::{Body, BodyStream, Form, Message, Method, RequestLine, SizeHint};

use super::connection::plain;
use super::reply::make_final;
use super::{AccessEntry, OnDrop, Shared};
use crate::http::HttpLimits;
use crate::http::http1::{Framing, Socket, is_authority};
use crate::http::http2::{Refusal, StreamBody, end, fields_of, has_outer_blank, headers_of, send_piece};
use crate::http::per_core::Timer;
pub use frames::malformed_trailers;
use socket::{LingerLimits, WatchedSocket};
use watch::FrameWatch;

/// Requests at once on one connection, the number browsers expect.
const STREAMS_MAX: u32 = 128;

/// What a client may send of one body before we have read it.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same for all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// What we buffer of one reply that the client does not take.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Serves a connection that speaks HTTP/2; `read` is what was read of it while finding out.
pub(super) async fn serve(socket: Socket, read: BytesMut, peer: SocketAddr, local: SocketAddr, shared: &Rc<Shared>) {
    let secure = matches!(socket, Socket::Tls(_));
    let certificate = socket.peer_certificate();
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(shared.limits.head_bytes_max).unwrap_or(u32::MAX));
    let linger = LingerLimits { time: shared.config.timeouts.linger, bytes: shared.limits.drain_bytes_max };
    let watch = Rc::new(FrameWatch::new());
    let handshake = builder.handshake(WatchedSocket::new(read, socket, &watch, linger));
    let Ok(Ok(mut connection)) = tokio::time::timeout(shared.config.timeouts.handshake, handshake).await else {
        return;
    };
    let running = Rc::new(Cell::new(0usize));
    let timer = shared.core.timer();
    let mut waiting = Waiting { draining: false, idle: false };
    while let Some((request, respond)) =
        poll_fn(|cx| poll_accept(&mut connection, &mut waiting, &timer, &running, &watch, shared, cx)).await
    {
        watch.request_accepted();
        let (shared, watch, certificate) = (shared.clone(), watch.clone(), certificate.clone());
        let stream = Stream { shared, peer, local, secure, certificate, watch };
        let counted = running.clone();
        running.set(running.get() + 1);
        let timer = timer.clone();
        tokio::task::spawn_local(async move {
            // The connection looks again whether it is idle when its last stream ends.
            let _ended = OnDrop(|| {
                counted.set(counted.get() - 1);
                timer.wake();
            });
            let id = request.body().stream_id().as_u32();
            stream.answer(request, respond).await;
            stream.watch.forget(id);
        });
    }
    if watch.is_exceeded() {
        shared.core.counters.refused.add(1);
        connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
        // The client may not read the reason.
        let _ = tokio::time::timeout(2 * linger.time, poll_fn(|cx| connection.poll_closed(cx))).await;
    }
}

struct Waiting {
    draining: bool,
    idle: bool,
}

/// Why a request is rejected before dispatch: the checks of HTTP/1.1 that apply to HTTP/2.
fn refusal(request: &http::Request<RecvStream>, limits: &HttpLimits) -> Option<(u16, &'static str)> {
    let (uri, headers) = (request.uri(), request.headers());
    if headers.len() > limits.fields_max {
        return Some((431, "the head has too many fields"));
    }
    let is_known = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !headers.get_all(http::header::EXPECT).iter().all(is_known) {
        return Some((417, "the expectation is not known"));
    }
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    if target.len() > limits.target_bytes_max {
        return Some((414, "the request target is too long"));
    }
    let whole_server = target == "*" && request.method() == http::Method::OPTIONS;
    // CONNECT has none.
    if !target.starts_with('/') && !whole_server {
        return Some((400, "the request target is malformed"));
    }
    let mut hosts = headers.get_all(http::header::HOST).iter();
    let host = hosts.next().map(http::HeaderValue::as_bytes);
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes()).or(host);
    if hosts.next().is_some() || !authority.is_some_and(is_authority) {
        return Some((400, "the authority is missing, repeated or malformed"));
    }
    // RFC 9113 §8.3.1: a `Host` that names another server is malformed.
    let scheme = uri.scheme_str().unwrap_or_default();
    if host.is_some_and(|host| authority.is_some_and(|authority| !is_same_authority(host, authority, scheme))) {
        return Some((400, "`host` and `:authority` differ"));
    }
    if headers.values().any(has_outer_blank) {
        return Some((400, "a field value begins or ends with white space"));
    }
    let length = headers.get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.filter(|length: &u64| *length > limits.body_bytes_max).map(|_| (413, "the body is too large"))
}

/// Whether two authorities name the same server; the default port of the scheme counts as none.
fn is_same_authority(left: &[u8], right: &[u8], scheme: &str) -> bool {
    let default: &[u8] = if scheme == "https" { b":443" } else { b":80" };
    let plain = |authority: &'_ [u8]| authority.len() - if authority.ends_with(default) { default.len() } else { 0 };
    left[..plain(left)].eq_ignore_ascii_case(&right[..plain(right)])
}

type Incoming = (http::Request<RecvStream>, SendResponse<Bytes>);

/// The next stream; `None` when the connection is over.
fn poll_accept(
    connection: &mut Connection<WatchedSocket, Bytes>,
    waiting: &mut Waiting,
    timer: &Rc<Timer>,
    running: &Cell<usize>,
    watch: &FrameWatch,
    shared: &Shared,
    cx: &mut Context<'_>,
) -> Poll<Option<Incoming>> {
    loop {
        let accepted = connection.poll_accept(cx);
        if watch.is_exceeded() {
            return Poll::Ready(None);
        }
        match accepted {
            Poll::Ready(Some(Ok(stream))) => {
                waiting.idle = false;
                return Poll::Ready(Some(stream));
            }
            Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        let fired = timer.poll_fired(cx);
        if !waiting.draining && (shared.draining.get() || fired) {
            // GOAWAY; what runs goes on, the next poll ends the connection when nothing does.
            (waiting.draining, waiting.idle) = (true, false);
            timer.disarm();
            connection.graceful_shutdown();
            continue;
        }
        if waiting.draining && fired {
            return Poll::Ready(None);
        }
        let idle = running.get() == 0;
        if idle != waiting.idle {
            waiting.idle = idle;
            let timeouts = &shared.config.timeouts;
            // A client that reads nothing never gets the GOAWAY, and must not keep the connection by that.
            let time = if waiting.draining { 2 * timeouts.linger } else { timeouts.idle };
            if idle { timer.arm(&shared.core, time) } else { timer.disarm() }
        }
        return Poll::Pending;
    }
}

struct Stream {
    shared: Rc<Shared>,
    peer: SocketAddr,
    local: SocketAddr,
    secure: bool,
    certificate: Option<Arc<[u8]>>,
    watch: Rc<FrameWatch>,
}

impl Stream {
    async fn answer(&self, request: http::Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let core = &self.shared.core;
        let start = Instant::now();
        core.counters.requests.add(1);
        core.counters.in_flight.add(1);
        let _ended = OnDrop(|| core.counters.in_flight.subtract(1));
        if let Some((status, why)) = refusal(&request, &self.shared.limits) {
            core.counters.refused.add(1);
            core.counters.replied(status);
            let _ = self.send(plain(status, why), request.method() == http::Method::HEAD, respond, None).await;
            return;
        }
        if request.headers().contains_key(http::header::EXPECT) {
            let mut interim = http::Response::new(());
            *interim.status_mut() = http::StatusCode::CONTINUE;
            let _ = respond.send_informational(interim);
        }
        let failure = Refusal::default();
        let request = self.request(request, &failure);
        let client = request.client.clone();
        let asked = self.shared.access.as_ref().filter(|access| access.wants_headers());
        let request_headers = asked.map(|_| request.message.headers.clone());
        let message = self.shared.service.answer(request).await;
        let mut message = match failure.take() {
            // The service took the request for complete.
            Some((status, why)) if message.status < 400 => plain(status, &why.to_string()),
            _ => message,
        };
        make_final(&mut message);
        let (status, extension) = (message.status, message.extension.take());
        let is_head = client.line.method == Method::Head;
        let until = (!message.is_long_lived()).then(|| start + self.shared.config.timeouts.deadline);
        let (length, outcome) = self.send(message, is_head, respond, until).await;
        core.counters.replied(status);
        if let Some(access) = &self.shared.access {
            access.record(&AccessEntry {
                address: client.address,
                peer: self.peer,
                line: &client.line,
                protocol: client.protocol,
                status,
                body_bytes: length,
                took: start.elapsed(),
                complete: outcome.is_ok(),
                request_headers: request_headers.as_ref(),
                extension: extension.as_ref(),
            });
        }
    }

    fn request(&self, request: http::Request<RecvStream>, failure: &Refusal) -> Request {
        let (parts, stream) = request.into_parts();
        let method = Method::parse(parts.method.as_str());
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let line = RequestLine {
            method: method.clone(),
            target: Bytes::copy_from_slice(target.as_bytes()),
            secure: self.secure,
        };
        let mut headers = headers_of(&parts.headers);
        if let Some(authority) = parts.uri.authority() {
            // RFC 9113 §8.3.1: `Host` is not what decides when both are there.
            headers.set("Host", authority.as_str());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut message = Message { headers, method, ..Message::default() };
        if !stream.is_end_stream() {
            let timeouts = &self.shared.config.timeouts;
            let timeout = if message.is_long_lived() { timeouts.stream_idle } else { timeouts.body };
            let limit = self.shared.limits.body_bytes_max;
            let (watch, id) = (self.watch.clone(), stream.stream_id().as_u32());
            let well_formed = move || !watch.has_malformed_trailers(id);
            let body = StreamBody::new(stream, length, &self.shared.core, timeout).of_request(limit, failure);
            message.body = Body::stream(Box::new(body.with_trailers_if(well_formed)));
        }
        Request {
            client: Rc::new(Client {
                line,
                address: self.shared.config.trusted_proxies.client_address(self.peer.ip(), &message.headers),
                peer: self.peer,
                local: self.local,
                protocol: "HTTP/2",
                certificate: self.certificate.clone(),
            }),
            message,
        }
    }

    /// Sends the reply, a stream until a deadline when there is one; its length when it was known, and whether it arrived.
    async fn send(
        &self,
        mut message: Message,
        is_head: bool,
        mut respond: SendResponse<Bytes>,
        until: Option<Instant>,
    ) -> (Option<u64>, Result<(), h2::Error>) {
        let status = message.status;
        let form = message.body.take_to_send();
        let length = match &form {
            Form::Bytes(bytes) => Some(bytes.len() as u64),
            Form::Text(text) => Some(text.len() as u64),
            Form::Stream { head, rest } => match rest.size_hint() {
                SizeHint::Exact(size) => Some(size.saturating_add(head.len() as u64)),
                SizeHint::Unknown => None,
            },
            Form::Empty | Form::Xml(_) | Form::Json(_) => Some(0),
        };
        let bodiless = matches!(status, 204 | 304);
        let response = self.response(&message, length.filter(|_| !bodiless));
        // What a stream ends with is not known before its end.
        let ends = is_head || bodiless || (length == Some(0) && !matches!(form, Form::Stream { .. }));
        let mut sink = match respond.send_response(response, ends) {
            Ok(sink) if !ends => sink,
            Ok(_) => {
                self.watch.piece_sent();
                return (length, Ok(()));
            }
            Err(error) => return (length, Err(error)),
        };
        let outcome = match form {
            Form::Bytes(bytes) => self.send_piece(&mut sink, bytes, true).await,
            Form::Text(text) => self.send_piece(&mut sink, Bytes::copy_from_slice(text.as_bytes()), true).await,
            Form::Stream { head, rest } => {
                let sending = self.send_stream(&mut sink, head, rest);
                match until {
                    None => sending.await,
                    Some(until) => match tokio::time::timeout_at(until.into(), sending).await {
                        Ok(outcome) => outcome,
                        Err(_) => Err(h2::Reason::INTERNAL_ERROR.into()),
                    },
                }
            }
            Form::Empty | Form::Xml(_) | Form::Json(_) => Ok(()),
        };
        match outcome {
            Ok(()) => self.watch.piece_sent(),
            Err(_) => sink.send_reset(h2::Reason::INTERNAL_ERROR),
        }
        (length, outcome)
    }

    fn response(&self, message: &Message, length: Option<u64>) -> http::Response<()> {
        let mut response = http::Response::new(());
        *response.status_mut() =
            http::StatusCode::from_u16(message.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        let fields = response.headers_mut();
        let framing = length.map_or(Framing::Chunked, Framing::Length);
        for (name, value) in fields_of(&message.headers, framing) {
            fields.append(name, value);
        }
        if let (Ok(date), false) =
            (http::HeaderValue::from_bytes(&self.shared.core.date()), fields.contains_key(http::header::DATE))
        {
            fields.insert(http::header::DATE, date);
        }
        if let Some(length) = length {
            fields.insert(http::header::CONTENT_LENGTH, length.into());
        }
        response
    }

    async fn send_stream(
        &self,
        sink: &mut SendStream<Bytes>,
        head: Bytes,
        mut rest: Box<dyn BodyStream>,
    ) -> Result<(), h2::Error> {
        if !head.is_empty() {
            self.send_piece(sink, head, false).await?;
        }
        while let Some(chunk) = poll_fn(|cx| rest.poll_chunk(cx)).await {
            let chunk = chunk.map_err(|_| h2::Error::from(h2::Reason::INTERNAL_ERROR))?;
            self.send_piece(sink, chunk, false).await?;
        }
        end(sink, rest.trailers().as_ref())
    }

    async fn send_piece(&self, sink: &mut SendStream<Bytes>, piece: Bytes, last: bool) -> Result<(), h2::Error> {
        let on_sent = |count| self.watch.bytes_sent(count);
        send_piece(sink, piece, last, self.shared.config.timeouts.write, on_sent).await?;
        self.watch.piece_sent();
        Ok(())
    }
}
