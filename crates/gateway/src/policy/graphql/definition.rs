//! The schema of a GraphQL API, and which of its operations are served and secured.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, Lifecycle};
use penstock_compile::Compiler;
use penstock_graphql::{Checked, OperationKind, Schema, position};
use penstock_projects::place;

/// The schema of an API and the operations that it serves.
pub struct Definition {
    pub(super) schema: Schema,
    /// The places of the API's operations, by what they do and their name.
    pub(super) operations: [HashMap<Arc<str>, usize>; 3],
    /// Which of them ask for credentials.
    pub(super) secured: Vec<bool>,
}

impl Definition {
    /// Reads what the catalog says; `None` for APIs of other kinds, and after it was said what is wrong.
    pub(crate) fn new(api: &Api, cx: &mut Compiler<'_>) -> Option<Arc<Definition>> {
        let described = api.graphql.as_ref()?;
        let mut schema = match Schema::parse(&described.schema) {
            Ok(schema) => schema,
            Err(problems) => {
                for problem in problems {
                    let (line, column) = position(&described.schema, problem.offset);
                    let at = penstock_catalog::At { line, column, ..described.at.clone() };
                    cx.error(place(&at), problem.message);
                }
                return None;
            }
        };
        for (kind, field, cost) in &described.costs {
            // An unknown field has no cost; the import has reported it.
            let _ = schema.set_cost(kind, field, (*cost).into());
        }
        let mut operations: [HashMap<Arc<str>, usize>; 3] = Default::default();
        for (index, operation) in api.operations.iter().enumerate() {
            if let Some(kind) = OperationKind::ALL.into_iter().find(|kind| kind.verb() == &*operation.method) {
                operations[kind as usize].entry(operation.path.clone()).or_insert(index);
            }
        }
        let open = api.lifecycle == Lifecycle::Prototyped;
        let secured = api.operations.iter().map(|operation| operation.secured && !open).collect();
        Some(Arc::new(Definition { schema, operations, secured }))
    }

    /// The operations of a query, or the first unknown name.
    pub(super) fn operations_of<'q>(&self, checked: &Checked<'q>) -> Result<Vec<usize>, &'q str> {
        let known = &self.operations[checked.kind as usize];
        checked.fields.iter().map(|field| known.get(*field).copied().ok_or(*field)).collect()
    }

    pub(super) fn asks_for_credentials(&self, index: usize) -> bool {
        self.secured.get(index).is_none_or(|secured| *secured)
    }
}
