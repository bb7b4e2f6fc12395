//! APIs that may not be called at present.

use std::sync::Arc;

use penstock_catalog::Lifecycle;
use penstock_compile::Compiler;
use penstock_engine::Mediator;

use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::steps::Refuse;
use crate::{Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "availability",
    applies_to: ApiKinds::AUTHENTICATED.and(ApiKinds::PLATFORM).and(ApiKinds::PUBLISHERS),
    phase: Phase::Admission,
    request: Some(compile),
    response: None,
};

fn compile(_gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let blocked = site.api.lifecycle == Lifecycle::Blocked;
    blocked.then(|| Box::new(Refuse(GatewayError::new(codes::API_BLOCKED))) as Box<dyn Mediator>)
}
