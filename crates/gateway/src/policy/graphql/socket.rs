//! Messages on a connection to a GraphQL API: each subscription is validated like a query, and each
//! message of it counts. Codes and words are those of API Manager.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::QueryLimits;
use penstock_engine::websocket::{Gate, MessageGate, Verdict};
use penstock_graphql::{OperationKind, Query, Refused};
use penstock_message::Headers;

use super::Definition;
use super::envelope::{Envelope, Protocol, Purpose, error};
use crate::policy::limits::FrameLimits;
use crate::policy::websocket::INVALID_CREDENTIALS;
use crate::security::SecurityState;
use crate::{CallContext, GatewayConfig};

/// Subscriptions of one connection.
const RUNNING_MAX: usize = 1_000;

/// The longest name a client may give to one.
const ID_BYTES_MAX: usize = 256;

const FORBIDDEN: u16 = 4002;
const THROTTLED: u16 = 4003;
const BAD_REQUEST: u16 = 4005;
const TOO_DEEP: u16 = 4020;
const TOO_COMPLEX: u16 = 4021;
const INVALID_QUERY: u16 = 4022;

/// What `graphql-transport-ws` ends a connection with over what is no message.
const INVALID_MESSAGE: u16 = 4400;

/// Decides over the messages of one connection.
struct Subscriptions {
    definition: Arc<Definition>,
    config: Arc<GatewayConfig>,
    security: Arc<SecurityState>,
    context: Rc<CallContext>,
    limits: QueryLimits,
    frames: Option<FrameLimits>,
    protocol: Protocol,
    /// Operations by name.
    running: RefCell<HashMap<String, Rc<[usize]>>>,
}

/// What decides over a connection whose handshake was granted with these fields.
pub(crate) fn gate(
    definition: &Arc<Definition>,
    config: &Arc<GatewayConfig>,
    security: &Arc<SecurityState>,
    context: &Rc<CallContext>,
    answer: &Headers,
) -> Gate {
    let is_newer = answer.get("Sec-WebSocket-Protocol").is_some_and(|protocol| protocol == "graphql-transport-ws");
    Gate::Messages(Rc::new(Subscriptions {
        definition: definition.clone(),
        config: config.clone(),
        security: security.clone(),
        context: context.clone(),
        limits: context.graphql.limits.get(),
        frames: context.limits.frames.take(),
        protocol: if is_newer { Protocol::Newer } else { Protocol::Older },
        running: RefCell::default(),
    }))
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Subscriptions({:?})", self.protocol)
    }
}

impl MessageGate for Subscriptions {
    fn decide(&self, from_client: bool, text: &str) -> Verdict {
        if !self.token_holds() {
            let (code, reason) = INVALID_CREDENTIALS;
            return Verdict::Close(code, reason);
        }
        let envelope = Envelope::read(text);
        match (from_client, envelope) {
            (true, Some(envelope)) => self.of_client(envelope, text.len()),
            (true, None) => Verdict::Close(INVALID_MESSAGE, "Invalid message received"),
            (false, Some(envelope)) => self.of_backend(&envelope, text.len()),
            // Other messages of the backend are passed to the client.
            (false, None) => Verdict::Pass,
        }
    }
}

impl Subscriptions {
    /// As with every message in API Manager: a token may end or be revoked while its connection lasts.
    fn token_holds(&self) -> bool {
        let skew = self.config.security.clock_skew.as_secs();
        let credential = self.context.credential.borrow();
        credential.as_ref().is_none_or(|token| self.security.still_holds(token, skew))
    }

    fn of_client(&self, envelope: Envelope, bytes: usize) -> Verdict {
        match envelope.purpose {
            Purpose::Start => {}
            Purpose::End => {
                self.end(envelope.id.as_deref());
                return Verdict::Pass;
            }
            Purpose::Connection => return Verdict::Pass,
            Purpose::Data | Purpose::Unknown => return Verdict::Close(INVALID_MESSAGE, "Invalid message received"),
        }
        let Some(id) = envelope.id.filter(|id| id.len() <= ID_BYTES_MAX) else {
            return self.refuse("", BAD_REQUEST, "Missing mandatory id field in the message");
        };
        let Some(Ok(sent)) = envelope.payload.map(|payload| payload.sent()) else {
            return self.refuse(&id, BAD_REQUEST, "Invalid operation payload");
        };
        let query =
            Query { text: &sent.query, operation: sent.operation.as_deref(), variables: sent.variables.as_ref() };
        match self.check(&query) {
            Err((code, message)) => self.refuse(&id, code, &message),
            Ok(operations) => self.start(id, operations, bytes),
        }
    }

