//! One request to a backend that speaks HTTP/2, and its answer.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use penstock_engine::ports::{LocalFuture, Outgoing};
use penstock_engine::{Fault, codes};
use penstock_message::{AbsentBody, Body, BodyError, BodyStream, Message, Method};

use super::exchange::{Allowance, Failure as Http1Failure};
use super::multiplexed::{Connection, Running};
use super::request::framing;
use super::url::Url;
use super::{Payload, backend_fault};
use crate::http::http1::Framing;
use crate::http::http2::{StreamBody, end, fields_of, headers_of, send_piece};
use crate::http::{HttpTimeouts, PerCore};

/// Why there is no answer.
pub(super) enum Failure {
    /// The backend has not looked at the request.
    Unprocessed(h2::Error),
    /// It may have.
    Broken(h2::Error),
    TimedOut,
    /// See [`super::exchange::Failure`].
    Deadline,
    GaveClientUp,
    Body(BodyError),
    /// The request cannot be said in HTTP/2.
    Unsayable(String),
}

impl Failure {
    fn of(error: h2::Error) -> Failure {
        let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        // A GOAWAY of the backend that comes before our stream was opened, or names an earlier stream.
        let unprocessed = refused || error.is_go_away() && error.is_remote();
        if unprocessed { Failure::Unprocessed(error) } else { Failure::Broken(error) }
    }

    pub(super) fn into_fault(self, url: &Url<'_>, timeout: Duration) -> Fault {
        let backend = url.authority;
        match self {
            Failure::Unprocessed(error) => {
                backend_fault(codes::CONNECTION_CLOSED, format!("`{backend}` refused the request: {error}")).retryable()
            }
            Failure::Broken(error) if error.is_io() => {
                backend_fault(codes::CONNECTION_CLOSED, format!("the connection to `{backend}` broke: {error}"))
            }
            Failure::Broken(error) => {
                backend_fault(codes::PROTOCOL_VIOLATION, format!("the exchange with `{backend}` failed: {error}"))
            }
            Failure::TimedOut => {
                backend_fault(codes::CONNECTION_TIMED_OUT, format!("`{backend}` did not respond within {timeout:?}"))
            }
            Failure::Deadline => Http1Failure::Deadline.into_fault(url, timeout),
            Failure::GaveClientUp => Http1Failure::GaveClientUp.into_fault(url, timeout),
            Failure::Body(error) => Http1Failure::Body(error).into_fault(url, timeout),
            Failure::Unsayable(why) => Fault::new(format!("the request cannot be sent over HTTP/2: {why}")),
        }
    }
}

/// Sends one request and waits for the head of its answer.
pub(super) async fn exchange(
    core: &Rc<PerCore>,
    connection: &Rc<Connection>,
    url: &Url<'_>,
    outgoing: &Outgoing,
    payload: Payload,
    times: Times<'_>,
) -> Result<Message, Failure> {
    let running = Running::new(connection);
    let request = head(url, outgoing, &payload).map_err(|error| Failure::Unsayable(error.to_string()))?;
    let sender = connection.sender.borrow().clone();
    let (wait, late) = times.response(core);
    let ready = tokio::time::timeout(wait, sender.ready()).await.map_err(|_| late)?;
    let mut sender = ready.map_err(|error| {
        connection.over.set(true);
        Failure::Unprocessed(error)
    })?;
    let ends = matches!(payload, Payload::Empty);
    let (reply, sink) = sender.send_request(request, ends).map_err(Failure::of)?;
    let upload = Upload::new(sink, payload, times.config.write.min(outgoing.options.response_timeout));
    let (parts, stream) = poll_reply(core, reply, upload, times).await?.into_parts();
    let headers = headers_of(&parts.headers);
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut answer = Message { headers, status: parts.status.as_u16(), ..Message::default() };
    let to_head = outgoing.method == Method::Head && !matches!(answer.status, 204 | 304);
    answer.body = if to_head {
        Body::stream(Box::new(AbsentBody { length }))
    } else if stream.is_end_stream() || outgoing.options.one_way {
        Body::empty()
    } else {
        let timeout = if answer.is_long_lived() { times.config.stream_idle } else { times.config.reply_body };
        Body::stream(Box::new(StreamBody::new(stream, length, core, timeout).holding(running)))
    };
    Ok(answer)
}

