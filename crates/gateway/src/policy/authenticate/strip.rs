//! The credentials of callers stay at the gateway, as in Choreo Connect: also those that were not checked because another
//! one let the caller in. What a client sends to an open operation is meant for the backend and goes there.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::api_key::{self, KeyPlace};
use super::is_secured;
use crate::{CallContext, ErrorStyle, Gateway, Site};

/// Where credentials may stand.
pub(super) struct Strip {
    headers: [Arc<str>; 2],
    keys: Vec<KeyPlace>,
}

impl Strip {
    /// For an operation; `None` when credentials go on.
    pub(super) fn compile(gateway: &Gateway, site: &Site) -> Option<Strip> {
        let security = &gateway.config.security;
        let goes_on = match site.operation.forwards_credentials {
            Some(forwards) => forwards,
            None => {
                let is_api_manager = gateway.config.error_style == ErrorStyle::ApiManager;
                security.forward_credentials || is_api_manager || !is_secured(site)
            }
        };
        if goes_on {
            return None;
        }
        let own = site.api.authorization_header.clone();
        let headers =
            [own.unwrap_or_else(|| security.authorization_header.clone()), security.internal_key_header.clone()];
        Some(Strip { headers, keys: api_key::places(&site.api, &site.operation.requirements) })
    }

    /// Takes them out of what the backend is sent.
    pub(super) fn apply(&self, exchange: &mut Exchange, context: &CallContext) {
        for name in &self.headers {
            exchange.message.headers.remove(name);
        }
        for place in &self.keys {
            match place {
                KeyPlace::Header(name) => drop(exchange.message.headers.remove(name)),
                KeyPlace::Query(name) if api_key::query_value(exchange.client.line.query(), name).is_some() => {
                    api_key::remove_from_query(exchange, context, name);
                }
                KeyPlace::Query(_) => {}
            }
        }
    }
}

/// The only step of an unsecured operation.
impl Mediator for Strip {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        self.apply(exchange, &context);
        Ok(Flow::Next)
    }
}
