//! Sends error responses in the style of API Manager or Choreo Connect: JSON, XML or a SOAP fault. The fault sequence of
//! every managed operation ends with it.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};
use penstock_xml::escaped_text;

use crate::error::{ErrorResponse, ErrorSequence, Maker, codes, error_response, grpc};
use crate::policy::body_limit;
use crate::{CallContext, ErrorStyle, GatewayConfig};

/// Answers with the current fault.
pub(crate) struct AnswerError {
    /// Says the style.
    pub config: Arc<GatewayConfig>,
}

/// The format that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Xml,
    Soap11,
    Soap12,
}

impl Mediator for AnswerError {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if let Some(limit) = exchange.extension::<CallContext>().and_then(|context| context.exceeded.get()) {
            exchange.message = body_limit::too_large(limit);
            return Ok(Flow::Respond);
        }
        let style = self.config.error_style;
        let unknown = Fault::new("a fault without a name");
        let error = error_response(exchange.current_fault().unwrap_or(&unknown), style);
        exchange.explain("refused", || {
            let reason = exchange.current_fault().map_or("", |fault| &fault.message);
            format!("{}: {reason}", error.code)
        });
        if exchange.direction == Direction::Request && grpc::is_grpc(&exchange.message.headers) {
            exchange.message = grpc::refusal(error.status, grpc_message(&error));
            return Ok(Flow::Respond);
        }
        let form = self.form(exchange);
        let next_access = next_access_time(exchange, &error);
        let (content_type, body) = match (form, style) {
            // Written by the guardrail itself, in either style.
            _ if error.code == codes::GUARDRAIL => ("application/json", error.description.clone()),
            (Form::Soap11 | Form::Soap12, ErrorStyle::ApiManager) => ("text/xml", soap_of_api_manager(&error)),
            (Form::Soap11, ErrorStyle::ChoreoConnect) => ("text/xml", soap11(&error)),
            (Form::Soap12, ErrorStyle::ChoreoConnect) => ("application/soap+xml", soap12(&error)),
            (Form::Xml, _) => ("application/xml", xml(&error, next_access.as_deref())),
            (Form::Json, ErrorStyle::ApiManager) => {
                ("application/json; charset=UTF-8", api_manager(&error, next_access.as_deref()))
            }
            (Form::Json, ErrorStyle::ChoreoConnect) => ("application/json", choreo_connect(&error)),
        };
        if error.status == 401 || (style == ErrorStyle::ChoreoConnect && NOT_LET_IN.contains(&error.code)) {
            challenge(exchange, style);
        }
        let mut headers = Headers::new();
        headers.set("content-type", content_type);
        let (body, status) = (Body::bytes(body), error.status);
        exchange.message = Message { headers, body, status, ..Message::default() };
        Ok(Flow::Respond)
    }
}

/// What a client of gRPC reads.
fn grpc_message(error: &ErrorResponse) -> &str {
    if error.description.is_empty() { error.message } else { &error.description }
}

/// Authenticated callers without permission. Choreo Connect sends them a challenge too.
const NOT_LET_IN: std::ops::RangeInclusive<u32> = codes::SUBSCRIPTION_BLOCKED..=codes::SCOPE;

/// RFC 9110 §15.5.2: a 401 says how to do better. What refused the credentials may have said it already.
fn challenge(exchange: &mut Exchange, style: ErrorStyle) {
    const NAME: &str = "WWW-Authenticate";
    if exchange.reply_headers.contains(NAME) {
        return;
    }
    let realm = match style {
        ErrorStyle::ChoreoConnect => "Bearer realm=\"Choreo Connect\"",
        ErrorStyle::ApiManager => "Bearer realm=\"WSO2 API Manager\"",
    };
    let problem = "error=\"invalid_token\", error_description=\"The provided token is invalid\"";
    exchange.reply_headers.append(NAME, format!("{realm}, {problem}"));
}

impl AnswerError {
    /// API Manager does it without configuration.
    fn tells_soap(&self) -> bool {
        self.config.soap_errors || self.config.error_style == ErrorStyle::ApiManager
    }

    fn form(&self, exchange: &Exchange) -> Form {
        if exchange.direction == Direction::Response {
            // The client's fields are gone; what is remembered is whether it spoke SOAP.
            let soap = self.tells_soap() && exchange.message.client_spoke_soap == Some(true);
            return if soap { Form::Soap11 } else { Form::Json };
        }
        let headers = &exchange.message.headers;
        let content_type = headers.get("content-type").unwrap_or_default();
        let is = |name: &str| content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if self.tells_soap() {
            if is("application/soap+xml") {
                return Form::Soap12;
            }
            if is("text/xml") && headers.contains("soapaction") {
                return Form::Soap11;
            }
        }
        let accept = headers.get("accept").unwrap_or_default();
        let wants_xml = accept.contains("application/xml") || accept.contains("text/xml");
        let also_others = accept.contains("json") || accept.contains("*/*");
        match self.config.error_style {
            ErrorStyle::ApiManager if wants_xml && !also_others => Form::Xml,
            _ => Form::Json,
        }
    }
}