/// The request without its body.
fn head(url: &Url<'_>, outgoing: &Outgoing, payload: &Payload) -> Result<http::Request<()>, http::Error> {
    let headers = &outgoing.message.headers;
    let authority = headers.get("Host").unwrap_or(url.authority);
    let path = match url.path {
        "" => "/".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    let scheme = if url.secure { "https" } else { "http" };
    let uri = http::Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()?;
    let method = http::Method::from_bytes(outgoing.method.as_str().as_bytes())?;
    let mut request = http::Request::builder().method(method).uri(uri).version(http::Version::HTTP_2).body(())?;
    let fields = request.headers_mut();
    let framing = framing(payload, &outgoing.method);
    for (name, value) in fields_of(headers, framing) {
        if name != http::header::HOST && name != http::header::EXPECT {
            fields.append(name, value);
        }
    }
    // RFC 9113 §8.2.2: the only value of `TE`. gRPC servers require it.
    if headers.get("TE").is_some_and(|value| value.eq_ignore_ascii_case("trailers")) {
        fields.insert(http::header::TE, http::HeaderValue::from_static("trailers"));
    }
    if let Framing::Length(length) = framing {
        fields.insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(request)
}

/// A body that is sent beside the wait for the reply, which may come before the body's end.
struct Upload {
    /// What is still being sent.
    sending: Option<LocalFuture<'static, Result<(), Stopped>>>,
    /// Whether the next piece of the client's body is waited for.
    awaits_client: Rc<Cell<bool>>,
}

/// Why a body was not sent to its end.
enum Stopped {
    /// The client's body could not be read.
    Body(BodyError),
    /// The backend takes no more of it.
    Refused(h2::Error),
}

impl Upload {
    fn new(mut sink: SendStream<Bytes>, payload: Payload, timeout: Duration) -> Upload {
        let awaits_client = Rc::new(Cell::new(false));
        let (first, mut rest): (Bytes, Box<dyn BodyStream>) = match payload {
            Payload::Empty => return Upload { sending: None, awaits_client },
            Payload::Bytes(bytes) => {
                // What lies in memory anyway may wait there.
                let _ = sink.send_data(bytes, true);
                return Upload { sending: None, awaits_client };
            }
            Payload::Wire(incoming) => (Bytes::new(), Box::new(incoming)),
            Payload::Stream { head, rest } => (head, rest),
        };
        let awaits = awaits_client.clone();
        let sending = async move {
            let sent = send_stream(&mut sink, first, rest.as_mut(), timeout, &awaits).await;
            if sent.is_err() {
                sink.send_reset(h2::Reason::CANCEL);
            }
            sent
        };
        Upload { sending: Some(Box::pin(sending)), awaits_client }
    }
}

async fn send_stream(
    sink: &mut SendStream<Bytes>,
    first: Bytes,
    rest: &mut dyn BodyStream,
    timeout: Duration,
    awaits_client: &Cell<bool>,
) -> Result<(), Stopped> {
    send_piece(sink, first, false, timeout, |_| ()).await.map_err(Stopped::Refused)?;
    loop {
        awaits_client.set(true);
        let chunk = poll_fn(|cx| rest.poll_chunk(cx)).await;
        awaits_client.set(false);
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(Stopped::Body)?;
        send_piece(sink, chunk, false, timeout, |_| ()).await.map_err(Stopped::Refused)?;
    }
    end(sink, rest.trailers().as_ref()).map_err(Stopped::Refused)
}

/// The times that bound a request.
#[derive(Clone, Copy)]
pub(super) struct Times<'t> {
    pub(super) config: &'t HttpTimeouts,
    pub(super) allowance: &'t Allowance,
}

impl Times<'_> {
    /// How long the backend may take from now on, and what it is when it takes longer.
    fn response(&self, core: &PerCore) -> (Duration, Failure) {
        let left = self.allowance.left(core);
        match self.allowance.response {
            response if response <= left => (response, Failure::TimedOut),
            _ => (left, Failure::Deadline),
        }
    }
}

/// Waits for the head of the reply while the body is sent. What is left of the body then goes on by itself.
async fn poll_reply(
    core: &PerCore,
    mut reply: ResponseFuture,
    mut upload: Upload,
    times: Times<'_>,
) -> Result<http::Response<h2::RecvStream>, Failure> {
    let (wait, mut late) = match upload.sending {
        None => times.response(core),
        Some(_) => (times.allowance.left(core), Failure::Deadline),
    };
    let mut timer = pin!(tokio::time::sleep(wait));
    let head = poll_fn(|cx| {
        if let Poll::Ready(outcome) = Pin::new(&mut reply).poll(cx) {
            return Poll::Ready(outcome.map_err(|error| match Failure::of(error) {
                Failure::Broken(_) if upload.awaits_client.get() => Failure::GaveClientUp,
                failure => failure,
            }));
        }
        if let Some(sending) = &mut upload.sending
            && let Poll::Ready(sent) = sending.as_mut().poll(cx)
        {
            upload.sending = None;
            match sent {
                Err(Stopped::Body(error)) => return Poll::Ready(Err(Failure::Body(error))),
                Err(Stopped::Refused(error)) if error.is_reset() && !error.is_remote() => {
                    return Poll::Ready(Err(Failure::TimedOut));
                }
                Err(Stopped::Refused(error)) => return Poll::Ready(Err(Failure::of(error))),
                Ok(()) => {
                    let (wait, meaning) = times.response(core);
                    late = meaning;
                    timer.as_mut().reset(tokio::time::Instant::now() + wait);
                }
            }
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let awaits_client = upload.sending.is_some() && upload.awaits_client.get();
        let meaning = std::mem::replace(&mut late, Failure::Deadline);
        Poll::Ready(Err(if awaits_client { Failure::Body(BodyError::Timeout) } else { meaning }))
    });
    let head = head.await?;
    if let Some(sending) = upload.sending {
        tokio::task::spawn_local(sending);
    }
    Ok(head)
}
