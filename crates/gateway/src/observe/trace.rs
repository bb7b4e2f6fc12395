//! W3C trace context: which trace a request belongs to, and the spans it leaves there.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use penstock_compile::Compiler;
use penstock_engine::route::Finished;
use penstock_engine::{Exchange, Fault, Flow, Mediator, clock};

use super::export::Span;
use crate::context::CallContext;
use crate::policy::{PolicyKind, Site};
use crate::state::GatewayState;
use crate::{Gateway, TracingConfig};

/// The kind: notes which trace a request belongs to. Nothing runs unless spans are asked for.
pub const TRACE: PolicyKind = PolicyKind { name: "trace", request: Some(compile), response: None };

/// A request's place in its trace.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    begun: Cell<Option<Begun>>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    trace: u128,
    /// The caller's span; 0 when there is none.
    parent: u64,
    span: u64,
    /// The span of the request to the backend.
    client_span: u64,
    sampled: bool,
    start: SystemTime,
    sent: Option<SystemTime>,
}

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
        context.trace.begun.set(Some(Begun { trace, parent, span, client_span, sampled, start, sent: None }));
        Ok(Flow::Next)
    }
}

impl Trace {
    /// The field for the backend.
    pub(crate) fn field(&self) -> Option<String> {
        let begun = self.begun.get()?;
        if begun.sent.is_none() {
            self.begun.set(Some(Begun { sent: Some(SystemTime::now()), ..begun }));
        }
        Some(format!("00-{:032x}-{:016x}-{:02x}", begun.trace, begun.client_span, u8::from(begun.sampled)))
    }
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

/// Keeps the spans of a finished request.
pub(super) fn finished(state: &GatewayState, context: &CallContext, finished: &Finished<'_>) {
    let Some(begun) = context.trace.begun.get().filter(|begun| begun.sampled) else { return };
    let site = &context.site;
    let name = format!("{} {}{}", site.operation.method, site.base_path, site.operation.path);
    let status = finished.reply.status;
    let api: Arc<str> = format!("{}:{}", site.api.name, site.api.version).into();
    let upstream = &context.upstream;
    if let (Some(sent), Some(took)) = (begun.sent, upstream.took()) {
        state.spans.push(Span {
            trace: begun.trace,
            id: begun.client_span,
            parent: begun.span,
            server: false,
            name: site.operation.method.to_string(),
            start: sent,
            took,
            failed: upstream.flag().is_some(),
            attributes: vec![
                ("server.address", upstream.host().unwrap_or_default().into()),
                ("url.path", upstream.path().unwrap_or_default().split('?').next().unwrap_or_default().into()),
                ("http.request.resend_count", upstream.attempts().saturating_sub(1).to_string().into()),
            ],
            status: None,
        });
    }
    let took = begun.start.elapsed().unwrap_or(Duration::ZERO);
    state.spans.push(Span {
        trace: begun.trace,
        id: begun.span,
        parent: begun.parent,
        server: true,
        name,
        start: begun.start,
        took,
        failed: status >= 500,
        attributes: vec![
            ("http.request.method", site.operation.method.clone()),
            ("http.route", format!("{}{}", site.base_path, site.operation.path).into()),
            ("penstock.api", api),
        ],
        status: Some(status),
    });
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
