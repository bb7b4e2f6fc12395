//! The engine: compiled programs, the mediators' trait, the one loop that runs them, the ports it
//! reaches the world through.
//!
//! It knows no XML syntax of the configuration, no mediator and no transport by name. A mediator
//! decides ([`Mediator::run`] returns a [`Flow`]); the loop alone acts on it, so continuation of
//! `call`, fault handlers, deadlines, limits and branches live in one place.
//!
//! Start reading at [`Mediator`] and [`Flow`], then `run.rs` (the loop) and `serve.rs` (from a
//! request to its answer).

mod addressing;
mod admit;
mod alone;
pub mod background;
pub mod clock;
mod core;
mod credentials;
pub mod database;
pub mod der;
mod describe;
pub mod endpoint;
pub mod entrance;
mod exchange;
#[cfg(test)]
mod fake;
mod fallback;
mod family;
mod fault;
mod fork;
mod forwarded;
mod incoming;
pub mod inject;
mod journal;
pub mod kept;
pub mod lease;
mod local;
mod logins;
mod mediator;
mod metrics;
mod off_core;
mod outgoing;
mod passage;
pub mod payload;
pub mod ports;
mod program;
mod properties;
mod registry;
pub mod route;
mod run;
mod secrets;
mod serve;
mod shared;
mod slices;
pub mod store;
mod trace;
mod wait;
pub mod websocket;

pub use crate::core::{Core, Current, Loaded};
pub use alone::{Alone, run_alone};
pub use credentials::{basic_credentials, is_secret};
pub use exchange::{Direction, Exchange, Held, ReplyCell};
pub use family::Family;
pub use fault::{Fault, FaultCode, Place, Side, codes};
pub use forwarded::{ForwardedField, TrustedProxies};
pub use logins::{Login, Logins, Realm, Roles, Users};
pub use mediator::{
    Branch, BranchEnd, Destination, EndpointId, Flow, Fork, FunctionScope, Joins, Kinship, Late, Mediator, Needs,
    Resume, Sequence, SequenceId, Step,
};
pub use metrics::{InFlight, LATENCY_BOUNDS_MS, Metrics, ServiceCounts};
pub use off_core::off_core;
pub use passage::{Decision, FixedAddress, Passage, RequestHead};
pub use program::{FindResource, Limits, Program, Resource, Resources, Template, TemplateParameter, Unit};
pub use registry::{Registry, RegistryKeeper, RegistryPath};
pub use secrets::Secrets;
pub use serve::Dispatcher;
pub use shared::Shared;
pub use trace::Trace;
