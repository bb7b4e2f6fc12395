//! Parameters of path, query, header fields and cookies.

use std::sync::Arc;

use penstock_json::schema::JsonSchema;
use penstock_message::Headers;
use serde_json::{Map, Value};

use super::body::described;
use super::convert::{Side, compile};
use super::definition::{Definition, HOPS_MAX};
use crate::Site;
use crate::text::percent_decoded;

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The value of the template's parameter at this index.
    Path(usize),
    Query,
    Header,
    Cookie,
}

/// How several values are one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Several {
    /// They are not.
    No,
    /// The parameter is repeated.
    Repeated,
    /// They stand between these.
    Between(char),
}

/// What one parameter must be.
pub(super) struct ParameterCheck {
    name: Arc<str>,
    place: Place,
    required: bool,
    several: Several,
    /// The types of its value, or of each of them.
    types: Vec<String>,
    schema: Option<JsonSchema>,
}

/// The parts of a request that hold parameters.
pub(super) struct RequestParts<'e> {
    path_values: &'e [String],
    headers: &'e Headers,
    query: Vec<(String, String)>,
}

impl<'e> RequestParts<'e> {
    pub(super) fn new(headers: &'e Headers, target: &str, path_values: &'e [String]) -> RequestParts<'e> {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(name, true).into_owned(), percent_decoded(value, true).into_owned())
        });
        RequestParts { path_values, headers, query: query.collect() }
    }
}

/// Fields that are described elsewhere in a definition (OpenAPI 3.0, Parameter Object).
const NOT_PARAMETERS: [&str; 3] = ["accept", "content-type", "authorization"];

