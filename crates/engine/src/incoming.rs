//! From an exchange's message to the answer the client gets: status, headers, body.

use penstock_message::{Body, Form, Message, Shape, Value};

use crate::route::{Entry, Unserved};
use crate::{Exchange, Fault, outgoing};

/// Request fields that say nothing in an answer. Micro Integrator sends every header of the message at
/// hand, also those of the client's own request; these are left out because they could only leak
/// or confuse.
const REQUEST_ONLY: [&str; 13] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Cookie",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
    "SOAPAction",
];

/// Turns the message into the answer. `Err` when the body cannot be put in the form it must have.
/// A body that must be converted has been buffered before.
pub(crate) fn prepare(exchange: &mut Exchange) -> Result<Box<Message>, Fault> {
    let loaded = exchange.loaded.clone();
    let from_client = !exchange.message.is_reply;
    let message = &mut exchange.message;
    let explicit = message.axis2.get("HTTP_SC").and_then(|value| value.to_text().trim().parse::<u16>().ok());

    let output = match message.axis2.is_true("NO_ENTITY_BODY") {
        true => None,
        // A client of a REST call gets a SOAP fault as plain XML; one that spoke SOAP gets it as it is.
        false => Some(message.output(&loaded.program.conversion, Shape::Reply)?),
    };
    let mut headers = std::mem::take(&mut message.headers);
    let connection = headers.get_bytes("Connection").map(<[u8]>::to_vec).unwrap_or_default();
    headers.retain(|name, _| {
        outgoing::travels(name, &connection)
            && !(from_client && REQUEST_ONLY.iter().any(|field| field.as_bytes().eq_ignore_ascii_case(name)))
    });

    let mut body = Body::empty();
    let soap_fault = output.as_ref().is_some_and(|output| output.soap_fault);
    match output {
        None => {
            headers.remove("Content-Type");
        }
        Some(output) => {
            match (&output.content_type, &output.form) {
                (Some(content_type), _) => headers.set("Content-Type", content_type),
                (None, Form::Empty) if from_client => {
                    headers.remove("Content-Type");
                }
                _ => {}
            }
            if output.decoded {
                headers.remove("Content-Encoding");
            }
            body = output.into_body();
        }
    }

    let mut fields = std::mem::take(&mut exchange.reply_headers);
    if fields.contains("Vary") {
        // What an answer varies by adds up.
        for value in fields.get_all("Vary") {
            headers.append("Vary", value);
        }
        fields.remove("Vary");
    }
    headers.set_all(fields);
    if let Some(trace) = &exchange.trace {
        headers.set("x-penstock-explain", trace.to_json());
    }
    let message = &mut exchange.message;
    let status = match explicit {
        Some(status @ 100..=999) => status,
        _ if soap_fault && !message.axis2.is_true("FAULTS_AS_HTTP_200") => 500,
        _ if soap_fault => 200,
        _ if message.status != 0 => message.status,
        _ => 200,
    };
    let reason = message.axis2.get("HTTP_SC_DESC").map(|value| value.to_text().into());
    let reason = reason.or_else(|| if explicit.is_none() { message.reason.take() } else { None });
    Ok(Box::new(Message { headers, body, status, reason, ..Message::default() }))
}

/// The response to a message without one: 202, as Micro Integrator acknowledges; for an API without a resource
/// that runs, what its handlers let through to.
pub(crate) fn unanswered(exchange: &mut Exchange) -> Box<Message> {
    let (api, index) = match exchange.entry.clone() {
        Entry::Api(api, Unserved::Options(index)) => (api, index),
        Entry::Api(_, Unserved::Refused(status)) => return Box::new(empty(status)),
        _ => return Box::new(empty(202)),
    };
    let allowed = api.resources[index].allowed();
    exchange.message.headers.set("Access-Control-Allow-Methods", &allowed);
    exchange.message.headers.set("Allow", &allowed);
    exchange.message.axis2.set("NO_ENTITY_BODY", Value::Boolean(true));
    prepare(exchange).unwrap_or_else(|_| Box::new(empty(200)))
}

/// An answer of ours with no body.
pub(crate) fn empty(status: u16) -> Message {
    Message { status, ..Message::default() }
}
