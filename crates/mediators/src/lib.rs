//! One file per mediator, and the list; one folder per native connector (`connector/`), and their list.
//!
//! A mediator decides and the engine acts: it never runs another mediator, never waits and knows no
//! socket. Its file holds its `KIND` (name and compile function), its struct and its `run`; its page in
//! `docs/mediators/` is its test.
//!
//! Start reading at [`MEDIATORS`], then `filter.rs`.

mod aggregate;
mod builder;
mod cache;
mod call;
mod call_template;
mod callout;
mod clone;
mod conditional_router;
mod dblookup;
mod dbreport;
mod drop;
mod enrich;
mod filter;
mod foreach;
mod handlers;
mod header;
mod in_out;
mod iterate;
mod jsontransform;
mod log;
mod loopback;
mod makefault;
mod payload_factory;
mod property;
mod respond;
mod rewrite;
mod router;
mod scatter_gather;
mod send;
mod sequence;
mod switch;
mod throttle;
mod throw_error;
mod transaction;
mod unsupported;
mod validate;
mod variable;
mod xquery;
mod xslt;

mod condition;
mod connector;
mod database;
mod key;
mod reply;
mod results;
mod security;
mod split;
mod template;
mod typed;
mod uri;

use penstock_compile::{MediatorKind, Registry};

pub use connector::CONNECTORS;
pub use unsupported::UNSUPPORTED;

/// Every mediator there is.
pub const MEDIATORS: &[MediatorKind] = &[
    aggregate::KIND,
    builder::KIND,
    cache::KIND,
    call::KIND,
    call_template::KIND,
    callout::KIND,
    clone::KIND,
    conditional_router::KIND,
    dblookup::KIND,
    dbreport::KIND,
    drop::KIND,
    enrich::KIND,
    filter::KIND,
    foreach::KIND,
    header::KIND,
    in_out::IN,
    in_out::OUT,
    iterate::KIND,
    jsontransform::KIND,
    log::KIND,
    loopback::KIND,
    makefault::KIND,
    payload_factory::KIND,
    property::KIND,
    property::GROUP,
    respond::KIND,
    rewrite::KIND,
    router::KIND,
    scatter_gather::KIND,
    send::KIND,
    sequence::KIND,
    switch::KIND,
    throttle::KIND,
    throw_error::KIND,
    transaction::KIND,
    validate::KIND,
    variable::KIND,
    xquery::KIND,
    xslt::KIND,
    xslt::FAST,
];

/// Mediators of Micro Integrator that are not built yet.
pub const KNOWN: &[&str] = &["opa"];

/// What the compiler is given.
pub const REGISTRY: Registry = Registry {
    mediators: &[MEDIATORS],
    artifacts: &[],
    transports: &[],
    handlers: handlers::HANDLERS,
    connectors: CONNECTORS,
    security: security::compile,
    known: KNOWN,
    unsupported: UNSUPPORTED,
};
