//! Keywords about single values: `enum`, `const`, bounds, lengths, patterns, formats, types.

use serde_json::Value;

use super::super::super::{Check, Draft, ValueType};
use super::KeywordReader;

impl KeywordReader<'_, '_> {
    pub(super) fn scalars(&mut self, checks: &mut Vec<Check>) {
        if let Some(value) = self.get("enum") {
            match value.as_array() {
                Some(list) => checks.push(Check::Enum(list.clone())),
                None => self.fail("enum", "a list of values is needed"),
            }
        }
        checks.extend(self.since(Draft::Six, "const").cloned().map(Check::Const));
        self.bounds(checks);
        let (min, max) = (self.count("minLength"), self.count("maxLength"));
        if min.is_some() || max.is_some() {
            checks.push(Check::Length { min, max });
        }
        if let Some(text) = self.get("pattern").and_then(Value::as_str)
            && let Some(regex) = self.pattern("pattern", text)
        {
            checks.push(Check::Pattern(regex, text.to_owned()));
        }
        // Later drafts only annotate.
        if let Some(format) = self.get("format").and_then(Value::as_str).filter(|_| self.draft() <= Draft::Seven) {
            checks.push(Check::Format(format.to_owned()));
        }
        if let Some(value) = self.get("type") {
            let names: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
            let kinds: Vec<ValueType> = names.into_iter().filter_map(|name| self.kind(name)).collect();
            if !kinds.is_empty() {
                checks.push(Check::Type(kinds));
            }
        }
    }

    fn bounds(&mut self, checks: &mut Vec<Check>) {
        for (keyword, exclusive_keyword, is_minimum) in
            [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)]
        {
            let check = |bound: &Value, exclusive| match is_minimum {
                true => Check::Minimum { bound: bound.clone(), exclusive },
                false => Check::Maximum { bound: bound.clone(), exclusive },
            };
            if let Some(bound) = self.get(keyword) {
                if !bound.is_number() {
                    self.fail(keyword, "a number is needed");
                    continue;
                }
                // In draft 4 the keyword is a flag beside the bound.
                checks.push(check(bound, self.get(exclusive_keyword) == Some(&Value::Bool(true))));
            }
            match self.get(exclusive_keyword) {
                Some(bound) if bound.is_number() => checks.push(check(bound, true)),
                None | Some(Value::Bool(_)) => {}
                Some(_) => self.fail(exclusive_keyword, "a number is needed"),
            }
        }
        if let Some(divisor) = self.get("multipleOf").or(self.get("divisibleBy")) {
            if divisor.as_f64().is_some_and(|number| number > 0.0) {
                checks.push(Check::MultipleOf(divisor.clone()));
            } else {
                self.fail("multipleOf", "a number greater than zero is needed");
            }
        }
    }

    fn kind(&mut self, name: &Value) -> Option<ValueType> {
        Some(match name.as_str() {
            Some("null") => ValueType::Null,
            Some("boolean") => ValueType::Boolean,
            Some("object") => ValueType::Object,
            Some("array") => ValueType::Array,
            Some("number") => ValueType::Number,
            Some("integer") => ValueType::Integer { as_written: self.draft() == Draft::Four },
            Some("string") => ValueType::String,
            Some("any") => return None,
            _ => {
                self.fail("type", &format!("{name} is not a type"));
                return None;
            }
        })
    }
}