impl ParameterCheck {
    /// The check of a parameter; `None` when there is nothing to check.
    pub(super) fn new(
        definition: &Definition,
        parameter: &Map<String, Value>,
        site: &Site,
        problems: &mut Vec<String>,
    ) -> Option<ParameterCheck> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let name = text("name")?;
        let place = match text("in")? {
            "path" => Place::Path(site.pattern.parameters.iter().position(|known| &**known == name)?),
            "query" => Place::Query,
            "header" if is_credential(name, site) => return None,
            "header" => Place::Header,
            "cookie" => Place::Cookie,
            _ => return None,
        };
        let required = parameter.get("required") == Some(&Value::Bool(true)) && !matches!(place, Place::Path(_));
        // OpenAPI 2.0 writes the schema's members into the parameter.
        let whole = Value::Object(parameter.iter().filter(|(key, _)| *key != "required").map(own).collect());
        let schema = if definition.is_swagger() { Some(&whole) } else { parameter.get("schema") };
        let mut check = ParameterCheck {
            name: name.into(),
            place,
            required,
            several: Several::No,
            types: Vec::new(),
            schema: None,
        };
        if let Some(schema) = schema
            && let Err(problem) = check.take_schema(definition, schema, parameter)
        {
            problems.push(format!("the schema of the parameter `{name}`: {problem}"));
        }
        if check.types.iter().any(|kind| kind == "object") && place == Place::Query {
            // Its members are parameters of their own, under names of their own.
            return None;
        }
        (check.required || check.schema.is_some()).then_some(check)
    }

    fn take_schema(
        &mut self,
        definition: &Definition,
        schema: &Value,
        parameter: &Map<String, Value>,
    ) -> Result<(), String> {
        let converted = definition.converted(schema, Side::Request)?;
        self.types = types_of(&converted, &converted);
        if self.types.iter().any(|kind| kind == "array") {
            self.several = self.between(parameter);
            self.types = converted.get("items").map(|items| types_of(items, &converted)).unwrap_or_default();
        }
        // A value is a text until a type says what it stands for; what has structure is not read.
        let is_simple = !self.types.is_empty() && !self.types.iter().any(|kind| kind == "object" || kind == "array");
        if is_simple {
            self.schema = Some(compile(&converted)?);
        }
        Ok(())
    }

    /// How a list is written: `style` and `explode`, or `collectionFormat` of OpenAPI 2.0.
    fn between(&self, parameter: &Map<String, Value>) -> Several {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        match (text("collectionFormat"), text("style")) {
            (Some("multi"), _) => return Several::Repeated,
            (Some("ssv"), _) | (_, Some("spaceDelimited")) => return Several::Between(' '),
            (Some("tsv"), _) => return Several::Between('\t'),
            (Some("pipes"), _) | (_, Some("pipeDelimited")) => return Several::Between('|'),
            _ => {}
        }
        let swagger = !parameter.contains_key("schema");
        let explode = parameter.get("explode").and_then(Value::as_bool).unwrap_or(!swagger);
        let repeats = self.place == Place::Query && explode;
        if repeats { Several::Repeated } else { Several::Between(',') }
    }

    /// Adds what is wrong with the parameter.
    pub(super) fn check(&self, parts: &RequestParts<'_>, path: &str, wrong: &mut Vec<String>) {
        let values = self.values(parts);
        let (Some(first), kind) = (values.first(), self.kind()) else {
            if self.required {
                let (kind, name) = (self.kind(), &self.name);
                wrong.push(format!("{kind} parameter '{name}' is required on path '{path}' but not found in request."));
            }
            return;
        };
        let Some(schema) = &self.schema else { return };
        let typed = |text: &str| typed(text, &self.types);
        let value = match self.several {
            Several::No => typed(first),
            Several::Repeated => Value::Array(values.iter().map(|value| typed(value)).collect()),
            Several::Between(separator) => Value::Array(first.split(separator).map(|one| typed(one.trim())).collect()),
        };
        for violation in schema.validate(&value) {
            wrong.push(format!("{kind} parameter '{}': {}", self.name, described(&violation)));
        }
    }

    fn values(&self, parts: &RequestParts<'_>) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.place {
            Place::Path(index) => parts
                .path_values
                .get(index)
                .map(|value| percent_decoded(value, false).into_owned())
                .into_iter()
                .collect(),
            Place::Query => {
                parts.query.iter().filter(|(name, _)| **name == *self.name).map(|(_, value)| value.clone()).collect()
            }
            Place::Header => parts.headers.get_all(&self.name).map(text).collect(),
            Place::Cookie => {
                let fields: Vec<String> = parts.headers.get_all("cookie").map(text).collect();
                let pairs = fields.iter().flat_map(|field| field.split(';')).filter_map(|pair| pair.split_once('='));
                pairs.filter(|(name, _)| name.trim() == &*self.name).map(|(_, value)| value.trim().to_owned()).collect()
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self.place {
            Place::Path(_) => "Path",
            Place::Query => "Query",
            Place::Header => "Header",
            Place::Cookie => "Cookie",
        }
    }
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// Whether a field carries credentials: those were checked, and perhaps taken away, before.
fn is_credential(name: &str, site: &Site) -> bool {
    let api = &site.api;
    let own = [api.authorization_header.as_deref(), api.api_key_header.as_deref(), Some("apikey")];
    NOT_PARAMETERS.iter().copied().chain(own.into_iter().flatten()).any(|field| field.eq_ignore_ascii_case(name))
}

/// The types a converted schema names, its references followed; empty when it names none.
fn types_of(schema: &Value, document: &Value) -> Vec<String> {
    let mut schema = schema;
    for _ in 0..HOPS_MAX {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        match target.and_then(|target| document.pointer(target)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// What a text stands for when it may be of these types.
fn typed(text: &str, types: &[String]) -> Value {
    let may_be = |wanted: &[&str]| types.iter().any(|kind| wanted.contains(&kind.as_str()));
    if may_be(&["integer", "number"])
        && let Ok(number) = serde_json::from_str::<serde_json::Number>(text)
    {
        return Value::Number(number);
    }
    match text {
        "true" | "false" if may_be(&["boolean"]) => Value::Bool(text == "true"),
        _ => Value::String(text.to_owned()),
    }
}
