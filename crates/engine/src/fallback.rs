//! The answer when nothing else answers: a fault that no sequence handled.

use penstock_message::{Body, Headers, MediaType, Message};
use penstock_xml::escaped_text;

use crate::{Exchange, Fault, FaultCode, Side, codes};

/// An error in the language the client speaks: SOAP 1.1 or 1.2, JSON, or plain XML. What the log says of the fault has the
/// same correlation id; the client gets no address and nothing of the configuration.
pub(crate) fn answer(exchange: &mut Exchange, fault: &Fault) -> Message {
    let code = match &fault.code {
        FaultCode::Number(number) => number.to_string(),
        FaultCode::Word(word) => word.to_string(),
    };
    let text = if fault.is_public { &*fault.message } else { public_text(fault) };
    let id = exchange.correlation_id();
    let (content_type, body) = match speaks(exchange) {
        Speech::Json => {
            let body = serde_json::json!({ "error": { "code": code, "message": text, "correlation_id": *id } });
            ("application/json", body.to_string())
        }
        Speech::Soap11 => (
            "text/xml; charset=UTF-8",
            format!(
                "<?xml version='1.0' encoding='UTF-8'?><soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
                 <faultcode>soapenv:{}</faultcode><faultstring>{}</faultstring><detail>{}</detail>\
                 </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
                if fault.side == Side::Client { "Client" } else { "Server" },
                escaped_text(text),
                detail(&code, &id)
            ),
        ),
        Speech::Soap12 => (
            "application/soap+xml; charset=UTF-8",
            format!(
                "<?xml version='1.0' encoding='UTF-8'?><soapenv:Envelope xmlns:soapenv=\"http://www.w3.org/2003/05/soap-envelope\"><soapenv:Body><soapenv:Fault>\
                 <soapenv:Code><soapenv:Value>soapenv:{}</soapenv:Value></soapenv:Code><soapenv:Reason>\
                 <soapenv:Text xml:lang=\"en\">{}</soapenv:Text></soapenv:Reason><soapenv:Detail>{}</soapenv:Detail>\
                 </soapenv:Fault></soapenv:Body></soapenv:Envelope>",
                if fault.side == Side::Client { "Sender" } else { "Receiver" },
                escaped_text(text),
                detail(&code, &id)
            ),
        ),
        Speech::Xml => (
            "application/xml; charset=UTF-8",
            format!(
                "<error><code>{}</code><message>{}</message><correlation_id>{}</correlation_id></error>",
                escaped_text(&code),
                escaped_text(text),
                escaped_text(&id)
            ),
        ),
    };
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    if let Some(wait) = fault.retry_after {
        // Whole seconds, rounded up: an earlier request would be refused again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.set("Retry-After", seconds.max(1).to_string());
    }
    Message { headers, body: Body::bytes(body), status: status(fault), ..Message::default() }
}

fn detail(code: &str, correlation_id: &str) -> String {
    format!("<code>{}</code><correlation_id>{}</correlation_id>", escaped_text(code), escaped_text(correlation_id))
}

fn status(fault: &Fault) -> u16 {
    if let Some(status) = fault.status {
        return status;
    }
    match (fault.side, fault.number()) {
        (Side::Backend, Some(codes::CONNECTION_TIMED_OUT | codes::CONNECT_TIMEOUT)) => 504,
        (Side::Backend, Some(codes::ENDPOINT_NOT_READY | codes::GROUP_NOT_READY | codes::WSDL_NOT_READY)) => 503,
        (Side::Backend, Some(codes::ENDPOINT_CUSTOM)) => 500,
        (Side::Backend, _) => 502,
        (Side::Client, _) => 400,
        (Side::Us, _) => 500,
    }
}

/// The message of a fault in the response, where its own message is for the log only.
fn public_text(fault: &Fault) -> &'static str {
    match (fault.side, fault.number()) {
        (Side::Backend, Some(codes::CONNECTION_TIMED_OUT)) => "the backend did not respond in time",
        (Side::Backend, Some(codes::CONNECTION_FAILED | codes::CONNECT_TIMEOUT | codes::CONNECT_CANCEL)) => {
            "the backend cannot be reached"
        }
        (Side::Backend, Some(codes::CONNECTION_CLOSED)) => "the backend closed the connection",
        (Side::Backend, Some(codes::SENDER_IO_SENDING | codes::SENDER_IO_RECEIVING)) => {
            "the connection to the backend broke"
        }
        (Side::Backend, Some(codes::ENDPOINT_NOT_READY | codes::GROUP_NOT_READY | codes::WSDL_NOT_READY)) => {
            "the backend is suspended"
        }
        (Side::Backend, _) => "the response of the backend is not valid",
        (Side::Client, _) => "the request is not valid",
        (Side::Us, _) => "the message could not be processed",
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
    let content_type = headers.get("Content-Type").map(MediaType::parse);
    match content_type {
        _ if accept.contains("json") => Speech::Json,
        Some(MediaType::SoapXml) => Speech::Soap12,
        Some(MediaType::TextXml) => Speech::Soap11,
        Some(MediaType::Xml) => Speech::Xml,
        _ if accept.contains("xml") && !accept.contains("html") => Speech::Xml,
        _ => Speech::Json,
    }
}
