//! What a configuration says about limits.

use std::sync::Arc;

use penstock_catalog::{Denial, Limit, Plan};

/// Limits and deny conditions of a gateway.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Plans by name; they may redefine those of Choreo Connect.
    pub plans: Vec<Plan>,
    /// Who is refused.
    pub denials: Vec<Denial>,
    /// Limits with keys of their own, for every request.
    pub custom: Vec<CustomLimit>,
    /// Whether answers within the limits say how much is left, and not only those beyond.
    pub tell_what_is_left: bool,
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig { plans: Vec::new(), denials: Vec::new(), custom: Vec::new(), tell_what_is_left: true }
    }
}

/// A limit that counts by a key of its own: a custom policy of Choreo Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomLimit {
    /// Its name.
    pub name: Arc<str>,
    /// What is counted together: text with `$userId`, `$apiContext`, `$apiVersion`, `$appId`, `$resourceKey`,
    /// `$clientIp`, `$apiProvider`.
    pub key: Arc<str>,
    /// How much in what time.
    pub limit: Limit,
}
