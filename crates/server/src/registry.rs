//! Everything the compiler is given: the mediators and artifact kinds of all crates.

use penstock_compile::Registry;

/// The registry of the product.
pub const REGISTRY: Registry = Registry {
    mediators: &[
        penstock_mediators::MEDIATORS,
        penstock_scripting::MEDIATORS,
        penstock_messaging::MEDIATORS,
        penstock_dataservices::MEDIATORS,
    ],
    artifacts: &[penstock_messaging::ARTIFACTS, penstock_dataservices::ARTIFACTS],
    inbound: penstock_transports::inbound::PROTOCOLS,
    listeners: penstock_transports::inbound::LISTENERS,
    ..penstock_mediators::REGISTRY
};
