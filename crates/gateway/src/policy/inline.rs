//! Answers that a script of the definition computes (`x-mediation-script`), for APIs that have no backend yet.

use std::sync::Arc;

use penstock_catalog::Implementation;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, SequenceId, Step};
use penstock_message::{Headers, Message, Value};
use penstock_projects::place;

use super::operation::synapse;
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::steps::Refuse;
use crate::{CallContext, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "inline-script",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Backend,
    request: Some(compile),
    response: None,
};

/// Runs the script in place of a backend.
struct Inline(SequenceId);

fn compile(_gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    if site.api.implementation != Implementation::Inline {
        return None;
    }
    let Some((script, at)) = &site.operation.script else {
        cx.warn(place(&site.operation.at), "the operation has no `x-mediation-script`; it responds with 501");
        return Some(Box::new(Refuse(GatewayError::new(codes::MOCK_NOT_IMPLEMENTED))));
    };
    // The script keeps its place, so that mistakes are reported with the lines of the file.
    let above = "\n".repeat(at.line.saturating_sub(1) as usize);
    let cdata = script.replace("]]>", "]]]]><![CDATA[>");
    let text = format!("{above}<script language=\"js\"><![CDATA[{cdata}]]></script>");
    let script = cx.fragment(&at.file, &text)?;
    let step = |mediator: Box<dyn Mediator>, kind| Step { mediator, kind, at: place(at) };
    let sequence = cx.add_sequence(vec![
        step(synapse::properties(site), "parameters"),
        step(Box::new(Begin), "script"),
        step(Box::new(Inline(script)), "script"),
        step(Box::new(End), "script"),
    ]);
    Some(Box::new(Inline(sequence)))
}

impl Mediator for Inline {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}

/// Sets the script's properties, and stores the client's headers.
struct Begin;

impl Mediator for Begin {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let message = &mut exchange.message;
        *context.set_aside.borrow_mut() = Some(message.headers.clone());
        if let Some(accept) = message.headers.get("accept").map(Value::string) {
            message.properties.set("AcceptHeader", accept);
        }
        Ok(Flow::Next)
    }
}

/// Makes an answer of what the script left: the payload, the status in `HTTP_SC`, the media type in `CONTENT_TYPE`, and
/// the fields it set.
struct End;

impl Mediator for End {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let sent = CallContext::of(exchange)?.set_aside.borrow_mut().take().unwrap_or_default();
        let message = &mut exchange.message;
        let axis2 = message.axis2.get("HTTP_SC").map(|value| value.to_text().into_owned());
        let status = message.property_text("HTTP_SC").or(axis2).and_then(|status| status.trim().parse().ok());
        let kind = message.property_text("CONTENT_TYPE").filter(|kind| !kind.trim().is_empty());
        let kind = kind.or_else(|| message.content_type().map(str::to_owned));
        let mut headers = Headers::new();
        for (name, value) in message.headers.iter() {
            let own = std::str::from_utf8(name).ok().filter(|name| sent.get_bytes(name) != Some(value));
            if let Some(name) = own {
                headers.append(name, value);
            }
        }
        let body = std::mem::take(&mut message.body);
        let status = status.filter(|status| (200..=599).contains(status)).unwrap_or(200);
        let mut reply = Message { status, headers, body, ..Message::default() };
        if let Some(kind) = kind.filter(|_| !reply.body.is_empty()) {
            reply.set_message_type(&kind);
        }
        exchange.message.replace_by_reply(reply);
        Ok(Flow::Loopback)
    }
}
