//! The benchmark kit: load generator, echo backend and reports.
//!
//! It measures any gateway over sockets and knows nothing of the rest of the product: no artifact,
//! no mediator, no engine. Start reading at [`command`], which is what the binary calls; then [`load`] for how
//! requests are made and [`jtl`] for the files JMeter writes.
mod calendar;
pub mod command;
pub mod csv;
pub mod echo;
pub mod error;
pub mod figures;
pub mod http;
pub mod jmx;
pub mod jtl;
pub mod load;
#[cfg(test)]
mod mutations;
pub mod observe;
pub mod payload;
pub mod plan;
pub mod progress;
pub mod report;
pub mod results;
pub mod runner;
mod suggest;
pub mod target;
pub mod tls;
