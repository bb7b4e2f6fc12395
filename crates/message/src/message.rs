//! The message itself.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Body, Headers, MediaType, Properties, Value};

/// A request method: the standard ones, or any token.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// POST
    Post,
    /// PUT
    Put,
    /// DELETE
    Delete,
    /// PATCH
    Patch,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// Any other token, as it was sent.
    Other(Arc<str>),
}

impl Method {
    /// The method a token names. Methods are case-sensitive (RFC 9110 §9.1).
    pub fn parse(token: &str) -> Method {
        match token {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "PATCH" => Method::Patch,
            "HEAD" => Method::Head,
            "OPTIONS" => Method::Options,
            other => Method::Other(other.into()),
        }
    }

    /// The token.
    pub fn as_str(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Patch => "PATCH",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Other(token) => token,
        }
    }
}

/// The request line as the client sent it. Kept for the whole exchange.
#[derive(Debug, Clone, Default)]
pub struct RequestLine {
    /// The method.
    pub method: Method,
    /// Path and query, origin form, as sent (percent-encoded). Valid UTF-8 by the transport's check.
    pub target: Bytes,
    /// Whether the client came over TLS.
    pub secure: bool,
}

impl RequestLine {
    /// Path and query.
    pub fn target(&self) -> &str {
        std::str::from_utf8(&self.target).unwrap_or_default()
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        let target = self.target();
        target.split_once('?').map_or(target, |(path, _)| path)
    }

    /// The query without `?`.
    pub fn query(&self) -> Option<&str> {
        self.target().split_once('?').map(|(_, query)| query)
    }
}

/// WS-Addressing of a message, as far as it was set. `To` doubles as the address a `send` without
/// an endpoint uses.
#[derive(Debug, Clone, Default)]
pub struct Addressing {
    /// `To`.
    pub to: Option<Arc<str>>,
    /// `From`.
    pub from: Option<Arc<str>>,
    /// `ReplyTo`.
    pub reply_to: Option<Arc<str>>,
    /// `FaultTo`.
    pub fault_to: Option<Arc<str>>,
    /// `Action`, also the SOAPAction.
    pub action: Option<Arc<str>>,
    /// `RelatesTo`.
    pub relates_to: Option<Arc<str>>,
    /// `MessageID`; made on first use.
    pub message_id: Option<Arc<str>>,
}

/// One message: a client's request, or what a backend answered.
///
/// `call` and `send` replace headers, `axis2` properties, status and body by the backend's;
/// `properties` (scope default), `variables` and `operation` belong to the flow and survive.
#[derive(Debug, Default)]
pub struct Message {
    /// Transport headers (scope `transport`).
    pub headers: Headers,
    /// The body.
    pub body: Body,
    /// Scope `default`.
    pub properties: Properties,
    /// Scope `axis2`, except what has a field of its own here.
    pub axis2: Properties,
    /// Scope `axis2-client`.
    pub axis2_client: Properties,
    /// Scope `operation`.
    pub operation: Properties,
    /// Typed variables.
    pub variables: Properties,
    /// The method of the request this message is or will be (`HTTP_METHOD`).
    pub method: Method,
    /// The rest of the path after the service or API context, query included (`REST_URL_POSTFIX`).
    pub url_postfix: Option<Arc<str>>,
    /// The status a backend answered with, or `HTTP_SC` once set. 0 when none.
    pub status: u16,
    /// The reason phrase that came with it, or `HTTP_SC_DESC`.
    pub reason: Option<Arc<str>>,
    /// Addressing, boxed because most messages have none.
    pub addressing: Option<Box<Addressing>>,
    /// Data of this response for the listener's log.
    pub extension: Option<Rc<dyn Any>>,
    /// Whether this is what a backend answered, no longer what the client sent.
    pub is_reply: bool,
    /// Whether the client of this exchange spoke SOAP; `None` until its request was read.
    /// Answers to others leave their envelope.
    pub client_spoke_soap: Option<bool>,
}

impl Message {
    /// A second message with the same content, for a branch. Bodies that are still arriving are not shared.
    pub fn copy(&self) -> Message {
        Message {
            headers: self.headers.clone(),
            body: self.body.share().unwrap_or_default(),
            properties: self.properties.clone(),
            axis2: self.axis2.clone(),
            axis2_client: self.axis2_client.clone(),
            operation: self.operation.clone(),
            variables: self.variables.clone(),
            method: self.method.clone(),
            url_postfix: self.url_postfix.clone(),
            status: self.status,
            reason: self.reason.clone(),
            addressing: self.addressing.clone(),
            client_spoke_soap: self.client_spoke_soap,
            is_reply: self.is_reply,
            extension: self.extension.clone(),
        }
    }

