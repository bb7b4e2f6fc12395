//! The policies, one file each, and the list.
//!
//! A policy compiles an operation of an API to a mediator for a flow, or to nothing when the operation does not configure
//! it; so an operation without a limit has no step that looks for one. The order of the list is the order of the request
//! flow; responses pass in the opposite order.
//!
//! To add a policy, write a file or folder with a [`PolicyKind`] (`availability.rs` is the shortest), and list it in
//! [`POLICIES`]. Its registration states the kinds of APIs it applies to and its phase; nothing else names it.

mod authenticate;
mod availability;
mod backend_jwt;
pub(crate) mod body_limit;
pub(crate) mod chain;
pub(crate) mod compress;
mod cors;
mod deny;
mod explain;
pub(crate) mod graphql;
mod inline;
pub(crate) mod interceptor;
mod key_type;
mod kind;
pub(crate) mod lambda;
pub(crate) mod limits;
mod measure;
mod mock;
pub(crate) mod operation;
pub(crate) mod response_cache;
pub(crate) mod schema_validation;
mod scopes;
mod sharded;
mod subscription;
pub(crate) mod websocket;

pub(crate) use explain::mediator as explain_step;
pub use kind::{ApiKinds, CompilePolicy, Phase, PolicyKind};
pub(crate) use websocket::asks_for_socket;

/// All policies, in the order of the request flow. Which of them an operation runs is data of each one.
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

// An API kind without authentication does not compile, nor does a policy outside its phase.
const _: () = assert!(kind::all_authenticated(POLICIES) && kind::in_order(POLICIES));
