//! The publisher REST API: APIs, their revisions and deployments, lifecycle, documents, policies, subscriptions.
//!
//! Start reading at [`api`] (what an API is, and its checks), then the file of the operation.

pub(crate) mod api;
pub(crate) mod archive;
mod certificates;
mod client_certificates;
pub(crate) mod definition;
pub(crate) mod documents;
mod import;
pub(crate) mod lifecycle;
pub(crate) mod mcp;
pub(crate) mod members;
mod params;
pub(crate) mod policies;
pub(crate) mod products;
pub(crate) mod revisions;
pub(crate) mod scopes;
pub(crate) mod settings;
pub(crate) mod subscriptions;
pub(crate) mod yaml;

use crate::route::Registration;

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[
    api::HANDLERS,
    archive::HANDLERS,
    certificates::HANDLERS,
    client_certificates::HANDLERS,
    crate::comments::HANDLERS,
    crate::labels::PUBLISHER_HANDLERS,
    definition::HANDLERS,
    documents::HANDLERS,
    import::HANDLERS,
    lifecycle::HANDLERS,
    mcp::HANDLERS,
    policies::HANDLERS,
    products::HANDLERS,
    revisions::HANDLERS,
    scopes::HANDLERS,
    settings::HANDLERS,
    subscriptions::HANDLERS,
];
