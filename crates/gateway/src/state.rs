//! What outlives a reload: counters, keys, caches. One for the process.

/// What outlives a reload.
#[derive(Debug, Default)]
pub struct GatewayState {}
