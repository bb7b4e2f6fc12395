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
use penstock_engine::Program;
use penstock_engine::store::StoreDefinition;
use penstock_message::Message;

/// The artifact kinds of this crate.
pub const ARTIFACTS: &[ArtifactKind] = &[inbound::KIND, store::KIND, processor::KIND, task::KIND];

/// The mediators of this crate.
pub const MEDIATORS: &[MediatorKind] = &[store::mediator::KIND];

/// The definition of a message store of a program.
pub fn store_definition(program: &Program, name: &str) -> Option<StoreDefinition> {
    store::find(program, name).map(|store| store.definition.clone())
}

/// The message of a record in a store; the reason when it is of another program.
pub fn stored_message(record: &[u8]) -> Result<Message, String> {
    stored::decode(record)
}
