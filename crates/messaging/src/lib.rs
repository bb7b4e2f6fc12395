//! Artifacts that act without a client's request: message stores and the `store` mediator, message processors, scheduled
//! tasks, inbound endpoints.
//!
//! It knows no socket, file or database: stores are reached through [`penstock_engine::store`], flows through
//! [`penstock_engine::inject`], and what runs by itself is a [`penstock_engine::background::BackgroundService`].
//!
//! Start reading at [`ARTIFACTS`], then `task/mod.rs` (the smallest service) and `processor/forwarding.rs` (the largest).

mod inbound;
mod processor;
mod store;
mod stored;
mod task;

use penstock_compile::{ArtifactKind, MediatorKind};

/// The artifact kinds of this crate.
pub const ARTIFACTS: &[ArtifactKind] = &[inbound::KIND, store::KIND, processor::KIND, task::KIND];

/// The mediators of this crate.
pub const MEDIATORS: &[MediatorKind] = &[store::mediator::KIND];
