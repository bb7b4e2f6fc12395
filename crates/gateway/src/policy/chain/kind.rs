//! What a policy of the API Platform registers, and what it is compiled to.

use std::sync::Arc;

use penstock_catalog::ChainStep;
use penstock_engine::Mediator;

use super::params::Params;
use crate::{Gateway, Site};

/// A policy of the API Platform.
pub(crate) struct ChainPolicy {
    /// What files call it.
    pub(super) name: &'static str,
    /// Reads its parameters and makes its mediators.
    pub(super) make: fn(&Making<'_>, &Params<'_>) -> Option<Made>,
}

/// Where a policy of a row is applied.
pub(crate) struct Making<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) site: &'a Arc<Site>,
    pub(super) step: &'a ChainStep,
    /// Its place in the row, by which it finds what it kept.
    pub(super) index: usize,
}

/// When a mediator runs among the others of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChainPhase {
    /// It looks at heads alone.
    Head,
    /// It runs once there is a body.
    Body,
}

/// What a policy does in either flow.
#[derive(Default)]
pub(crate) struct Made {
    pub(super) request: Option<(ChainPhase, Box<dyn Mediator>)>,
    pub(super) response: Option<(ChainPhase, Box<dyn Mediator>)>,
    /// Whether it reads the request's fields as they were sent.
    pub(super) reads_sent: bool,
}

impl Made {
    pub(super) fn request(phase: ChainPhase, mediator: impl Mediator + 'static) -> Made {
        Made { request: Some((phase, Box::new(mediator))), ..Made::default() }
    }

    pub(super) fn and_response(self, phase: ChainPhase, mediator: impl Mediator + 'static) -> Made {
        Made { response: Some((phase, Box::new(mediator))), ..self }
    }
}

impl ChainPhase {
    /// What expressions call it.
    pub(super) fn name(self, of_answer: bool) -> &'static str {
        match (self, of_answer) {
            (ChainPhase::Head, false) => "request_headers",
            (ChainPhase::Body, false) => "request_body",
            (ChainPhase::Head, true) => "response_headers",
            (ChainPhase::Body, true) => "response_body",
        }
    }
}
