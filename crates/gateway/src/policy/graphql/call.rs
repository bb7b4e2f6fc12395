//! What the GraphQL policies keep of a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use penstock_catalog::QueryLimits;

/// What the GraphQL policies keep of a request.
#[derive(Default)]
pub(crate) struct GraphQlCall {
    /// What its query asks for, once it is read.
    pub(crate) query: RefCell<Option<Rc<QuerySummary>>>,
    /// The limits of each query on a connection for subscriptions.
    pub(super) limits: Cell<QueryLimits>,
}

/// What a query asks for.
#[derive(Debug)]
pub(crate) struct QuerySummary {
    /// Operations of the API, by their places, each once.
    pub operations: Vec<usize>,
    /// Whether one of them asks for credentials.
    pub(super) secured: bool,
    pub(super) depth: u64,
    pub(super) complexity: u64,
}
