//! The keywords of a schema object.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::super::reference::{escape, fragment};
use super::super::{Check, Draft, Kind, NodeId, SchemaError};
use super::{Compiler, Spot};

/// A pattern that compiles to more is a mistake or an attack.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Reads the keywords of one schema object.
pub(super) struct Reader<'c, 's> {
    pub(super) object: &'s Map<String, Value>,
    pub(super) spot: &'c Spot<'s>,
    pub(super) resource: usize,
    pub(super) compiler: &'c mut Compiler<'s>,
}

impl<'s> Reader<'_, 's> {
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
                self.fail(keyword, &format!("the reference `{text}` leads nowhere in this schema; nothing is fetched"));
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

    fn objects(&mut self, checks: &mut Vec<Check>) {
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

    fn arrays(&mut self, checks: &mut Vec<Check>) {
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

    fn scalars(&mut self, checks: &mut Vec<Check>) {
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
            let kinds: Vec<Kind> = names.into_iter().filter_map(|name| self.kind(name)).collect();
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

    fn kind(&mut self, name: &Value) -> Option<Kind> {
        Some(match name.as_str() {
            Some("null") => Kind::Null,
            Some("boolean") => Kind::Boolean,
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("number") => Kind::Number,
            Some("integer") => Kind::Integer { as_written: self.draft() == Draft::Four },
            Some("string") => Kind::String,
            Some("any") => return None,
            _ => {
                self.fail("type", &format!("{name} is not a type"));
                return None;
            }
        })
    }

    fn pattern(&mut self, keyword: &str, text: &str) -> Option<Regex> {
        match RegexBuilder::new(&translated(text)).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) => Some(regex),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.fail(keyword, &format!("the pattern `{text}` cannot be used: {why}"));
                None
            }
        }
    }
}

/// What ECMA 262 writes differently: its digits and word letters are those of ASCII.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            match letter {
                '[' if in_class => out.push('\\'),
                '[' => in_class = true,
                ']' => in_class = false,
                '&' | '~' if in_class => out.push('\\'),
                _ => {}
            }
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('c') => {
                let control = letters.next().map_or(0, |letter| u32::from(letter) % 32);
                out.push_str(&format!("\\x{{{control:x}}}"));
            }
            Some(other) if other.is_ascii_alphabetic() || other.is_ascii_digit() || other.is_ascii_punctuation() => {
                out.push('\\');
                out.push(other);
            }
            Some(other) => out.push(other),
            None => out.push_str("\\\\"),
        }
    }
    out
}
