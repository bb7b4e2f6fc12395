//! Tells a client what went wrong: the fault sequence of every managed operation.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};

use crate::config::GatewayConfig;
use crate::error::row;

/// Answers with the current fault.
pub(crate) struct AnswerError {
    /// Says the style.
    pub config: Arc<GatewayConfig>,
}

impl Mediator for AnswerError {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let code = exchange.current_fault().and_then(Fault::number).unwrap_or(500);
        let row = row(code);
        let detail = exchange.current_fault().and_then(|fault| fault.detail.clone());
        let body = serde_json::json!({
            "error_message": row.message,
            "code": row.code.to_string(),
            "error_description": detail.as_deref().unwrap_or(row.description),
        });
        let mut headers = Headers::new();
        headers.set("content-type", "application/json");
        exchange.message =
            Message { headers, body: Body::bytes(body.to_string()), status: row.status, ..Message::default() };
        Ok(Flow::Respond)
    }
}
