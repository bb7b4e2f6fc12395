//! WebSocket as the engine sees it: a handshake request, a response of a transport with the status 101, whose
//! body is the connection to the backend. The listener joins both connections.
//!
//! Nothing here knows what a frame looks like; the transport that reads frames calls a [`Gate`] for them.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, Method, SizeHint};

use crate::ports::Client;

/// The status of an answer that leaves HTTP.
pub const SWITCHING_PROTOCOLS: u16 = 101;

/// Whether a request is a valid WebSocket handshake: RFC 6455 §4.2.1, over HTTP/1.1.
pub fn is_asked_for(client: &Client, headers: &Headers) -> bool {
    client.protocol == "HTTP/1.1" && client.line.method == Method::Get && switches(headers)
}

/// Whether `Connection` and `Upgrade` name WebSocket, in a request or in an answer.
pub fn switches(headers: &Headers) -> bool {
    let names = |field: &str, wanted: &[u8]| {
        let mut values = headers.get_all(field).flat_map(|value| value.split(|byte| *byte == b','));
        values.any(|name| name.trim_ascii().eq_ignore_ascii_case(wanted))
    };
    names("Upgrade", b"websocket") && names("Connection", b"upgrade")
}

/// A frame of a text or binary message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Which way it travels.
    pub from_client: bool,
    /// Whether a message begins with it.
    pub begins: bool,
    /// Its size with its header.
    pub bytes: u64,
}

/// Decides which messages of one connection go on. Called on the core for every frame: must not block.
pub trait FrameGate: fmt::Debug {
    /// Whether the message goes on that begins with this frame. Of the frames that follow in a message only those are
    /// called for forwarded messages too, and its result is ignored: half a message is worse than none.
    fn admits(&self, frame: &Frame) -> bool;

    /// With what code and reason the connection ends, when it must end. Called when data has arrived.
    fn ends(&self) -> Option<(u16, &'static str)> {
        None
    }

    /// The text that a client gets for each dropped message, if any.
    fn refusal(&self) -> Option<&str> {
        None
    }
}

/// Reads the messages of one connection and decides over each. Called on the core for every message: must not block.
pub trait MessageGate: fmt::Debug {
    /// What becomes of a text.
    fn decide(&self, from_client: bool, text: &str) -> Verdict;
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It does not; the client gets this text instead, when there is one.
    Refuse(Option<String>),
    /// The connection ends: the client gets this code and reason.
    Close(u16, &'static str),
}

/// What decides over a connection.
#[derive(Debug, Clone)]
pub enum Gate {
    /// By size and number.
    Frames(Rc<dyn FrameGate>),
    /// By what is said.
    Messages(Rc<dyn MessageGate>),
}

/// A backend's connection after a 101 response, as its body.
pub struct Switched {
    /// The connection, as the transport that made it knows it.
    pub connection: Box<dyn Any>,
    /// Decides over messages, when something does.
    pub gate: Option<Gate>,
    /// What is given back when the connection ends.
    pub held: Vec<Box<dyn Any>>,
}

impl Switched {
    /// As the body of an answer.
    pub fn into_body(self) -> Body {
        Body::stream(Box::new(self))
    }

    /// Takes it out of the body it is; any other body stays.
    pub fn take(body: &mut Body) -> Option<Box<Switched>> {
        let is_one = |rest: &dyn BodyStream| rest.as_any().is_some_and(|any| any.is::<Switched>());
        match body.form() {
            Form::Stream { rest, .. } if is_one(rest.as_ref()) => {}
            _ => return None,
        }
        let Form::Stream { rest, .. } = body.take() else { return None };
        rest.into_any().downcast().ok()
    }
}

/// Code that does not support it reads an empty body.
impl BodyStream for Switched {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Exact(0)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fields_must_name_it() {
        for (connection, upgrade, expected) in [
            ("Upgrade", "websocket", true),
            ("keep-alive, upgrade", "WebSocket", true),
            ("Upgrade", "h2c, websocket", true),
            ("keep-alive", "websocket", false),
            ("Upgrade", "websockets", false),
            ("", "", false),
        ] {
            let mut headers = Headers::new();
            headers.set("Connection", connection);
            headers.set("Upgrade", upgrade);
            assert_eq!(switches(&headers), expected, "{connection} / {upgrade}");
        }
    }

    #[test]
    fn only_a_connection_is_taken_out_of_a_body() {
        let mut body = Body::bytes("text");
        assert!(Switched::take(&mut body).is_none());
        assert!(matches!(body.form(), Form::Bytes(_)), "another body stays");
        let mut body = Switched { connection: Box::new(7_u8), gate: None, held: Vec::new() }.into_body();
        let taken = Switched::take(&mut body).expect("it is one");
        assert_eq!(taken.connection.downcast_ref::<u8>(), Some(&7));
        assert!(Switched::take(&mut body).is_none());
    }
}
