//! A port of an inbound endpoint: which of a program's flows its requests run, and how the port is opened on all cores.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use penstock_message::{Message, Value};

use crate::admit::{Admission, Target, admit_to};
use crate::background::ServiceError;
use crate::core::Core;
use crate::inject::Source;
use crate::ports::{LocalFuture, Request, Service};
use crate::route::{Dispatch, TextTest};
use crate::{Program, serve};

/// Which flow a request of such a port runs. APIs that are bound to the endpoint come first.
pub enum EntranceRule {
    /// A sequence for every path; the `main` sequence when there is none.
    Sequence(Option<Arc<str>>),
    /// A path that passes the test is that of an API or a proxy service; `main` takes what neither takes, and the rest.
    Services(TextTest),
}

/// A port of an inbound endpoint.
pub struct Entrance {
    /// The endpoint.
    pub source: Arc<Source>,
    /// What its requests run.
    pub rule: EntranceRule,
    /// Whether APIs come before the rule, also those that are not bound to the endpoint.
    pub offers_apis: bool,
}

/// The longest part of a path that is matched against a pattern.
const PATH_BYTES_MAX: usize = 16 * 1024;

impl Entrance {
    fn dispatch(&self, program: &Program, path: &str, host: Option<&str>, secure: bool) -> Dispatch {
        let routes = &program.routes;
        if let Some(api) = routes.api_bound_to(&self.source.name, path, host, secure) {
            return Dispatch::Api(api.clone());
        }
        if self.offers_apis
            && let found @ Dispatch::Api(_) = routes.dispatch(path, || host, secure)
        {
            return found;
        }
        let main = || Dispatch::Source(self.source.clone(), None);
        match &self.rule {
            EntranceRule::Sequence(sequence) => Dispatch::Source(self.source.clone(), sequence.clone()),
            EntranceRule::Services(test) if path.len() <= PATH_BYTES_MAX && test(path) => {
                match routes.dispatch(path, || host, secure) {
                    Dispatch::Main => main(),
                    found => found,
                }
            }
            EntranceRule::Services(_) => main(),
        }
    }
}

impl fmt::Debug for Entrance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Entrance({})", self.source.name)
    }
}

/// Serves the requests of a port. One per core.
pub struct EntranceService {
    core: Rc<Core>,
    entrance: Arc<Entrance>,
}

impl EntranceService {
    /// Serves the core's current program.
    pub fn new(core: Rc<Core>, entrance: Arc<Entrance>) -> Rc<EntranceService> {
        Rc::new(EntranceService { core, entrance })
    }
}

impl Service for EntranceService {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        let in_flight = self.core.metrics.enter();
        let loaded = self.core.program();
        let Request { client, mut message } = request;
        let target = Target::of_line(&client.line);
        let (host, secure) = (message.headers.get("Host"), client.line.secure);
        let dispatch = self.entrance.dispatch(&loaded.program, target.path, host, secure);
        let name = Value::string(self.entrance.source.name.clone());
        message.properties.set("inbound.endpoint.name", name);
        match admit_to(&self.core, &loaded, &client, &target, message, dispatch) {
            Admission::Answer(message) => Box::pin(std::future::ready(*message)),
            Admission::Run(exchange, entered) => Box::pin(serve::answer(&self.core, in_flight, exchange, entered)),
        }
    }
}

/// A port to open.
pub struct Opening {
    /// Its number.
    pub port: u16,
    /// What it serves.
    pub entrance: Arc<Entrance>,
    /// TLS, as the transport that opens the port has it; none for plain connections.
    pub tls: Option<Arc<dyn Any + Send + Sync>>,
}

/// Opens ports on all cores. One for the whole process.
pub trait Entrances: Send + Sync {
    /// Opens a port: it serves until it is closed, or dropped.
    fn open(&self, opening: Opening) -> Result<Box<dyn OpenEntrance>, ServiceError>;
}

/// A port that is open.
pub trait OpenEntrance {
    /// Its number.
    fn port(&self) -> u16;

    /// Takes no more requests, and waits for those that run.
    fn close(self: Box<Self>) -> LocalFuture<'static, ()>;
}
