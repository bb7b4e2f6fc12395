//! The publisher REST API: APIs, their revisions and deployments, lifecycle, documents, policies, subscriptions.
//!
//! Start reading at [`api`] (what an API is, and its checks), then the file of the operation.

pub(crate) mod api;
pub(crate) mod archive;
pub(crate) mod asyncapi;
pub(crate) mod certificates;
mod client_certificates;
pub(crate) mod definition;
pub(crate) mod documents;
mod endpoints;
mod from_service;
mod given;
pub(crate) mod graphql;
mod import;
mod introspection;
pub(crate) mod lifecycle;
pub(crate) mod mcp;
mod mcp_proxy;
pub(crate) mod members;
mod mock;
mod params;
pub(crate) mod policies;
pub(crate) mod products;
pub(crate) mod revisions;
pub(crate) mod scopes;
pub(crate) mod settings;
pub(crate) mod soap;
mod soap_to_rest;
pub(crate) mod subscriptions;
mod wsdl;
pub(crate) mod yaml;

use crate::route::Registration;
#[cfg(test)]
pub(crate) use wsdl::tests::QUOTES as WSDL_OF_TESTS;

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[
    api::HANDLERS,
    archive::HANDLERS,
    asyncapi::HANDLERS,
    certificates::HANDLERS,
    client_certificates::HANDLERS,
    crate::comments::HANDLERS,
    crate::labels::PUBLISHER_HANDLERS,
    definition::HANDLERS,
    documents::HANDLERS,
    endpoints::HANDLERS,
    from_service::HANDLERS,
    graphql::HANDLERS,
    import::HANDLERS,
    lifecycle::HANDLERS,
    mcp::HANDLERS,
    mcp_proxy::HANDLERS,
    mock::HANDLERS,
    policies::HANDLERS,
    products::HANDLERS,
    revisions::HANDLERS,
    scopes::HANDLERS,
    settings::HANDLERS,
    soap::HANDLERS,
    subscriptions::HANDLERS,
    crate::workflow::HANDLERS,
    crate::workflow::PUBLISHER_HANDLERS,
];
