//! The variables of expressions in policies: what a request or answer was.

use std::borrow::Cow;

use penstock_catalog::path::without_needless_escapes;
use penstock_engine::{Exchange, Fault};
use penstock_message::Headers;

use crate::CallContext;
use crate::cel::{Expression, Value};
use crate::client_request::body_decoded;

/// Of keys of quotas.
pub(super) const OF_KEYS: &[&str] = &[
    "request.Headers",
    "request.Path",
    "request.Method",
    "request.Metadata",
    "api.Name",
    "api.Version",
    "api.Context",
    "api.Id",
    "route.Name",
];

/// Of what requests cost.
pub(super) const OF_REQUEST_COSTS: &[&str] = &[
    "request.Headers",
    "request.Path",
    "request.Method",
    "request.Metadata",
    "request.Body",
    "request.BodyString",
    "api.Name",
    "api.Version",
    "api.Context",
    "api.Id",
];

/// Of what answers cost.
pub(super) const OF_ANSWER_COSTS: &[&str] = &[
    "request.Headers",
    "request.Path",
    "request.Method",
    "request.Metadata",
    "response.Headers",
    "response.Status",
    "response.Body",
    "response.BodyString",
    "api.Name",
    "api.Version",
    "api.Context",
    "api.Id",
];

/// Of `executionCondition`.
pub(super) const OF_CONDITIONS: &[&str] = &[
    "processing.phase",
    "request.Headers",
    "request.Path",
    "request.Method",
    "request.RequestID",
    "request.Metadata",
    "response.RequestHeaders",
    "response.RequestPath",
    "response.RequestMethod",
    "response.ResponseHeaders",
    "response.ResponseStatus",
    "response.RequestID",
    "response.Metadata",
];

/// Whether an expression reads the body of the message that is there.
pub(super) fn reads_body(expression: &Expression) -> bool {
    ["request.Body", "request.BodyString", "response.Body", "response.BodyString"]
        .iter()
        .any(|name| expression.names(name))
}

/// What an expression gives for the message that is there, handed to `then`. `as_sent` is about the fields of a request;
/// with an answer they are always those that were sent.
pub(super) fn evaluate<T>(
    expression: &Expression,
    exchange: &mut Exchange,
    phase: &'static str,
    as_sent: bool,
    then: impl FnOnce(Result<Value<'_>, String>) -> T,
) -> Result<T, Fault> {
    let body = if reads_body(expression) { body_decoded(exchange)? } else { bytes::Bytes::new() };
    let context = CallContext::of(exchange)?;
    let chain = context.chain.borrow();
    let (site, line, now) = (&context.site, &exchange.client.line, &exchange.message);
    let is_answer = phase.starts_with("response");
    let nothing = Headers::new();
    let sent = chain.sent.as_ref().filter(|_| as_sent || is_answer);
    let sent = sent.unwrap_or(if is_answer { &nothing } else { &now.headers });
    let variable = |name: &str| match name {
        "processing.phase" => Value::text(phase),
        "request.Headers" | "response.RequestHeaders" => Value::Fields(sent),
        "request.Path" | "response.RequestPath" => Value::Text(without_needless_escapes(line.target())),
        "request.Method" | "response.RequestMethod" => Value::text(line.method.as_str()),
        "request.RequestID" | "response.RequestID" => Value::text(sent.get("x-request-id").unwrap_or_default()),
        "response.Headers" | "response.ResponseHeaders" if is_answer => Value::Fields(&now.headers),
        "response.Status" | "response.ResponseStatus" => Value::Int(if is_answer { now.status.into() } else { 0 }),
        "request.Body" | "response.Body" => Value::Bytes(Cow::Borrowed(&body)),
        "request.BodyString" | "response.BodyString" => Value::Text(String::from_utf8_lossy(&body)),
        "api.Name" => Value::text(&*site.api.name),
        "api.Version" => Value::text(&*site.api.version),
        "api.Context" => Value::text(&*site.base_path),
        "api.Id" => Value::text(site.api.platform.as_ref().map(|platform| &*platform.handle).unwrap_or_default()),
        "route.Name" => Value::text(format!("{} {}{}", site.operation.method, site.base_path, site.operation.path)),
        _ => Value::Nothing,
    };
    Ok(then(expression.value(&variable)))
}
