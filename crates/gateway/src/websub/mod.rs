//! Hubs of WebSub: who subscribes to a topic gets, at an address of theirs, what is published of it.
//!
//! A subscriber sends `POST` (`subscribe.rs`), a publisher posts an event (`publish.rs`); what comes of both is in the
//! [`Hub`] (`hub.rs`; what it knows: `book.rs`), which outlives reloads. Events are delivered and subscribers are verified
//! in the background (`run.rs`, `send.rs`), so that no publisher waits for a subscriber. Subscriptions are kept (`keep.rs`), and so
//! are events until they are delivered (`journal.rs`).

mod assemble;
mod book;
mod discover;
mod entry;
mod event;
mod hub;
mod journal;
mod keep;
mod publish;
mod run;
mod send;
mod sign;
mod subscribe;
mod subscription;

pub(crate) use assemble::targets;
pub(crate) use entry::rewritten as journal_rewritten;
pub(crate) use hub::Hub;
pub use journal::EventFile;

pub(crate) use keep::rewritten;
pub(crate) use subscribe::requested;
