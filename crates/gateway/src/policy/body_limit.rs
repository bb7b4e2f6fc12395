//! The largest body a request may have: beyond it 413, before the backend hears of it where the length is announced.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, BodyError, Form, Headers, Message, SizeHint};

use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::watched_body::{BodyWatch, watch};
use crate::{CallContext, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "body-limit",
    applies_to: ApiKinds::MESSAGES.and(ApiKinds::PLATFORM),
    phase: Phase::Message,
    request: Some(compile),
    response: None,
};

/// Refuses larger bodies.
struct BodyLimit(u64);

fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    gateway.config.request_bytes_max.map(at_most)
}

/// The step that refuses bodies of more bytes.
pub(crate) fn at_most(bytes: u64) -> Box<dyn Mediator> {
    Box::new(BodyLimit(bytes))
}

impl Mediator for BodyLimit {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let size = match exchange.message.body.form() {
            Form::Bytes(bytes) => SizeHint::Exact(bytes.len() as u64),
            Form::Stream { head, rest } => match rest.size_hint() {
                SizeHint::Exact(size) => SizeHint::Exact(size.saturating_add(head.len() as u64)),
                SizeHint::Unknown => SizeHint::Unknown,
            },
            _ => return Ok(Flow::Next),
        };
        match size {
            SizeHint::Exact(size) if size <= self.0 => Ok(Flow::Next),
            SizeHint::Exact(_) => {
                exchange.message = too_large(self.0);
                Ok(Flow::Respond)
            }
            SizeHint::Unknown => {
                let context = CallContext::of(exchange)?;
                let limit = self.0;
                watch(&mut exchange.message.body, |head| Remaining {
                    bytes: limit.saturating_sub(head.len() as u64),
                    limit,
                    context,
                });
                Ok(Flow::Next)
            }
        }
    }
}

/// The answer to a body of more bytes than a limit.
pub(crate) fn too_large(limit: u64) -> Message {
    let mut headers = Headers::new();
    headers.set("content-type", "application/json");
    let text = format!("The body is larger than {limit} bytes.");
    let body = serde_json::json!({ "code": "413", "message": "Payload Too Large", "description": text });
    Message { headers, body: Body::bytes(body.to_string()), status: 413, ..Message::default() }
}

/// The bytes that a body of unknown length may still have.
struct Remaining {
    bytes: u64,
    limit: u64,
    /// Notes the limit, since a fault would only say that the body broke.
    context: Rc<CallContext>,
}

impl BodyWatch for Remaining {
    fn passes(&mut self, chunk: &Bytes) -> Result<(), BodyError> {
        let Some(bytes) = self.bytes.checked_sub(chunk.len() as u64) else {
            self.context.exceeded.set(Some(self.limit));
            let limit_bytes = usize::try_from(self.limit).unwrap_or(usize::MAX);
            return Err(BodyError::TooLarge { limit_bytes });
        };
        self.bytes = bytes;
        Ok(())
    }
}
