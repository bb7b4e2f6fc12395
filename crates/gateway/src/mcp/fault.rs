//! Faults: that of a backend is the result of its tool, and a client without valid
//! credentials where to get some (RFC 9728 §5.1).

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::{current, metadata, result};
use crate::error::{Maker, codes, error_response};
use crate::steps::AnswerError;
use crate::{CallContext, GatewayConfig};

/// The fault sequence of every operation: the tool's own, or [`AnswerFault`].
pub(super) struct OnFault(pub AnswerFault);

/// Answers with the current fault.
#[derive(Clone)]
pub(super) struct AnswerFault {
    pub config: Arc<GatewayConfig>,
}

impl Mediator for OnFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        match current::find(exchange).and_then(|call| call.fault) {
            Some(sequence) => Ok(Flow::Enter(sequence)),
            None => self.0.run(exchange),
        }
    }
}

impl Mediator for AnswerFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let unknown = Fault::new("a fault without a name");
        let error = error_response(exchange.current_fault().unwrap_or(&unknown), self.config.error_style);
        if error.maker == Maker::Router
            && let Some(call) = current::find(exchange).filter(|call| call.is_http_tool)
        {
            let why = format!("{}: {}", error.message, error.description);
            exchange.message = result::failure(&call.id, &why);
            return Ok(Flow::Respond);
        }
        if error.status == 401 || error.code == codes::SCOPE {
            self.challenge(exchange, error.code)?;
        }
        AnswerError { config: self.config.clone() }.run(exchange)
    }
}

impl AnswerFault {
    fn challenge(&self, exchange: &mut Exchange, code: u32) -> Result<(), Fault> {
        const NAME: &str = "WWW-Authenticate";
        let context = CallContext::of(exchange)?;
        let site = &context.site;
        let (problem, text) = match code {
            codes::SCOPE => ("insufficient_scope", "The access token has none of the scopes"),
            codes::MISSING_CREDENTIALS => ("invalid_request", "Access token is missing"),
            _ => ("invalid_token", "Access token is missing or invalid"),
        };
        let mut field = format!(
            "Bearer resource_metadata=\"{}\"",
            metadata::address(exchange, &site.base_path, self.config.trusts_forwarded)
        );
        field.push_str(&format!(", error=\"{problem}\", error_description=\"{text}\""));
        if code == codes::SCOPE {
            field.push_str(&format!(", scope=\"{}\"", site.operation.scopes.join(" ")));
        }
        exchange.reply_headers.set(NAME, field);
        Ok(())
    }
}
