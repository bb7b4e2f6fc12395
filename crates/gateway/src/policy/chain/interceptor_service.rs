//! `interceptor-service`: a service that changes requests and answers, or answers itself. Its request is flatter than
//! that of Choreo Connect (`policy/interceptor/`); what it decides is read by the same code.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::Headers;

use super::answer;
use super::params::Params;
use crate::client_request::body_bytes;
use crate::json_writer::JsonObject;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};
use crate::policy::interceptor::{Decision, choose_endpoint, identify, put_body, write_fields};
use crate::service::{Answer, Service, json_fields, origin};
use crate::{CallContext, client_request};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "interceptor-service", make };

const LOGGER: &str = "Interceptor";

/// Milliseconds, as the API Platform bounds them.
const TIMEOUTS: (u64, u64) = (100, 60_000);
const TIMEOUT_MS: u64 = 5_000;

/// Room for headers and context beside a body.
const HEAD_BYTES: usize = 2048;

/// What is sent to a service in one flow.
struct Includes {
    request_headers: bool,
    request_body: bool,
    response_headers: bool,
    response_body: bool,
}

struct ServiceCall {
    service: Service,
    includes: Includes,
    passes_on: bool,
}

struct Rules {
    request: Option<ServiceCall>,
    response: Option<ServiceCall>,
    index: usize,
}

struct OnRequest(Arc<Rules>);

struct OnAnswer(Arc<Rules>);

/// Members of a question that say what the request was.
struct Remembered(Bytes);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let endpoint = params.required_text("endpoint")?;
    let endpoint = endpoint.trim().trim_end_matches('/');
    let Some(origin) = origin(endpoint) else {
        params.error(format!("`endpoint` must be an http or https address, not `{endpoint}`"));
        return None;
    };
    let path = endpoint.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned()));
    let base = format!("{origin}{}", path.unwrap_or_default());
    let timeout = params.whole("timeoutMillis", TIMEOUTS.0, TIMEOUTS.1).unwrap_or(TIMEOUT_MS);
    if params.flag("tlsSkipVerify", false) && base.starts_with("https:") {
        params.error(
            "`tlsSkipVerify` is not supported: trust the service's certificate (`tls.trust` of the configuration)",
        );
    }
    let call = |flow: Params<'_>, handler: &str, of_answer: bool| ServiceCall {
        service: Service {
            url: format!("{base}/{handler}").into(),
            timeout: Duration::from_millis(timeout),
            tls: None,
            headers: json_fields(None),
            reply_bytes_max: making.gateway.config.interceptors.reply_bytes_max,
        },
        includes: Includes {
            request_headers: flow.flag("includeRequestHeaders", !of_answer),
            request_body: flow.flag("includeRequestBody", !of_answer),
            response_headers: of_answer && flow.flag("includeResponseHeaders", true),
            response_body: of_answer && flow.flag("includeResponseBody", true),
        },
        passes_on: flow.flag("passthroughOnError", false),
    };
    let rules = Arc::new(Rules {
        request: params.map("request").map(|flow| call(flow, "handle-request", false)),
        response: params.map("response").map(|flow| call(flow, "handle-response", true)),
        index: making.index,
    });
    if rules.request.is_none() && rules.response.is_none() {
        params.error("`request` or `response` is missing");
    }
    let made = Made::request(ChainPhase::Body, OnRequest(rules.clone()));
    Some(if rules.response.is_some() { made.and_response(ChainPhase::Body, OnAnswer(rules)) } else { made })
}

impl Mediator for OnRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let id = identify(exchange);
        if let Some(response) = &self.0.response {
            let members = describe(exchange, &context, &response.includes, &id)?;
            context.chain.borrow_mut().keep(self.0.index, Remembered(members.into_vec().into()));
        }
        let Some(call) = &self.0.request else { return Ok(Flow::Next) };
        let members = describe(exchange, &context, &call.includes, &id)?;
        let mut object = JsonObject::new(members.len() + HEAD_BYTES);
        object.members(&members);
        Ok(ask(exchange, &context, &self.0, call, object, after_request))
    }

    fn needs(&self) -> Needs {
        let both = [&self.0.request, &self.0.response];
        if both.into_iter().flatten().any(|call| call.includes.request_body) { Needs::Whole } else { Needs::Nothing }
    }
}

impl Mediator for OnAnswer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(call) = &self.0.response else { return Ok(Flow::Next) };
        let context = CallContext::of(exchange)?;
        let remembered = context.chain.borrow_mut().take::<Remembered>(self.0.index);
        let body = if call.includes.response_body { body_bytes(exchange)? } else { Bytes::new() };
        let message = &exchange.message;
        let mut object = JsonObject::new(HEAD_BYTES + body.len() / 3 * 4);
        object.number("responseCode", message.status);
        object.members(remembered.as_ref().map(|remembered| &*remembered.0).unwrap_or_default());
        if call.includes.response_headers {
            object.object("responseHeaders", |object| write_fields(object, &message.headers));
        }
        if !body.is_empty() {
            object.base64("responseBody", &body);
        }
        Ok(ask(exchange, &context, &self.0, call, object, after_answer))
    }

    fn needs(&self) -> Needs {
        let reads = self.0.response.as_ref().is_some_and(|call| call.includes.response_body);
        if reads { Needs::Whole } else { Needs::Nothing }
    }
}

/// What becomes of an answer.
type Then = fn(&mut Exchange, &Rules, Result<Answer, String>) -> Result<Flow, Fault>;

