//! Sends error responses in the style of API Manager or Choreo Connect: JSON, XML or a SOAP fault. The fault sequence of
//! every managed operation ends with it.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};

use crate::error::{Maker, Teller, Told, codes, grpc, told};
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
        let told = told(exchange.current_fault().unwrap_or(&unknown), style);
        exchange.explain("refused", || {
            let reason = exchange.current_fault().map_or("", |fault| &fault.message);
            format!("{}: {reason}", told.code)
        });
        if exchange.direction == Direction::Request && grpc::is_grpc(&exchange.message.headers) {
            exchange.message = grpc::refusal(told.status, grpc_message(&told));
            return Ok(Flow::Respond);
        }
        let form = self.form(exchange);
        let next_access = next_access_time(exchange, &told);
        let (content_type, body) = match (form, style) {
            // Written by the guardrail itself, in either style.
            _ if told.code == codes::GUARDRAIL => ("application/json", told.description.clone()),
            (Form::Soap11 | Form::Soap12, ErrorStyle::ApiManager) => ("text/xml", soap_of_api_manager(&told)),
            (Form::Soap11, ErrorStyle::ChoreoConnect) => ("text/xml", soap11(&told)),
            (Form::Soap12, ErrorStyle::ChoreoConnect) => ("application/soap+xml", soap12(&told)),
            (Form::Xml, _) => ("application/xml", xml(&told, next_access.as_deref())),
            (Form::Json, ErrorStyle::ApiManager) => {
                ("application/json; charset=UTF-8", api_manager(&told, next_access.as_deref()))
            }
            (Form::Json, ErrorStyle::ChoreoConnect) => ("application/json", choreo_connect(&told)),
        };
        if told.status == 401 || (style == ErrorStyle::ChoreoConnect && NOT_LET_IN.contains(&told.code)) {
            challenge(exchange, style);
        }
        let mut headers = Headers::new();
        headers.set("content-type", content_type);
        let (body, status) = (Body::bytes(body), told.status);
        exchange.message = Message { headers, body, status, ..Message::default() };
        Ok(Flow::Respond)
    }
}

/// What a client of gRPC reads.
fn grpc_message(told: &Told) -> &str {
    if told.description.is_empty() { told.message } else { &told.description }
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

fn choreo_connect(told: &Told) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (message, description) = (text(told.message), text(&told.description));
    let code = told.code;
    match told.maker {
        Maker::Enforcer => {
            format!("{{\"error_message\":{message},\"code\":\"{code}\",\"error_description\":{description}}}")
        }
        Maker::Router => format!("{{\"code\":\"{code}\",\"message\":{message},\"description\":{description}}}"),
        Maker::Interceptor => {
            format!("{{\"error_message\": {message}, \"error_description\": {description}, \"code\": \"{code}\"}}")
        }
    }
}

fn api_manager(told: &Told, next_access: Option<&str>) -> String {
    let mut out = String::from("{");
    for (index, (name, text)) in members(told, next_access).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{comma}\"{name}\":{}", serde_json::Value::from(&*text));
    }
    out.push('}');
    out
}

/// The members of an error, in their order.
fn members<'t>(told: &'t Told, next_access: Option<&'t str>) -> impl Iterator<Item = (&'static str, Cow<'t, str>)> {
    let kind = match told.teller {
        Teller::Blocked => Some(told.message),
        Teller::Fault | Teller::Main => Some("Status report"),
        Teller::AuthFailure | Teller::ThrottleOut | Teller::Threat => None,
    };
    let description: Cow<'t, str> = match next_access {
        Some(time) => format!("{} .You can access API after {time}", told.description).into(),
        None => (&*told.description).into(),
    };
    let all = [
        ("code", Some(told.code.to_string().into())),
        ("type", kind.map(Cow::from)),
        ("message", Some(told.message.into())),
        ("description", Some(description)),
        ("nextAccessTime", next_access.map(Cow::from)),
    ];
    all.into_iter().filter_map(|(name, text)| Some((name, text?)))
}

/// When a refused caller may come again, as API Manager writes it: what `Retry-After` says, in another order.
fn next_access_time(exchange: &Exchange, told: &Told) -> Option<String> {
    let has_none = matches!(told.code, codes::HARD_LIMIT | codes::BLOCKED | codes::BURST_LIMIT);
    if told.teller != Teller::ThrottleOut || has_none {
        return None;
    }
    let mut words = exchange.reply_headers.get("Retry-After")?.split(' ').skip(1);
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(format!("{year}-{month}-{day} {time}+0000 UTC"))
}

fn xml(told: &Told, next_access: Option<&str>) -> String {
    let (prefix, namespace) = match told.teller {
        Teller::AuthFailure => ("ams", "http://wso2.org/apimanager/security"),
        Teller::ThrottleOut => ("amt", "http://wso2.org/apimanager/throttling"),
        Teller::Threat | Teller::Blocked | Teller::Fault | Teller::Main => ("am", "http://wso2.org/apimanager"),
    };
    let mut out = format!("<{prefix}:fault xmlns:{prefix}=\"{namespace}\">");
    for (name, text) in members(told, next_access) {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "<{prefix}:{name}>{}</{prefix}:{name}>", escaped(&text));
    }
    let _ = write!(out, "</{prefix}:fault>");
    out
}

/// A fault as API Manager's sequences make it, always of SOAP 1.1.
fn soap_of_api_manager(told: &Told) -> String {
    let (code, reason, detail) = match told.teller {
        Teller::AuthFailure => ("Client", "Authentication Failure", told.message),
        Teller::ThrottleOut | Teller::Threat | Teller::Blocked => ("Server", told.message, &*told.description),
        Teller::Fault => ("Server", &*told.description, ""),
        Teller::Main => ("Server", "The requested endpoint is not available.", ""),
    };
    let detail = if detail.is_empty() { String::new() } else { format!("<detail>{}</detail>", escaped(detail)) };
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
         <faultcode>soapenv:{code}</faultcode><faultstring>{}</faultstring>{detail}\
         </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
        escaped(reason)
    )
}

fn soap11(told: &Told) -> String {
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
         <faultcode>Server</faultcode><faultstring>{}</faultstring><detail>{}:{}</detail>\
         </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
        escaped(told.message),
        told.code,
        escaped(&told.description)
    )
}

fn soap12(told: &Told) -> String {
    format!(
        "<env:Envelope xmlns:env=\"http://www.w3.org/2003/05/soap-envelope\"><env:Body><env:Fault>\
         <env:Code><env:Value>env:Receiver</env:Value></env:Code>\
         <env:Reason><env:Text xml:lang=\"en\">{}</env:Text></env:Reason><env:Detail>{}:{}</env:Detail>\
         </env:Fault></env:Body></env:Envelope>",
        escaped(told.message),
        told.code,
        escaped(&told.description)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
