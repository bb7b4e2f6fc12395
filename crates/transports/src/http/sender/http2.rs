//! One request to a backend that speaks HTTP/2, and its answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use penstock_engine::ports::Outgoing;
use penstock_engine::{Fault, codes};
use penstock_message::{AbsentBody, Body, BodyStream, Message, Method};

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
                backend_fault(codes::CONNECTION_TIMED_OUT, format!("`{backend}` did not answer within {timeout:?}"))
            }
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
    timeouts: &HttpTimeouts,
) -> Result<Message, Failure> {
    let timeout = outgoing.options.response_timeout;
    match tokio::time::timeout(timeout, begin(core, connection, url, outgoing, payload, timeouts)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::TimedOut),
    }
}

async fn begin(
    core: &Rc<PerCore>,
    connection: &Rc<Connection>,
    url: &Url<'_>,
    outgoing: &Outgoing,
    payload: Payload,
    timeouts: &HttpTimeouts,
) -> Result<Message, Failure> {
    let running = Running::new(connection);
    let request = head(url, outgoing, &payload).map_err(|error| Failure::Unsayable(error.to_string()))?;
    let sender = connection.sender.borrow().clone();
    let mut sender = sender.ready().await.map_err(|error| {
        connection.over.set(true);
        Failure::Unprocessed(error)
    })?;
    let ends = matches!(payload, Payload::Empty);
    let (answer, sink) = sender.send_request(request, ends).map_err(Failure::of)?;
    upload(sink, payload, timeouts.write);
    let answer = answer.await.map_err(Failure::of)?;
    let (parts, stream) = answer.into_parts();
    let headers = headers_of(&parts.headers);
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut answer = Message { headers, status: parts.status.as_u16(), ..Message::default() };
    let to_head = outgoing.method == Method::Head && !matches!(answer.status, 204 | 304);
    answer.body = if to_head {
        Body::stream(Box::new(AbsentBody { length }))
    } else if stream.is_end_stream() || outgoing.options.one_way {
        Body::empty()
    } else {
        let timeout = if answer.is_event_stream() { timeouts.websocket_idle } else { timeouts.reply_body };
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
    // RFC 9113 §8.2.2: the one thing that `TE` may say. Servers of gRPC tell by it whether trailers arrive.
    if headers.get("TE").is_some_and(|value| value.eq_ignore_ascii_case("trailers")) {
        fields.insert(http::header::TE, http::HeaderValue::from_static("trailers"));
    }
    if let Framing::Length(length) = framing {
        fields.insert(http::header::CONTENT_LENGTH, length.into());
    }
    Ok(request)
}

/// Sends a body beside the wait for the answer, which may come before the body's end.
fn upload(mut sink: SendStream<Bytes>, payload: Payload, timeout: Duration) {
    let (first, mut rest): (Bytes, Option<Box<dyn BodyStream>>) = match payload {
        Payload::Empty => return,
        Payload::Bytes(bytes) => {
            // What lies in memory anyway may wait there.
            let _ = sink.send_data(bytes, true);
            return;
        }
        Payload::Wire(incoming) => (Bytes::new(), Some(Box::new(incoming))),
        Payload::Stream { head, rest } => (head, Some(rest)),
    };
    tokio::task::spawn_local(async move {
        let sent = async {
            send_piece(&mut sink, first, false, timeout, |_| ()).await?;
            while let Some(body) = &mut rest
                && let Some(chunk) = poll_fn(|cx| body.poll_chunk(cx)).await
            {
                let chunk = chunk.map_err(|_| h2::Error::from(h2::Reason::CANCEL))?;
                send_piece(&mut sink, chunk, false, timeout, |_| ()).await?;
            }
            end(&mut sink, rest.as_mut().and_then(|body| body.trailers()).as_ref())
        };
        if sent.await.is_err() {
            sink.send_reset(h2::Reason::CANCEL);
        }
    });
}
