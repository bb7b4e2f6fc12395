//! From a request to its operation: host, base path, path template, method.

use std::rc::Rc;
use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::Step;
use penstock_engine::ports::Client;
use penstock_engine::route::{Operation, Routed, Router};
use penstock_message::Message;

use crate::config::GatewayConfig;
use crate::context::CallContext;
use crate::error::{GatewayError, codes};
use crate::policy::{AnswerError, Refuse, Site};

/// A path template below a base path: literals and parameters, perhaps a rest at its end.
#[derive(Debug, Clone, Default)]
pub struct PathPattern {
    /// The segments between slashes.
    segments: Vec<Segment>,
    /// Whether anything may follow (`/*`).
    rest: bool,
    /// The names of the parameters in order.
    pub parameters: Vec<Arc<str>>,
}

#[derive(Debug, Clone)]
enum Segment {
    Literal(Arc<str>),
    Parameter,
}

impl PathPattern {
    /// Reads a template: `/pet/{petId}`, `/files/*`.
    pub fn parse(template: &str) -> PathPattern {
        let mut pattern = PathPattern::default();
        let template = template.split('?').next().unwrap_or_default();
        for segment in template.split('/').filter(|segment| !segment.is_empty()) {
            if segment == "*" {
                pattern.rest = true;
            } else if let Some(name) = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                pattern.parameters.push(name.into());
                pattern.segments.push(Segment::Parameter);
            } else {
                pattern.segments.push(Segment::Literal(segment.into()));
            }
        }
        pattern
    }

    /// The values of the parameters when a path (without query) fits.
    pub fn matches(&self, path: &str) -> Option<Vec<String>> {
        let mut values = Vec::new();
        let mut parts = path.split('/').skip(1).peekable();
        for segment in &self.segments {
            match (segment, parts.next()?) {
                (Segment::Literal(wanted), part) if **wanted == *part => {}
                (Segment::Parameter, part) if !part.is_empty() => values.push(part.to_owned()),
                _ => return None,
            }
        }
        let ended = match parts.next() {
            None => true,
            Some("") => parts.next().is_none(),
            Some(_) => false,
        };
        (self.rest || ended).then_some(values)
    }
}

/// The routes while they are collected.
#[derive(Default)]
pub(crate) struct Routes {
    routes: Vec<Route>,
}

struct Route {
    base: Arc<str>,
    site: Arc<Site>,
    operation: Arc<Operation>,
}

impl Routes {
    /// Adds an operation at a base path.
    pub(crate) fn add(&mut self, base: Arc<str>, site: Arc<Site>, operation: Arc<Operation>) {
        self.routes.push(Route { base, site, operation });
    }
}

/// Finds operations. Whatever came in by a port of the gateway and fits none is refused here too.
pub(crate) struct ApiRouter {
    config: Arc<GatewayConfig>,
    routes: Routes,
    unknown: Arc<Operation>,
}

impl ApiRouter {
    pub(crate) fn new(config: Arc<GatewayConfig>, routes: Routes, cx: &mut Compiler<'_>) -> ApiRouter {
        let step = |mediator, kind| Step { mediator, kind, at: Default::default() };
        let refuse = step(Box::new(Refuse(GatewayError::new(codes::NOT_FOUND))), "route");
        let answer = step(Box::new(AnswerError { config: config.clone() }), "error");
        let unknown = Operation {
            in_sequence: Some(cx.add_sequence(vec![refuse])),
            fault_sequence: Some(cx.add_sequence(vec![answer])),
            ..Operation::default()
        };
        ApiRouter { config, routes, unknown: Arc::new(unknown) }
    }
}

impl Router for ApiRouter {
    fn route(&self, client: &Client, _message: &mut Message) -> Option<Routed> {
        let port = client.local.port();
        if port != self.config.http_port && port != self.config.https_port {
            return None;
        }
        let path = client.line.path();
        for route in &self.routes.routes {
            let Some(rest) = path.strip_prefix(&*route.base) else { continue };
            if *route.site.operation.method != *client.line.method.as_str() {
                continue;
            }
            let Some(values) = route.site.pattern.matches(rest) else { continue };
            let context = Rc::new(CallContext::new(route.site.clone(), values));
            return Some(Routed { operation: route.operation.clone(), extension: Some(context) });
        }
        Some(Routed { operation: self.unknown.clone(), extension: None })
    }
}
