//! A value against the nodes of a schema.

mod parts;

use std::collections::HashSet;

use serde_json::Value;

use super::reference::escape;
use super::{Check, JsonSchema, NodeId, ValueType, Violation, format, message, number};

/// More are not shown.
const VIOLATIONS_MAX: usize = 100;
/// Schemas that apply schemas to the same value or to parts of it. Values nest 128 deep at most; the
/// rest is for references, and stops those that lead in a circle.
const DEPTH_MAX: usize = 384;

pub(super) fn is_valid(schema: &JsonSchema, value: &Value) -> bool {
    let mut run = Run { schema, scope: Vec::new(), path: Vec::new(), found: None, depth: 0 };
    run.node(0, value, None)
}

pub(super) fn validate(schema: &JsonSchema, value: &Value) -> Vec<Violation> {
    if is_valid(schema, value) {
        return Vec::new();
    }
    let mut run = Run { schema, scope: Vec::new(), path: Vec::new(), found: Some(Vec::new()), depth: 0 };
    run.node(0, value, None);
    run.found.unwrap_or_default()
}

struct Run<'r> {
    schema: &'r JsonSchema,
    /// Resources that are being evaluated, outermost first.
    scope: Vec<usize>,
    path: Vec<String>,
    /// Violations, when more than the verdict is needed.
    found: Option<Vec<Violation>>,
    depth: usize,
}

/// What of a value schemas have looked at.
#[derive(Debug, Default, Clone)]
struct Evaluated {
    properties: HashSet<String>,
    items: HashSet<usize>,
}

impl Evaluated {
    fn add(&mut self, other: Evaluated) {
        self.properties.extend(other.properties);
        self.items.extend(other.items);
    }
}

