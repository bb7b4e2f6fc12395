//! The admin REST API: throttling and deny policies, environments, categories, key managers, applications of all users.

pub(crate) mod apis;
pub(crate) mod applications;
pub(crate) mod categories;
mod custom;
pub(crate) mod deny;
pub(crate) mod environments;
pub(crate) mod key_managers;
mod organizations;
pub(crate) mod plan_text;
mod portal;
pub(crate) mod throttling;

use crate::route::Registration;

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[
    apis::HANDLERS,
    applications::HANDLERS,
    categories::HANDLERS,
    crate::labels::ADMIN_HANDLERS,
    custom::HANDLERS,
    deny::HANDLERS,
    environments::HANDLERS,
    key_managers::HANDLERS,
    organizations::HANDLERS,
    portal::HANDLERS,
    crate::settings::ADMIN_HANDLERS,
    throttling::HANDLERS,
    crate::workflow::HANDLERS,
];
