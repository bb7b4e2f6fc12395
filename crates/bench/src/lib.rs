//! The benchmark kit: load generator, echo backend and reports.
//!
//! It measures any gateway over sockets and knows nothing of the rest of the product: no artifact,
//! no mediator, no engine. Start reading at [`command`], which is what the binary calls.
pub mod command;
