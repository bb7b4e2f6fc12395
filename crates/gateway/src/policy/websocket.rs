//! The handshake of a WebSocket API, and of a GraphQL API's subscriptions: requests without a handshake are rejected, credentials that a browser can only put into the
//! address or among the protocols are put where they belong, and the topic becomes the backend's path.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::path::PathPattern;
use penstock_compile::Compiler;
use penstock_engine::websocket::{Frame, FrameGate, Gate, SWITCHING_PROTOCOLS, is_asked_for};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::Method;

use super::authenticate::{is_secured, query_value};
use crate::error::{GatewayError, codes};
use crate::policy::limits::FrameLimits;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::{SecurityState, Verified};
use crate::{CallContext, ErrorStyle, Gateway, GatewayConfig, Site, text};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "websocket",
    applies_to: ApiKinds::CONNECTIONS,
    phase: Phase::Admission,
    request: Some(compile),
    response: Some(compile_answer),
};

/// The parameter that carries a token for a client that cannot set a header field.
const TOKEN_PARAMETER: &str = "access_token";

/// Names among the protocols behind which a credential follows, as Choreo's clients send them.
const TOKEN_PROTOCOL: &str = "choreo-oauth2-token";
const TEST_KEY_PROTOCOL: &str = "choreo-test-key";

const PROTOCOLS: &str = "Sec-WebSocket-Protocol";

struct Handshake {
    /// Where the topic is at the backend; its address itself when nothing says.
    mapping: Option<Mapping>,
    /// The headers of a token and of a test key, when credentials are required.
    credentials: Option<(Arc<str>, Arc<str>)>,
    /// Whether requests that ask for no connection are served, too.
    is_optional: bool,
}

struct Answer;

/// What API Manager closes a connection with when its token does not hold any more.
pub(super) const INVALID_CREDENTIALS: (u16, &str) = (4001, "Invalid Credentials");

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let (config, operation) = (&gateway.config.security, &site.operation);
    let token_header = site.api.authorization_header.as_ref().unwrap_or(&config.authorization_header);
    let handshake = Handshake {
        mapping: operation.uri_mapping.as_ref().map(|mapping| Mapping::parse(mapping, &site.pattern)),
        credentials: is_secured(site).then(|| (token_header.clone(), config.internal_key_header.clone())),
        is_optional: !site.is_websocket(),
    };
    may_be_socket(site).then(|| Box::new(handshake) as Box<dyn Mediator>)
}

fn compile_answer(_gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    may_be_socket(site).then(|| Box::new(Answer) as Box<dyn Mediator>)
}

fn may_be_socket(site: &Site) -> bool {
    site.is_websocket() || (site.graphql.is_some() && &*site.operation.method == "GET")
}

/// Whether a request is a WebSocket handshake, valid or not.
pub(crate) fn asks_for_socket(exchange: &Exchange) -> bool {
    let mut upgrades = exchange.message.headers.get_all("Upgrade").flat_map(|value| value.split(|byte| *byte == b','));
    exchange.client.line.method == Method::Get
        && upgrades.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

impl Mediator for Handshake {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if self.is_optional && !asks_for_socket(exchange) {
            return Ok(Flow::Next);
        }
        // A body would be read as frames by one side and as a request by the other.
        if !is_asked_for(&exchange.client, &exchange.message.headers) || !exchange.message.body.is_empty() {
            exchange.reply_headers.set("Upgrade", "websocket");
            return Err(GatewayError::new(codes::UPGRADE_REQUIRED).into());
        }
        let context = CallContext::of(exchange)?;
        context.opens_socket.set(true);
        let mut rest = self.mapping.as_ref().map(|mapping| mapping.fill(&context.path_values)).unwrap_or_default();
        if let Some(query) = exchange.client.line.query() {
            rest.push(if rest.contains('?') { '&' } else { '?' });
            rest.push_str(query);
        }
        if let Some((token_header, key_header)) = &self.credentials {
            if let Some(token) = query_value(exchange.client.line.query(), TOKEN_PARAMETER) {
                rest = text::without_parameter(&rest, TOKEN_PARAMETER);
                give(exchange, token_header, format!("Bearer {token}"));
            }
            take_from_protocols(exchange, &context, token_header, key_header);
        }
        exchange.message.url_postfix = Some(rest.into());
        Ok(Flow::Next)
    }
}

/// Sets a field, unless the client did.
fn give(exchange: &mut Exchange, field: &str, value: String) {
    if !exchange.message.headers.contains(field) {
        exchange.message.headers.set(field, value);
    }
}

