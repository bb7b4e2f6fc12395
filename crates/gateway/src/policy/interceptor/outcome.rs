//! What becomes of a message once its service answered, or did not.

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow};
use penstock_message::{Body, Headers, Message};

use super::reply::Decision;
use super::{FlowService, LOGGER, apply};
use crate::error::{GatewayError, codes};
use crate::service::Answer;
use crate::{CallContext, GatewayConfig, client_request};

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

pub(super) fn after_request(
    exchange: &mut Exchange,
    called: &FlowService,
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
        Err(failure) => return failed(exchange, called, config, failure, Some("text/plain")),
    };
    if decision.direct_respond {
        exchange.message = apply::direct_answer(decision, config.compat);
        return Ok(Flow::Respond);
    }
    // Where Choreo Connect's script ends with an error, the response flow misses what it would have kept.
    let ends = |context: &CallContext| {
        context.interception.borrow_mut().skips_response = true;
        Ok(Flow::Next)
    };
    let takes_body = may_change_body(exchange, &decision, called.includes.request_body, "request_body");
    if !takes_body && config.compat {
        return ends(&context);
    }
    let message = &mut exchange.message;
    apply::headers(&mut message.headers, &decision.headers);
    if takes_body && let Some(body) = &decision.body {
        apply::body(message, body);
    }
    if !apply::trailers(&mut message.body, &decision.trailers, config.compat) {
        return ends(&context);
    }
    if let Some(endpoint) = &decision.dynamic_endpoint
        && let Some(flow) = choose_endpoint(exchange, &context, endpoint, config.compat)?
    {
        return Ok(flow);
    }
    context.interception.borrow_mut().context = decision.interceptor_context.clone();
    if let Some(path) = &decision.path_to_rewrite
        && !config.compat
    {
        let below = client_request::below(path, &context.site);
        exchange.message.url_postfix = Some(below.unwrap_or(path).into());
    }
    Ok(Flow::Next)
}

/// Whether a body that was given may be taken. A service without the body cannot replace it.
fn may_change_body(exchange: &mut Exchange, decision: &Decision, included: bool, part: &str) -> bool {
    let may = decision.body.is_none() || included;
    if !may {
        let text = format!("the interceptor service gives a body and does not include `{part}`: the body stays");
        exchange.log(Level::Warn, LOGGER, &text);
    }
    may
}

/// Chooses a named endpoint. A flow when there is none of that name.
pub(in crate::policy) fn choose_endpoint(
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
            // Choreo Connect's own field, which it sends on.
            let host = client_request::vhost(exchange, api);
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

pub(super) fn after_response(
    exchange: &mut Exchange,
    called: &FlowService,
    config: &GatewayConfig,
    answer: Result<Answer, String>,
) -> Result<Flow, Fault> {
    let decision = match decision(answer, config.compat) {
        Ok(Some(decision)) => decision,
        Ok(None) => return Ok(Flow::Next),
        Err(failure) => return failed(exchange, called, config, failure, None),
    };
    let takes_body = may_change_body(exchange, &decision, called.includes.response_body, "response_body");
    if !takes_body && config.compat {
        return Ok(Flow::Next);
    }
    let message = &mut exchange.message;
    if called.comes_too_late(config) {
        if decision.headers.is_empty() {
            apply::trailers(&mut message.body, &decision.trailers, config.compat);
        }
        return Ok(Flow::Next);
    }
    apply::headers(&mut message.headers, &decision.headers);
    let by_body = match &decision.body {
        Some(body) if takes_body => {
            apply::body(message, body);
            Some(if body.is_empty() { 204 } else { 200 })
        }
        _ => None,
    };
    let goes_on = apply::trailers(&mut message.body, &decision.trailers, config.compat);
    let said = decision.response_code.filter(|_| goes_on);
    if let Some(status) = said.or(by_body) {
        message.status = status;
        message.reason = None;
    }
    Ok(Flow::Next)
}

/// What becomes of a message whose service failed.
fn failed(
    exchange: &mut Exchange,
    called: &FlowService,
    config: &GatewayConfig,
    failure: Failure,
    content_type: Option<&str>,
) -> Result<Flow, Fault> {
    let in_answer_flow = content_type.is_none();
    let open = called.passthrough_on_error || (in_answer_flow && called.comes_too_late(config));
    let outcome = if open { "the message is forwarded unchanged" } else { "the message is refused" };
    let text = format!("the interceptor service `{}` failed: {}; {outcome}", called.service.url, failure.why);
    exchange.log(Level::Warn, LOGGER, &text);
    if open {
        return Ok(Flow::Next);
    }
    if !config.compat {
        return Err(GatewayError::new(failure.code).into());
    }
    // The bytes of Choreo Connect, blanks and order included.
    let code = failure.code;
    let body = if in_answer_flow && !called.includes.response_body {
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