    /// The operations of a query, or the reason of its rejection.
    fn check(&self, query: &Query<'_>) -> Result<Vec<usize>, (u16, String)> {
        if query.text.trim().is_empty() {
            return Err((BAD_REQUEST, "Operation definition cannot be empty".to_owned()));
        }
        let too_deep = |depth: u64, most: u64| {
            (TOO_DEEP, format!("QUERY TOO DEEP : [maximum query depth exceeded {depth} > {most}]"))
        };
        let checked = query.check(&self.definition.schema).map_err(|refused| match refused {
            Refused::TooDeep(most) => too_deep(most as u64 + 1, most as u64),
            Refused::Syntax(why) | Refused::Invalid(why) => (INVALID_QUERY, format!("INVALID QUERY : {why}")),
        })?;
        if checked.kind != OperationKind::Subscription {
            let message = "Invalid operation. Only allowed Subscription type operations";
            return Err((BAD_REQUEST, message.to_owned()));
        }
        if checked.introspects && !self.config.graphql.introspection {
            return Err((INVALID_QUERY, "INVALID QUERY : Questions about the schema are not answered".to_owned()));
        }
        let unknown = |field| (BAD_REQUEST, format!("The API has no operation {field}"));
        let operations = self.definition.operations_of(&checked).map_err(unknown)?;
        if let Some(path) = self.definition.missing_scope(&self.context, &operations) {
            return Err((FORBIDDEN, format!("User NOT authorized to access the resource {path}")));
        }
        if let Some(depth) = self.limits.depth.filter(|depth| checked.depth > *depth) {
            return Err(too_deep(checked.depth, depth));
        }
        if self.limits.complexity.is_some_and(|complexity| checked.complexity > complexity) {
            return Err((TOO_COMPLEX, "QUERY TOO COMPLEX : [maximum query complexity exceeded]".to_owned()));
        }
        Ok(operations)
    }

    fn start(&self, id: String, operations: Vec<usize>, bytes: usize) -> Verdict {
        let mut running = self.running.borrow_mut();
        if running.len() >= RUNNING_MAX && !running.contains_key(&id) {
            return self.refuse(&id, THROTTLED, &format!("More than {RUNNING_MAX} subscriptions on one connection"));
        }
        if !self.admits(&operations, bytes) {
            return self.refuse(&id, THROTTLED, "Websocket frame throttled out");
        }
        running.insert(id, operations.into());
        Verdict::Pass
    }

    fn of_backend(&self, envelope: &Envelope, bytes: usize) -> Verdict {
        match envelope.purpose {
            Purpose::Data => {}
            Purpose::End => {
                self.end(envelope.id.as_deref());
                return Verdict::Pass;
            }
            _ => return Verdict::Pass,
        }
        let id = envelope.id.as_deref().unwrap_or_default();
        let operations = self.running.borrow().get(id).cloned();
        match operations {
            // The client has ended the subscription, or never began it.
            None => Verdict::Refuse(None),
            Some(operations) if self.admits(&operations, bytes) => Verdict::Pass,
            Some(_) => self.refuse(id, THROTTLED, "Websocket frame throttled out"),
        }
    }

    fn end(&self, id: Option<&str>) {
        self.running.borrow_mut().remove(id.unwrap_or_default());
    }

    fn admits(&self, operations: &[usize], bytes: usize) -> bool {
        self.frames.as_ref().is_none_or(|limits| limits.admits_message(operations, bytes as u64))
    }

    fn refuse(&self, id: &str, code: u16, message: &str) -> Verdict {
        Verdict::Refuse(Some(error(self.protocol, id, code, message)))
    }
}
