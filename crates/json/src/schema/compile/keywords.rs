//! The keywords of a schema object.

mod containers;
mod pattern;
mod scalars;

use serde_json::{Map, Value};

use super::super::reference::{escape, fragment};
use super::super::{Check, Draft, NodeId, SchemaError};
use super::{Compiler, Spot};

/// Reads the keywords of one schema object.
pub(super) struct KeywordReader<'c, 's> {
    pub(super) object: &'s Map<String, Value>,
    pub(super) spot: &'c Spot<'s>,
    pub(super) resource: usize,
    pub(super) compiler: &'c mut Compiler<'s>,
}

impl<'s> KeywordReader<'_, 's> {
    fn draft(&self) -> Draft {
        self.spot.draft
    }

    fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.object.get(keyword)
    }

    fn since(&self, draft: Draft, keyword: &str) -> Option<&'s Value> {
        self.get(keyword).filter(|_| self.draft() >= draft)
    }

    fn fail(&mut self, keyword: &str, message: &str) {
        let pointer = format!("{}/{}", self.spot.pointer, escape(keyword));
        self.compiler.fail(&pointer, message);
    }

    /// A schema below this one.
    fn inner(&mut self, steps: &[&str], value: &'s Value) -> NodeId {
        let pointer = steps.iter().fold(self.spot.pointer.clone(), |all, step| format!("{all}/{}", escape(step)));
        if value.is_boolean()
            && self.draft() == Draft::Four
            && !matches!(steps[0], "additionalItems" | "additionalProperties")
        {
            self.compiler.fail(&pointer, "a schema of draft 4 is an object");
        }
        let spot = Spot { value, pointer, ..self.spot.clone() };
        self.compiler.node(&spot, self.resource)
    }

    fn one(&mut self, keyword: &'static str) -> Option<NodeId> {
        let value = self.get(keyword)?;
        Some(self.inner(&[keyword], value))
    }

    fn many(&mut self, keyword: &'static str) -> Option<Vec<NodeId>> {
        let Some(list) = self.get(keyword)?.as_array() else {
            self.fail(keyword, "a list of schemas is needed");
            return None;
        };
        let nodes = list.iter().enumerate();
        Some(nodes.map(|(position, value)| self.inner(&[keyword, &position.to_string()], value)).collect())
    }

    fn count(&mut self, keyword: &'static str) -> Option<usize> {
        let value = self.get(keyword)?;
        let number =
            value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64));
        if number.is_none() {
            self.fail(keyword, "a number that is not negative is needed");
        }
        number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn names(&mut self, keyword: &'static str, value: &'s Value) -> Vec<String> {
        let names = value.as_array().map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        names.unwrap_or_else(|| {
            self.fail(keyword, "a list of names is needed");
            Vec::new()
        })
    }

    pub(super) fn checks(&mut self) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(reference) = self.get("$ref") {
            let found = self.reference("$ref", reference);
            checks.extend(found.map(Check::Reference));
            if self.draft() <= Draft::Seven {
                return checks;
            }
        }
        self.note_later_keywords();
        self.objects(&mut checks);
        self.combinations(&mut checks);
        self.arrays(&mut checks);
        self.scalars(&mut checks);
        self.dynamic(&mut checks);
        if self.draft() >= Draft::Nineteen {
            if let Some(id) = self.one("unevaluatedItems") {
                self.compiler.tracks = true;
                checks.push(Check::UnevaluatedItems(id));
            }
            if let Some(id) = self.one("unevaluatedProperties") {
                self.compiler.tracks = true;
                checks.push(Check::UnevaluatedProperties(id));
            }
        }
        checks
    }

    /// A schema without `$schema` is one of draft 4; who uses later keywords should know.
    fn note_later_keywords(&mut self) {
        const LATER: [&str; 8] = [
            "const",
            "contains",
            "propertyNames",
            "if",
            "prefixItems",
            "dependentRequired",
            "unevaluatedProperties",
            "$defs",
        ];
        if self.draft() != Draft::Four {
            return;
        }
        if let Some(keyword) = LATER.iter().find(|keyword| self.object.contains_key(**keyword)) {
            let message = format!(
                "`{keyword}` is no keyword of draft 4 and is ignored; `$schema` says that a later draft is meant"
            );
            self.compiler.notes.push(SchemaError { pointer: self.spot.pointer.clone(), message });
        }
    }

    fn reference(&mut self, keyword: &'static str, value: &Value) -> Option<NodeId> {
        let Some(text) = value.as_str() else {
            self.fail(keyword, "a reference is a string");
            return None;
        };
        match self.compiler.find(self.spot, text) {
            Some((resource, spot)) => Some(self.compiler.node(&spot, resource)),
            None => {
                self.fail(
                    keyword,
                    &format!("the reference `{text}` cannot be resolved in this schema; nothing is fetched"),
                );
                None
            }
        }
    }

    fn dynamic(&mut self, checks: &mut Vec<Check>) {
        if let Some(value) = self.since(Draft::Twenty, "$dynamicRef")
            && let Some(fallback) = self.reference("$dynamicRef", value)
        {
            let uri = value.as_str().unwrap_or_default();
            let anchor = fragment(uri).to_owned();
            let target = self.compiler.find(self.spot, uri).map(|(_, spot)| spot.value);
            let is_dynamic = target
                .and_then(|target| target.get("$dynamicAnchor"))
                .is_some_and(|name| name.as_str() == Some(&anchor));
            checks.push(if is_dynamic { Check::Dynamic { anchor, fallback } } else { Check::Reference(fallback) });
        }
        if self.draft() == Draft::Nineteen
            && let Some(value) = self.get("$recursiveRef")
            && let Some(found) = self.reference("$recursiveRef", value)
        {
            let target = self.compiler.find(self.spot, "#").map(|(_, spot)| spot.value);
            let recursive = target.and_then(|target| target.get("$recursiveAnchor")) == Some(&Value::Bool(true));
            checks.push(if recursive { Check::Recursive(found) } else { Check::Reference(found) });
        }
    }

    fn combinations(&mut self, checks: &mut Vec<Check>) {
        checks.extend(self.many("allOf").map(Check::AllOf));
        checks.extend(self.many("anyOf").map(Check::AnyOf));
        checks.extend(self.many("oneOf").map(Check::OneOf));
        checks.extend(self.one("not").map(Check::Not));
        if self.draft() >= Draft::Seven
            && let Some(condition) = self.one("if")
        {
            let (then, otherwise) = (self.one("then"), self.one("else"));
            checks.push(Check::If { condition, then, otherwise });
        }
    }
}
