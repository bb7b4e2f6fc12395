//! The request a backend gets: its address, its fields, its body.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use penstock_message::{Body, Form, Headers, Shape};

use super::cluster::{Backends, Host};
use super::proof::Proof;

/// The fields of a client's request that go on. Framing and connection fields are the sender's.
pub(super) fn headers(client: &Headers, backends: &Backends, authorization: Option<&str>) -> Headers {
    // `Host` is the backend's own unless its API says otherwise, and what steers Envoy is nothing a client may say.
    let mut headers = client.filtered(|name, _| {
        let host = !backends.keeps_host() && name.len() == 4 && name.eq_ignore_ascii_case(b"host");
        let steers = name.len() > 8 && name[0] | 0x20 == b'x' && name[..8].eq_ignore_ascii_case(b"x-envoy-");
        !host && !steers
    });
    if let Some(Proof::Field(name, value)) = &backends.proof {
        headers.set(name, &**value);
    }
    match authorization {
        Some(authorization) => headers.set("Authorization", authorization),
        // Before a challenge there is nothing to say; what the client said is not for the backend.
        None if backends.proof.as_ref().is_some_and(Proof::answers) => drop(headers.remove("Authorization")),
        None => {}
    }
    headers
}

/// The backend's address with the rest of the path.
pub(super) fn url(host: &Host, rest: &str) -> Arc<str> {
    let (path, query) = match &host.query {
        None => (rest, None),
        Some(own) => match rest.split_once('?') {
            None => (rest, Some((&**own, None))),
            Some((path, query)) => (path, Some((&**own, Some(query)))),
        },
    };
    let mut url =
        String::with_capacity(host.prefix.len() + rest.len() + host.query.as_ref().map_or(1, |own| own.len() + 2));
    url.push_str(&host.prefix);
    if !path.is_empty() && !path.starts_with(['/', '?']) {
        url.push('/');
    }
    url.push_str(path);
    if let Some((own, query)) = query {
        url.push('?');
        url.push_str(own);
        if let Some(query) = query {
            url.push('&');
            url.push_str(query);
        }
    }
    url.into()
}

/// Makes the body ready to be sent: converted when a policy changed it, collected when it must be kept for another
/// attempt and is small enough. Sets the fields that follow from it.
pub(super) async fn body(exchange: &mut Exchange, keep_bytes_max: Option<usize>) -> Result<Option<Body>, Fault> {
    let message = &exchange.message;
    let untouched = matches!(message.body.form(), Form::Empty | Form::Stream { .. } | Form::Bytes(_))
        && message.axis2.iter().next().is_none();
    if !untouched {
        convert(exchange).await?;
    }
    if let Some(keep_bytes_max) = keep_bytes_max
        && let Form::Stream { rest, .. } = exchange.message.body.form()
        && !matches!(rest.size_hint(), penstock_message::SizeHint::Exact(size) if size > keep_bytes_max as u64)
    {
        exchange.pull_body(keep_bytes_max, usize::MAX).await?;
    }
    Ok(keep_bytes_max.and_then(|_| exchange.message.body.share()))
}

/// Converts the body to the form of its media type.
async fn convert(exchange: &mut Exchange) -> Result<(), Fault> {
    let program = exchange.program().clone();
    if exchange.message.must_be_read_for(Shape::Same) {
        let limit = program.limits.body_bytes_max;
        exchange.pull_body(usize::MAX, limit).await?;
    }
    let output = exchange.message.output(&program.conversion, Shape::Same)?;
    let headers = &mut exchange.message.headers;
    if let Some(content_type) = &output.content_type {
        headers.set("Content-Type", content_type);
    }
    if output.decoded {
        headers.remove("Content-Encoding");
    }
    exchange.message.body = output.into_body();
    Ok(())
}
