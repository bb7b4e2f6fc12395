//! Endpoints: where messages are sent, and how failures of a backend are remembered.

mod deliver;
mod session;
mod state;
mod token;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use penstock_message::{Message, Method};

pub use crate::addressing::AddressingVersion;
use crate::mediator::Destination;
use crate::ports::{LocalFuture, TlsProfile};
use crate::{EndpointId, Exchange, Fault, FixedAddress, Place};

pub(crate) use deliver::{deliver, recipients};
pub use session::{SessionKind, Sessions};
pub use state::{EndpointState, Permit, Suspension, TimeoutAction};
pub use token::{TokenRequest, TokenSource};

/// An endpoint of a program.
pub struct Endpoint {
    /// The name, when it has one.
    pub name: Option<Arc<str>>,
    /// Where it was written.
    pub at: Place,
    /// What it does.
    pub kind: EndpointKind,
    /// Timeouts and suspension.
    pub policy: EndpointPolicy,
    /// What happened to it lately. Shared by all cores.
    pub state: EndpointState,
}

/// Something that is computed for each message.
pub type Computed<T> = Box<dyn Fn(&mut Exchange) -> Result<T, Fault> + Send + Sync>;

/// What an endpoint does with a message.
pub enum EndpointKind {
    /// Sends to one address.
    Leaf(Box<dyn Leaf>),
    /// Tries members in order until one does not fail.
    Failover {
        /// The members.
        members: Vec<Destination>,
        /// The member that answered last, when that one is tried first (`dynamic="false"`); otherwise the first is.
        stays: Option<AtomicUsize>,
    },
    /// Takes turns.
    LoadBalance {
        /// The members.
        members: Vec<Destination>,
        /// Whether a failed send is tried on the next member.
        failover: bool,
        /// The next member's index.
        next: AtomicUsize,
        /// Clients that stay with a member.
        sessions: Option<Sessions>,
    },
    /// Sends a copy to every member; the first answer is the answer.
    Recipients {
        /// The members.
        members: Vec<Destination>,
        /// More members, known per message.
        computed: Option<Computed<Vec<Destination>>>,
    },
    /// Another endpoint, by a key that is known now or computed per message.
    Indirect(Computed<Destination>),
    /// Backends with rules of their own: those of managed APIs.
    Managed(Box<dyn Delivery>),
}

/// Sends a message by rules of its own: which backend, how often, within which limits.
pub trait Delivery: Send + Sync {
    /// Sends the exchange's message and gives the answer, whose body may still be arriving.
    fn deliver<'a>(&'a self, exchange: &'a mut Exchange) -> LocalFuture<'a, Result<Message, Fault>>;
}

/// One address: turns a message into a request. Knows no sockets.
pub trait Leaf: Send + Sync {
    /// Where the message goes and in which shape.
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault>;

    /// The address, when each message goes there in the shape it has, with its own method and what follows the service in
    /// its path, and nothing is added.
    fn fixed(&self) -> Option<&FixedAddress> {
        None
    }
}

/// Where a message goes and in which shape.
#[derive(Debug, Clone)]
pub struct Target {
    /// Absolute.
    pub url: Arc<str>,
    /// The method, when the endpoint says one.
    pub method: Option<Method>,
    /// `format`.
    pub format: Format,
    /// Whether `REST_URL_POSTFIX` is appended (address endpoints).
    pub append_postfix: bool,
    /// Header fields the endpoint adds (`Authorization`).
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// Which certificates to trust, when the endpoint names some of its own.
    pub tls: Option<Arc<TlsProfile>>,
    /// `enableAddressing`: the header blocks of WS-Addressing that a request gets.
    pub addressing: Option<AddressingVersion>,
}

/// How the body is shaped for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As the message is.
    #[default]
    Same,
    /// `soap11`
    Soap11,
    /// `soap12`
    Soap12,
    /// `pox`: the payload without an envelope.
    Pox,
    /// `get`: no body, the payload's children become the query.
    Get,
    /// `rest`: as the message's media type says.
    Rest,
}

/// Timeouts and suspension of an endpoint.
#[derive(Default)]
pub struct EndpointPolicy {
    /// `timeout/duration`; the program's default when absent.
    pub timeout: Option<TimeoutDuration>,
    /// `timeout/responseAction`.
    pub timeout_action: TimeoutAction,
    /// `markForSuspension` and `suspendOnFailure`.
    pub suspension: Suspension,
    /// `retryConfig/disabledErrorCodes`: these do not make a group try another member.
    pub retry_disabled_codes: Vec<u32>,
    /// `retryConfig/enabledErrorCodes`: when not empty, only these do.
    pub retry_enabled_codes: Vec<u32>,
    /// `enableAddressing`.
    pub addressing: Option<AddressingVersion>,
    /// Sets the endpoint's own properties on a message before it is sent.
    pub prepare: Option<Computed<()>>,
    /// Where the token comes from that goes with every request.
    pub token: Option<TokenSource>,
}

/// A timeout that is known or computed per message, in milliseconds.
pub enum TimeoutDuration {
    /// Known.
    Fixed(Duration),
    /// Computed.
    Computed(Computed<Duration>),
}

impl Endpoint {
    /// What to call it in messages to people.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("anonymous")
    }
}

/// Marks where an endpoint will be once it is compiled.
pub const UNRESOLVED: EndpointId = EndpointId { unit: u32::MAX, index: u32::MAX };
