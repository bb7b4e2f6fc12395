//! The properties that sequences of API Manager find: what was called, by whom, and the parameters of the path.

use std::sync::Arc;

use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator};
use penstock_message::Value;

use crate::{CallContext, Site, client_request};

/// Sets the properties before a sequence runs.
pub(super) struct Properties {
    fixed: Vec<(Arc<str>, Value)>,
}

impl Properties {
    pub(super) fn from_site(site: &Site) -> Properties {
        let (api, operation) = (&site.api, &site.operation);
        let full_name = format!("{}--{}:v{}", api.provider, api.name, api.version);
        let texts = [
            ("REST_API_CONTEXT", &*api.base_path),
            ("REST_API_VERSION", &*api.version),
            ("SYNAPSE_REST_API", &*full_name),
            ("SYNAPSE_REST_API_VERSION", &*api.version),
            ("API_NAME", &*api.name),
            ("API_VERSION", &*full_name),
            ("API_ELECTED_RESOURCE", &*operation.path),
            ("api.ut.api", &*api.name),
            ("api.ut.api_version", &*full_name),
            ("api.ut.context", &*api.base_path),
            ("api.ut.resource", &*operation.path),
            ("api.ut.HTTP_METHOD", &*operation.method),
        ];
        Properties { fixed: texts.into_iter().map(|(name, text)| (name.into(), Value::string(text))).collect() }
    }
}

impl Mediator for Properties {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let below: Arc<str> = client_request::below_now(exchange, &context.site).into();
        let properties = &mut exchange.message.properties;
        for (name, value) in &self.fixed {
            properties.set(name.clone(), value.clone());
        }
        for (name, value) in context.site.pattern.parameters.iter().zip(&context.path_values) {
            properties.set(format!("uri.var.{name}"), Value::string(value.as_str()));
        }
        let caller = context.caller.borrow();
        for (name, text) in [
            ("api.ut.userId", &caller.subject),
            ("api.ut.consumerKey", &caller.consumer_key),
            ("api.ut.application.name", &caller.application_name),
        ] {
            if !text.is_empty() {
                properties.set(name, Value::String(text.clone()));
            }
        }
        if exchange.direction == Direction::Request {
            let message = &mut exchange.message;
            message.properties.set("REST_SUB_REQUEST_PATH", Value::String(below.clone()));
            message.url_postfix.get_or_insert(below);
        }
        Ok(Flow::Next)
    }
}
