//! Who may use APIs: applications with their keys, and subscriptions.

use std::sync::Arc;

/// An application: what subscribes and what keys are issued to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Application {
    /// Its number.
    pub id: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its owner.
    pub owner: Arc<str>,
    /// The organization whose APIs it may call; `None` is any.
    pub organization: Option<Arc<str>>,
    /// Its plan.
    pub tier: Arc<str>,
    /// Consumer keys, and whether each is for production.
    pub keys: Vec<(Arc<str>, bool)>,
}

/// A key of an application that is known apart from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerKey {
    /// The application's id.
    pub application: Arc<str>,
    /// The key.
    pub key: Arc<str>,
    /// Whether it is for production.
    pub production: bool,
}

/// An application's right to use an API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// Applications, keys and subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Applications, with keys or without.
    pub applications: Vec<Application>,
    /// Keys that the applications do not list themselves.
    pub keys: Vec<ConsumerKey>,
    /// Subscriptions.
    pub subscriptions: Vec<Subscription>,
}

/// One step of a change of [`Access`]. A step replaces what has the same id, key, or application and API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessChange {
    /// An application is new or different. Keys that it does not list stay.
    Application(Application),
    /// The application with this id was removed.
    NoApplication(Arc<str>),
    /// A key is new or different.
    Key(ConsumerKey),
    /// A key was removed.
    NoKey(ConsumerKey),
    /// A subscription is new or different.
    Subscription(Subscription),
    /// A subscription was removed.
    NoSubscription(Subscription),
}
