//! The fault flow of operation policies: they see an empty message and may make the answer, or add fields to ours.

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Value};

use crate::error::{ErrorResponse, error_response};
use crate::{CallContext, ErrorStyle};

/// Sets the request aside, so that what policies make is theirs alone.
pub(super) struct BeginFault {
    pub(super) style: ErrorStyle,
}

/// Answers: with the body the policies made, or with our own and the fields they set.
pub(super) struct EndFault {
    pub(super) style: ErrorStyle,
    pub(super) answer: Box<dyn Mediator>,
}

impl Mediator for BeginFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let message = &mut exchange.message;
        let headers = std::mem::take(&mut message.headers);
        message.body = Body::empty();
        message.status = 0;
        message.reason = None;
        message.axis2 = Default::default();
        if let Some(context) = exchange.extension::<CallContext>() {
            *context.set_aside.borrow_mut() = Some(headers);
        }
        // The error response, not the log text, which may name backends.
        let error = current(exchange, self.style);
        let properties = &mut exchange.message.properties;
        properties.set("ERROR_CODE", Value::Integer(i64::from(error.code)));
        properties.set("ERROR_MESSAGE", Value::string(error.message));
        properties.set("ERROR_DETAIL", Value::string(error.description));
        Ok(Flow::Next)
    }
}

fn current(exchange: &Exchange, style: ErrorStyle) -> ErrorResponse {
    let unknown = Fault::new("a fault without a name");
    error_response(exchange.current_fault().unwrap_or(&unknown), style)
}

impl Mediator for EndFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let status = current(exchange, self.style).status;
        let message = &mut exchange.message;
        let explicit = message.axis2.get("HTTP_SC").and_then(|value| value.to_text().trim().parse::<u16>().ok());
        let explicit = explicit.or(Some(message.status).filter(|status| *status != 0));
        if !message.body.is_empty() {
            message.status = explicit.unwrap_or(status);
            return Ok(Flow::Respond);
        }
        let made = std::mem::take(&mut message.headers);
        if let Some(context) = exchange.extension::<CallContext>() {
            exchange.message.headers = context.set_aside.borrow_mut().take().unwrap_or_default();
        }
        let flow = self.answer.run(exchange)?;
        add(&mut exchange.message.headers, &made);
        if let Some(status) = explicit {
            exchange.message.status = status;
        }
        Ok(flow)
    }
}

fn add(headers: &mut Headers, made: &Headers) {
    for (name, value) in made.iter() {
        if let Ok(name) = std::str::from_utf8(name) {
            headers.set(name, value);
        }
    }
}
