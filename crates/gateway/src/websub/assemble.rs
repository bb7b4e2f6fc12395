//! From a hub to sequences.

use std::sync::Arc;

use penstock_catalog::{Operation as Described, RECEIVER_PATH};
use penstock_engine::{Mediator, Step};
use penstock_projects::place;

use super::discover::Discover;
use super::publish::Publish;
use super::subscribe::Subscribe;
use crate::assemble::Assembly;
use crate::policy::limits::Plans;
use crate::policy::{ApiKinds, Phase, body_limit};
use crate::router::Target;

/// The largest event.
const EVENT_BYTES_MAX: u64 = 1 << 20;

/// The largest form of a subscriber.
const FORM_BYTES_MAX: u64 = 16 << 10;

/// The operations of a hub at a base path.
pub(crate) fn targets(assembly: &mut Assembly<'_, '_, '_>) -> Vec<Target> {
    let operations: Vec<_> = assembly.api.operations.to_vec();
    operations.iter().map(|operation| one(assembly, operation)).collect()
}

fn one(assembly: &mut Assembly<'_, '_, '_>, operation: &Arc<Described>) -> Target {
    let (api, state) = (assembly.api, &assembly.gateway.state);
    let hub = state.get();
    let config = &assembly.gateway.config;
    let plans = Plans::of_gateway(assembly.gateway);
    let websub = api.websub.clone().unwrap_or_default();
    // Both base paths of a default version are one hub; the same path on another host is another one.
    let name = match api.vhosts.first() {
        None => api.base_path.clone(),
        Some(host) => format!("{host}{}", api.base_path).into(),
    };
    let trusts_forwarded = config.trusts_forwarded;
    let publishes = &*operation.path == RECEIVER_PATH;
    let (kind, limit) =
        if publishes { (ApiKinds::PUBLISHERS, EVENT_BYTES_MAX) } else { (ApiKinds::SUBSCRIBERS, FORM_BYTES_MAX) };
    let limit = config.request_bytes_max.unwrap_or(u64::MAX).min(limit);
    let site = assembly.site(operation);
    let mut steps = assembly.request_steps(&site, kind, Phase::Client..=Phase::Backend);
    let mediator: Box<dyn Mediator> = match publishes {
        _ if &*operation.method != "POST" => Box::new(Discover { websub, trusts_forwarded }),
        true => {
            let api_key = format!("{}:{}", api.base_path, api.version).into();
            Box::new(Publish { hub, counters: state.get(), plans, api: name, api_key, websub })
        }
        false => Box::new(Subscribe { hub, plans, api: name, websub, trusts_forwarded }),
    };
    for (mediator, kind) in [(body_limit::at_most(limit), "body-limit"), (mediator, "websub")] {
        steps.push(Step { mediator, kind, at: place(&site.operation.at) });
    }
    assembly.target(site, steps, Vec::new())
}
