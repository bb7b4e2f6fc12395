//! The walk over a query: all rules are applied, and the query is measured on
//! the way back. A fragment is walked once, however often it is used.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json};

use super::DEPTH_MAX;
use super::document::{Document, Field, Fragment, Operation, Selection, Variable};
use super::lexer::short;
use super::schema::{Schema, TypeId};
use super::syntax::{Directive, Name};
use super::variables::{Names, Variables};

/// Problems of a query that are reported at once.
const PROBLEMS_MAX: usize = 20;

/// What something is: a field of every type, which says nothing of the schema that its own name does not.
pub(super) const TYPE_NAME: &str = "__typename";

/// Something is nested deeper than anything may be.
pub(super) struct TooDeep;

/// What was found out about some selections.
#[derive(Debug, Clone, Copy, Default)]
struct Measure {
    depth: u64,
    complexity: u64,
    /// Selections inside selections, with those of fragments.
    nesting: usize,
}

impl Measure {
    fn beside(&mut self, other: Measure) {
        self.depth = self.depth.max(other.depth);
        self.complexity = self.complexity.saturating_add(other.complexity);
        self.nesting = self.nesting.max(other.nesting);
    }
}

/// What is known of a fragment.
enum Known {
    Nothing,
    /// It is being walked: a spread of it met now is inside it.
    Open,
    Walked(Measure, Variables),
}

pub(super) struct Checker<'c, 't> {
    pub(super) schema: &'c Schema,
    document: &'c Document<'t>,
    pub(super) fragments: HashMap<&'t str, (usize, &'c Fragment<'t>)>,
    known: Vec<Known>,
    /// Variables of the operation that is meant, and what was sent for them.
    pub(super) declared: &'c [Variable<'t>],
    pub(super) sent: Option<&'c Map<String, Json>>,
    variables: Names<'t>,
    /// Variables used where the walk is.
    used: Variables,
    pub(super) problems: Vec<String>,
}

