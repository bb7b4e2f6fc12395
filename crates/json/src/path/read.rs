//! What a path yields in the artifacts' dialect.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ast::{Segment, Selector, is_singular};
use super::condition::Scope;
use super::select::{follow, select};
use super::{Dialect, JsonPath};

impl JsonPath {
    /// Whether the path can find one value at most. `$['a','b']` counts: it yields one object.
    pub fn is_definite(&self) -> bool {
        self.singular || self.merged_names().is_some_and(|(above, _)| is_singular(above))
    }

    /// What the path yields: the value of a definite path (`None` when it is not there), the list of
    /// all matches of any other, or what the function at its end makes of it.
    pub fn read<'d>(&self, root: &'d Value) -> Option<Cow<'d, Value>> {
        self.read_with(root, &[])
    }

    /// As [`JsonPath::read`], with the values of the operands that a [`super::Resolve`] claimed.
    pub fn read_with<'d>(&self, root: &'d Value, parameters: &[Value]) -> Option<Cow<'d, Value>> {
        let found = if self.singular {
            follow(&self.segments, root).map(Cow::Borrowed)
        } else {
            self.read_several(root, parameters).map(Cow::Owned)
        };
        match self.function {
            None => found,
            Some(function) => function.apply(&*found?).map(Cow::Owned),
        }
    }

    fn read_several(&self, root: &Value, parameters: &[Value]) -> Option<Value> {
        let scope = Scope { root, current: root, parameters, dialect: self.dialect };
        let Some((above, names)) = self.merged_names() else {
            let nodes = select(&self.segments, (root, ()), &scope);
            return Some(Value::Array(nodes.into_iter().map(|(value, ())| value.clone()).collect()));
        };
        let mut objects = select(above, (root, ()), &scope).into_iter().filter_map(|(value, ())| {
            let members = value.as_object()?;
            let picked: Map<String, Value> =
                names.iter().filter_map(|name| members.get_key_value(*name)).map(own).collect();
            Some(Value::Object(picked))
        });
        if is_singular(above) { objects.next() } else { Some(Value::Array(objects.collect())) }
    }

    /// Several names at the end make one object of those members, where the standard has a list.
    fn merged_names(&self) -> Option<(&[Segment], Vec<&str>)> {
        let (last, above) = self.segments.split_last()?;
        let Segment::Child(selectors) = last else { return None };
        if self.dialect != Dialect::Artifacts || selectors.len() < 2 {
            return None;
        }
        let names: Option<Vec<&str>> = selectors
            .iter()
            .map(|selector| match selector {
                Selector::Name(name) => Some(&**name),
                _ => None,
            })
            .collect();
        Some((above, names?))
    }

    /// What `json-eval(…)` is as text: nothing when the path finds nothing, `null` for null, strings
    /// without quotes, anything else as JSON. An object with a member `members` or `elements` is
    /// that member: Micro Integrator mistakes it for its own wrapping, and artifacts rely on it.
    pub fn text<'d>(&self, root: &'d Value) -> Cow<'d, str> {
        let Some(value) = self.read(root) else { return Cow::Borrowed("") };
        if self.is_root() {
            return Cow::Owned(value.to_string());
        }
        match value {
            Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text),
            Cow::Owned(Value::String(text)) => Cow::Owned(text),
            other => Cow::Owned(unwrapped(&other).to_string()),
        }
    }

    /// What an iterating mediator walks over: the elements of a list, one value otherwise. `None`
    /// when the path finds nothing.
    pub fn items(&self, root: &Value) -> Option<Vec<Value>> {
        let value = self.read(root)?;
        Some(match unwrapped(&value) {
            Value::Array(elements) => elements.clone(),
            Value::Null => Vec::new(),
            other => vec![other.clone()],
        })
    }
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn unwrapped(value: &Value) -> &Value {
    value.as_object().and_then(|members| members.get("members").or_else(|| members.get("elements"))).unwrap_or(value)
}
