//! CORS: the configuration of the API, or of the gateway where the API has none or disables it.
//!
//! As Envoy's filter in Choreo Connect: a preflight request of an allowed origin is answered here; requests of other origins, or
//! without one, are forwarded, and their responses have no CORS headers. API Manager differs: `api_manager.rs`.

mod api_manager;
mod origin;

use std::sync::Arc;

use penstock_catalog::{ApiKind, Cors as Rules};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Headers, Message, Method};

use self::api_manager::BackendFirst;
use self::origin::matches_origin;
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind, asks_for_socket};
use crate::{ErrorStyle, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "cors",
    applies_to: ApiKinds::AUTHENTICATED.and(ApiKinds::OPTIONS),
    phase: Phase::Client,
    request: Some(compile),
    response: Some(compile_answer),
};

/// CORS as in Choreo Connect.
struct Cors {
    origins: Vec<Arc<str>>,
    /// Headers of each response to an allowed origin.
    answer: Headers,
    /// Further headers of the response to a preflight request.
    preflight: Headers,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let common = Some(&gateway.config.cors).filter(|rules| rules.enabled);
    let own = site.api.cors.as_ref().filter(|rules| rules.enabled);
    let of_requests = match gateway.config.error_style {
        ErrorStyle::ChoreoConnect => own.or(common).map(|rules| Box::new(Cors::new(rules)) as Box<dyn Mediator>),
        ErrorStyle::ApiManager => {
            let rules = own.map(|own| own.with_lists_of(&gateway.config.cors));
            let field = site.api.authorization_header.as_ref().unwrap_or(&gateway.config.security.authorization_header);
            api_manager::compile(rules.as_ref().or(common), site, field)
        }
    };
    let origins = || own.or(common).map(|rules| Origins(Cors::new(rules)));
    match (site.is_websocket(), &site.graphql) {
        (true, _) => origins().map(|origins| Box::new(origins) as Box<dyn Mediator>),
        (false, None) if site.api.kind == ApiKind::Mcp => {
            Some(Box::new(McpCors { origins: origins()?, requests: of_requests? }))
        }
        (false, None) => of_requests,
        (false, Some(_)) => Some(Box::new(GraphQlCors { sockets: origins()?, requests: of_requests? })),
    }
}

fn compile_answer(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let applies = gateway.config.error_style == ErrorStyle::ApiManager && !site.is_websocket();
    applies.then(|| Box::new(BackendFirst) as Box<dyn Mediator>)
}

/// CORS of a GraphQL API, which has requests and WebSocket connections.
struct GraphQlCors {
    sockets: Origins,
    requests: Box<dyn Mediator>,
}

impl Mediator for GraphQlCors {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if asks_for_socket(exchange) { self.sockets.run(exchange) } else { self.requests.run(exchange) }
    }
}

/// CORS of an MCP server, which must refuse other origins (Streamable HTTP, security warning): a server on the machine of the
/// browser has no other protection.
struct McpCors {
    origins: Origins,
    requests: Box<dyn Mediator>,
}

impl Mediator for McpCors {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.client.line.method != Method::Options {
            self.origins.run(exchange)?;
        }
        self.requests.run(exchange)
    }
}

/// The allowed origins of a WebSocket API: a browser sends no preflight before it connects.
struct Origins(Cors);

impl Mediator for Origins {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        match exchange.message.headers.get("Origin") {
            Some(origin) if !self.0.allows(origin) => {
                Err(GatewayError::described(codes::FORBIDDEN, "Pages of this origin may not connect.").into())
            }
            _ => Ok(Flow::Next),
        }
    }
}

impl Cors {
    fn new(rules: &Rules) -> Cors {
        let (mut answer, mut preflight) = (Headers::new(), Headers::new());
        let put = |fields: &mut Headers, name: &str, values: &[Arc<str>]| {
            let joined = values.iter().map(|value| value.trim()).collect::<Vec<_>>().join(", ");
            if !joined.is_empty() {
                fields.append(name, joined);
            }
        };
        if rules.credentials {
            answer.append("access-control-allow-credentials", "true");
        }
        put(&mut answer, "access-control-expose-headers", &rules.expose_headers);
        put(&mut preflight, "access-control-allow-methods", &rules.methods);
        put(&mut preflight, "access-control-allow-headers", &rules.headers);
        let origins = rules.origins.iter().map(|origin| origin.trim().into()).collect();
        Cors { origins, answer, preflight }
    }

    fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|pattern| matches_origin(pattern, origin))
    }
}

impl Mediator for Cors {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &exchange.message.headers;
        let Some(origin) = headers.get("Origin").filter(|origin| self.allows(origin)) else { return Ok(Flow::Next) };
        let is_preflight = exchange.client.line.method == Method::Options
            && headers.get("Access-Control-Request-Method").is_some_and(|method| !method.is_empty());
        let fields = &mut exchange.reply_headers;
        fields.set("access-control-allow-origin", origin);
        // A cache must not return this response to another origin (Fetch §3.2.5).
        fields.append("vary", "Origin");
        fields.set_all(self.answer.clone());
        if !is_preflight {
            return Ok(Flow::Next);
        }
        fields.set_all(self.preflight.clone());
        exchange.message = Message { status: 200, ..Message::default() };
        Ok(Flow::Respond)
    }
}
