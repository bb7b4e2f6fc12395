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
    transports: penstock_transports::TRANSPORTS,
    ..penstock_mediators::REGISTRY
};
