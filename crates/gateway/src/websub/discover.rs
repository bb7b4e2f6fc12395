//! Discovery (WebSub §4): a topic's address says where its hub is.

use std::sync::Arc;

use penstock_catalog::{WebSub, topic_name};
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::subscribe::{answer, hub_address};
use super::subscription::link;
use crate::error::{GatewayError, codes};
use crate::text::percent_decoded;
use crate::{CallContext, client_request};

/// Responds to requests for a topic's URL.
pub(super) struct Discover {
    pub websub: Arc<WebSub>,
    /// Whether a proxy says how the client knows the hub.
    pub trusts_forwarded: bool,
}

impl Mediator for Discover {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let path = client_request::below_now(exchange, &context.site).split('?').next().unwrap_or_default();
        let name = topic_name(&percent_decoded(path, false));
        if !self.websub.topics.iter().any(|topic| *topic.name == *name) {
            return Err(GatewayError::new(codes::NO_MATCHING_RESOURCE).because("there is no such topic").into());
        }
        let field = link(&hub_address(exchange, &context.site, self.trusts_forwarded), &name);
        let flow = answer(exchange, 200);
        exchange.message.headers.set("Link", field);
        Ok(flow)
    }
}
