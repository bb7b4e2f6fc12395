//! Echo over HTTP/2: every stream is answered on its own.
use super::{BODY_BYTES_MAX, Service};
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use std::io;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Window of each stream and connection: a 100 KB body never waits for a window update.
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Streams a client may have open at once.
const STREAMS_MAX: u32 = 10_000;

/// Serves one connection, whose preface has not been read yet.
pub async fn serve<S>(stream: S, service: Rc<Service>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX);
    let mut connection = builder.handshake(stream).await.map_err(io::Error::other)?;
    while let Some(accepted) = connection.accept().await {
        let (request, respond) = accepted.map_err(io::Error::other)?;
        let service = service.clone();
        tokio::task::spawn_local(async move {
            // A stream that fails was given up by the client.
            let _ = answer(request, respond, &service).await;
        });
    }
    Ok(())
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    service: &Service,
) -> Result<(), h2::Error> {
    let (head, mut body) = request.into_parts();
    let mut whole = Bytes::new();
    let mut gathered = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data?;
        let _ = body.flow_control().release_capacity(data.len());
        if gathered.is_empty() && whole.is_empty() {
            whole = data;
            continue;
        }
        if gathered.is_empty() {
            gathered.extend_from_slice(&whole);
        }
        gathered.extend_from_slice(&data);
        if gathered.len() > BODY_BYTES_MAX {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            return Ok(());
        }
    }
    if !gathered.is_empty() {
        whole = gathered.freeze();
    }
    service.arrivals.record(head.uri.path().as_bytes(), &whole);
    service.wait().await;
    let mut response = http::Response::new(());
    if whole.is_empty()
        && let Some(text) = service.description(head.method.as_str().as_bytes(), head.uri.path().as_bytes())
    {
        whole = text.into();
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    } else if let Some(kind) = head.headers.get(http::header::CONTENT_TYPE) {
        response.headers_mut().insert(http::header::CONTENT_TYPE, kind.clone());
    }
    response.headers_mut().insert(http::header::CONTENT_LENGTH, whole.len().into());
    let mut stream = respond.send_response(response, whole.is_empty())?;
    if !whole.is_empty() {
        stream.send_data(whole, true)?;
    }
    Ok(())
}
