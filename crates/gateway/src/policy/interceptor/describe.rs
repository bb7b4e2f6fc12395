//! Requests to interceptor services: the bodies of handle-request and handle-response.

use bytes::Bytes;
use penstock_catalog::InterceptorPart;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Headers, Message};

use crate::caller::Caller;
use crate::json_writer::JsonObject;
use crate::{CallContext, Site, client_request};

/// The parts that a service includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Includes {
    pub request_headers: bool,
    pub request_body: bool,
    pub request_trailers: bool,
    pub invocation_context: bool,
    pub response_headers: bool,
    pub response_body: bool,
    pub response_trailers: bool,
}

impl Includes {
    pub(super) fn from_parts(parts: &[InterceptorPart]) -> Includes {
        let has = |part| parts.contains(&part);
        Includes {
            request_headers: has(InterceptorPart::RequestHeaders),
            request_body: has(InterceptorPart::RequestBody),
            request_trailers: has(InterceptorPart::RequestTrailers),
            invocation_context: has(InterceptorPart::InvocationContext),
            response_headers: has(InterceptorPart::ResponseHeaders),
            response_body: has(InterceptorPart::ResponseBody),
            response_trailers: has(InterceptorPart::ResponseTrailers),
        }
    }

    /// The parts of the request alone.
    pub(super) fn of_request(self) -> Includes {
        Includes { response_headers: false, response_body: false, response_trailers: false, ..self }
    }

    fn asks_nothing_of_the_request(self) -> bool {
        self.of_request() == Includes::default()
    }
}

/// Room for headers and context beside a body.
const HEAD_BYTES: usize = 2048;

/// Fields of one hop, which Choreo Connect's proxy removes before the call.
const OF_ONE_HOP: [&str; 5] = ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding"];

/// Notes what identifies the request and adds it for the backend: `x-request-id`, `x-forwarded-proto`.
pub(in crate::policy) fn identify(exchange: &mut Exchange) -> String {
    let scheme = client_request::scheme(exchange);
    let headers = &mut exchange.message.headers;
    if !headers.contains("x-forwarded-proto") {
        headers.append("x-forwarded-proto", scheme);
    }
    match headers.get("x-request-id") {
        Some(id) => id.to_owned(),
        None => {
            let id = penstock_engine::clock::uuid();
            headers.append("x-request-id", &id);
            id
        }
    }
}

/// The body of handle-request. Its members without the braces are what handle-response repeats.
pub(super) fn request(
    exchange: &mut Exchange,
    context: &CallContext,
    constants: &Constants,
    includes: Includes,
    id: &str,
    compat: bool,
) -> Result<Bytes, Fault> {
    if includes.asks_nothing_of_the_request() {
        // Choreo Connect's empty table is written as a list.
        return Ok(Bytes::from_static(if compat { b"[]" } else { b"{}" }));
    }
    let body = if includes.request_body { client_request::body_bytes(exchange)? } else { Bytes::new() };
    let mut object = JsonObject::new(HEAD_BYTES + body.len() / 3 * 4);
    if includes.request_headers {
        object.object("requestHeaders", |object| request_headers(object, exchange, context, compat));
    }
    if includes.request_body {
        object.base64("requestBody", &body);
    }
    if includes.request_trailers && !compat {
        object.object("requestTrailers", |object| trailers(object, &exchange.message, compat));
    }
    if includes.invocation_context {
        object.object("invocationContext", |object| invocation_context(object, exchange, context, constants, id));
    }
    Ok(object.end().into())
}

/// The members of a body that [`request`] made.
pub(super) fn members(body: &Bytes) -> Bytes {
    body.slice(1..body.len() - 1)
}

/// The body of handle-response.
pub(super) fn response(
    exchange: &mut Exchange,
    includes: Includes,
    request_members: &[u8],
    interceptor_context: Option<&[u8]>,
    compat: bool,
) -> Result<Bytes, Fault> {
    let body = if includes.response_body { client_request::body_bytes(exchange)? } else { Bytes::new() };
    let mut object = JsonObject::new(HEAD_BYTES + request_members.len() + body.len() / 3 * 4);
    let message = &exchange.message;
    object.number("responseCode", status_of(message));
    object.members(request_members);
    if includes.response_headers {
        object.object("responseHeaders", |object| {
            object.text(":status", &status_of(message).to_string());
            fields(object, &message.headers, compat);
        });
    }
    if includes.response_body {
        object.base64("responseBody", &body);
    }
    if includes.response_trailers {
        object.object("responseTrailers", |object| trailers(object, &exchange.message, compat));
    }
    if let Some(interceptor_context) = interceptor_context {
        object.raw("interceptorContext", interceptor_context);
    }
    Ok(object.end().into())
}

