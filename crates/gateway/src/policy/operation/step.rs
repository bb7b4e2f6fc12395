//! What operation policies are compiled from and to: actions with their parameters, flows, steps, and why a policy is left
//! out.

use std::sync::Arc;

use penstock_catalog::{At, PolicyUse};
use penstock_engine::Mediator;

use crate::Site;
use crate::text::is_field_name;

/// The flow a policy runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Request,
    Response,
    Fault,
}

impl Stage {
    /// The policies of a flow: those of the API are outside, those of the operation inside.
    pub(super) fn uses(self, site: &Site) -> Vec<&PolicyUse> {
        let (api, operation) = (&site.api.policies, &site.operation.policies);
        match self {
            Stage::Request => api.request.iter().chain(&operation.request).collect(),
            Stage::Response => operation.response.iter().chain(&api.response).collect(),
            Stage::Fault => operation.fault.iter().chain(&api.fault).collect(),
        }
    }

    /// As projects write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Request => "request",
            Stage::Response => "response",
            Stage::Fault => "fault",
        }
    }
}

/// Why a policy is left out.
pub(crate) enum Problem {
    /// Nothing else depends on it.
    Skip(String),
    /// It may be what keeps requests out: without it the API is served only when the configuration allows that.
    Unprotected(String),
    /// The API cannot be served as it was meant.
    Refuse(String),
}

/// An action with its parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActionCall {
    pub(crate) action: String,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) at: At,
}

/// A mediator of an operation policy.
pub(crate) struct PolicyStep {
    pub(crate) kind: &'static str,
    pub(crate) mediator: Box<dyn Mediator>,
    rank: Rank,
}

/// When a policy runs among its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A sequence: nothing passes it.
    Fixed,
    /// An action that touches no query.
    Plain,
    LeavesQuery,
    AddsQuery,
}

impl PolicyStep {
    /// A sequence.
    pub(super) fn sequence(mediator: Box<dyn Mediator>) -> PolicyStep {
        PolicyStep { kind: "sequence", mediator, rank: Rank::Fixed }
    }

    pub(super) fn action(kind: &'static str, mediator: Box<dyn Mediator>) -> PolicyStep {
        PolicyStep { kind, mediator, rank: Rank::Plain }
    }

    pub(super) fn ranked(self, rank: Rank) -> PolicyStep {
        PolicyStep { rank, ..self }
    }
}

/// Puts neighbouring actions in the order in which Choreo Connect does them: the path, what leaves the query, what comes
/// to it. So a parameter that a policy adds stays, also when a later one discards the client's.
pub(super) fn order(works: &mut [(PolicyStep, &PolicyUse)]) {
    for run in works.chunk_by_mut(|(left, _), (right, _)| left.rank > Rank::Fixed && right.rank > Rank::Fixed) {
        run.sort_by_key(|(work, _)| work.rank);
    }
}

impl ActionCall {
    /// An action with parameters that are not empty.
    pub(super) fn new<'p>(
        action: &str,
        parameters: impl IntoIterator<Item = (&'p str, Option<&'p str>)>,
    ) -> ActionCall {
        let given = |(name, value): (&str, Option<&str>)| Some((name.to_owned(), value?.to_owned()));
        ActionCall {
            action: action.to_owned(),
            parameters: parameters.into_iter().filter_map(given).collect(),
            ..ActionCall::default()
        }
    }

    /// A parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Why the action cannot run: a rewrite is left out, everything else may be what keeps requests out.
    pub(super) fn problem(&self, message: String) -> Problem {
        if REWRITES.contains(&&*self.action) { Problem::Skip(message) } else { Problem::Unprotected(message) }
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, Problem> {
        let missing = || self.problem(format!("the action `{}` needs the parameter `{name}`", self.action));
        self.get(name).ok_or_else(missing)
    }

    /// A parameter that is a header field's name.
    pub(super) fn field(&self, name: &str) -> Result<Arc<str>, Problem> {
        let field = self.required(name)?.trim();
        match is_field_name(field) {
            true => Ok(field.into()),
            false => Err(Problem::Skip(format!("`{field}` is not a header name"))),
        }
    }
}

/// Actions that change a request or a response and keep none out.
const REWRITES: [&str; 7] = [
    "SET_HEADER",
    "REMOVE_HEADER",
    "RENAME_HEADER",
    "ADD_QUERY",
    "REMOVE_QUERY",
    "REWRITE_RESOURCE_METHOD",
    "REWRITE_RESOURCE_PATH",
];
