//! The first step of `POST /mcp`: reads the message and chooses what runs.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, SequenceId};
use penstock_message::{Form, Headers, Message};
use serde_json::{Map, Value, json};

use super::message::{self, Incoming, Refusal};
use super::session::{self, Sessions};
use super::{Call, current};
use crate::{CallContext, Site};

/// The version of the protocol that is spoken here.
const PROTOCOL: &str = "2025-06-18";

/// Versions before it, of which nothing is used that differs.
const OLDER_PROTOCOLS: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// The field with the version that was agreed on.
const PROTOCOL_HEADER: &str = "mcp-protocol-version";

/// Tools of one page of `tools/list`.
pub(super) const PAGE: usize = 500;

/// What a message runs through.
pub(super) struct Route {
    pub site: Arc<Site>,
    pub request: SequenceId,
    pub response: SequenceId,
    pub fault: Option<SequenceId>,
    pub is_http_tool: bool,
    /// What the tool is called by the server behind this one.
    pub renamed: Option<Arc<str>>,
}

/// Reads messages and chooses.
pub(super) struct Dispatch {
    pub sessions: Arc<Sessions>,
    /// Where the server is found, which sessions belong to.
    pub base_path: Arc<str>,
    pub proxy: bool,
    /// `serverInfo`.
    pub server: Value,
    /// The pages of `tools/list`.
    pub pages: Vec<String>,
    pub tools: HashMap<Arc<str>, Route>,
    /// For messages that need no credentials.
    pub open: Route,
    /// For those that do, and are for no tool.
    pub secured: Route,
}

/// Where a message goes, and with what.
struct Chosen<'d> {
    route: &'d Route,
    id: Value,
    answer: Option<Message>,
    arguments: Map<String, Value>,
    forwarded: Option<Incoming>,
}

impl Mediator for Dispatch {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let bytes = match exchange.message.body.take() {
            Form::Bytes(bytes) => bytes,
            _ => Default::default(),
        };
        let incoming = message::read(&bytes);
        drop(bytes);
        let chosen = match incoming {
            Ok(incoming) => match self.session_problem(exchange, &incoming) {
                Some(refusal) => self.refuse(&self.open, refusal),
                None => self.choose(incoming),
            },
            Err(refusal) => self.refuse(&self.open, refusal),
        };
        let Chosen { route, id, answer, arguments, forwarded } = chosen;
        let forwarded = forwarded.map(Incoming::forwarded).unwrap_or_default();
        let call = Call {
            id,
            response: route.response,
            fault: route.fault,
            is_http_tool: route.is_http_tool,
            arguments: arguments.into(),
            forwarded: forwarded.into(),
            answer: answer.into(),
        };
        let outer = CallContext::of(exchange)?;
        current::enter(exchange, &outer, CallContext::new(route.site.clone(), Vec::new()), Rc::new(call));
        Ok(Flow::Enter(route.request))
    }
}

