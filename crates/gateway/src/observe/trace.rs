//! W3C trace context: which trace a request belongs to, and the spans it leaves there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use penstock_compile::Compiler;
use penstock_engine::route::Finished;
use penstock_engine::{Exchange, Fault, Flow, Mediator, clock};

use super::call::Begun;
use super::export::{Attribute, Attributes, Span, Spans};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::router::without_port;
use crate::{CallContext, Gateway, Site, TracingConfig};

/// The kind: notes which trace a request belongs to. Nothing runs unless tracing is configured.
pub const TRACE: PolicyKind = PolicyKind {
    name: "trace",
    applies_to: ApiKinds::AUTHENTICATED.and(ApiKinds::PLATFORM).and(ApiKinds::PUBLISHERS),
    phase: Phase::Client,
    request: Some(compile),
    response: None,
};

struct Tracing {
    config: TracingConfig,
}

fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let config = &gateway.config.tracing;
    config.endpoint.as_ref().map(|_| Box::new(Tracing { config: config.clone() }) as Box<dyn Mediator>)
}

impl Mediator for Tracing {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let parent = exchange.message.headers.get("traceparent").and_then(parse);
        let random = || clock::random().max(1);
        let sampled = || (clock::random() >> 11) as f64 / (1_u64 << 53) as f64 <= self.config.ratio;
        let (trace, parent, sampled) = match parent {
            Some(parent) => parent,
            None => (u128::from(random()) << 64 | u128::from(random()), 0, sampled() && self.config.ratio > 0.0),
        };
        let (span, client_span, start) = (random(), random(), SystemTime::now());
        let method = known_method(exchange.client.line.method.as_str());
        context.trace.begun.set(Some(Begun { trace, parent, span, client_span, sampled, method, start, sent: None }));
        if sampled {
            *context.trace.asked.borrow_mut() = Some(asked(exchange, &context));
        }
        Ok(Flow::Next)
    }
}

/// The methods of the conventions; others would make a name for every spelling.
fn known_method(method: &str) -> &'static str {
    const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// Trace, span and whether it is recorded; W3C Trace Context §3.2. Versions to come add fields at the end.
fn parse(field: &str) -> Option<(u128, u64, bool)> {
    let mut parts = field.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let exact = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    let hexadecimal = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    if !exact || !hexadecimal || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1))
}

/// Keeps the spans of a finished request. Their attributes are those of OpenTelemetry's semantic conventions for HTTP.
pub(super) fn finished(spans: &Spans, context: &CallContext, finished: &Finished<'_>) {
    let Some(begun) = context.trace.begun.get().filter(|begun| begun.sampled) else { return };
    let site = &context.site;
    let route = format!("{}{}", site.base_path, site.operation.path);
    let status = finished.reply.status;
    let method = begun.method;
    let upstream = &context.upstream;
    if let (Some(sent), Some(took)) = (begun.sent, upstream.took()) {
        let mut attributes = vec![("http.request.method", text(method)), ("network.protocol.name", text("http"))];
        address(&mut attributes, &upstream.host().unwrap_or_default(), upstream.is_secure());
        if let Some(url) = upstream.url() {
            attributes.push(("url.full", text(&context.without_credentials(&url))));
        }
        let resent = upstream.attempts().saturating_sub(1);
        if resent > 0 {
            attributes.push(("http.request.resend_count", Attribute::Number(i64::from(resent))));
        }
        let of_backend = upstream.status();
        if let Some(status) = of_backend {
            attributes.push(("http.response.status_code", Attribute::Number(i64::from(status))));
        }
        // A client span has failed with any error status, a server span only with 5xx.
        let error = match (upstream.flag(), of_backend) {
            (Some(flag), _) => Some(text(flag)),
            (None, Some(status)) if status >= 400 => Some(text(&status.to_string())),
            (None, _) => None,
        };
        let failed = error.is_some();
        attributes.extend(error.map(|error| ("error.type", error)));
        let (parent, id, name) = (begun.span, begun.client_span, method.to_owned());
        let trace = begun.trace;
        spans.push(Span { trace, id, parent, server: false, name, start: sent, took, failed, attributes });
    }
    let mut attributes = vec![
        ("http.request.method", text(method)),
        ("http.route", text(&route)),
        ("http.response.status_code", Attribute::Number(i64::from(status))),
        ("penstock.api", text(&format!("{}:{}", site.api.name, site.api.version))),
    ];
    if let Some(asked) = context.trace.asked.borrow_mut().take() {
        attributes.extend(asked);
    }
    let failed = status >= 500;
    if failed {
        attributes.push(("error.type", text(&status.to_string())));
    }
    let took = begun.start.elapsed().unwrap_or(Duration::ZERO);
    let (trace, id, parent, start) = (begun.trace, begun.span, begun.parent, begun.start);
    let name = format!("{method} {route}");
    spans.push(Span { trace, id, parent, server: true, name, start, took, failed, attributes });
}

fn text(text: &str) -> Attribute {
    Attribute::Text(text.into())
}

/// `server.address` and `server.port` of an authority.
fn address(attributes: &mut Attributes, authority: &str, secure: bool) {
    let host = without_port(authority);
    let port = authority[host.len()..].strip_prefix(':').and_then(|port| port.parse().ok());
    if !host.is_empty() {
        attributes.push(("server.address", text(host)));
        let port = port.unwrap_or(if secure { 443_u16 } else { 80 });
        attributes.push(("server.port", Attribute::Number(i64::from(port))));
    }
}

/// What a request says of itself, before policies change it.
fn asked(exchange: &Exchange, context: &CallContext) -> Attributes {
    let client = &exchange.client;
    let headers = &exchange.message.headers;
    let target = context.without_credentials(client.line.target());
    let (path, query) = target.split_once('?').map_or((&*target, None), |(path, query)| (path, Some(query)));
    let secure = client.line.secure;
    let mut attributes = vec![
        ("url.path", text(path)),
        ("url.scheme", text(if secure { "https" } else { "http" })),
        ("client.address", text(&client.address.to_string())),
        ("network.peer.address", text(&client.peer.ip().to_string())),
        ("network.peer.port", Attribute::Number(i64::from(client.peer.port()))),
    ];
    if let Some(version) = client.protocol.strip_prefix("HTTP/") {
        attributes.push(("network.protocol.version", text(version)));
    }
    attributes.extend(query.map(|query| ("url.query", text(query))));
    attributes.extend(headers.get("user-agent").map(|agent| ("user_agent.original", text(agent))));
    address(&mut attributes, headers.get("host").unwrap_or_default(), secure);
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_specification_allows_is_a_context() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parse(good), Some((0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331, true)));
        assert_eq!(parse(&good.replace("-01", "-02")).map(|(.., sampled)| sampled), Some(false));
        assert!(parse(&format!("{good}-more").replace("00-0a", "01-0a")).is_none(), "letters beyond f");
        assert!(parse(&format!("{good}-ab").replacen("00-", "01-", 1)).is_some(), "later versions may add");
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
