//! The last policy of every request: to the backend that the caller's key, the operation and the
//! interceptor choose, within the limits that its API sets.
//!
//! Start reading at [`Backends`] in `cluster.rs` (what an API says of its endpoints, made ready), then
//! `deliver.rs` (one request: attempts, timeout, circuit breaker), `request.rs` (address, fields, body),
//! `health.rs` (who is up) and `proof.rs` (what backends are shown).

pub(crate) mod aws;
mod breaker;
mod call;
mod cluster;
mod config;
mod deliver;
mod digest;
mod health;
mod idle;
mod proof;
mod request;

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::endpoint::{Endpoint, EndpointKind, EndpointPolicy, EndpointState};
use penstock_engine::{Destination, EndpointId, Exchange, Fault, Flow, Mediator};
use penstock_projects::place;

use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{Gateway, Site};

pub use call::UpstreamCall;
pub use config::{AwsConfig, HealthCheckConfig, UpstreamConfig};
pub(crate) use health::HealthChecks;

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "upstream",
    applies_to: ApiKinds::HTTP.and(ApiKinds::CONNECTIONS).and(ApiKinds::PLATFORM).and(ApiKinds::MCP),
    phase: Phase::Backend,
    request: Some(compile),
    response: None,
};

/// Sends to the operation's backends.
struct Upstream(EndpointId);

fn compile(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let at = place(&site.operation.at);
    let kind = EndpointKind::Managed(Box::new(deliver::Upstreams::new(gateway, site, cx)));
    let (policy, state) = (EndpointPolicy::default(), EndpointState::default());
    Some(Box::new(Upstream(cx.add_endpoint(Endpoint { name: None, at, kind, policy, state }))))
}

impl Mediator for Upstream {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Send(Destination::Endpoint(self.0), None))
    }
}
