//! Echo over HTTP/1.1: the request is read whole, then its body goes back.
mod request;

use super::{BODY_BYTES_MAX, Service};
use request::{Body, Pending, Request};
use std::io::{self, IoSlice};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Room for reading: a small request takes one read.
pub const READ_BYTES: usize = 16 * 1024;

/// Serves one connection. `buffer` holds what was read already.
pub async fn serve<S>(mut stream: S, mut buffer: Vec<u8>, service: &Service) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut response = Vec::with_capacity(256);
    loop {
        let mut pending = Pending::default();
        let request = loop {
            match pending.take(&buffer) {
                Ok(Some(request)) => break request,
                Ok(None) => {}
                Err(status) => return refuse(&mut stream, status).await,
            }
            if pending.interim_due() {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                stream.flush().await?;
            }
            buffer.reserve(pending.bytes_missing(buffer.len()).max(READ_BYTES));
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let body = match &request.body {
            Body::InPlace { start, end } => &buffer[*start..*end],
            Body::Decoded(bytes) => bytes,
        };
        service.arrivals.record(path_of(&buffer), body);
        let described = if body.is_empty() { service.description(method_of(&buffer), path_of(&buffer)) } else { None };
        service.wait().await;
        let content_type = match (&described, request.content_type) {
            (Some(_), _) => Some(&b"application/json"[..]),
            (None, Some((start, end))) => Some(&buffer[start..end]),
            (None, None) => None,
        };
        let body = described.as_ref().map_or(body, |text| text.as_bytes());
        write_head(&mut response, &request, content_type, body.len());
        write_both(&mut stream, &response, if request.head_method { &[] } else { body }).await?;
        if !request.keep_alive {
            return stream.shutdown().await;
        }
        if request.consumed == buffer.len() {
            buffer.clear();
        } else {
            buffer.drain(..request.consumed);
        }
    }
}

/// The method of the request that the buffer starts with.
fn method_of(buffer: &[u8]) -> &[u8] {
    buffer.split(|byte| *byte == b' ').next().unwrap_or_default()
}

/// The target of the request line that the buffer starts with.
fn path_of(buffer: &[u8]) -> &[u8] {
    buffer.split(|byte| *byte == b' ').nth(1).unwrap_or_default()
}

fn write_head(response: &mut Vec<u8>, request: &Request, content_type: Option<&[u8]>, body_bytes: usize) {
    response.clear();
    response.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    if let Some(content_type) = content_type {
        response.extend_from_slice(b"Content-Type: ");
        response.extend_from_slice(content_type);
        response.extend_from_slice(b"\r\n");
    }
    if !request.keep_alive {
        response.extend_from_slice(b"Connection: close\r\n");
    }
    response.extend_from_slice(b"Content-Length: ");
    // Writing to a Vec cannot fail.
    let _ = io::Write::write_fmt(response, format_args!("{body_bytes}"));
    response.extend_from_slice(b"\r\n\r\n");
}

async fn write_both<S: AsyncWrite + Unpin>(stream: &mut S, head: &[u8], body: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < head.len() {
        let parts = [IoSlice::new(&head[written..]), IoSlice::new(body)];
        match stream.write_vectored(&parts).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => written += count,
        }
    }
    stream.write_all(&body[written - head.len()..]).await?;
    stream.flush().await
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, status: &str) -> io::Result<()> {
    let text = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}
