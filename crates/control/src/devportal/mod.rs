//! The developer portal REST API: published APIs, applications with their keys, subscriptions.

mod account;
pub(crate) mod api_keys;
pub(crate) mod apis;
pub(crate) mod applications;
mod definitions;
mod external_keys;
pub(crate) mod keys;
pub(crate) mod ratings;
mod subscriptions;
mod transfer;

use crate::route::Registration;

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[
    account::HANDLERS,
    api_keys::HANDLERS,
    apis::HANDLERS,
    applications::HANDLERS,
    crate::comments::HANDLERS,
    definitions::HANDLERS,
    keys::HANDLERS,
    ratings::HANDLERS,
    subscriptions::HANDLERS,
    transfer::HANDLERS,
];
