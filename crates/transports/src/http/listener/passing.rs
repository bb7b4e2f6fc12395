//! Requests that are passed on as they came, and responses that are passed back: neither becomes a message.

use bytes::Bytes;
use penstock_engine::ports::Request;
use penstock_engine::{Fault, Passage, RequestHead as EngineHead};
use penstock_message::{FieldsView, Message, Method};

use super::connection::{Connection, JOINED_BODY_MAX};
use super::reply::Reply;
use crate::http::http1::{Decoder, ReplyHead, RequestHead};
use crate::http::sender::{Exchange, HttpSender, PassedRequest, is_idempotent};

/// A request whose outcome the service has to see.
pub(super) struct Unfinished {
    pub(super) request: Request,
    pub(super) passage: Passage,
    pub(super) outcome: Result<Message, Fault>,
}

impl Connection {
    /// How the request is passed on, if it is: an ordinary request of HTTP/1.1, which nothing here reads.
    pub(super) fn passage(&self, head: &RequestHead) -> Option<(Passage, Method)> {
        let facts = &head.facts;
        let ends_here = facts.names_fields || facts.close || facts.expect_continue || head.authority.is_some();
        if ends_here || head.is_http10 || self.shared.access.is_some() {
            return None;
        }
        let wire = self.wire.borrow();
        let bytes = &wire.buffer[..head.length];
        let method = match &bytes[head.method.clone()] {
            b"POST" => Method::Post,
            b"GET" => Method::Get,
            b"PUT" => Method::Put,
            b"PATCH" => Method::Patch,
            b"DELETE" => Method::Delete,
            _ => return None,
        };
        let has_body = facts.chunked || facts.content_length.is_some_and(|length| length > 0);
        if has_body {
            // It may have to be sent once more.
            let is_at_hand = joined_length(head, wire.buffer.len()).is_some();
            if method == Method::Get || (is_idempotent(&method) && !is_at_hand) {
                return None;
            }
        }
        let target = std::str::from_utf8(&bytes[head.target.clone()]).ok()?;
        let fields = FieldsView::new(bytes, &head.fields);
        let seen = EngineHead { method, target, secure: self.is_secure(), has_body, fields };
        let passage = self.shared.service.passage(&seen)?;
        sender(&passage)?.can_pass(&passage).then_some((passage, seen.method))
    }

    /// Takes the head of a request that is passed on off the wire, and a copy for a service that has to see the outcome.
    pub(super) fn take_passed(&self, head: RequestHead, passage: Passage, method: Method) -> PassedRequest {
        let mut block = self.shared.core.take_block();
        let mut wire = self.wire.borrow_mut();
        let joined = joined_length(&head, wire.buffer.len());
        block.extend_from_slice(&wire.buffer[..head.length + joined.unwrap_or(0)]);
        wire.begin_body(Decoder::of_request(&head.facts), self.shared.limits.body_bytes_max, false);
        wire.consume(head.length);
        let body = (!wire.decoder.is_done()).then(|| self.wire.clone());
        PassedRequest { passage, method, head, block, joined, body }
    }

    /// Sends the request and waits for the head of the response.
    pub(super) async fn pass_on(&self, request: &PassedRequest) -> Result<(Exchange, ReplyHead), Fault> {
        match sender(&request.passage) {
            Some(sender) => sender.pass_on(request).await,
            None => Err(Fault::new("the sender is not one of HTTP")),
        }
    }

    /// Begins the response, when it is an ordinary one.
    pub(super) fn pass_back(
        &self,
        request: PassedRequest,
        sent: Result<(Exchange, ReplyHead), Fault>,
    ) -> Result<Reply, Box<Unfinished>> {
        let core = &self.shared.core;
        let PassedRequest { passage, head, block, joined, body, .. } = request;
        let outcome = match sent {
            Ok((exchange, reply_head)) => {
                let is_sound = self.wire.borrow().body_error.is_none();
                let begun = if is_sound { Reply::begin_passing(core, &exchange, &reply_head) } else { None };
                match begun {
                    Some(begun) => {
                        let keep = !self.shared.draining.get() && self.body_can_end();
                        core.give_block(block);
                        core.give_fields(head.fields);
                        passage.finish();
                        return Ok(begun.pass_back(core, exchange, reply_head, keep));
                    }
                    None => exchange.into_reply(reply_head, false),
                }
            }
            Err(fault) => Err(fault),
        };
        if joined.is_some() {
            // A request whose body came with its head leaves nothing of it on the wire.
            let mut wire = self.wire.borrow_mut();
            if let Decoder::Length(left) = wire.decoder {
                let here = wire.buffer.len();
                let _ = wire.take_data(usize::try_from(left).map_or(here, |left| left.min(here)));
            }
        }
        let request = self.request_of(head, Bytes::from(block), joined, body.is_none());
        Err(Box::new(Unfinished { request, passage, outcome }))
    }
}

/// The length of a short body that came with its head.
pub(super) fn joined_length(head: &RequestHead, read_bytes: usize) -> Option<usize> {
    let length = usize::try_from(head.facts.content_length?).ok()?;
    ((1..=JOINED_BODY_MAX).contains(&length) && !head.facts.chunked && read_bytes >= head.length + length)
        .then_some(length)
}

fn sender(passage: &Passage) -> Option<&HttpSender> {
    passage.outbound().as_any()?.downcast_ref()
}