fn choreo_connect(error: &ErrorResponse) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (message, description) = (text(error.message), text(&error.description));
    let code = error.code;
    match error.maker {
        Maker::Enforcer => {
            format!("{{\"error_message\":{message},\"code\":\"{code}\",\"error_description\":{description}}}")
        }
        Maker::Router => format!("{{\"code\":\"{code}\",\"message\":{message},\"description\":{description}}}"),
        Maker::Interceptor => {
            format!("{{\"error_message\": {message}, \"error_description\": {description}, \"code\": \"{code}\"}}")
        }
    }
}

fn api_manager(error: &ErrorResponse, next_access: Option<&str>) -> String {
    let mut out = String::from("{");
    for (index, (name, text)) in members(error, next_access).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{comma}\"{name}\":{}", serde_json::Value::from(&*text));
    }
    out.push('}');
    out
}

/// The members of an error, in their order.
fn members<'t>(
    error: &'t ErrorResponse,
    next_access: Option<&'t str>,
) -> impl Iterator<Item = (&'static str, Cow<'t, str>)> {
    let kind = match error.sequence {
        ErrorSequence::Blocked => Some(error.message),
        ErrorSequence::Fault | ErrorSequence::Main => Some("Status report"),
        ErrorSequence::AuthFailure | ErrorSequence::ThrottleOut | ErrorSequence::Threat => None,
    };
    let description: Cow<'t, str> = match next_access {
        Some(time) => format!("{} .You can access API after {time}", error.description).into(),
        None => (&*error.description).into(),
    };
    let all = [
        ("code", Some(error.code.to_string().into())),
        ("type", kind.map(Cow::from)),
        ("message", Some(error.message.into())),
        ("description", Some(description)),
        ("nextAccessTime", next_access.map(Cow::from)),
    ];
    all.into_iter().filter_map(|(name, text)| Some((name, text?)))
}

/// When a refused caller may come again, as API Manager writes it: what `Retry-After` says, in another order.
fn next_access_time(exchange: &Exchange, error: &ErrorResponse) -> Option<String> {
    let has_none = matches!(error.code, codes::HARD_LIMIT | codes::BLOCKED | codes::BURST_LIMIT);
    if error.sequence != ErrorSequence::ThrottleOut || has_none {
        return None;
    }
    let mut words = exchange.reply_headers.get("Retry-After")?.split(' ').skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(format!("{year}-{month}-{day} {time}+0000 UTC"))
}

fn xml(error: &ErrorResponse, next_access: Option<&str>) -> String {
    let (prefix, namespace) = match error.sequence {
        ErrorSequence::AuthFailure => ("ams", "http://wso2.org/apimanager/security"),
        ErrorSequence::ThrottleOut => ("amt", "http://wso2.org/apimanager/throttling"),
        ErrorSequence::Threat | ErrorSequence::Blocked | ErrorSequence::Fault | ErrorSequence::Main => {
            ("am", "http://wso2.org/apimanager")
        }
    };
    let mut out = format!("<{prefix}:fault xmlns:{prefix}=\"{namespace}\">");
    for (name, text) in members(error, next_access) {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "<{prefix}:{name}>{}</{prefix}:{name}>", escaped_text(&text));
    }
    let _ = write!(out, "</{prefix}:fault>");
    out
}

/// A fault as API Manager's sequences make it, always of SOAP 1.1.
fn soap_of_api_manager(error: &ErrorResponse) -> String {
    let (code, reason, detail) = match error.sequence {
        ErrorSequence::AuthFailure => ("Client", "Authentication Failure", error.message),
        ErrorSequence::ThrottleOut | ErrorSequence::Threat | ErrorSequence::Blocked => {
            ("Server", error.message, &*error.description)
        }
        ErrorSequence::Fault => ("Server", &*error.description, ""),
        ErrorSequence::Main => ("Server", "The requested endpoint is not available.", ""),
    };
    let detail = if detail.is_empty() { String::new() } else { format!("<detail>{}</detail>", escaped_text(detail)) };
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
         <faultcode>soapenv:{code}</faultcode><faultstring>{}</faultstring>{detail}\
         </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
        escaped_text(reason)
    )
}

fn soap11(error: &ErrorResponse) -> String {
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
         <faultcode>Server</faultcode><faultstring>{}</faultstring><detail>{}:{}</detail>\
         </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
        escaped_text(error.message),
        error.code,
        escaped_text(&error.description)
    )
}

fn soap12(error: &ErrorResponse) -> String {
    format!(
        "<env:Envelope xmlns:env=\"http://www.w3.org/2003/05/soap-envelope\"><env:Body><env:Fault>\
         <env:Code><env:Value>env:Receiver</env:Value></env:Code>\
         <env:Reason><env:Text xml:lang=\"en\">{}</env:Text></env:Reason><env:Detail>{}:{}</env:Detail>\
         </env:Fault></env:Body></env:Envelope>",
        escaped_text(error.message),
        error.code,
        escaped_text(&error.description)
    )
}
