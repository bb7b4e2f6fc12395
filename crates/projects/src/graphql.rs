//! `Definitions/schema.graphql` and `Definitions/graphql-complexity.yaml`: the operations of a GraphQL API.

use std::collections::HashSet;
use std::sync::Arc;

use penstock_catalog::{Api, At, GraphQl, Operation};
use penstock_graphql::{OperationKind, Schema, position};

use super::document::{Item, parse};
use super::{Import, Project, hint};

/// Where the schema stands; the second is what the publisher downloads it as.
const SCHEMAS: [&str; 3] = ["Definitions/schema.graphql", "Definitions/schema.graphqls", "Definitions/schema.gql"];

const COMPLEXITY: [&str; 3] = [
    "Definitions/graphql-complexity.yaml",
    "Definitions/graphql-complexity.yml",
    "Definitions/graphql-complexity.json",
];

/// Operations without a description that a message names.
const NAMED_MAX: usize = 5;

impl Import<'_> {
    /// Reads the schema of a project into its API, and holds the API's operations against it.
    pub(super) fn graphql(&mut self, project: &Project, api: &mut Api) {
        let Some(file) = SCHEMAS.iter().find_map(|path| project.file(path)) else {
            let message = format!("a GraphQL API needs its schema, `{}`", SCHEMAS[0]);
            return self.error(&api.at.clone(), message);
        };
        let at = |line, column| At { file: file.file.clone(), line, column };
        let Ok(text) = std::str::from_utf8(&file.bytes) else {
            return self.error(&at(1, 1), "not UTF-8");
        };
        let mut schema = match Schema::parse(text) {
            Ok(schema) => schema,
            Err(problems) => {
                for problem in problems {
                    let (line, column) = position(text, problem.offset);
                    self.error(&at(line, column), problem.message);
                }
                return;
            }
        };
        let costs = self.costs(project, &mut schema);
        self.operations_of(&schema, api, &at(1, 1));
        api.graphql = Some(Arc::new(GraphQl { schema: text.into(), costs, at: at(1, 1) }));
        // Every query is held against the schema anyway, and answers are the backend's.
        api.schema_validation = false;
    }

    /// What fields count for the complexity of queries.
    fn costs(&mut self, project: &Project, schema: &mut Schema) -> Vec<(Arc<str>, Arc<str>, u32)> {
        let Some(file) = COMPLEXITY.iter().find_map(|path| project.file(path)) else { return Vec::new() };
        let document = match parse(&file.file, &file.bytes) {
            Ok(document) => document,
            Err((at, message)) => {
                self.error(&at, message);
                return Vec::new();
            }
        };
        let root = document.item();
        let data = root.get("data").unwrap_or(root);
        let mut costs = Vec::new();
        for entry in data.get("list").iter().flat_map(|list| list.items()) {
            costs.extend(self.cost(&entry, schema));
        }
        costs
    }

    fn cost(&mut self, entry: &Item<'_>, schema: &mut Schema) -> Option<(Arc<str>, Arc<str>, u32)> {
        let (kind, field) = (self.some_text_of(entry, "type"), self.some_text_of(entry, "field"));
        let value = self.number_of(entry, "complexityValue");
        let (Some(kind), Some(field), Some(value)) = (kind, field, value) else {
            if !self.failed() {
                self.error(&entry.at(), "a complexity needs `type`, `field` and `complexityValue`");
            }
            return None;
        };
        let Ok(value) = u32::try_from(value) else {
            self.error(&entry.at(), format!("`complexityValue` must be a number below 2^32, not `{value}`"));
            return None;
        };
        if let Err(problem) = schema.set_cost(&kind, &field, value.into()) {
            self.unprotected(&entry.at(), format!("{problem}; the complexity is ignored"));
            return None;
        }
        Some((kind, field, value))
    }

    /// Operations of the descriptor must be in the schema; without any, all of the schema are served.
    fn operations_of(&mut self, schema: &Schema, api: &mut Api, at: &At) {
        let all =
            || OperationKind::ALL.into_iter().flat_map(|kind| schema.operations(kind).map(move |name| (kind, name)));
        if api.operations.is_empty() {
            let mut found: Vec<(OperationKind, &str)> = all().collect();
            found.sort_by_key(|(kind, name)| (*kind as usize, *name));
            let operation = |(kind, name): (OperationKind, &str)| {
                let (method, path, at) = (kind.verb().into(), name.into(), at.clone());
                Arc::new(Operation { method, path, at, secured: true, ..Operation::default() })
            };
            api.operations = found.into_iter().map(operation).collect();
        }
        let operations = api.operations.clone();
        let mut described = HashSet::new();
        for operation in &operations {
            let kind = OperationKind::ALL.into_iter().find(|kind| kind.verb() == &*operation.method);
            let Some(kind) = kind else { continue };
            described.insert((kind, &*operation.path));
            if !schema.has_operation(kind, &operation.path) {
                let meant = hint(&operation.path, schema.operations(kind));
                let message = format!("the schema has no {} `{}`{meant}", kind.word(), operation.path);
                self.warn(&operation.at, message);
            }
            let flows = [&operation.policies.request, &operation.policies.response, &operation.policies.fault];
            if flows.iter().any(|flow| !flow.is_empty()) {
                let message = "policies of single operations are ignored: a query may ask for several at once; those of \
                               the API (`apiPolicies`) run";
                self.unprotected(&operation.at, message);
            }
        }
        let mut missing: Vec<&str> = all().filter(|asked| !described.contains(asked)).map(|(_, name)| name).collect();
        if !missing.is_empty() {
            missing.sort_unstable();
            let count = missing.len();
            let more = if count > NAMED_MAX { format!(" and {} more", count - NAMED_MAX) } else { String::new() };
            missing.truncate(NAMED_MAX);
            let names = missing.join("`, `");
            self.warn(&api.at.clone(), format!("not served, since `operations` does not list them: `{names}`{more}"));
        }
    }
}
