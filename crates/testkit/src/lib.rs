//! Tests of the whole: documentation pages as tests, a scripted backend, a gateway over real sockets, the dependency
//! table.
//!
//! It may use every crate and nothing of the product depends on it; it is independent of the command line: the tests of
//! the running binary are in `server/tests`.
//!
//! Start reading at [`pages`], and at [`gateway`] for managed APIs.

pub mod gateway;
pub mod pages;

/// The mediators and artifact kinds of all crates, as the binary has them.
pub const REGISTRY: penstock_compile::Registry = penstock_compile::Registry {
    mediators: &[
        penstock_mediators::MEDIATORS,
        penstock_scripting::MEDIATORS,
        penstock_messaging::MEDIATORS,
        penstock_dataservices::MEDIATORS,
    ],
    artifacts: &[penstock_messaging::ARTIFACTS, penstock_dataservices::ARTIFACTS],
    transports: penstock_transports::TRANSPORTS,
    ..penstock_mediators::REGISTRY
};
