//! Data services: `<data>` artifacts (`.dbs`), whose queries are offered as SOAP operations and REST resources, and the
//! mediator `dataServiceCall`.
//!
//! A data service is compiled into a proxy service whose only mediator runs the queries. It knows no socket: databases are
//! reached through [`penstock_engine::database`].
//!
//! Start reading at `model.rs` (what a service is), then `mediator.rs` (from a request to a response), `request.rs` (which
//! operation a request is for) and `run.rs` (queries and their results).

mod boxcar;
mod call;
mod delimited;
mod describe;
mod fault;
pub mod fuzzing;
mod mediator;
mod model;
mod node;
mod odata;
mod parameter;
mod read;
mod request;
mod response;
mod run;
mod sheet;
mod statement;
mod stream;
mod temporal;

use penstock_compile::{ArtifactKind, MediatorKind};

/// The artifact kinds of this crate.
pub const ARTIFACTS: &[ArtifactKind] = &[read::KIND];

/// The mediators of this crate.
pub const MEDIATORS: &[MediatorKind] = &[call::KIND];