impl Run<'_> {
    /// Whether the value is valid. Without a list of violations it stops at the first.
    fn node(&mut self, id: NodeId, value: &Value, seen: Option<&mut Evaluated>) -> bool {
        let schema = self.schema;
        let node = &schema.nodes[id];
        if self.depth >= DEPTH_MAX {
            return self.fail(id, "$ref", || "schemas refer to each other in a circle".to_owned());
        }
        self.depth += 1;
        let entered = self.scope.last() != Some(&node.resource);
        if entered {
            self.scope.push(node.resource);
        }
        let mut own = (schema.tracks).then(Evaluated::default);
        let mut valid = true;
        for check in &node.checks {
            valid &= self.check(id, check, value, &mut own);
            if !valid && self.found.is_none() {
                break;
            }
        }
        if entered {
            self.scope.pop();
        }
        self.depth -= 1;
        if let (true, Some(seen), Some(own)) = (valid, seen, own) {
            seen.add(own);
        }
        valid
    }

    fn fail(&mut self, id: NodeId, keyword: &'static str, message: impl FnOnce() -> String) -> bool {
        if let Some(found) = &mut self.found
            && found.len() < VIOLATIONS_MAX
        {
            let pointer = self.path.iter().map(|step| format!("/{}", escape(step))).collect();
            let schema_pointer = self.schema.nodes[id].pointer.clone();
            found.push(Violation { pointer, schema_pointer, keyword, message: message() });
        }
        false
    }

    /// Evaluates without recording violations.
    fn quietly(&mut self, id: NodeId, value: &Value, seen: &mut Option<Evaluated>) -> bool {
        let found = self.found.take();
        let valid = self.node(id, value, seen.as_mut());
        self.found = found;
        valid
    }

    /// Evaluates a part of the value.
    fn part(&mut self, id: NodeId, step: &dyn Fn() -> String, value: &Value) -> bool {
        if self.found.is_none() {
            return self.node(id, value, None);
        }
        self.path.push(step());
        let valid = self.node(id, value, None);
        self.path.pop();
        valid
    }

    fn check(&mut self, id: NodeId, check: &Check, value: &Value, seen: &mut Option<Evaluated>) -> bool {
        match check {
            Check::Never => self.fail(id, "false", || "no value is allowed here".to_owned()),
            Check::Type(kinds) if !kinds.iter().any(|kind| kind.is_of(value)) => {
                self.fail(id, "type", || message::kinds(value, kinds))
            }
            Check::Enum(values) if !values.iter().any(|one| number::equal(one, value)) => {
                self.fail(id, "enum", || message::choices(value, values))
            }
            Check::Const(wanted) if !number::equal(wanted, value) => {
                self.fail(id, "const", || format!("instance value ({value}) is not the value {wanted}"))
            }
            Check::Type(_) | Check::Enum(_) | Check::Const(_) => true,
            Check::AllOf(ids) => self.all_of(id, ids, value, seen),
            Check::AnyOf(ids) => self.any_of(id, ids, value, seen),
            Check::OneOf(ids) => self.one_of(id, ids, value, seen),
            Check::Not(inner) => {
                let matched = self.quietly(*inner, value, &mut None);
                !matched || self.fail(id, "not", || "instance matched a schema which it should not have".to_owned())
            }
            Check::If { condition, then, otherwise } => {
                let branch = if self.quietly(*condition, value, seen) { then } else { otherwise };
                branch.is_none_or(|branch| self.node(branch, value, seen.as_mut()))
            }
            Check::Reference(target) => self.node(*target, value, seen.as_mut()),
            Check::Dynamic { anchor, fallback } => {
                let resources = &self.schema.resources;
                let named = |resource: &usize| {
                    resources[*resource].dynamic.iter().find(|(name, _)| name == anchor).map(|(_, node)| *node)
                };
                let target = self.scope.iter().find_map(named).unwrap_or(*fallback);
                self.node(target, value, seen.as_mut())
            }
            Check::Recursive(fallback) => {
                let resources = &self.schema.resources;
                let target = self.scope.iter().find_map(|resource| resources[*resource].recursive);
                self.node(target.unwrap_or(*fallback), value, seen.as_mut())
            }
            _ => match value {
                Value::Object(members) => self.object(id, check, members, value, seen),
                Value::Array(items) => self.array(id, check, items, seen),
                Value::String(text) => self.string(id, check, text),
                Value::Number(given) => self.number(id, check, given),
                Value::Null | Value::Bool(_) => true,
            },
        }
    }

    fn all_of(&mut self, id: NodeId, ids: &[NodeId], value: &Value, seen: &mut Option<Evaluated>) -> bool {
        let mut matched = 0;
        for inner in ids {
            if self.node(*inner, value, seen.as_mut()) {
                matched += 1;
            } else if self.found.is_none() {
                return false;
            }
        }
        matched == ids.len()
            || self.fail(id, "allOf", || {
                format!("instance failed to match all required schemas (matched only {matched} out of {})", ids.len())
            })
    }

    fn any_of(&mut self, id: NodeId, ids: &[NodeId], value: &Value, seen: &mut Option<Evaluated>) -> bool {
        let mut any = false;
        for inner in ids {
            any |= self.quietly(*inner, value, seen);
            if any && seen.is_none() {
                return true;
            }
        }
        any || self
            .fail(id, "anyOf", || format!("instance failed to match at least one required schema among {}", ids.len()))
    }

    fn one_of(&mut self, id: NodeId, ids: &[NodeId], value: &Value, seen: &mut Option<Evaluated>) -> bool {
        let mut matched = 0;
        for inner in ids {
            matched += usize::from(self.quietly(*inner, value, seen));
        }
        matched == 1
            || self.fail(id, "oneOf", || {
                format!("instance failed to match exactly one schema (matched {matched} out of {})", ids.len())
            })
    }

    fn number(&mut self, id: NodeId, check: &Check, given: &serde_json::Number) -> bool {
        use std::cmp::Ordering::{Greater, Less};
        match check {
            Check::Minimum { bound: Value::Number(bound), exclusive } => match number::compare(given, bound) {
                Some(Less) if !exclusive => self.fail(id, "minimum", || {
                    format!("numeric instance is lower than the required minimum (minimum: {bound}, found: {given})")
                }),
                Some(order) if *exclusive && order != Greater => self.fail(id, "exclusiveMinimum", || {
                    format!("numeric instance is not strictly greater than the required minimum {bound}")
                }),
                _ => true,
            },
            Check::Maximum { bound: Value::Number(bound), exclusive } => match number::compare(given, bound) {
                Some(Greater) if !exclusive => self.fail(id, "maximum", || {
                    format!("numeric instance is greater than the required maximum (maximum: {bound}, found: {given})")
                }),
                Some(order) if *exclusive && order != Less => self.fail(id, "exclusiveMaximum", || {
                    format!("numeric instance is not strictly lower than the required maximum {bound}")
                }),
                _ => true,
            },
            Check::MultipleOf(Value::Number(divisor)) if !number::is_multiple(given, divisor) => {
                self.fail(id, "multipleOf", || format!("remainder of division is not zero ({given} / {divisor})"))
            }
            _ => true,
        }
    }

    fn string(&mut self, id: NodeId, check: &Check, text: &str) -> bool {
        match check {
            Check::Length { min, max } => {
                let length = text.chars().count();
                if let Some(min) = min.filter(|min| length < *min) {
                    return self.fail(id, "minLength", || {
                        format!("string \"{text}\" is too short (length: {length}, required minimum: {min})")
                    });
                }
                let max = max.filter(|max| length > *max);
                max.is_none_or(|max| {
                    self.fail(id, "maxLength", || {
                        format!("string \"{text}\" is too long (length: {length}, maximum allowed: {max})")
                    })
                })
            }
            Check::Pattern(regex, written) if !regex.is_match(text) => self
                .fail(id, "pattern", || format!("ECMA 262 regex \"{written}\" does not match input string \"{text}\"")),
            Check::Format(name) => match format::check(name, text) {
                Some(message) => self.fail(id, "format", || message),
                None => true,
            },
            _ => true,
        }
    }
}

impl ValueType {
    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (ValueType::Null, Value::Null)
            | (ValueType::Boolean, Value::Bool(_))
            | (ValueType::Object, Value::Object(_))
            | (ValueType::Array, Value::Array(_))
            | (ValueType::Number, Value::Number(_))
            | (ValueType::String, Value::String(_)) => true,
            (ValueType::Integer { as_written }, Value::Number(given)) => number::is_integer(given, as_written),
            _ => false,
        }
    }
}
