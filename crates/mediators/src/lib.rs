//! One file per mediator, and the list.
//!
//! A mediator decides and the engine acts: it never runs another mediator, never waits and knows no
//! socket. Its file holds its `KIND` (name and compile function), its struct and its `run`; its page in
//! `docs/mediators/` is its test.
//!
//! Start reading at [`MEDIATORS`], then `filter.rs`.

mod filter;
mod handlers;
mod respond;

use penstock_compile::{MediatorKind, Registry};

/// Every mediator there is.
pub const MEDIATORS: &[MediatorKind] = &[filter::KIND, respond::KIND];

/// Mediators of the original that are not built yet.
pub const KNOWN: &[&str] = &[];

/// What the compiler is given.
pub const REGISTRY: Registry =
    Registry { mediators: MEDIATORS, handlers: handlers::HANDLERS, username_token: |_, _| None, known: KNOWN };
