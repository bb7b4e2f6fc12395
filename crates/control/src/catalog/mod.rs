//! The service catalog REST API: services that integrators publish, with their definitions, and from which APIs are made.

pub(crate) mod services;
mod transfer;

use serde_json::json;

use crate::http::Response;
use crate::route::{Api, Registration};

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[OWN, services::HANDLERS, transfer::HANDLERS];

const OWN: &[Registration] = &[("GET", "/settings", |call| {
    let scopes = call.control.routes.scopes_of(Api::ServiceCatalog);
    Ok(Response::json(200, &json!({"scopes": scopes})))
})];
