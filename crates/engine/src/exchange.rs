//! One message on its way through a program.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_message::{Envelope, Headers, Message};

use crate::core::{Core, Loaded};
use crate::database::Transactions;
use crate::journal::Journal;
use crate::mediator::{FunctionScope, Kinship, SequenceId};
use crate::ports::Client;
use crate::route::Entry;
use crate::{Fault, Program, Trace};

/// A deadline that is none: clocks take no longer time.
const GRPC_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Which way a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    Request,
    /// From a backend.
    Response,
}

/// A position in a sequence.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub sequence: SequenceId,
    pub next: u32,
    /// How many fault handlers there were before this frame added its own.
    pub handlers: u16,
    /// Whether leaving this frame leaves a template.
    pub template: bool,
}

/// A message on its way: what the mediators see.
pub struct Exchange {
    /// The message.
    pub message: Message,
    /// Which way it travels.
    pub direction: Direction,
    /// The client that waits.
    pub client: Rc<Client>,
    /// The service the request came in by.
    pub entry: Entry,
    /// When it began.
    pub(crate) started: Instant,
    /// When this exchange must be over.
    pub deadline: Instant,
    /// Parameters of the templates that are running, innermost last.
    pub functions: Vec<FunctionScope>,
    /// The fork this message came from.
    pub kinship: Option<Kinship>,
    /// `Parent` of a branch's fork, outermost first, for nested forks.
    pub ancestry: Vec<Kinship>,
    /// Headers of every response (`Access-Control-Allow-Origin`).
    pub reply_headers: Headers,
    /// What is given back when the exchange and all its branches are over, by name: a place in a throttle.
    pub held: Rc<std::cell::RefCell<Vec<Held>>>,
    /// What the router of a managed API noted for the mediators of its operation.
    pub extension: Option<Rc<dyn std::any::Any>>,
    /// The steps so far, if they are recorded. Branches have none.
    pub trace: Option<Rc<Trace>>,
    /// What is logged about the request; branches write into their parent's.
    pub(crate) journal: Option<Rc<Journal>>,
    /// Transactions over databases. Branches that run one after another are lent their parent's (`fork.rs`).
    pub transactions: Transactions,
    /// Why the body cannot be read, when a mediator continues without a value. The loop raises it as a fault. Boxed, because
    /// each mediator checks it and each request carries its size.
    pub unreadable: Option<Box<Fault>>,
    /// Client side of the exchange, shared by all branches.
    pub reply: Rc<ReplyCell>,
    pub(crate) loaded: Rc<Loaded>,
    pub(crate) core: Rc<Core>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) handlers: Vec<SequenceId>,
    /// Frames below this belong to the parent; a branch runs into them only after a `call`.
    pub(crate) floor: usize,
    pub(crate) called: bool,
    pub(crate) steps: u64,
    /// How many flows of this server wait for this one.
    pub(crate) waiting_flows: u16,
    /// The fault whose handler is running or ran last.
    pub(crate) fault: Option<Fault>,
    /// Whether a branch of this exchange failed and no handler took its fault.
    pub(crate) lost_branch: bool,
    /// The sequence of the out path, once the message is on it.
    pub(crate) out_path: Option<SequenceId>,
    /// Whether a request of this exchange went to a backend and was (or is being) answered.
    pub(crate) sent: bool,
    pub(crate) one_way: bool,
    /// The outcome of the first send, when the request was passed on before there was an exchange.
    pub(crate) passed: Option<Box<Result<Message, Fault>>>,
}

/// Something an exchange holds, by name; dropping it gives it back.
pub type Held = (Arc<str>, Box<dyn std::any::Any>);

/// Where the answer to the client is put; the first one wins.
#[derive(Default)]
pub struct ReplyCell {
    message: Cell<Option<Box<Message>>>,
    answered: Cell<bool>,
}

impl ReplyCell {
    /// Puts the answer; `false` when the client had one already.
    pub fn put(&self, message: Box<Message>) -> bool {
        if self.answered.replace(true) {
            return false;
        }
        self.message.set(Some(message));
        true
    }

    /// Takes the answer, once.
    pub fn take(&self) -> Option<Box<Message>> {
        self.message.take()
    }

    /// Whether the client was answered.
    pub fn is_answered(&self) -> bool {
        self.answered.get()
    }
}