fn status_of(message: &Message) -> u16 {
    if message.status == 0 { 200 } else { message.status }
}

fn request_headers(object: &mut JsonObject, exchange: &Exchange, context: &CallContext, compat: bool) {
    let message = &exchange.message;
    object.text(":method", message.method.as_str());
    object.text(":path", &client_request::target_now(exchange, &context.site));
    object.text(":authority", message.headers.get("host").unwrap_or_default());
    object.text(":scheme", client_request::scheme(exchange));
    fields(object, &message.headers, compat);
}

/// The trailers, which are complete when they are sent to a service.
fn trailers(object: &mut JsonObject, message: &Message, compat: bool) {
    if let Some(trailers) = message.body.trailers() {
        fields(object, trailers, compat);
    }
}

/// Header fields, fields of one name joined.
pub(in crate::policy) fn write_fields(object: &mut JsonObject, headers: &Headers) {
    fields(object, headers, false);
}

/// Header fields. Fields of one name are one member: joined, or as Choreo Connect has it, the last one.
fn fields(object: &mut JsonObject, headers: &Headers, compat: bool) {
    let shared = shared_bits(headers);
    for (index, (name, value)) in headers.iter().enumerate() {
        if OF_ONE_HOP.iter().any(|field| field.as_bytes().eq_ignore_ascii_case(name)) {
            continue;
        }
        if shared & bit_of(name) == 0 {
            object.field(name, std::iter::once(value));
            continue;
        }
        if headers.iter().take(index).any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            continue;
        }
        let later = headers.iter().skip(index + 1).filter(|(other, _)| other.eq_ignore_ascii_case(name));
        if compat {
            let last = later.last().map_or(value, |(_, value)| value);
            object.field(name, std::iter::once(last));
        } else {
            object.field(name, std::iter::once(value).chain(later.map(|(_, value)| value)));
        }
    }
}

/// The bits that two fields or more have: only the names of these are compared.
fn shared_bits(headers: &Headers) -> u64 {
    let (mut seen, mut shared) = (0_u64, 0);
    for (name, _) in headers.iter() {
        shared |= seen & bit_of(name);
        seen |= bit_of(name);
    }
    shared
}

/// One of 64 bits by length and first letter.
fn bit_of(name: &[u8]) -> u64 {
    let first = name.first().copied().unwrap_or_default().to_ascii_lowercase();
    1 << ((name.len() as u64 + u64::from(first) * 7) % 64)
}

/// What `invocationContext` says of every request of a site: members, written once for each virtual host.
pub(super) struct Constants(Vec<Box<[u8]>>);

impl Constants {
    pub(super) fn from_site(site: &Site) -> Constants {
        let api = &site.api;
        let members = |vhost| {
            let mut object = JsonObject::new(HEAD_BYTES);
            object.text("basePath", &api.base_path);
            object.text("pathTemplate", &site.operation.path);
            object.text("supportedMethods", &site.methods);
            object.text("vhost", vhost);
            object.text("apiName", &api.name);
            object.text("apiVersion", &api.version);
            object.text("prodClusterName", &client_request::cluster_name(site, vhost, false));
            object.text("sandClusterName", &client_request::cluster_name(site, vhost, true));
            object.end_members()
        };
        Constants(client_request::vhosts(api).map(members).collect())
    }
}

fn invocation_context(
    object: &mut JsonObject,
    exchange: &Exchange,
    context: &CallContext,
    constants: &Constants,
    id: &str,
) {
    object.text("requestId", id);
    object.text("protocol", exchange.client.protocol);
    object.text("scheme", client_request::scheme(exchange));
    object.text("path", exchange.client.line.target());
    object.text("method", exchange.client.line.method.as_str());
    object.text("source", &client_request::source(exchange));
    let of_vhost = constants.0.get(client_request::vhost_index(exchange, &context.site.api));
    object.members(of_vhost.map(|members| &**members).unwrap_or_default());
    let caller = context.caller.borrow();
    if !caller.token_type.is_empty() {
        object.object("authenticationContext", |object| authentication(object, &caller));
    }
}

fn authentication(object: &mut JsonObject, caller: &Caller) {
    object.text("tokenType", caller.token_type);
    object.text("token", &caller.token);
    object.text("keyType", if caller.sandbox { "SANDBOX" } else { "PRODUCTION" });
}
