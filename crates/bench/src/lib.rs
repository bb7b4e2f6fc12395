//! The benchmark kit: load generator, echo backend and reports.
//!
//! It measures any gateway over sockets and is independent of the rest of the product but for its readers of XML and JSON: no
//! artifact, no mediator, no engine. The library is what the binary's `bench` and `echo` commands call.
//!
//! Start reading at [`command`] (what can be typed). A plan ([`plan`]) goes through [`runner`], which starts gateways
//! ([`target`]) and the backend ([`echo`]), runs one load after another ([`load`], over [`http`]), watches the gateway's
//! processes ([`observe`]), and keeps every test ([`results`], [`figures`]); [`report`] makes tables and pages of them.
//! [`jmx`] and [`jtl`] are JMeter's files: its plans in, its results in and out.
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
