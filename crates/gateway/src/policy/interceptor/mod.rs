//! Interceptor services: what they are told of a request or an answer, and what they make of it.
//!
//! `describe.rs` writes what a service is told, `reply.rs` reads what it decides, `apply.rs` does it. Where the
//! original has an oddity, `compat` has it too; docs/gateway/interceptors.md names each.

mod apply;
mod describe;
mod reply;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_catalog::{Interceptor, InterceptorPart};
use penstock_compile::Compiler;
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::{Body, Headers, Message};

use self::describe::Includes;
use self::reply::Decision;
use super::ask::{Answer, Service, origin, trust_of};
use super::facts;
use crate::error::{GatewayError, codes};
use crate::policy::{PolicyKind, Site, operation};
use crate::{CallContext, Gateway, GatewayConfig, place};

/// The kind.
pub const KIND: PolicyKind =
    PolicyKind { name: "interceptor", request: Some(compile_request), response: Some(compile_response) };

const LOGGER: &str = "Interceptor";

/// What an exchange remembers between the two flows.
#[derive(Debug, Default)]
pub struct Interception {
    /// Members of handle-response that say what the request was.
    request_members: Bytes,
    /// `interceptorContext` of the first service, for the second.
    context: Option<Bytes>,
    /// Whether the second service is left out, as the original does after a 204 of the first.
    skips_response: bool,
}

/// A service and how its failure is taken.
struct Asked {
    service: Service,
    includes: Includes,
    /// Whether messages go on as they are when it fails.
    passthrough_on_error: bool,
}

/// Asks the service of the request flow, and notes what that of the response flow will be told.
struct InterceptRequest {
    asked: Option<Arc<Asked>>,
    /// What the service of the response flow is told of the request.
    remembered: Option<Includes>,
    config: Arc<GatewayConfig>,
}

/// Asks the service of the response flow.
struct InterceptResponse {
    asked: Arc<Asked>,
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
    let remembered = response.map(|response| Includes::of(&response.includes).of_request());
    let asked = request.and_then(|request| asked(gateway, site, &request, "handle-request", cx));
    if asked.is_none() && remembered.is_none() {
        return None;
    }
    Some(Box::new(InterceptRequest { asked, remembered, config: gateway.config.clone() }))
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let (_, response) = interceptors(site);
    let response = response?;
    let asked = asked(gateway, site, &response, "handle-response", cx)?;
    // What the original's script does when it looks for trailers that are not there.
    if gateway.config.compat && response.includes.contains(&InterceptorPart::ResponseTrailers) {
        return None;
    }
    Some(Box::new(InterceptResponse { asked, config: gateway.config.clone() }))
}

fn asked(
    gateway: &Gateway,
    site: &Site,
    interceptor: &Interceptor,
    handler: &str,
    cx: &mut Compiler<'_>,
) -> Option<Arc<Asked>> {
    let Some((origin, authority)) = origin(&interceptor.service_url) else {
        let message =
            format!("the interceptor's `serviceURL` `{}` is not an http or https URL", interceptor.service_url);
        cx.error(place(&interceptor.at), message);
        return None;
    };
    let config = &gateway.config.interceptors;
    let timeout = interceptor.request_timeout.or(interceptor.connect_timeout).unwrap_or(config.timeout);
    Some(Arc::new(Asked {
        service: Service {
            url: format!("{origin}/api/v1/{handler}").into(),
            authority: authority.into(),
            timeout: timeout.max(SHORTEST),
            tls: trust_of(&site.api),
            headers: Vec::new(),
            reply_bytes_max: config.reply_bytes_max,
        },
        includes: Includes::of(&interceptor.includes),
        passthrough_on_error: interceptor.passthrough_on_error.unwrap_or(config.passthrough_on_error),
    }))
}

/// A timeout of nothing would refuse every request.
const SHORTEST: Duration = Duration::from_millis(1);

