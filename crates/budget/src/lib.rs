//! Bounds on the work for one message: how much memory it may hold, and how long it may run without a pause.
//!
//! Three parts:
//!
//! * [`memory`] counts the bytes each thread allocates and frees. The allocator of the binary calls it; without such an
//!   allocator the counters stay at zero and only single large allocations are refused.
//! * [`Account`] is the memory of one request. The code that polls the request's future enters the account first.
//! * [`Slices`] runs a function on a stack of its own, which it leaves after [`SLICE`] and continues later; [`run`] runs one
//!   to its end.
//!
//! Parsers, evaluators and writers call [`step`] in loops whose length depends on a message, and [`reserve`] before an
//! allocation whose size does. Both return to [`Slices`] or [`run`] when a limit is exceeded, by unwinding with a [`Stop`]:
//! no engine needs an error of its own for it, and none can forget to hand it on. Outside of [`Slices`] and [`run`] they do
//! nothing.
//!
//! This crate is independent of messages, mediators and the asynchronous runtime. Start reading at `work.rs` (the checks), then
//! `slices.rs` (the pauses) and `account.rs` (the memory of a request).

mod account;
pub mod memory;
mod slices;
mod text;
mod work;

pub use account::{Account, held, set_process_limit};
pub use slices::{SLICE, Slices};
pub use text::utf8;
pub use work::{Stop, append, make_room, make_room_for_text, pause, reserve, run, spent, step, steps};
