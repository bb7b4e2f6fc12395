//! Interceptor services: calls with a request or response, and their replies.
//!
//! `describe.rs` writes the call, `reply.rs` reads the reply, `outcome.rs` and `apply.rs` do it. Where Choreo Connect
//!  has an oddity, `compat` has it too; docs/gateway/interceptors.md names each.

mod apply;
mod call;
mod config;
mod describe;
mod outcome;
mod reply;

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::Interceptor;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::{Headers, Message};
use penstock_projects::place;

use self::describe::{Constants, Includes};
use self::outcome::{after_request, after_response};
use crate::policy::{ApiKinds, Phase, PolicyKind, operation};
use crate::service::{Service, json_fields, origin, trust_of};
use crate::{CallContext, Gateway, GatewayConfig, Site};

pub(in crate::policy) use self::apply::body as put_body;
pub(in crate::policy) use self::describe::{identify, write_fields};
pub(in crate::policy) use self::outcome::choose_endpoint;
pub(in crate::policy) use self::reply::Decision;

pub(crate) use call::InterceptorCall;
pub use config::InterceptorConfig;

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "interceptor",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Message,
    request: Some(compile_request),
    response: Some(compile_response),
};

const LOGGER: &str = "Interceptor";

/// A service and how its failure is taken.
struct FlowService {
    service: Service,
    includes: Includes,
    /// Whether messages go on as they are when it fails.
    passthrough_on_error: bool,
}

impl FlowService {
    /// Whether Choreo Connect has sent head and body of an answer before the call, because it waited for the trailers:
    /// only that can still be changed then.
    fn comes_too_late(&self, config: &GatewayConfig) -> bool {
        config.compat && self.includes.response_trailers && !self.includes.response_body
    }
}

/// Calls the service of the request flow, and stores the data for that of the response flow.
struct InterceptRequest {
    called: Option<Arc<FlowService>>,
    /// Data of the request for the service of the response flow.
    remembered: Option<Includes>,
    constants: Constants,
    config: Arc<GatewayConfig>,
}

/// Calls the service of the response flow.
struct InterceptResponse {
    called: Arc<FlowService>,
    config: Arc<GatewayConfig>,
}

/// The interceptors of a site: an operation policy goes before what the definition says.
fn interceptors(site: &Site) -> (Option<Interceptor>, Option<Interceptor>) {
    let (request, response) = operation::interceptors(site);
    (
        request.or_else(|| site.operation.request_interceptor.clone()),
        response.or_else(|| site.operation.response_interceptor.clone()),
    )
}

fn compile_request(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let (request, response) = interceptors(site);
    let remembered = response.map(|response| Includes::from_parts(&response.includes).of_request());
    let called = request.and_then(|request| service_call(gateway, site, &request, "handle-request", cx));
    if called.is_none() && remembered.is_none() {
        return None;
    }
    Some(Box::new(InterceptRequest {
        called,
        remembered,
        constants: Constants::from_site(site),
        config: gateway.config.clone(),
    }))
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let (_, response) = interceptors(site);
    let response = response?;
    let called = service_call(gateway, site, &response, "handle-response", cx)?;
    Some(Box::new(InterceptResponse { called, config: gateway.config.clone() }))
}

fn service_call(
    gateway: &Gateway,
    site: &Site,
    interceptor: &Interceptor,
    handler: &str,
    cx: &mut Compiler<'_>,
) -> Option<Arc<FlowService>> {
    let Some(origin) = origin(&interceptor.service_url) else {
        let message =
            format!("the interceptor's `serviceURL` `{}` is not an http or https URL", interceptor.service_url);
        cx.error(place(&interceptor.at), message);
        return None;
    };
    let config = &gateway.config.interceptors;
    let timeout = interceptor.request_timeout.or(interceptor.connect_timeout).unwrap_or(config.timeout);
    Some(Arc::new(FlowService {
        service: Service {
            url: format!("{origin}/api/v1/{handler}").into(),
            timeout: timeout.max(SHORTEST),
            tls: trust_of(&site.api),
            headers: json_fields(None),
            reply_bytes_max: config.reply_bytes_max,
        },
        includes: Includes::from_parts(&interceptor.includes),
        passthrough_on_error: interceptor.passthrough_on_error.unwrap_or(config.passthrough_on_error),
    }))
}

/// A timeout of nothing would refuse every request.
const SHORTEST: Duration = Duration::from_millis(1);

impl Mediator for InterceptRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let compat = self.config.compat;
        let id = identify(exchange);
        let described = match &self.called {
            Some(called) => Some(describe::request(exchange, &context, &self.constants, called.includes, &id, compat)?),
            None => None,
        };
        if let Some(remembered) = self.remembered {
            let same = self.called.as_ref().is_some_and(|called| called.includes.of_request() == remembered);
            let body = match &described {
                Some(described) if same => described.clone(),
                _ => describe::request(exchange, &context, &self.constants, remembered, &id, compat)?,
            };
            context.interception.borrow_mut().request_members = describe::members(&body);
        }
        let (Some(called), Some(described)) = (&self.called, described) else { return Ok(Flow::Next) };
        let question = called.service.ask(exchange, described);
        let (called, config) = (called.clone(), self.config.clone());
        Ok(Flow::WaitBounded(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| after_request(exchange, &called, &config, answer))
        })))
    }

    fn needs(&self) -> Needs {
        // What follows a body is known once all of it is here.
        let whole = |includes: Includes| includes.request_body || (includes.request_trailers && !self.config.compat);
        let wanted =
            self.called.as_ref().is_some_and(|called| whole(called.includes)) || self.remembered.is_some_and(whole);
        if wanted { Needs::Whole } else { Needs::Nothing }
    }
}

impl Mediator for InterceptResponse {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let trailers = exchange.message.body.trailers();
        if self.config.compat && self.called.includes.response_trailers && trailers.is_none() {
            // Choreo Connect's script fails where it looks for trailers that are not there.
            return Ok(Flow::Next);
        }
        let described = {
            let interception = context.interception.borrow();
            if interception.skips_response {
                return Ok(Flow::Next);
            }
            let (members, interceptor_context) = (&interception.request_members, interception.context.as_deref());
            describe::response(exchange, self.called.includes, members, interceptor_context, self.config.compat)?
        };
        let question = self.called.service.ask(exchange, described);
        let (called, config) = (self.called.clone(), self.config.clone());
        Ok(Flow::WaitBounded(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| after_response(exchange, &called, &config, answer))
        })))
    }

    fn needs(&self) -> Needs {
        let includes = self.called.includes;
        if includes.response_body || includes.response_trailers { Needs::Whole } else { Needs::Nothing }
    }
}

/// What an answer makes of a message with these fields.
pub(crate) fn read_reply(reply: &[u8], headers: Headers, compat: bool) -> Result<Message, String> {
    let decision = Decision::parse(reply, compat)?;
    if decision.direct_respond {
        return Ok(apply::direct_answer(decision, compat));
    }
    let mut message = Message { headers, ..Message::default() };
    apply::headers(&mut message.headers, &decision.headers);
    apply::trailers(&mut message.body, &decision.trailers, compat);
    if let Some(body) = &decision.body {
        apply::body(&mut message, body);
    }
    message.status = decision.response_code.unwrap_or_default();
    message.url_postfix = decision.path_to_rewrite.map(Arc::from);
    Ok(message)
}
