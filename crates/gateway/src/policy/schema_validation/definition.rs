//! What a definition says of an operation's parameters and bodies.

use std::sync::{Arc, Mutex, PoisonError};

use penstock_catalog::Operation;
use serde_json::{Map, Value};

use super::body::{BodyCheck, Media};
use super::convert::{Side, compile, convert};
use super::parameters::ParameterCheck;
use crate::text::percent_decoded;
use crate::{Gateway, Site};

/// References that lead to references: more is a circle.
pub(super) const HOPS_MAX: usize = 16;

/// Which words the schemas of a definition use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Swagger,
    V30,
    V31,
}

/// A definition, read.
#[derive(Debug)]
pub(crate) struct Definition {
    root: Value,
    dialect: Dialect,
}

/// One operation of a definition.
pub(super) struct Described<'d> {
    definition: &'d Definition,
    path_item: &'d Value,
    operation: &'d Value,
}

/// The definition that was parsed last: the operations of an API are compiled one after the other.
#[derive(Default)]
pub(super) struct LastDefinition(Mutex<Option<Parsed>>);

/// A definition's text, and the definition.
type Parsed = (Arc<[u8]>, Arc<Definition>);

impl LastDefinition {
    /// The definition of a text, parsed once for all operations of its API.
    pub(super) fn get(gateway: &Gateway, bytes: &Arc<[u8]>) -> Option<Arc<Definition>> {
        let cache = gateway.cached(LastDefinition::default);
        let mut last = cache.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, definition)) = &*last
            && Arc::ptr_eq(known, bytes)
        {
            return Some(definition.clone());
        }
        let definition = Arc::new(Definition::parse(bytes)?);
        *last = Some((bytes.clone(), definition.clone()));
        Some(definition)
    }
}

impl Definition {
    /// Reads a definition; `None` if it is invalid, which the import has reported.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Definition> {
        let root = penstock_projects::read_as_json(bytes)?;
        let dialect = match root.get("openapi").map(text_of) {
            Some(version) if version.starts_with("3.0") => Dialect::V30,
            Some(_) => Dialect::V31,
            None => Dialect::Swagger,
        };
        Some(Definition { root, dialect })
    }

    /// What it says of an operation.
    pub(super) fn operation(&self, operation: &Operation) -> Option<Described<'_>> {
        let path_item = self.resolved(self.root.get("paths")?.get(&*operation.path)?)?;
        let found = path_item.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(&operation.method));
        found.map(|(_, described)| Described { definition: self, path_item, operation: described })
    }

    fn resolved<'d>(&'d self, mut value: &'d Value) -> Option<&'d Value> {
        for _ in 0..HOPS_MAX {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = pointer_of(&self.root, reference)?;
        }
        None
    }

    /// A schema as JSON Schema.
    pub(super) fn converted(&self, schema: &Value, side: Side) -> Result<Value, String> {
        convert(&self.root, self.dialect, side, schema)
    }

    pub(super) fn is_swagger(&self) -> bool {
        self.dialect == Dialect::Swagger
    }
}

impl<'d> Described<'d> {
    /// The parameters to check: those of the path that the operation does not give anew, and its own.
    pub(super) fn parameters(&self, site: &Site, problems: &mut Vec<String>) -> Vec<ParameterCheck> {
        let found = self.all_parameters();
        found.iter().filter_map(|one| ParameterCheck::new(self.definition, one, site, problems)).collect()
    }

