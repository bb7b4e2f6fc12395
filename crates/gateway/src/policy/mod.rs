//! The policies, one file each, and the list.
//!
//! A policy of the list looks at an API's operation and gives a mediator for a flow, or nothing when
//! the operation does not ask for it; so an operation without a limit has no step that looks for one.
//! The order of the list is the order of the request flow; answers pass in the opposite order.

mod action;
mod answer_error;
mod answer_options;
mod ask;
mod authenticate;
mod availability;
mod backend_jwt;
pub(crate) mod body_limit;
mod builtin;
pub(crate) mod chain;
mod class;
mod compress;
mod cors;
mod cors_of_api_manager;
mod definition;
mod deny;
mod explain;
pub(crate) mod facts;
mod fault_flow;
mod gotemplate;
pub(crate) mod graphql;
mod inline;
pub(crate) mod interceptor;
mod json;
mod key_type;
mod lambda;
pub(crate) mod limits;
mod measure;
mod mock;
mod opa;
pub(crate) mod operation;
pub mod readers;
mod refuse;
mod respond;
pub(crate) mod response_cache;
pub(crate) mod schema_validation;
mod scopes;
mod subscription;
mod synapse;
pub(crate) mod websocket;

use std::sync::Arc;

use penstock_catalog::{Api, Operation};
use penstock_compile::Compiler;
use penstock_engine::Mediator;

use crate::Gateway;
use crate::router::PathPattern;

pub(crate) use answer_error::AnswerError;
pub(crate) use answer_options::AnswerOptions;
pub use compress::CompressionConfig;
pub(crate) use cors::usual as usual_cors;
pub(crate) use explain::mediator as explain_step;
pub(crate) use refuse::Refuse;
pub(crate) use respond::Respond;
pub(crate) use websocket::{asks_for_socket, is_websocket};

/// Where a policy is applied: one operation of one API.
#[derive(Default)]
pub struct Site {
    /// The API.
    pub api: Arc<Api>,
    /// The base path requests come in by: that of the API, or the one it has besides as the default version. `/` or
    /// without a slash at its end.
    pub base_path: Arc<str>,
    /// The operation.
    pub operation: Arc<Operation>,
    /// Its path template, compiled.
    pub pattern: Arc<PathPattern>,
    /// The methods of all operations on the same path, with blanks between (`GET POST`).
    pub methods: Arc<str>,
    /// What a GraphQL API can be asked.
    pub graphql: Option<Arc<graphql::Definition>>,
    /// Its place among the counters of operations.
    pub(crate) counted_at: usize,
}

/// Compiles a policy for a site; `None` when the site does not ask for it.
pub type CompilePolicy = fn(&Gateway, &Arc<Site>, &mut Compiler<'_>) -> Option<Box<dyn Mediator>>;

/// A policy: one file of this folder.
pub struct PolicyKind {
    /// What it is called in logs, in explanations and in the documentation.
    pub name: &'static str,
    /// What requests run.
    pub request: Option<CompilePolicy>,
    /// What answers run.
    pub response: Option<CompilePolicy>,
}

/// All policies, in the order of the request flow.
pub const POLICIES: &[PolicyKind] = &[
    explain::KIND,
    crate::observe::TRACE,
    compress::KIND,
    cors::KIND,
    websocket::KIND,
    availability::KIND,
    graphql::QUERY,
    authenticate::KIND,
    subscription::KIND,
    scopes::KIND,
    graphql::RIGHTS,
    deny::KIND,
    key_type::KIND,
    limits::KIND,
    body_limit::KIND,
    schema_validation::REQUESTS,
    backend_jwt::KIND,
    operation::KIND,
    chain::KIND,
    interceptor::KIND,
    response_cache::KIND,
    schema_validation::ANSWERS,
    mock::KIND,
    inline::KIND,
    lambda::KIND,
    crate::upstream::KIND,
];