    /// The Content-Type header.
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get("Content-Type")
    }

    /// Whether its body is a stream of server-sent events, which come when something happens.
    pub fn is_event_stream(&self) -> bool {
        self.headers.get_bytes("Content-Type").is_some_and(is_event_stream)
    }

    /// Whether it is a message of gRPC (`application/grpc`, `application/grpc+proto`, `application/grpc-web`).
    pub fn is_grpc(&self) -> bool {
        self.headers.get_bytes("Content-Type").is_some_and(is_grpc)
    }

    /// Whether a Content-Type is one of gRPC.
    pub fn names_grpc(content_type: &[u8]) -> bool {
        is_grpc(content_type)
    }

    /// Whether the body of a message with this Content-Type may stay silent for long.
    pub fn names_long_lived(content_type: &[u8]) -> bool {
        is_event_stream(content_type) || is_grpc(content_type)
    }

    /// Whether its body may stay silent for long and last for any time, bounded by an idle timeout only.
    pub fn is_long_lived(&self) -> bool {
        self.headers.get_bytes("Content-Type").is_some_and(Message::names_long_lived)
    }

    /// The action of a SOAP message: what the addressing says, else the header of SOAP 1.1 or the parameter that SOAP 1.2
    /// has for it.
    pub fn action(&self) -> Option<&str> {
        let addressed = self.addressing.as_ref().and_then(|addressing| addressing.action.as_deref());
        let in_header = || self.headers.get("SOAPAction").map(|action| action.trim().trim_matches('"'));
        let in_type = || {
            let content_type = self.content_type().filter(|text| MediaType::parse(text) == MediaType::SoapXml)?;
            MediaType::parameter(content_type, "action")
        };
        addressed.or_else(in_header).or_else(in_type).filter(|action| !action.is_empty())
    }

    /// What the Content-Type says. `messageType` (scope axis2) wins when a mediator set it.
    pub fn media_type(&self) -> MediaType {
        if let Some(kind) = self.axis2.get("messageType") {
            return MediaType::parse(&kind.to_text());
        }
        self.content_type().map_or(MediaType::Binary, MediaType::parse)
    }

    /// The addressing block, made when absent.
    pub fn addressing_mut(&mut self) -> &mut Addressing {
        self.addressing.get_or_insert_default()
    }

    /// Copies the response of a backend: headers, body, status and `axis2` properties are
    /// replaced, everything that belongs to the flow stays. The next request is a POST unless the flow sets a method:
    /// the method belonged to the client's request.
    pub fn replace_by_reply(&mut self, reply: Message) {
        self.client_spoke_soap = Some(self.speaks_soap());
        self.headers = reply.headers;
        self.body = reply.body;
        self.status = reply.status;
        self.reason = reply.reason;
        self.axis2 = reply.axis2;
        self.url_postfix = None;
        self.method = Method::Post;
        self.is_reply = true;
        if let Some(addressing) = &mut self.addressing {
            addressing.to = None;
        }
    }

    /// A property of the flow as text.
    pub fn property_text(&self, name: &str) -> Option<String> {
        self.properties.get(name).map(|value: &Value| value.to_text().into_owned())
    }
}

fn is_event_stream(content_type: &[u8]) -> bool {
    let rest = after(content_type, b"text/event-stream");
    rest.is_some_and(|rest| rest.trim_ascii_start().first().is_none_or(|next| *next == b';'))
}

fn is_grpc(content_type: &[u8]) -> bool {
    after(content_type, b"application/grpc").is_some()
}

/// What follows `start` in a Content-Type. Compares bytes, because each request and response is checked.
fn after<'v>(content_type: &'v [u8], start: &[u8]) -> Option<&'v [u8]> {
    let (found, rest) = content_type.trim_ascii_start().split_at_checked(start.len())?;
    found.eq_ignore_ascii_case(start).then_some(rest)
}

// Messages are moved several times for each request. A field that few messages have belongs into a box.
const _: () = assert!(size_of::<Message>() <= 272);