impl Exchange {
    /// A new exchange for a client's request.
    pub fn new(core: Rc<Core>, loaded: Rc<Loaded>, client: Rc<Client>, message: Message, entry: Entry) -> Exchange {
        let started = Instant::now();
        // The streams of gRPC last as long as both sides like; idle timeouts bound them.
        let time = if message.is_grpc() { GRPC_DEADLINE } else { loaded.program.limits.deadline };
        let mut exchange = Exchange {
            message,
            direction: Direction::Request,
            client,
            entry,
            started,
            deadline: started + time,
            functions: Vec::new(),
            kinship: None,
            ancestry: Vec::new(),
            reply_headers: Headers::new(),
            held: Rc::default(),
            extension: None,
            trace: None,
            journal: None,
            transactions: Transactions::default(),
            unreadable: None,
            reply: Rc::default(),
            loaded,
            core,
            frames: Vec::new(),
            handlers: Vec::new(),
            floor: 0,
            called: false,
            steps: 0,
            waiting_flows: 0,
            fault: None,
            lost_branch: false,
            out_path: None,
            sent: false,
            one_way: false,
            passed: None,
        };
        exchange.journal = Journal::open(&mut exchange);
        exchange
    }

    /// The program this exchange runs in.
    pub fn program(&self) -> &Arc<Program> {
        &self.loaded.program
    }

    /// The core it runs on.
    pub fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// What the router noted, when it is of that type.
    pub fn extension<T: 'static>(&self) -> Option<Rc<T>> {
        self.extension.clone()?.downcast().ok()
    }

    /// Whether the message travels to the client; the property `RESPONSE` overrides it.
    pub fn is_response(&self) -> bool {
        match self.message.properties.get("RESPONSE").map(|value| value.to_text()) {
            Some(text) if text.trim().eq_ignore_ascii_case("true") => true,
            Some(text) if text.trim().eq_ignore_ascii_case("false") => false,
            _ => self.direction == Direction::Response,
        }
    }

    /// Records a step of this exchange; lazy when steps are not recorded.
    pub fn explain(&self, name: &'static str, text: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.note(name, text());
        }
    }

    /// The body as an envelope.
    pub fn xml(&mut self) -> Result<Arc<Envelope>, Fault> {
        let loaded = self.loaded.clone();
        Ok(self.message.xml(&loaded.program.conversion)?)
    }

    /// The body as JSON.
    pub fn json(&mut self) -> Result<Arc<serde_json::Value>, Fault> {
        let loaded = self.loaded.clone();
        Ok(self.message.json(&loaded.program.conversion)?)
    }

    /// The value of a parameter of the innermost template.
    pub fn function_parameter(&mut self, name: &str) -> Option<penstock_message::Value> {
        let scope = self.functions.last_mut()?;
        if let Some(at) = scope.late.iter().position(|(key, _)| **key == *name) {
            // It is away while it is evaluated, so that one that names itself ends.
            let late = scope.late.swap_remove(at);
            let value = late.1.value(self);
            if let Some(scope) = self.functions.last_mut() {
                scope.late.push(late);
            }
            return value.unwrap_or_else(|fault| {
                self.log(crate::ports::Level::Error, "TemplateContext", &fault.message);
                None
            });
        }
        scope.parameters.iter().find(|(key, _)| **key == *name).map(|(_, value)| value.clone())
    }

    /// The fault whose handler is running.
    pub fn current_fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Moves the message into an exchange of its own, for code that must own what it works on. Give
    /// it back with [`Exchange::attach`].
    pub fn detach(&mut self) -> Exchange {
        let message = std::mem::take(&mut self.message);
        self.branch(message, None)
    }

    /// Takes back the message of a detached exchange.
    pub fn attach(&mut self, detached: Exchange) {
        self.message = detached.message;
        self.functions = detached.functions;
        self.unreadable = detached.unreadable.or(self.unreadable.take());
    }

    /// Raises the fault of an expression over a body that cannot be read, which its mediator continued without. A fault
    /// handler may read the body whose fault it handles.
    pub fn check_readable(&mut self) -> Result<(), Fault> {
        match self.unreadable.take() {
            Some(fault) if self.fault.is_none() => Err(*fault),
            _ => Ok(()),
        }
    }

    /// A copy of this exchange for a branch with its own message.
    pub(crate) fn branch(&self, message: Message, kinship: Option<Kinship>) -> Exchange {
        let mut ancestry = self.ancestry.clone();
        if kinship.is_some()
            && let Some(own) = &self.kinship
        {
            ancestry.push(own.clone());
        }
        Exchange {
            message,
            direction: self.direction,
            client: self.client.clone(),
            entry: self.entry.clone(),
            started: self.started,
            deadline: self.deadline,
            functions: self.functions.clone(),
            kinship: kinship.or_else(|| self.kinship.clone()),
            ancestry,
            reply_headers: self.reply_headers.clone(),
            held: self.held.clone(),
            extension: self.extension.clone(),
            trace: None,
            journal: self.journal.clone(),
            transactions: Transactions::default(),
            unreadable: None,
            reply: self.reply.clone(),
            loaded: self.loaded.clone(),
            core: self.core.clone(),
            frames: self.frames.clone(),
            handlers: self.handlers.clone(),
            floor: self.frames.len(),
            called: false,
            steps: self.steps,
            waiting_flows: self.waiting_flows,
            fault: None,
            lost_branch: false,
            out_path: None,
            sent: self.sent,
            one_way: false,
            passed: None,
        }
    }
}
