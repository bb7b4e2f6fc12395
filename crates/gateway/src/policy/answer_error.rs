//! Tells a client what went wrong, in the way of either original: JSON, XML or a SOAP fault. The fault sequence of
//! every managed operation ends with it.

use std::fmt::Write;
use std::sync::Arc;

use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};

use super::body_limit;
use crate::CallContext;
use crate::config::{ErrorStyle, GatewayConfig};
use crate::error::{Maker, Told, codes, told};

/// Answers with the current fault.
pub(crate) struct AnswerError {
    /// Says the style.
    pub config: Arc<GatewayConfig>,
}

/// How a client wants to be told.
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
        let unknown = Fault::new("a fault that nobody named");
        let told = told(exchange.current_fault().unwrap_or(&unknown), style);
        exchange.explain("refused", || {
            let reason = exchange.current_fault().map_or("", |fault| &fault.message);
            format!("{}: {reason}", told.code)
        });
        let form = self.form(exchange);
        let (content_type, body) = match (form, style) {
            // Written by the guardrail itself, in either style.
            _ if told.code == codes::GUARDRAIL => ("application/json", told.description.clone()),
            (Form::Soap11, _) => ("text/xml", soap11(&told)),
            (Form::Soap12, _) => ("application/soap+xml", soap12(&told)),
            (Form::Xml, _) => ("application/xml", xml(&told)),
            (Form::Json, ErrorStyle::ApiManager) => ("application/json", api_manager(&told)),
            (Form::Json, ErrorStyle::ChoreoConnect) => ("application/json", choreo_connect(&told)),
        };
        if told.status == 401 {
            challenge(exchange, style);
        }
        let mut headers = Headers::new();
        headers.set("content-type", content_type);
        let (body, status) = (Body::bytes(body), told.status);
        exchange.message = Message { headers, body, status, ..Message::default() };
        Ok(Flow::Respond)
    }
}

/// RFC 9110 §15.5.2: a 401 says how to do better. What refused the credentials may have said it already.
fn challenge(exchange: &mut Exchange, style: ErrorStyle) {
    const NAME: &str = "WWW-Authenticate";
    if exchange.reply_headers.contains(NAME) {
        return;
    }
    let realm = match style {
        ErrorStyle::ChoreoConnect => "Bearer realm=\"Choreo Connect\"",
        ErrorStyle::ApiManager => "OAuth2 realm=\"WSO2 API Manager\"",
    };
    let problem = "error=\"invalid_token\", error_description=\"The provided token is invalid\"";
    exchange.reply_headers.append(NAME, format!("{realm}, {problem}"));
}

impl AnswerError {
    fn form(&self, exchange: &Exchange) -> Form {
        if exchange.direction == Direction::Response {
            // The client's fields are gone; what is remembered is whether it spoke SOAP.
            let soap = self.config.soap_errors && exchange.message.client_spoke_soap == Some(true);
            return if soap { Form::Soap11 } else { Form::Json };
        }
        let headers = &exchange.message.headers;
        let content_type = headers.get("content-type").unwrap_or_default();
        let is = |name: &str| content_type.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if self.config.soap_errors {
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

fn api_manager(told: &Told) -> String {
    let mut members = serde_json::Map::new();
    members.insert("code".to_owned(), told.code.to_string().into());
    if has_type(told) {
        members.insert("type".to_owned(), STATUS_REPORT.into());
    }
    members.insert("message".to_owned(), told.message.into());
    members.insert("description".to_owned(), told.description.as_str().into());
    serde_json::Value::Object(members).to_string()
}

const STATUS_REPORT: &str = "Status report";

/// What is refused says no type, what fails does.
fn has_type(told: &Told) -> bool {
    !matches!(told.code, 900_000..=900_999)
}

fn xml(told: &Told) -> String {
    let (prefix, namespace) = match told.code {
        codes::INVALID_QUERY | codes::QUERY_TOO_DEEP | codes::QUERY_TOO_COMPLEX | 900_900..=900_999 => {
            ("ams", "http://wso2.org/apimanager/security")
        }
        900_800..=900_808 => ("amt", "http://wso2.org/apimanager/throttling"),
        _ => ("am", "http://wso2.org/apimanager"),
    };
    let mut out = format!("<{prefix}:fault xmlns:{prefix}=\"{namespace}\">");
    let mut element = |name: &str, text: &str| {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "<{prefix}:{name}>{}</{prefix}:{name}>", escaped(text));
    };
    element("code", &told.code.to_string());
    if has_type(told) {
        element("type", STATUS_REPORT);
    }
    element("message", told.message);
    element("description", &told.description);
    out.push_str(&format!("</{prefix}:fault>"));
    out
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
