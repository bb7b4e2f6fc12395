//! The developer portal REST API: published APIs, applications with their keys, subscriptions.

mod apis;
pub(crate) mod applications;
mod keys;
mod subscriptions;

use crate::route::Registration;

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] =
    &[apis::HANDLERS, applications::HANDLERS, keys::HANDLERS, subscriptions::HANDLERS];