impl Mediator for InterceptRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let compat = self.config.compat;
        let id = describe::identify(exchange);
        let told = match &self.asked {
            Some(asked) => Some(describe::request(exchange, &context, asked.includes, &id, compat)?),
            None => None,
        };
        if let Some(remembered) = self.remembered {
            let same = self.asked.as_ref().is_some_and(|asked| asked.includes.of_request() == remembered);
            let body = match &told {
                Some(told) if same => told.clone(),
                _ => describe::request(exchange, &context, remembered, &id, compat)?,
            };
            context.interception.borrow_mut().request_members = describe::members(&body);
        }
        let (Some(asked), Some(told)) = (&self.asked, told) else { return Ok(Flow::Next) };
        let question = asked.service.ask(exchange, told);
        let (asked, config) = (asked.clone(), self.config.clone());
        Ok(Flow::Wait(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| after_request(exchange, &asked, &config, answer))
        })))
    }

    fn needs(&self) -> Needs {
        let body_of = |includes: Includes| includes.request_body;
        let wanted =
            self.asked.as_ref().is_some_and(|asked| body_of(asked.includes)) || self.remembered.is_some_and(body_of);
        if wanted { Needs::Whole } else { Needs::Nothing }
    }
}

impl Mediator for InterceptResponse {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let told = {
            let interception = context.interception.borrow();
            if interception.skips_response {
                return Ok(Flow::Next);
            }
            let (members, interceptor_context) = (&interception.request_members, interception.context.as_deref());
            describe::response(exchange, self.asked.includes, members, interceptor_context, self.config.compat)?
        };
        let question = self.asked.service.ask(exchange, told);
        let (asked, config) = (self.asked.clone(), self.config.clone());
        Ok(Flow::Wait(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| after_response(exchange, &asked, &config, answer))
        })))
    }

    fn needs(&self) -> Needs {
        if self.asked.includes.response_body { Needs::Whole } else { Needs::Nothing }
    }
}

/// Why a service's answer cannot be used.
struct Failure {
    code: u32,
    why: String,
}

/// What a service decided; `None` when it said 204, which changes nothing.
fn decision(answer: Result<Answer, String>, compat: bool) -> Result<Option<Decision>, Failure> {
    let call = |why| Failure { code: codes::INTERCEPTOR_CALL, why };
    let answer = answer.map_err(call)?;
    match answer.status {
        204 => Ok(None),
        200 => match Decision::parse(&answer.body, compat) {
            Ok(decision) => Ok(Some(decision)),
            Err(why) => Err(Failure { code: codes::INTERCEPTOR_REPLY, why }),
        },
        status => Err(call(format!("it answered with the status {status}"))),
    }
}

fn after_request(
    exchange: &mut Exchange,
    asked: &Asked,
    config: &GatewayConfig,
    answer: Result<Answer, String>,
) -> Result<Flow, Fault> {
    let context = CallContext::of(exchange)?;
    let decision = match decision(answer, config.compat) {
        Ok(Some(decision)) => decision,
        Ok(None) => {
            context.interception.borrow_mut().skips_response = config.compat;
            return Ok(Flow::Next);
        }
        Err(failure) => return failed(exchange, asked, config, failure, Some("text/plain")),
    };
    if decision.direct_respond {
        exchange.message = apply::direct_answer(decision, config.compat);
        return Ok(Flow::Respond);
    }
    context.interception.borrow_mut().context = decision.interceptor_context.clone();
    if let Some(endpoint) = &decision.dynamic_endpoint
        && let Some(flow) = choose_endpoint(exchange, &context, endpoint, config.compat)?
    {
        return Ok(flow);
    }
    let takes_body = may_change_body(exchange, &decision, asked.includes.request_body, "request_body");
    if !takes_body && config.compat {
        return Ok(Flow::Next);
    }
    apply::headers(&mut exchange.message.headers, &decision);
    if takes_body && let Some(body) = &decision.body {
        apply::body(&mut exchange.message, body);
    }
    if let Some(path) = &decision.path_to_rewrite
        && !config.compat
    {
        let below = facts::below(path, &context.site);
        exchange.message.url_postfix = Some(below.unwrap_or(path).into());
    }
    Ok(Flow::Next)
}

