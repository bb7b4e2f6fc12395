//! Requests to an MCP server besides messages, and steps without their own file.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, SequenceId};
use penstock_message::{Body, Method};

use super::message::Refusal;
use super::session::Sessions;
use super::{current, dispatch, metadata, result, session};
use crate::{CallContext, Site};

/// Answers `GET …/mcp` of a server that sends nothing by itself.
pub(super) struct NoStream;

/// Ends a session: `DELETE …/mcp`.
pub(super) struct EndSession {
    pub sessions: Arc<Sessions>,
    pub base_path: Arc<str>,
}

/// Answers with the server's metadata.
pub(super) struct Metadata {
    pub site: Arc<Site>,
    pub issuers: Vec<String>,
    /// Whether a proxy's headers have the public address.
    pub trusts_forwarded: bool,
}

/// Answers with what was known when the message was read; goes on when there is nothing.
pub(super) struct AnswerKnown;

/// Answers that a tool calls what is not there.
pub(super) struct NoTarget;

/// Sends the message on to the server behind this one.
pub(super) struct Forward;

/// Sends another request on to the server behind this one.
pub(super) struct ForwardOther;

/// Goes on in the sequences of the API that a tool is an operation of.
pub(super) struct EnterApi {
    pub site: Arc<Site>,
    pub request: SequenceId,
}

/// Comes back from them.
pub(super) struct LeaveApi {
    pub response: SequenceId,
}

/// Only the context of the tool again.
pub(super) struct Left;

/// Runs the sequence that takes the answer of a call.
pub(super) struct TakeAnswer;

impl Mediator for NoStream {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let (message, code) = ("Server-Sent Events (SSE) not supported".into(), -32000);
        let refusal = Refusal { message, code, ..Refusal::params(serde_json::Value::Null) };
        let mut answer = refusal.with_status(405).answer();
        answer.headers.set("Allow", "POST, DELETE");
        exchange.message = answer;
        Ok(Flow::Respond)
    }
}

impl Mediator for EndSession {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &exchange.message.headers;
        let status = match headers.get(session::HEADER) {
            _ if !dispatch::knows_version(headers) => 400,
            None => 400,
            Some(name) if self.sessions.end(&self.base_path, name) => 204,
            Some(_) => 404,
        };
        exchange.message = result::empty(status);
        Ok(Flow::Respond)
    }
}

impl Mediator for Metadata {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message = metadata::answer(exchange, self);
        Ok(Flow::Respond)
    }
}

impl Mediator for AnswerKnown {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(answer) = current::call(exchange)?.answer.take() else { return Ok(Flow::Next) };
        exchange.message = answer;
        Ok(Flow::Loopback)
    }
}

impl Mediator for NoTarget {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let call = current::call(exchange)?;
        let refusal = Refusal::internal("The operation behind the tool is not served");
        exchange.message = refusal.of(&call.id).answer();
        Ok(Flow::Respond)
    }
}

impl Mediator for Forward {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let call = current::call(exchange)?;
        let message = &mut exchange.message;
        message.method = Method::Post;
        message.url_postfix = Some("".into());
        message.headers.set("Content-Type", "application/json");
        message.body = Body::bytes(call.forwarded.take());
        Ok(Flow::Next)
    }
}

impl Mediator for ForwardOther {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message.url_postfix = Some("".into());
        Ok(Flow::Next)
    }
}

impl Mediator for EnterApi {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let tool = CallContext::of(exchange)?;
        let target = exchange.message.url_postfix.as_deref().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let values = self.site.pattern.matches(path).unwrap_or_default();
        let api = CallContext::behind(&tool, self.site.clone(), values);
        let call = current::call(exchange)?;
        current::enter(exchange, &tool, api, call);
        Ok(Flow::Enter(self.request))
    }
}

impl Mediator for LeaveApi {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.response))
    }
}

impl Mediator for Left {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        current::leave(exchange)?;
        Ok(Flow::Next)
    }
}

impl Mediator for TakeAnswer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(current::call(exchange)?.response))
    }
}
