//! A query held against a schema: whether it is valid, its operations, depth and
//! how much it counts.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use super::document::{Document, Operation, OperationKind, Selection};
use super::lexer::short;
use super::schema::{Schema, is_introspection};
use super::walk::{Checker, TYPE_NAME, TooDeep};
use super::{DEPTH_MAX, Malformed, position};

/// A query with what was sent beside it.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// The operations and fragments.
    pub text: &'q str,
    /// Which of the operations is meant.
    pub operation: Option<&'q str>,
    /// Values of variables.
    pub variables: Option<&'q Map<String, Json>>,
}

/// A valid query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked<'q> {
    /// What it does.
    pub kind: OperationKind,
    /// Its operations, each once.
    pub fields: Vec<&'q str>,
    /// Whether it has introspection fields.
    pub introspects: bool,
    /// Fields inside fields.
    pub depth: u64,
    /// What its fields count together.
    pub complexity: u64,
}

/// Why a query is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It is not written as queries are; where and why.
    Syntax(String),
    /// The schema does not allow it; everything that was found.
    Invalid(String),
    /// It is nested deeper than any query may be, which is this.
    TooDeep(usize),
}

impl From<Malformed> for Refused {
    fn from(error: Malformed) -> Refused {
        if error.too_deep { Refused::TooDeep(DEPTH_MAX) } else { Refused::Syntax(error.message) }
    }
}

impl<'q> Query<'q> {
    /// Holds it against a schema.
    pub fn check(&self, schema: &Schema) -> Result<Checked<'q>, Refused> {
        let document = Document::parse(self.text).map_err(|error| {
            let (line, column) = position(self.text, error.offset);
            let message = format!("{} at line {line} column {column}", error.message);
            Refused::from(Malformed { message, ..error })
        })?;
        let invalid = |message: String| Err(Refused::Invalid(message));
        let operation = match (document.operations.as_slice(), self.operation.filter(|name| !name.is_empty())) {
            ([], _) => return invalid("Operation definition cannot be empty".to_owned()),
            ([only], None) => only,
            (_, None) => return invalid("The name of one of the operations must be sent".to_owned()),
            (all, Some(wanted)) => {
                let same = |operation: &&Operation<'_>| operation.name.is_some_and(|name| name.text == wanted);
                match all.iter().find(same) {
                    Some(found) => found,
                    None => return invalid(format!("Unknown operation named '{}'", short(wanted))),
                }
            }
        };
        let mut checker = Checker::new(schema, &document, &operation.variables, self.variables);
        let (depth, complexity) = checker.document(operation).map_err(|TooDeep| Refused::TooDeep(DEPTH_MAX))?;
        if !checker.problems.is_empty() {
            return invalid(checker.problems.join(","));
        }
        let mut root =
            RootFields { checker: &checker, fields: Vec::new(), names: HashSet::new(), fragments: HashSet::new() };
        root.collect(&operation.selections);
        let introspects = root.fields.iter().any(|name| is_introspection(name) && *name != TYPE_NAME);
        let fields = root.fields.into_iter().filter(|name| !is_introspection(name)).collect();
        Ok(Checked { kind: operation.kind, fields, introspects, depth, complexity })
    }
}

/// Fields of the outermost level, also those that stand in fragments.
struct RootFields<'c, 't> {
    checker: &'c Checker<'c, 't>,
    fields: Vec<&'t str>,
    names: HashSet<&'t str>,
    /// Those that were looked into.
    fragments: HashSet<usize>,
}

impl<'t> RootFields<'_, 't> {
    fn collect(&mut self, selections: &[Selection<'t>]) {
        for selection in selections {
            match selection {
                Selection::Field(field) => {
                    if self.names.insert(field.name.text) {
                        self.fields.push(field.name.text);
                    }
                }
                Selection::Inline(_, _, inner) => self.collect(inner),
                Selection::Spread(name, _) => {
                    if let Some((index, fragment)) = self.checker.fragments.get(name.text)
                        && self.fragments.insert(*index)
                    {
                        self.collect(&fragment.selections);
                    }
                }
            }
        }
    }
}