/// Calls a service with the object so far and what both flows share.
fn ask(
    exchange: &Exchange,
    context: &CallContext,
    rules: &Arc<Rules>,
    call: &ServiceCall,
    mut object: JsonObject,
    then: Then,
) -> Flow {
    if let Some(shared) = &context.chain.borrow().interceptor_context {
        object.raw("interceptorContext", shared);
    }
    let question = call.service.ask(exchange, object.end().into());
    let rules = rules.clone();
    Flow::WaitBounded(Box::pin(async move {
        let answer = question.answer().await;
        Resume::new(move |exchange, ()| then(exchange, &rules, answer))
    }))
}

/// Members of the object about the request.
fn describe(exchange: &mut Exchange, context: &CallContext, includes: &Includes, id: &str) -> Result<Box<[u8]>, Fault> {
    let body = if includes.request_body { body_bytes(exchange)? } else { Bytes::new() };
    let site = &context.site;
    let message = &exchange.message;
    let mut object = JsonObject::new(HEAD_BYTES + body.len() / 3 * 4);
    if includes.request_headers {
        object.object("requestHeaders", |object| write_fields(object, &message.headers));
    }
    if !body.is_empty() {
        object.base64("requestBody", &body);
    }
    object.object("invocationContext", |object| {
        object.text("requestId", id);
        object.text("apiName", &site.api.name);
        object.text("apiVersion", &site.api.version);
        object.text("vhost", message.headers.get("host").unwrap_or_default());
        object.text("method", message.method.as_str());
        object.text("basePath", &site.base_path);
        object.text("path", &client_request::target_now(exchange, site));
        object.text("pathTemplate", &site.operation.path);
        object.text("scheme", client_request::scheme(exchange));
    });
    Ok(object.end_members())
}

/// What a service decided; nothing when it said nothing.
fn decision(answer: Result<Answer, String>) -> Result<Decision, String> {
    let answer = answer?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("it answered with the status {}", answer.status));
    }
    if answer.body.trim_ascii().is_empty() {
        return Ok(Decision::default());
    }
    Decision::parse_sparse(&answer.body)
}

fn after_request(exchange: &mut Exchange, rules: &Rules, answer: Result<Answer, String>) -> Result<Flow, Fault> {
    let Some(call) = &rules.request else { return Ok(Flow::Next) };
    let decision = match decision(answer) {
        Ok(decision) => decision,
        Err(why) => return Ok(failed(exchange, call, &why)),
    };
    let context = CallContext::of(exchange)?;
    if let Some(shared) = &decision.interceptor_context {
        context.chain.borrow_mut().interceptor_context = Some(shared.clone());
    }
    if decision.direct_respond {
        return Ok(direct(exchange, decision));
    }
    if let Some(name) = &decision.dynamic_endpoint
        && let Some(flow) = choose_endpoint(exchange, &context, name, false)?
    {
        return Ok(flow);
    }
    fields(&mut exchange.message.headers, &decision);
    if let Some(body) = &decision.body {
        put_body(&mut exchange.message, body);
    }
    if let Some(path) = &decision.path_to_rewrite {
        let below = client_request::below(path, &context.site);
        exchange.message.url_postfix = Some(below.unwrap_or(path).into());
    }
    Ok(Flow::Next)
}

fn after_answer(exchange: &mut Exchange, rules: &Rules, answer: Result<Answer, String>) -> Result<Flow, Fault> {
    let Some(call) = &rules.response else { return Ok(Flow::Next) };
    let decision = match decision(answer) {
        Ok(decision) => decision,
        Err(why) => return Ok(failed(exchange, call, &why)),
    };
    let message = &mut exchange.message;
    fields(&mut message.headers, &decision);
    if let Some(body) = &decision.body {
        put_body(message, body);
    }
    if let Some(status) = decision.response_code {
        message.status = status;
        message.reason = None;
    }
    Ok(Flow::Next)
}

/// Fields that are added take the place of others, as in the API Platform; fields that are replaced go before them.
fn fields(headers: &mut Headers, decision: &Decision) {
    let all = decision.headers.add.iter().chain(&decision.headers.replace);
    for (name, value) in all.filter(|(name, _)| !name.starts_with(':')) {
        headers.set(name, value);
    }
    for name in &decision.headers.remove {
        headers.remove(name);
    }
}

fn direct(exchange: &mut Exchange, decision: Decision) -> Flow {
    let mut headers = Headers::new();
    fields(&mut headers, &decision);
    let body = decision.body.unwrap_or_default();
    if !body.is_empty() && !headers.contains("content-type") {
        headers.append("content-type", "text/plain");
    }
    headers.remove("content-length");
    answer::immediately(exchange, decision.response_code.unwrap_or(200), headers, body)
}

/// The outcome for a message whose service failed. The client does not get the service's address.
fn failed(exchange: &mut Exchange, call: &ServiceCall, why: &str) -> Flow {
    let outcome = if call.passes_on { "the message is forwarded unchanged" } else { "the message is refused" };
    let text = format!("the interceptor service `{}` failed: {why}; {outcome}", call.service.url);
    exchange.log(Level::Warn, LOGGER, &text);
    if call.passes_on {
        return Flow::Next;
    }
    let body = r#"{"type":"INTERCEPTOR_SERVICE","message":"interceptor unavailable"}"#;
    answer::immediately(exchange, 500, answer::json(), body)
}