/// A page can name protocols and nothing else, so its credential may stand among them: after a reserved name.
fn take_from_protocols(exchange: &mut Exchange, context: &CallContext, token_header: &str, key_header: &str) {
    let fields = exchange.message.headers.get_all(PROTOCOLS);
    let names = fields.flat_map(|value| value.split(|byte| *byte == b','));
    let mut names: Vec<String> = names.map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
    for (marker, field, scheme) in [(TOKEN_PROTOCOL, token_header, "Bearer "), (TEST_KEY_PROTOCOL, key_header, "")] {
        let Some(at) = names.iter().position(|name| name == marker) else { continue };
        if at + 1 >= names.len() {
            continue;
        }
        let credential = names.remove(at + 1);
        names.remove(at);
        give(exchange, field, format!("{scheme}{credential}"));
        context.answered_protocol.set(Some(marker));
        match names.is_empty() {
            true => drop(exchange.message.headers.remove(PROTOCOLS)),
            false => exchange.message.headers.set(PROTOCOLS, names.join(", ")),
        }
    }
}

impl Mediator for Answer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        // A page that named protocols gives up when none of them is answered.
        let context = CallContext::of(exchange)?;
        if exchange.message.status == SWITCHING_PROTOCOLS
            && let Some(marker) = context.answered_protocol.get()
        {
            give(exchange, PROTOCOLS, marker.to_owned());
        }
        Ok(Flow::Next)
    }
}

/// What decides over the frames of a connection that was granted: limits, and in the style of API Manager whether the token
/// still holds.
pub(crate) fn gate(config: &GatewayConfig, security: &Arc<SecurityState>, context: &CallContext) -> Option<Gate> {
    let limits = context.limits.frames.take();
    let is_watched = config.error_style == ErrorStyle::ApiManager;
    let gate: Rc<dyn FrameGate> = match context.credential.borrow().as_ref().filter(|_| is_watched) {
        None => Rc::new(limits?),
        Some(token) => {
            let skew = config.security.clock_skew.as_secs();
            Rc::new(Watched { limits, token: token.clone(), security: security.clone(), skew })
        }
    };
    Some(Gate::Frames(gate))
}

/// A connection that ends when its token does.
struct Watched {
    limits: Option<FrameLimits>,
    token: Rc<Verified>,
    security: Arc<SecurityState>,
    skew: u64,
}

impl fmt::Debug for Watched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Watched({:?})", self.limits)
    }
}

impl FrameGate for Watched {
    fn admits(&self, frame: &Frame) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.admits(frame))
    }

    fn ends(&self) -> Option<(u16, &'static str)> {
        (!self.security.still_holds(&self.token, self.skew)).then_some(INVALID_CREDENTIALS)
    }

    fn refusal(&self) -> Option<&str> {
        self.limits.as_ref()?.refusal()
    }
}

/// `x-uri-mapping`, made ready.
struct Mapping(Vec<Piece>);

enum Piece {
    Text(Box<str>),
    /// A parameter of the topic, by its place.
    Value {
        index: usize,
        in_query: bool,
    },
}

impl Mapping {
    /// Reads `/path?name={parameter}`; exports write `{uri.var.parameter}`.
    fn parse(mapping: &str, topic: &PathPattern) -> Mapping {
        let (mut pieces, mut in_query, mut rest) = (Vec::new(), false, mapping);
        while let Some((before, inside)) = rest.split_once('{') {
            let Some((name, behind)) = inside.split_once('}') else { break };
            in_query |= before.contains('?');
            pieces.push(Piece::Text(before.into()));
            let name = name.strip_prefix("uri.var.").unwrap_or(name);
            let index = topic.parameters.iter().position(|known| **known == *name);
            pieces.extend(index.map(|index| Piece::Value { index, in_query }));
            rest = behind;
        }
        pieces.push(Piece::Text(rest.into()));
        Mapping(pieces)
    }

    /// With the values of a request, as they were sent.
    fn fill(&self, values: &[String]) -> String {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value { index, in_query } => {
                    text::push_path_value(&mut filled, values.get(*index).map_or("", String::as_str), *in_query);
                }
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_becomes_the_path_of_a_backend() {
        let topic = PathPattern::parse("/rooms/{room}/{seat}");
        let values = ["a&b=c".to_owned(), "7%20+".to_owned()];
        for (mapping, expected) in [
            ("/rooms?room={room}", "/rooms?room=a%26b%3Dc"),
            ("/rooms/{uri.var.room}?seat={uri.var.seat}", "/rooms/a&b=c?seat=7%20%2B"),
            ("/all", "/all"),
            ("/{seat}/{none}/{room", "/7%20+//{room"),
        ] {
            assert_eq!(Mapping::parse(mapping, &topic).fill(&values), expected, "{mapping}");
        }
    }
}
