//! Functions of AWS Lambda as backends: the request becomes the event of the function, and its result the response.
//!
//! In the style of API Manager the event has the whole request and the response is JSON; in that of Choreo Connect
//! both are the bodies as they are, unless it is configured otherwise.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_catalog::{AwsIdentity, LambdaFunction};
use penstock_compile::Compiler;
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume, clock};
use penstock_message::{Body, Form, Headers, Message};
use penstock_projects::place;
use serde_json::{Map, Value, json};

use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::service::{Answer, Service, json_fields};
use crate::text::{is_field_name, is_field_value};
use crate::upstream::aws::Unsigned;
use crate::{CallContext, ErrorStyle, Gateway, Site, client_request, text};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "lambda",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Backend,
    request: Some(compile),
    response: None,
};

/// What API Manager gives a function that says nothing, and the range it may say.
const TIMEOUT: Duration = Duration::from_secs(50);
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(900);

/// Lambda answers with 6 MB at most.
const REPLY_BYTES_MAX: usize = 8 << 20;

const LOGGER: &str = "Lambda";

/// Invokes a function.
struct Lambda {
    service: Arc<Service>,
    function: LambdaFunction,
    host: String,
    path: String,
    region: Arc<str>,
    identity: Option<AwsIdentity>,
    tells: Tells,
}

/// What becomes of a request and of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// The bodies as they are.
    Bodies,
    /// As the proxy integration of API Manager.
    Requests,
    /// As Envoy, when it does not pass bodies through.
    Envoy,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let function = site.operation.lambda.clone()?;
    let at = place(&site.operation.at);
    let (access, aws) = (site.api.lambda.as_ref(), &gateway.config.upstream.aws);
    let of_name =
        function.name.strip_prefix("arn:").and_then(|arn| arn.split(':').nth(2)).filter(|name| !name.is_empty());
    let own = access.and_then(|access| access.region.clone());
    let Some(region) = own.or_else(|| of_name.map(Arc::from)).or_else(|| aws.region.clone()) else {
        let message = format!("no region is configured for the function `{}`", function.name);
        cx.error(at, message);
        return None;
    };
    if !region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        cx.error(at, format!("`{region}` is not a region of AWS"));
        return None;
    }
    let identity = access.and_then(|access| access.identity.clone()).or_else(|| aws.identity.clone());
    if identity.is_none() {
        cx.warn(at, "no AWS credentials are configured; such requests are rejected");
    }
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let origin =
        aws.endpoint.as_ref().map_or_else(|| format!("https://lambda.{region}.{domain}"), |url| url.to_string());
    let origin = origin.trim_end_matches('/');
    let mut path = "/2015-03-31/functions/".to_owned();
    text::percent_encode(&mut path, &function.name);
    path.push_str("/invocations");
    let tells = match (gateway.config.error_style, aws.passthrough) {
        (ErrorStyle::ApiManager, _) => Tells::Requests,
        (ErrorStyle::ChoreoConnect, true) => Tells::Bodies,
        (ErrorStyle::ChoreoConnect, false) => Tells::Envoy,
    };
    let service = Service {
        url: format!("{origin}{path}").into(),
        timeout: function.timeout.filter(|timeout| TIMEOUTS.contains(timeout)).unwrap_or(TIMEOUT),
        tls: None,
        headers: Headers::new(),
        reply_bytes_max: REPLY_BYTES_MAX,
    };
    let host = origin.split_once("://").map_or(origin, |(_, host)| host).to_owned();
    Some(Box::new(Lambda { service: Arc::new(service), function, host, path, region, identity, tells }))
}

impl Mediator for Lambda {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(identity) = &self.identity else {
            return Err(refused("no AWS credentials are configured"));
        };
        let event = match self.tells {
            Tells::Bodies => bytes_of(exchange)?,
            Tells::Requests => self.event(exchange)?.to_string().into(),
            Tells::Envoy => event_of_envoy(exchange)?.to_string().into(),
        };
        let at = clock::system_date(Some("yyyyMMdd'T'HHmmss'Z'"));
        let unsigned = Unsigned {
            method: "POST",
            host: &self.host,
            path: &self.path,
            body: &event,
            region: &self.region,
            service: "lambda",
            at: &at,
        };
        let mut headers = json_fields(Some(("Authorization", unsigned.authorization(identity))));
        headers.set("Host", &*self.host);
        headers.set("X-Amz-Date", &*at);
        headers.set("X-Amz-Invocation-Type", "RequestResponse");
        if let Some(session) = &identity.session {
            headers.set("X-Amz-Security-Token", &*session.0);
        }
        let question = self.service.ask_with(exchange, headers, event);
        let (name, tells) = (self.function.name.clone(), self.tells);
        Ok(Flow::WaitBounded(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| match answered(exchange, tells, answer) {
                Ok(()) => Ok(Flow::Loopback),
                Err((code, why)) => {
                    exchange.log(Level::Warn, LOGGER, &format!("the function `{name}` failed: {why}"));
                    Err(GatewayError::new(code).because(&why).into())
                }
            })
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

fn refused(why: &str) -> Fault {
    GatewayError::new(codes::UPSTREAM_CONNECTION_FAILED).because(why).into()
}

/// The body as it was sent.
fn bytes_of(exchange: &mut Exchange) -> Result<Bytes, Fault> {
    if let Form::Bytes(bytes) = exchange.message.body.form() {
        return Ok(bytes.clone());
    }
    let program = exchange.program().clone();
    let text = exchange.message.text(&program.conversion)?;
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

/// Fields by name; of several the last.
fn fields(headers: &Headers, name_of: impl Fn(&str) -> String) -> Map<String, Value> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (name_of(&text(name)), Value::String(text(value)))).collect()
}

fn query_of(target: &str) -> Map<String, Value> {
    let pairs = target.split_once('?').map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty());
    let decoded = |text: &str| text::percent_decoded(text, true).into_owned();
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), Value::String(decoded(value))))
        .collect()
}