impl<'c, 't> Checker<'c, 't> {
    pub(super) fn new(
        schema: &'c Schema,
        document: &'c Document<'t>,
        declared: &'c [Variable<'t>],
        sent: Option<&'c Map<String, Json>>,
    ) -> Checker<'c, 't> {
        let known = document.fragments.iter().map(|_| Known::Nothing).collect();
        let (fragments, variables, used, problems) = Default::default();
        Checker { schema, document, fragments, known, declared, sent, variables, used, problems }
    }

    pub(super) fn problem(&mut self, message: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            let message = message();
            if !self.problems.contains(&message) {
                self.problems.push(message);
            }
        }
    }

    /// Notes that a variable is used.
    pub(super) fn uses(&mut self, name: &'t str) {
        let number = self.variables.number(name);
        self.used.insert(number);
    }

    /// Walks everything; says how deep the operation that is meant goes and what it counts.
    pub(super) fn document(&mut self, meant: &'c Operation<'t>) -> Result<(u64, u64), TooDeep> {
        let document = self.document;
        for (index, fragment) in document.fragments.iter().enumerate() {
            let name = fragment.name.text;
            if self.fragments.insert(name, (index, fragment)).is_some() {
                self.problem(|| format!("There can be only one fragment named '{}'", short(name)));
            }
        }
        let mut names = HashSet::new();
        for operation in &document.operations {
            match operation.name {
                None if document.operations.len() > 1 => {
                    self.problem(|| "Anonymous operation with other operations".to_owned());
                }
                Some(name) if !names.insert(name.text) => {
                    self.problem(|| format!("There can be only one operation named '{}'", short(name.text)));
                }
                _ => {}
            }
        }
        let mut measured = Measure::default();
        for operation in &document.operations {
            let measure = self.operation(operation)?;
            if std::ptr::eq(operation, meant) {
                measured = measure;
            }
        }
        for (index, fragment) in document.fragments.iter().enumerate() {
            if matches!(self.known[index], Known::Nothing) {
                self.problem(|| format!("Unused fragment '{}'", short(fragment.name.text)));
            }
        }
        Ok((measured.depth, measured.complexity))
    }

    fn operation(&mut self, operation: &'c Operation<'t>) -> Result<Measure, TooDeep> {
        let kind = operation.kind;
        let Some(root) = self.schema.root(kind) else {
            self.problem(|| format!("Schema is not configured for {}s", kind.word()));
            return Ok(Measure::default());
        };
        self.used = Variables::default();
        let mut declared = Variables::default();
        for variable in &operation.variables {
            let name = variable.name.text;
            if !declared.insert(self.variables.number(name)) {
                self.problem(|| format!("There can be only one variable named '{}'", short(name)));
            }
            self.variable(variable);
        }
        self.directives(&operation.directives);
        let measure = self.selections(&operation.selections, root, 0)?;
        let used = std::mem::take(&mut self.used);
        for number in used.beyond(&declared).take(PROBLEMS_MAX) {
            let name = self.variables.name(number);
            self.problem(|| format!("Undefined variable '{}'", short(name)));
        }
        for name in operation.variables.iter().map(|variable| variable.name.text) {
            if !used.contains(self.variables.number(name)) {
                self.problem(|| format!("Unused variable '{}'", short(name)));
            }
        }
        Ok(measure)
    }

    fn selections(
        &mut self,
        selections: &'c [Selection<'t>],
        parent: TypeId,
        level: usize,
    ) -> Result<Measure, TooDeep> {
        if level >= DEPTH_MAX {
            return Err(TooDeep);
        }
        let mut sum = Measure::default();
        for selection in selections {
            let (measure, directives) = match selection {
                Selection::Field(field) => (self.field(field, parent, level)?, &field.directives),
                Selection::Inline(on, directives, inner) => {
                    let of = match on {
                        Some(on) => self.condition(*on, parent),
                        None => Some(parent),
                    };
                    let Some(of) = of else { continue };
                    (self.selections(inner, of, level + 1)?, directives)
                }
                Selection::Spread(name, directives) => {
                    let Some(measure) = self.spread(*name, parent, level)? else { continue };
                    (measure, directives)
                }
            };
            if self.directives(directives) {
                sum.beside(measure);
            } else {
                sum.nesting = sum.nesting.max(measure.nesting);
            }
        }
        sum.nesting += 1;
        Ok(sum)
    }

    fn field(&mut self, field: &'c Field<'t>, parent: TypeId, level: usize) -> Result<Measure, TooDeep> {
        let schema = self.schema;
        let name = field.name.text;
        if name == TYPE_NAME {
            if !field.arguments.is_empty() || !field.selections.is_empty() {
                self.problem(|| "'__typename' has neither arguments nor fields".to_owned());
            }
            // As in API Manager it counts nothing.
            return Ok(Measure { depth: 1, ..Measure::default() });
        }
        let found = schema.fields(parent).and_then(|fields| fields.by_name.get(name));
        let Some(found) = found else {
            let of = &schema.types[parent].name;
            self.problem(|| format!("Field '{}' in type '{of}' is undefined", short(name)));
            return Ok(Measure::default());
        };
        self.arguments(&field.arguments, &found.arguments, name);
        let kind = found.kind.named();
        let has_fields = schema.fields(kind).is_some();
        if has_fields == field.selections.is_empty() {
            let of = &schema.types[kind].name;
            self.problem(|| match has_fields {
                true => format!("Sub selection required for type '{of}' of field '{}'", short(name)),
                false => format!("Sub selection not allowed on leaf type '{of}' of field '{}'", short(name)),
            });
            return Ok(Measure::default());
        }
        let inner = match has_fields {
            true => self.selections(&field.selections, kind, level + 1)?,
            false => Measure::default(),
        };
        let complexity = found.cost.saturating_add(inner.complexity).saturating_mul(self.factor(&field.arguments));
        Ok(Measure { depth: inner.depth + 1, complexity, nesting: inner.nesting })
    }

    /// The selections of a fragment; none for an unknown or recursive one, which was reported.
    fn spread(&mut self, name: Name<'t>, parent: TypeId, level: usize) -> Result<Option<Measure>, TooDeep> {
        let Some((index, fragment)) = self.fragments.get(name.text).copied() else {
            self.problem(|| format!("Undefined fragment '{}'", short(name.text)));
            return Ok(None);
        };
        let of = self.condition(fragment.on, parent);
        if let Known::Open = self.known[index] {
            self.problem(|| format!("Fragment cycles not allowed: '{}'", short(name.text)));
            return Ok(None);
        }
        if let Known::Nothing = self.known[index] {
            self.known[index] = Known::Open;
            let outside = std::mem::take(&mut self.used);
            self.directives(&fragment.directives);
            let measure = match of {
                Some(of) => self.selections(&fragment.selections, of, level + 1)?,
                None => Measure::default(),
            };
            let inside = std::mem::replace(&mut self.used, outside);
            self.known[index] = Known::Walked(measure, inside);
        }
        let Known::Walked(measure, variables) = &self.known[index] else { return Ok(None) };
        if level + measure.nesting >= DEPTH_MAX {
            return Err(TooDeep);
        }
        self.used.add(variables);
        Ok(Some(*measure))
    }

    /// The type of a fragment, when something of it can be there.
    fn condition(&mut self, on: Name<'t>, parent: TypeId) -> Option<TypeId> {
        let schema = self.schema;
        let Some(of) = schema.by_name.get(on.text).copied().filter(|of| schema.fields(*of).is_some()) else {
            self.problem(|| format!("Unknown type '{}' of a fragment", short(on.text)));
            return None;
        };
        if !schema.overlap(of, parent) {
            let parent = &schema.types[parent].name;
            self.problem(|| {
                format!(
                    "Fragment cannot be spread here as objects of type '{parent}' can never be of type '{}'",
                    short(on.text)
                )
            });
        }
        Some(of)
    }

    /// Checks directives; whether their field is included.
    pub(super) fn directives(&mut self, directives: &'c [Directive<'t>]) -> bool {
        let schema = self.schema;
        let mut wanted = true;
        for directive in directives {
            let name = directive.name.text;
            let Some(inputs) = schema.directives.get(name) else {
                self.problem(|| format!("Unknown directive '{}'", short(name)));
                continue;
            };
            self.arguments(&directive.arguments, inputs, name);
            let condition = directive.arguments.iter().find(|argument| argument.name.text == "if");
            let holds = condition.and_then(|condition| self.flag(&condition.value));
            wanted &= !matches!((name, holds), ("skip", Some(true)) | ("include", Some(false)));
        }
        wanted
    }
}
