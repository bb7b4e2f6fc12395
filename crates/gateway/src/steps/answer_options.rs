//! Answers OPTIONS on a path that has no such operation, once the rules for browsers let it pass.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};

/// Says which methods there are.
pub(crate) struct AnswerOptions {
    /// With commas between.
    pub allow: Arc<str>,
}

impl Mediator for AnswerOptions {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut headers = Headers::new();
        headers.set("allow", &*self.allow);
        exchange.message = Message { headers, body: Body::default(), status: 204, ..Message::default() };
        Ok(Flow::Respond)
    }
}