impl Dispatch {
    fn refuse<'d>(&self, route: &'d Route, refusal: Refusal) -> Chosen<'d> {
        self.answer(route, refusal.answer())
    }

    fn answer<'d>(&self, route: &'d Route, answer: Message) -> Chosen<'d> {
        Chosen { route, id: Value::Null, answer: Some(answer), arguments: Map::new(), forwarded: None }
    }

    fn forward<'d>(&self, route: &'d Route, incoming: Incoming) -> Chosen<'d> {
        let id = match &incoming {
            Incoming::Request { id, .. } => id.clone(),
            _ => Value::Null,
        };
        Chosen { route, id, answer: None, arguments: Map::new(), forwarded: Some(incoming) }
    }

    /// What is wrong with the session or the version a message belongs to. A server behind this one has its own of both.
    fn session_problem(&self, exchange: &Exchange, incoming: &Incoming) -> Option<Refusal> {
        if self.proxy {
            return None;
        }
        let (id, begins) = match incoming {
            Incoming::Request { id, method, .. } => (id, method == "initialize"),
            _ => (&Value::Null, false),
        };
        let headers = &exchange.message.headers;
        if !knows_version(headers) {
            let version = headers.get(PROTOCOL_HEADER).unwrap_or_default();
            return Some(unsupported(version).with_status(400).of(id));
        }
        let name = headers.get(session::HEADER).filter(|_| !begins)?;
        if self.sessions.lasts(&self.base_path, name) {
            return None;
        }
        let (message, code, status) = ("Session not found".into(), -32001, 404);
        Some(Refusal { message, code, status, ..Refusal::params("The session is over") }.of(id))
    }

    fn choose(&self, incoming: Incoming) -> Chosen<'_> {
        let (id, method, params) = match incoming {
            Incoming::Request { id, method, params } => (id, method, params),
            other => return self.take_note(other),
        };
        let empty = || message::result(&id, "{}");
        match method.as_str() {
            "ping" if self.proxy => self.forward(&self.open, Incoming::Request { id, method, params }),
            // Agents get their tokens when they are refused at the first message.
            "initialize" if self.proxy => self.forward(&self.secured, Incoming::Request { id, method, params }),
            "initialize" => match self.initialized(&params) {
                Ok(result) => self.answer(&self.secured, self.with_session(message::result(&id, &result))),
                Err(refusal) => self.refuse(&self.secured, refusal.of(&id)),
            },
            "ping" => self.answer(&self.open, empty()),
            "resources/list" | "resources/templates/list" | "prompts/list" if self.proxy => {
                self.forward(&self.secured, Incoming::Request { id, method, params })
            }
            "resources/list" => self.answer(&self.open, message::result(&id, "{\"resources\":[]}")),
            "resources/templates/list" => self.answer(&self.open, message::result(&id, "{\"resourceTemplates\":[]}")),
            "prompts/list" => self.answer(&self.open, message::result(&id, "{\"prompts\":[]}")),
            "tools/list" => match self.page(&params) {
                Ok(page) => self.answer(&self.secured, message::result(&id, page)),
                Err(refusal) => self.refuse(&self.secured, refusal.of(&id)),
            },
            "tools/call" => self.call(id, method, params),
            _ => self.refuse(&self.open, Refusal::method(&method).of(&id)),
        }
    }

    /// A message that is not answered.
    fn take_note(&self, incoming: Incoming) -> Chosen<'_> {
        let begins =
            matches!(&incoming, Incoming::Notification { method, .. } if method == "notifications/initialized");
        if self.proxy {
            return self.forward(if begins { &self.open } else { &self.secured }, incoming);
        }
        self.answer(&self.open, Message { status: 202, ..Message::default() })
    }

    /// The result of `initialize`.
    fn initialized(&self, params: &Map<String, Value>) -> Result<String, Refusal> {
        let wanted = match params.get("protocolVersion") {
            Some(Value::String(version)) if !version.is_empty() => version,
            Some(Value::String(_) | Value::Null) | None => {
                let missing = if params.is_empty() { "Missing params field" } else { "Missing protocolVersion field" };
                return Err(Refusal::params(missing));
            }
            Some(_) => return Err(Refusal::params("protocolVersion is not a text")),
        };
        // A client with another version of the protocol gets this one, and decides (Lifecycle, version negotiation).
        if !is_date(wanted) || &**wanted < OLDER_PROTOCOLS[1] {
            return Err(unsupported(wanted));
        }
        let capabilities = json!({ "tools": { "listChanged": false } });
        let result = json!({ "protocolVersion": PROTOCOL, "capabilities": capabilities, "serverInfo": self.server });
        Ok(result.to_string())
    }

    fn with_session(&self, mut answer: Message) -> Message {
        if let Some(name) = self.sessions.begin(&self.base_path) {
            answer.headers.set(session::HEADER, name);
            // Scripts of other sites must read it to go on.
            answer.headers.set("Access-Control-Expose-Headers", session::HEADER);
        }
        answer
    }

    fn page(&self, params: &Map<String, Value>) -> Result<&str, Refusal> {
        let number = match params.get("cursor") {
            None | Some(Value::Null) => Some(0),
            Some(Value::String(cursor)) => cursor.parse().ok(),
            Some(_) => None,
        };
        let page = number.and_then(|number: usize| self.pages.get(number));
        page.map(String::as_str).ok_or_else(|| Refusal::params("The cursor is not one that was given out"))
    }

    fn call(&self, id: Value, method: String, mut params: Map<String, Value>) -> Chosen<'_> {
        let refuse = |refusal: Refusal| self.refuse(&self.secured, refusal.of(&id));
        // A server that is lenient with names would call another tool than the one that was authorized.
        let doubtful =
            |name: &String| ["name", "arguments"].iter().any(|own| name != own && name.eq_ignore_ascii_case(own));
        if params.keys().any(doubtful) {
            return refuse(Refusal::params("A parameter differs from `name` or `arguments` by its case only"));
        }
        let name = match params.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name.clone(),
            Some(Value::String(_) | Value::Null) | None => return refuse(Refusal::params("Missing toolName field")),
            Some(_) => return refuse(Refusal::params("The name of a tool is a text")),
        };
        let Some(route) = self.tools.get(name.as_str()) else {
            let message = format!("Unknown tool: {name}").into();
            return refuse(Refusal { message, ..Refusal::params("The requested tool does not exist") });
        };
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(_)) if self.proxy => Map::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            Some(_) => return refuse(Refusal::params("arguments is not an object")),
        };
        if !self.proxy {
            return Chosen { route, id, answer: None, arguments, forwarded: None };
        }
        params.insert("name".to_owned(), route.renamed.as_deref().unwrap_or(&name).into());
        self.forward(route, Incoming::Request { id, method, params })
    }
}

/// Whether the version that was agreed on is one that is known; without one it is the first that had this field.
pub(super) fn knows_version(headers: &Headers) -> bool {
    let version = headers.get(PROTOCOL_HEADER);
    version.is_none_or(|version| version == PROTOCOL || OLDER_PROTOCOLS.contains(&version))
}

fn unsupported(version: &str) -> Refusal {
    let mut supported = vec![PROTOCOL];
    supported.extend(OLDER_PROTOCOLS);
    let data = json!({ "requested": version, "supported": supported });
    Refusal { message: "Unsupported protocol version".into(), ..Refusal::params(data) }
}

/// `2025-06-18`.
fn is_date(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(fits)
}