/// The body as a text, in base64 when it is none or must be.
fn body_of(exchange: &mut Exchange, encodes: bool, empty: &str) -> Result<(String, bool), Fault> {
    let bytes = bytes_of(exchange)?;
    if bytes.is_empty() {
        return Ok((if encodes { STANDARD.encode(empty) } else { empty.to_owned() }, encodes));
    }
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) if !encodes => (text.to_owned(), false),
        _ => (STANDARD.encode(&bytes), true),
    })
}

impl Lambda {
    /// The event of API Manager.
    fn event(&self, exchange: &mut Exchange) -> Result<Value, Fault> {
        let context = CallContext::of(exchange)?;
        let site = &context.site;
        let target = client_request::below_now(exchange, site).to_owned();
        let parameters = site.pattern.parameters.iter().zip(&context.path_values);
        let parameters: Map<String, Value> = parameters
            .map(|(name, value)| (name.to_string(), text::percent_decoded(value, false).into_owned().into()))
            .collect();
        let (body, encoded) = body_of(exchange, self.function.encodes_body, "{}")?;
        Ok(json!({
            "headers": fields(&exchange.message.headers, str::to_owned),
            "pathParameters": parameters,
            "queryStringParameters": query_of(&target),
            "httpMethod": exchange.message.method.as_str(),
            "path": &*site.operation.path,
            "body": body,
            "isBase64Encoded": encoded,
        }))
    }
}

/// The event of Envoy.
fn event_of_envoy(exchange: &mut Exchange) -> Result<Value, Fault> {
    let target = exchange.client.line.target().to_owned();
    let (body, encoded) = body_of(exchange, false, "")?;
    Ok(json!({
        "raw_path": target,
        "method": exchange.message.method.as_str(),
        "headers": fields(&exchange.message.headers, str::to_ascii_lowercase),
        "query_string_parameters": query_of(&target),
        "body": body,
        "is_base64_encoded": encoded,
    }))
}

/// Makes the answer of a function the client's; the error has a code and a reason.
fn answered(exchange: &mut Exchange, tells: Tells, answer: Result<Answer, String>) -> Result<(), (u32, String)> {
    let answer = answer.map_err(|why| (codes::UPSTREAM_CONNECTION_FAILED, why))?;
    let field = |name: &str| answer.headers.get(name).unwrap_or_default();
    match answer.status {
        200 => {}
        // The reason of AWS goes to the log, not to the client.
        429 => return Err((codes::UPSTREAM_OVERFLOW, "it is invoked too often".to_owned())),
        status => {
            let kind = field("x-amzn-errortype").split(':').next().unwrap_or_default();
            return Err((codes::UPSTREAM_CONNECTION_FAILED, format!("AWS answered with the status {status} {kind}")));
        }
    }
    let failed = answer.headers.contains("x-amz-function-error");
    let mut reply = Message { status: 200, ..Message::default() };
    match tells {
        Tells::Bodies | Tells::Envoy if failed => {
            reply.status = 504;
            reply.headers.set("content-type", "application/json");
            reply.body = Body::bytes(answer.body);
        }
        Tells::Envoy => {
            let invalid = |why: &str| (codes::UPSTREAM_PROTOCOL, format!("its response {why}"));
            let value: Value = serde_json::from_slice(&answer.body).map_err(|_| invalid("is not JSON"))?;
            unwrap(&mut reply, &value).ok_or_else(|| invalid("has no status, fields or body that can be used"))?;
        }
        Tells::Bodies | Tells::Requests => {
            let kind = field("content-type");
            reply.headers.set("content-type", if kind.is_empty() { "application/json" } else { kind });
            reply.body = Body::bytes(answer.body);
        }
    }
    exchange.message.replace_by_reply(reply);
    Ok(())
}

/// What of a function's answer reaches a client, for tools.
pub(crate) fn client_answer(bytes: &[u8]) -> Option<Message> {
    let mut reply = Message { status: 200, ..Message::default() };
    unwrap(&mut reply, &serde_json::from_slice(bytes).ok()?)?;
    Some(reply)
}

/// `{"status_code": …, "headers": {…}, "cookies": […], "body": …, "is_base64_encoded": …}`
fn unwrap(reply: &mut Message, value: &Value) -> Option<()> {
    let object = value.as_object()?;
    if let Some(status) = object.get("status_code") {
        reply.status = u16::try_from(status.as_u64()?).ok().filter(|status| (200..=599).contains(status))?;
    }
    for (name, value) in object.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !is_field_name(name) || !is_field_value(&value) {
            return None;
        }
        reply.headers.set(name, value);
    }
    for cookie in object.get("cookies").and_then(Value::as_array).into_iter().flatten() {
        let cookie = cookie.as_str().filter(|cookie| !cookie.bytes().any(|byte| byte < 0x20))?;
        reply.headers.append("set-cookie", cookie);
    }
    if !reply.headers.contains("content-type") {
        reply.headers.set("content-type", "application/json");
    }
    let body = object.get("body").and_then(Value::as_str).unwrap_or_default();
    reply.body = match object.get("is_base64_encoded").and_then(Value::as_bool) {
        Some(true) => Body::bytes(STANDARD.decode(body).ok()?),
        _ => Body::bytes(body.to_owned()),
    };
    Some(())
}
