//! Who may use APIs.

use std::sync::Arc;

/// An application: what subscribes and what keys are issued to.
#[derive(Debug, Clone, Default)]
pub struct Application {
    /// Its number.
    pub id: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its owner.
    pub owner: Arc<str>,
    /// Its plan.
    pub tier: Arc<str>,
    /// Consumer keys, and whether each is for production.
    pub keys: Vec<(Arc<str>, bool)>,
}

/// An application's right to use an API.
#[derive(Debug, Clone, Default)]
pub struct Subscription {
    /// The application's id.
    pub application: Arc<str>,
    /// The API's name.
    pub api: Arc<str>,
    /// The API's version.
    pub version: Arc<str>,
    /// The plan.
    pub tier: Arc<str>,
    /// Whether it holds.
    pub state: SubscriptionState,
}

/// Whether a subscription holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubscriptionState {
    /// It does.
    #[default]
    Unblocked,
    /// Refused with 900907.
    Blocked,
    /// Refused for production keys with 900907.
    ProductionBlocked,
    /// Refused with 900909.
    OnHold,
    /// Refused with 900909.
    Rejected,
}
