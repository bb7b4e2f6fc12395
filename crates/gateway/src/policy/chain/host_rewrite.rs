//! `host-rewrite`: the `Host` of requests to backends with `hostRewrite: manual`.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::headers::is_value;
use super::params::Params;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "host-rewrite", make };

struct HostRewrite(Arc<str>);

fn make(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let host = params.required_text("host")?;
    if host.is_empty() || !is_value(&host) || host.contains(char::is_whitespace) {
        params.error(format!("`{host}` is not a host"));
        return None;
    }
    Some(Made::request(ChainPhase::Head, HostRewrite(host)))
}

impl Mediator for HostRewrite {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message.headers.set("Host", &*self.0);
        Ok(Flow::Next)
    }
}