    fn all_parameters(&self) -> Vec<&'d Map<String, Value>> {
        let mut found: Vec<&Map<String, Value>> = Vec::new();
        for level in [self.path_item, self.operation] {
            for parameter in level.get("parameters").and_then(Value::as_array).into_iter().flatten() {
                let Some(Value::Object(parameter)) = self.definition.resolved(parameter) else { continue };
                let same = |other: &Map<String, Value>| {
                    ["name", "in"].iter().all(|key| other.get(*key) == parameter.get(*key))
                };
                found.retain(|other| !same(other));
                found.push(parameter);
            }
        }
        found
    }

    /// What a request's body must be.
    pub(super) fn request_body(&self, problems: &mut Vec<String>) -> Option<BodyCheck> {
        if self.definition.is_swagger() {
            let parameters = self.all_parameters();
            let body = parameters.into_iter().find(|one| one.get("in").is_some_and(|place| place == "body"))?;
            let required = body.get("required") == Some(&Value::Bool(true));
            let media = self.media_of_swagger(body.get("schema")?, "consumes", Side::Request, problems);
            return Some(BodyCheck { required, media });
        }
        let body = self.definition.resolved(self.operation.get("requestBody")?)?;
        let required = body.get("required") == Some(&Value::Bool(true));
        let media = self.media(body.get("content"), Side::Request, "the request's body", problems);
        (!media.is_empty()).then_some(BodyCheck { required, media })
    }

    /// What answers must be, by status.
    pub(super) fn answers(&self, problems: &mut Vec<String>) -> Vec<(String, BodyCheck)> {
        let mut found = Vec::new();
        for (code, response) in self.operation.get("responses").and_then(Value::as_object).into_iter().flatten() {
            let Some(response) = self.definition.resolved(response).filter(|_| !code.starts_with("x-")) else {
                continue;
            };
            let media = match response.get("schema") {
                Some(schema) if self.definition.is_swagger() => {
                    self.media_of_swagger(schema, "produces", Side::Response, problems)
                }
                _ => self.media(response.get("content"), Side::Response, &format!("the answer {code}"), problems),
            };
            if !media.is_empty() {
                // A described body is there: an answer without it is not the one described.
                let required = media.iter().any(|media| media.schema.is_some());
                found.push((code.clone(), BodyCheck { required, media }));
            }
        }
        found
    }

    fn media(&self, content: Option<&Value>, side: Side, what: &str, problems: &mut Vec<String>) -> Vec<Media> {
        let mut all = Vec::new();
        for (range, media) in content.and_then(Value::as_object).into_iter().flatten() {
            let schema = self.definition.resolved(media).and_then(|media| media.get("schema"));
            all.push(self.one_media(range, schema, side, what, problems));
        }
        all
    }

    /// OpenAPI 2.0 says the types apart from the schema, for the operation or for the whole API.
    fn media_of_swagger(&self, schema: &Value, list: &str, side: Side, problems: &mut Vec<String>) -> Vec<Media> {
        let types = self.operation.get(list).or_else(|| self.definition.root.get(list)).and_then(Value::as_array);
        let mut ranges: Vec<&str> = types.into_iter().flatten().filter_map(Value::as_str).collect();
        if ranges.is_empty() {
            ranges.push("*/*");
        }
        let what = if side == Side::Request { "the request's body" } else { "an answer" };
        ranges.into_iter().map(|range| self.one_media(range, Some(schema), side, what, problems)).collect()
    }

    fn one_media(
        &self,
        range: &str,
        schema: Option<&Value>,
        side: Side,
        what: &str,
        problems: &mut Vec<String>,
    ) -> Media {
        let mut media = Media::new(range);
        if let Some(schema) = schema.filter(|_| media.may_be_json()) {
            match self.definition.converted(schema, side).and_then(|converted| compile(&converted)) {
                Ok(compiled) => media.schema = Some(compiled),
                Err(problem) => problems.push(format!("the schema of {what} (`{range}`): {problem}")),
            }
        }
        media
    }
}

/// What a reference inside the document leads to.
pub(super) fn pointer_of<'d>(root: &'d Value, reference: &str) -> Option<&'d Value> {
    let pointer = reference.strip_prefix('#')?;
    // As it is written first: few tools encode what a fragment must not hold.
    root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer, false)))
}

/// A version that was written as a number is a text too.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
