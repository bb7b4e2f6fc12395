//! From a hub to sequences.

use std::sync::Arc;

use penstock_catalog::Operation as Described;
use penstock_engine::{Mediator, Step};

use super::RECEIVER;
use super::discover::Discover;
use super::publish::Publish;
use super::subscribe::Subscribe;
use crate::assemble::Assembly;
use crate::place;
use crate::policy::{POLICIES, body_limit};
use crate::router::Target;

/// The policies of subscribers. Plans count events, not subscriptions.
const FOR_SUBSCRIBERS: [&str; 8] =
    ["explain", "trace", "cors", "availability", "authenticate", "subscription", "scopes", "deny"];

/// The policies of publishers.
const FOR_PUBLISHERS: [&str; 5] = ["explain", "trace", "availability", "deny", "rate-limit"];

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
    let (api, state) = (assembly.api, assembly.gateway.state.clone());
    let config = &assembly.gateway.config;
    let plans = state.plans_of(&config.limits.plans);
    let websub = api.websub.clone().unwrap_or_default();
    // Both base paths of a default version are one hub; the same path on another host is another one.
    let name = match api.vhosts.first() {
        None => api.base_path.clone(),
        Some(host) => format!("{host}{}", api.base_path).into(),
    };
    let trusts_forwarded = config.trusts_forwarded;
    let publishes = &*operation.path == RECEIVER;
    let (names, limit): (&[&str], u64) =
        if publishes { (&FOR_PUBLISHERS, EVENT_BYTES_MAX) } else { (&FOR_SUBSCRIBERS, FORM_BYTES_MAX) };
    let limit = config.request_bytes_max.unwrap_or(u64::MAX).min(limit);
    let site = assembly.site(operation);
    let kinds = POLICIES.iter().filter(|kind| names.contains(&kind.name));
    let mut steps = assembly.steps(&site, kinds, |kind| kind.request);
    let mediator: Box<dyn Mediator> = match publishes {
        _ if &*operation.method != "POST" => Box::new(Discover { websub, trusts_forwarded }),
        true => {
            let api_key = format!("{}:{}", api.base_path, api.version).into();
            Box::new(Publish { state, plans, api: name, api_key, websub })
        }
        false => Box::new(Subscribe { state, plans, api: name, websub, trusts_forwarded }),
    };
    for (mediator, kind) in [(body_limit::at_most(limit), "body-limit"), (mediator, "websub")] {
        steps.push(Step { mediator, kind, at: place(&site.operation.at) });
    }
    assembly.target(site, steps, Vec::new())
}
