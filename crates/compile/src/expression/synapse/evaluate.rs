//! The syntax tree evaluated.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_json::path::{JsonPath, Selector};
use penstock_message::Value;
use serde_json::Value as Json;

use super::ast::{Node, Path, Step, StepKind};
use super::item::{Item, Number};
use super::{EvaluationError, NamedScope, Scope, arithmetic, functions};

impl Node {
    pub fn evaluate(&self, scope: &mut dyn Scope) -> Result<Item, EvaluationError> {
        match self {
            Node::Literal(item) => Ok(item.clone()),
            Node::Shared(node) => node.evaluate(scope),
            Node::Array(nodes) => {
                let items: Result<Vec<Json>, _> =
                    nodes.iter().map(|node| node.evaluate(scope).map(|item| item.to_json())).collect();
                Ok(Item::Json(Arc::new(Json::Array(items?))))
            }
            Node::Negate(node) => {
                let item = node.evaluate(scope)?;
                if item.is_number() { Ok(item.negated()) } else { Err(wrong("-", "a number", &item)) }
            }
            Node::Not(node) => {
                let item = node.evaluate(scope)?;
                item.boolean().map(|truth| Item::Boolean(!truth)).ok_or_else(|| wrong("!", "a boolean", &item))
            }
            Node::Binary(left, operator, right) => {
                // No short cut: Micro Integrator evaluates both sides, and a failure on either is one.
                let (left, right) = (left.evaluate(scope)?, right.evaluate(scope)?);
                arithmetic::apply(&left, *operator, &right)
            }
            Node::Ambiguous { original, usual } => original.evaluate(scope).or_else(|_| usual.evaluate(scope)),
            Node::Conditional(test, yes, no) => {
                let item = test.evaluate(scope)?;
                match item.boolean() {
                    Some(true) => yes.evaluate(scope),
                    Some(false) => no.evaluate(scope),
                    None => Err(wrong("?", "a boolean", &item)),
                }
            }
            Node::Payload(path) if path.is_empty() => scope.whole_payload().map(Item::of_value),
            Node::Payload(path) => {
                let payload = scope.payload()?;
                path.read(&payload, scope)
            }
            Node::Named { source, name, path } => named(*source, name, path, scope),
            Node::Call { function, arguments, path } => {
                let item = functions::call(*function, arguments, scope)?;
                path.read_item(item, scope)
            }
        }
    }
}

fn wrong(operator: &str, what: &str, item: &Item) -> EvaluationError {
    EvaluationError::new(format!("`{operator}` needs {what}, not `{}`", item.text()))
}

fn named(source: NamedScope, name: &str, path: &Path, scope: &mut dyn Scope) -> Result<Item, EvaluationError> {
    let Some(value) = scope.named(source, name) else {
        // Only a variable that is not there is a failure; anything else is null.
        return match source {
            NamedScope::Variable => Err(EvaluationError::new(format!("the variable `{name}` is not set"))),
            _ => Ok(Item::Null),
        };
    };
    let item = match (source, value) {
        (NamedScope::Variable, value) => Item::of_value(value),
        (_, Value::String(text)) => as_number(text),
        (_, other) => Item::of_value(other),
    };
    path.read_item(item, scope)
}

/// Headers and properties have no types, so what reads like a number counts as one.
fn as_number(text: Arc<str>) -> Item {
    match serde_json::from_str::<serde_json::Number>(&text) {
        // Its digits are kept, so only the type changes.
        Ok(number) if number.to_string() == *text => Item::Json(Arc::new(Json::Number(number))),
        _ => Item::Text(text),
    }
}

impl Path {
    /// What the path takes of an item: JSON, or a string that holds JSON.
    fn read_item(&self, item: Item, scope: &mut dyn Scope) -> Result<Item, EvaluationError> {
        if self.is_empty() {
            return Ok(item);
        }
        match &item {
            Item::Json(value) if !value.is_string() => self.read(value, scope),
            Item::Null | Item::Xml(..) => Err(EvaluationError::new("the value is not JSON, so it has no members")),
            other => {
                let value: Json = serde_json::from_str(&other.text())
                    .map_err(|error| EvaluationError::new(format!("the value is not JSON: {error}")))?;
                self.read(&value, scope)
            }
        }
    }

    fn read(&self, root: &Json, scope: &mut dyn Scope) -> Result<Item, EvaluationError> {
        let parameters: Result<Vec<Json>, _> =
            self.parameters.iter().map(|node| node.evaluate(scope).map(|item| item.to_json())).collect();
        let path = match &self.compiled {
            Some(path) => Cow::Borrowed(path),
            None => Cow::Owned(self.computed(scope)?),
        };
        let found = path.read_with(root, &parameters?);
        found.map(Item::of_json).ok_or_else(|| EvaluationError::new("the path finds nothing"))
    }

    fn computed(&self, scope: &mut dyn Scope) -> Result<JsonPath, EvaluationError> {
        let segments: Result<Vec<_>, EvaluationError> =
            self.steps.iter().map(|step| Ok(Path::segment(step, step.selectors(scope)?))).collect();
        Ok(JsonPath::from_segments(segments?, self.function))
    }
}

impl Step {
    fn selectors(&self, scope: &mut dyn Scope) -> Result<Vec<Selector>, EvaluationError> {
        match &self.kind {
            StepKind::Name(name) => Ok(vec![Selector::Name(name.as_str().into())]),
            StepKind::Wildcard => Ok(vec![Selector::Wildcard]),
            StepKind::Filter(filter) => Ok(vec![Selector::Filter(Box::new(filter.clone()))]),
            StepKind::Unsupported(text) => Err(EvaluationError::new(format!("`[{text}]` cannot be evaluated"))),
            StepKind::Computed(nodes) => nodes
                .iter()
                .map(|node| {
                    let item = node.evaluate(scope)?;
                    item.selector().ok_or_else(|| {
                        EvaluationError::new(format!("`{}` is neither an index nor a name", item.text()))
                    })
                })
                .collect(),
            StepKind::Slice(bounds) => {
                let [start, end, step] = &**bounds;
                let mut bound = |node: &Option<Node>| node.as_ref().map(|node| index(node, scope)).transpose();
                Ok(vec![Selector::Slice { start: bound(start)?, end: bound(end)?, step: bound(step)?.unwrap_or(1) }])
            }
        }
    }
}

fn index(node: &Node, scope: &mut dyn Scope) -> Result<i64, EvaluationError> {
    let item = node.evaluate(scope)?;
    match item.number() {
        Some(Number::Integer(index)) => Ok(index.into()),
        Some(Number::Long(index)) => Ok(index),
        _ => Err(EvaluationError::new(format!("`{}` is not an index", item.text()))),
    }
}
