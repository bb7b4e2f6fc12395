//! What the GraphQL policies keep of a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use penstock_catalog::QueryLimits;

/// What the GraphQL policies keep of a request.
#[derive(Default)]
pub(crate) struct GraphQlCall {
    /// The parsed query.
    pub(crate) query: RefCell<Option<Rc<QuerySummary>>>,
    /// The limits of each query on a connection for subscriptions.
    pub(super) limits: Cell<QueryLimits>,
}

/// A parsed query.
#[derive(Debug)]
pub(crate) struct QuerySummary {
    /// Operations of the API, by their places, each once.
    pub operations: Vec<usize>,
    /// Whether one of them requires credentials.
    pub(super) secured: bool,
    pub(super) depth: u64,
    pub(super) complexity: u64,
}
