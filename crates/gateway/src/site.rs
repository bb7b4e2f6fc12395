//! Where a policy is applied.

use std::sync::Arc;

use penstock_catalog::path::PathPattern;
use penstock_catalog::{Api, ApiKind, Operation};

use crate::policy::graphql::Definition;

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
    /// The methods of all operations on the same path, with spaces between (`GET POST`).
    pub methods: Arc<str>,
    /// The schema of a GraphQL API.
    pub graphql: Option<Arc<Definition>>,
    /// Its index among the counters of operations.
    pub(crate) counted_at: usize,
}

impl Site {
    /// Whether it is a topic of a WebSocket API.
    pub(crate) fn is_websocket(&self) -> bool {
        self.api.kind == ApiKind::WebSocket
    }
}
