//! The answer when nothing else answers: a fault that no sequence handled.

use penstock_message::{Body, Headers, MediaType, Message};

use crate::{Exchange, Fault, FaultCode, Side, codes};

/// An error in the language the client speaks: SOAP 1.1 or 1.2, JSON, or plain XML.
pub(crate) fn answer(exchange: &mut Exchange, fault: &Fault) -> Message {
    let status = status(fault);
    let code = match &fault.code {
        FaultCode::Number(number) => number.to_string(),
        FaultCode::Word(word) => word.to_string(),
    };
    let text = &*fault.message;
    let (content_type, body) = match speaks(exchange) {
        Speech::Json => {
            let body = serde_json::json!({ "error": { "code": code, "message": text } });
            ("application/json", body.to_string())
        }
        Speech::Soap11 => (
            "text/xml; charset=UTF-8",
            format!(
                "<?xml version='1.0' encoding='UTF-8'?><soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
                 <faultcode>soapenv:Server</faultcode><faultstring>{}</faultstring><detail><code>{}</code></detail>\
                 </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
                escape(text),
                escape(&code)
            ),
        ),
        Speech::Soap12 => (
            "application/soap+xml; charset=UTF-8",
            format!(
                "<?xml version='1.0' encoding='UTF-8'?><soapenv:Envelope xmlns:soapenv=\"http://www.w3.org/2003/05/soap-envelope\"><soapenv:Body><soapenv:Fault>\
                 <soapenv:Code><soapenv:Value>soapenv:Receiver</soapenv:Value></soapenv:Code><soapenv:Reason>\
                 <soapenv:Text xml:lang=\"en\">{}</soapenv:Text></soapenv:Reason><soapenv:Detail><code>{}</code></soapenv:Detail>\
                 </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
                escape(text),
                escape(&code)
            ),
        ),
        Speech::Xml => (
            "application/xml; charset=UTF-8",
            format!("<error><code>{}</code><message>{}</message></error>", escape(&code), escape(text)),
        ),
    };
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(body), status, ..Message::default() }
}

fn status(fault: &Fault) -> u16 {
    match (fault.side, fault.number()) {
        (Side::Backend, Some(codes::CONNECTION_TIMED_OUT | codes::CONNECT_TIMEOUT)) => 504,
        (Side::Backend, Some(codes::ENDPOINT_NOT_READY | codes::GROUP_NOT_READY | codes::WSDL_NOT_READY)) => 503,
        (Side::Backend, Some(codes::ENDPOINT_CUSTOM)) => 500,
        (Side::Backend, _) => 502,
        _ => 500,
    }
}

enum Speech {
    Json,
    Soap11,
    Soap12,
    Xml,
}

/// What the client understands: its Accept, else the type of what is at hand.
fn speaks(exchange: &Exchange) -> Speech {
    let headers = &exchange.message.headers;
    let accept = headers.get("Accept").unwrap_or_default();
    let content_type = headers.get("Content-Type").map(MediaType::of);
    match content_type {
        _ if accept.contains("json") => Speech::Json,
        Some(MediaType::SoapXml) => Speech::Soap12,
        Some(MediaType::TextXml) => Speech::Soap11,
        Some(MediaType::Xml) => Speech::Xml,
        _ if accept.contains("xml") && !accept.contains("html") => Speech::Xml,
        _ => Speech::Json,
    }
}

/// Text as XML character data.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
