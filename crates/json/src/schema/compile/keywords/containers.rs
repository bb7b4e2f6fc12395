//! Keywords about what objects and arrays hold.

use serde_json::Value;

use super::super::super::{Check, Draft};
use super::KeywordReader;

impl KeywordReader<'_, '_> {
    pub(super) fn objects(&mut self, checks: &mut Vec<Check>) {
        self.properties(checks);
        self.dependencies(checks);
        let (min, max) = (self.count("minProperties"), self.count("maxProperties"));
        if min.is_some() || max.is_some() {
            checks.push(Check::PropertyCount { min, max });
        }
        if self.since(Draft::Six, "propertyNames").is_some()
            && let Some(id) = self.one("propertyNames")
        {
            checks.push(Check::PropertyNames(id));
        }
        if let Some(value) = self.get("required") {
            match value {
                // Draft 3 said it of one property; validators of draft 4 ignore that.
                Value::Bool(_) => {}
                _ => {
                    let names = self.names("required", value);
                    checks.push(Check::Required(names));
                }
            }
        }
    }

    fn properties(&mut self, checks: &mut Vec<Check>) {
        let (mut named, mut patterns) = (Vec::new(), Vec::new());
        if let Some(value) = self.get("properties") {
            match value.as_object() {
                Some(members) => {
                    for (name, value) in members {
                        named.push((name.clone(), self.inner(&["properties", name], value)));
                    }
                }
                None => self.fail("properties", "schemas by name are needed"),
            }
        }
        if let Some(members) = self.get("patternProperties").and_then(Value::as_object) {
            for (pattern, value) in members {
                if let Some(regex) = self.pattern("patternProperties", pattern) {
                    patterns.push((regex, self.inner(&["patternProperties", pattern], value)));
                }
            }
        }
        let additional = self.one("additionalProperties");
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            checks.push(Check::Properties { named, patterns, additional });
        }
    }

    fn dependencies(&mut self, checks: &mut Vec<Check>) {
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        let mut keywords = vec!["dependencies"];
        if self.draft() >= Draft::Nineteen {
            keywords.extend(["dependentRequired", "dependentSchemas"]);
        }
        for keyword in keywords {
            let Some(members) = self.get(keyword).and_then(Value::as_object) else { continue };
            for (name, value) in members {
                match value {
                    Value::Array(_) => required.push((name.clone(), self.names("dependencies", value))),
                    Value::String(other) => required.push((name.clone(), vec![other.clone()])),
                    _ => schemas.push((name.clone(), self.inner(&[keyword, name], value))),
                }
            }
        }
        if !required.is_empty() {
            checks.push(Check::DependentRequired(required));
        }
        if !schemas.is_empty() {
            checks.push(Check::DependentSchemas(schemas));
        }
    }

    pub(super) fn arrays(&mut self, checks: &mut Vec<Check>) {
        let (prefix, rest, rest_keyword) = match (self.draft() >= Draft::Twenty, self.get("items")) {
            (true, _) => {
                let prefix = self.many("prefixItems").unwrap_or_default();
                (prefix, self.one("items"), "items")
            }
            (false, Some(Value::Array(_))) => {
                let prefix = self.many("items").unwrap_or_default();
                (prefix, self.one("additionalItems"), "additionalItems")
            }
            (false, Some(_)) => (Vec::new(), self.one("items"), "items"),
            (false, None) => (Vec::new(), None, "items"),
        };
        if !prefix.is_empty() || rest.is_some() {
            checks.push(Check::Items { prefix, rest, rest_keyword });
        }
        let (min, max) = (self.count("minItems"), self.count("maxItems"));
        if min.is_some() || max.is_some() {
            checks.push(Check::ItemCount { min, max });
        }
        if self.get("uniqueItems") == Some(&Value::Bool(true)) {
            checks.push(Check::UniqueItems);
        }
        if self.draft() >= Draft::Six
            && let Some(schema) = self.one("contains")
        {
            let counted = self.draft() >= Draft::Nineteen;
            let min = if counted { self.count("minContains") } else { None };
            let max = if counted { self.count("maxContains") } else { None };
            let evaluates = self.draft() >= Draft::Twenty;
            checks.push(Check::Contains { schema, min: min.unwrap_or(1), max, evaluates });
        }
    }
}