/// Whether a body that was given may be taken. A service that was not told the body cannot replace it.
fn may_change_body(exchange: &mut Exchange, decision: &Decision, included: bool, part: &str) -> bool {
    let may = decision.body.is_none() || included;
    if !may {
        let text = format!("the interceptor service gives a body and does not include `{part}`: the body stays");
        exchange.log(Level::Warn, LOGGER, &text);
    }
    may
}

/// Chooses a named endpoint. A flow when there is none of that name.
fn choose_endpoint(
    exchange: &mut Exchange,
    context: &CallContext,
    name: &str,
    compat: bool,
) -> Result<Option<Flow>, Fault> {
    let api = &context.site.api;
    let own = context.site.operation.endpoints.as_ref();
    let mut named = own.into_iter().chain([&api.endpoints]).flat_map(|endpoints| &endpoints.named);
    if named.any(|(known, _)| **known == *name) {
        context.upstream.choose(name);
        if compat {
            // The original's own field, which it sends on.
            let host = facts::vhost(exchange, api);
            let cluster = format!("{}_{name}_xwso2cluster_{host}_{}{}", api.organization, api.name, api.version);
            exchange.message.headers.set("x-wso2-cluster-header", cluster);
        }
        return Ok(None);
    }
    if compat {
        exchange.message = Message { status: 503, ..Message::default() };
        return Ok(Some(Flow::Respond));
    }
    let description = format!("the interceptor service chose the endpoint `{name}`, which the API does not define");
    Err(GatewayError::described(codes::UPSTREAM_CONNECTION_FAILED, description).into())
}

fn after_response(
    exchange: &mut Exchange,
    asked: &Asked,
    config: &GatewayConfig,
    answer: Result<Answer, String>,
) -> Result<Flow, Fault> {
    let decision = match decision(answer, config.compat) {
        Ok(Some(decision)) => decision,
        Ok(None) => return Ok(Flow::Next),
        Err(failure) => return failed(exchange, asked, config, failure, None),
    };
    let takes_body = may_change_body(exchange, &decision, asked.includes.response_body, "response_body");
    if !takes_body && config.compat {
        return Ok(Flow::Next);
    }
    let message = &mut exchange.message;
    apply::headers(&mut message.headers, &decision);
    let by_body = match &decision.body {
        Some(body) if takes_body => {
            apply::body(message, body);
            Some(if body.is_empty() { 204 } else { 200 })
        }
        _ => None,
    };
    if let Some(status) = decision.response_code.or(by_body) {
        message.status = status;
        message.reason = None;
    }
    Ok(Flow::Next)
}

/// What becomes of a message whose service failed.
fn failed(
    exchange: &mut Exchange,
    asked: &Asked,
    config: &GatewayConfig,
    failure: Failure,
    content_type: Option<&str>,
) -> Result<Flow, Fault> {
    let open = asked.passthrough_on_error;
    let outcome = if open { "the message goes on as it is" } else { "the message is refused" };
    let text = format!("the interceptor service `{}` failed: {}; {outcome}", asked.service.url, failure.why);
    exchange.log(Level::Warn, LOGGER, &text);
    if open {
        return Ok(Flow::Next);
    }
    if !config.compat {
        return Err(GatewayError::new(failure.code).into());
    }
    // The bytes of the original, blanks and order included.
    let code = failure.code;
    let in_answer_flow = content_type.is_none();
    let body = if in_answer_flow && !asked.includes.response_body {
        r#"{"code":"102503","message":"Upstream connection failed","description":"Upstream connection failed"}"#
            .to_owned()
    } else {
        format!(
            "{{\"error_message\": \"Internal Server Error\", \"error_description\": \"Internal Server Error\", \"code\": \"{code}\"}}"
        )
    };
    let mut headers = Headers::new();
    if let Some(content_type) = content_type {
        headers.append("content-type", content_type);
    }
    exchange.message = Message { headers, body: Body::bytes(body), status: 500, ..Message::default() };
    Ok(Flow::Respond)
}
