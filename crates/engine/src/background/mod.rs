//! Services that act without a client's request: scheduled tasks, message processors, inbound endpoints.
//!
//! A program lists its services ([`crate::Program::services`]); a [`Supervisor`] runs them. A service gets a [`Control`]:
//! the core to run sequences on, the state that is wanted of it, and where it reports how it fares.
//!
//! Start reading at [`BackgroundService`], then `supervisor.rs`.

mod backoff;
mod control;
mod leased;
mod poll;
mod supervisor;
mod table;

use std::fmt;
use std::sync::Arc;

use crate::Place;
use crate::ports::LocalFuture;

pub use backoff::Backoff;
pub use control::Control;
pub use leased::Coordination;
pub use poll::{Pace, Poll, PollSource, Polled, Polling};
pub use supervisor::{SavedStates, Supervisor};
pub use table::{ServiceState, ServiceStatus, ServiceTable};

/// A service of a program.
#[derive(Clone)]
pub struct BackgroundService {
    /// The kind of artifact that defines it: `task`, `messageProcessor`, `inboundEndpoint`; `listener` for a transport of a
    /// proxy service.
    pub kind: &'static str,
    /// Its name; unique within its kind.
    pub name: Arc<str>,
    /// A hash of its definition. A reload that leaves it as it is does not interrupt the service.
    pub content: u64,
    /// Where it is defined.
    pub at: Place,
    /// Whether it waits to be activated when it is deployed for the first time.
    pub starts_paused: bool,
    /// Whether it runs on one node of a cluster only.
    pub is_coordinated: bool,
    /// What it does.
    pub runner: Arc<dyn RunService>,
}

/// What a service does.
pub trait RunService: Send + Sync {
    /// Runs until [`Control::next`] or [`Control::sleep`] requests a stop, or until it fails. After an error the
    /// supervisor runs it again, later each time.
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>>;

    /// Whether clients connect to it: the server is ready when its port is open. It calls [`Control::working`] then.
    fn opens_port(&self) -> bool {
        false
    }
}

/// Why a service cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// The reason, without secrets.
    pub reason: String,
    /// Whether another attempt may succeed. If not, the service stays faulty until it is activated again.
    pub is_temporary: bool,
}

impl ServiceError {
    /// An error that may be gone at the next attempt: a broker that is away.
    pub fn temporary(reason: impl Into<String>) -> ServiceError {
        ServiceError { reason: reason.into(), is_temporary: true }
    }

    /// An error that only a change of the configuration ends.
    pub fn lasting(reason: impl Into<String>) -> ServiceError {
        ServiceError { reason: reason.into(), is_temporary: false }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}
