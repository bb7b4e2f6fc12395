//! Extractors: parts of a response become variables.
use super::context::Context;
use super::patterns::Patterns;
use super::response::Response;
use super::text::Text;
use penstock_json::path::{Dialect, JsonPath};
use serde_json::Value;

/// An extractor.
#[derive(Debug, Clone)]
pub enum Extractor {
    Regex { source: ExtractSource, name: Text, pattern: Text, template: Text, matches: Text, default: Option<Text> },
    Boundary { source: ExtractSource, name: Text, left: Text, right: Text, matches: Text, default: Option<Text> },
    Json(Vec<JsonExtraction>),
}

/// One variable of a JSON extractor.
#[derive(Debug, Clone)]
pub struct JsonExtraction {
    pub name: Text,
    pub path: Text,
    pub matches: Text,
    pub default: Text,
    pub concatenate: bool,
}

/// Which text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractSource {
    Body,
    ResponseHeaders,
    RequestHeaders,
    Url,
    Code,
    Message,
}

/// More matches than this are a mistake in the pattern.
const MATCHES_MAX: usize = 100_000;

impl ExtractSource {
    /// The text.
    pub fn text(self, response: &Response) -> String {
        match self {
            ExtractSource::Body => response.body.clone(),
            ExtractSource::ResponseHeaders => response.head.clone(),
            ExtractSource::RequestHeaders => response.request_head.clone(),
            ExtractSource::Url => response.url.clone(),
            ExtractSource::Code => response.status.to_string(),
            ExtractSource::Message => response.message().to_owned(),
        }
    }
}

impl Extractor {
    /// Sets the variables. An error makes the request fail.
    pub fn run(&self, response: &Response, context: &mut Context, patterns: &mut Patterns) -> Result<(), String> {
        match self {
            Extractor::Regex { source, name, pattern, template, matches, default } => {
                let name = name.evaluate(context);
                let template = template.evaluate(context);
                let (pattern, text) = (pattern.evaluate(context), source.text(response));
                let regex = patterns.get(&pattern)?;
                let mut found = Vec::new();
                for captures in regex.captures_iter(&text).take(MATCHES_MAX) {
                    let captures = captures.map_err(|error| format!("`{pattern}` is too costly: {error}"))?;
                    let groups: Vec<Option<String>> =
                        captures.iter().map(|group| group.map(|group| group.as_str().to_owned())).collect();
                    found.push(groups);
                }
                let values = found.into_iter().map(|groups| (fill(&template, &groups), groups)).collect();
                store(context, &name, matches, default.as_ref(), values);
            }
            Extractor::Boundary { source, name, left, right, matches, default } => {
                let (left, right) = (left.evaluate(context), right.evaluate(context));
                let (name, text) = (name.evaluate(context), source.text(response));
                let values = between(&text, &left, &right).into_iter().map(|value| (value, Vec::new())).collect();
                store(context, &name, matches, default.as_ref(), values);
            }
            Extractor::Json(extractions) => {
                let document = penstock_json::text::parse(&response.body).ok();
                for extraction in extractions {
                    extraction.run(document.as_ref(), context)?;
                }
            }
        }
        Ok(())
    }

    /// Names of the variables that are set, as far as they are known before the run.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Extractor::Regex { name, .. } | Extractor::Boundary { name, .. } => name.constant().into_iter().collect(),
            Extractor::Json(extractions) => extractions.iter().filter_map(|one| one.name.constant()).collect(),
        }
    }
}

impl JsonExtraction {
    fn run(&self, document: Option<&Value>, context: &mut Context) -> Result<(), String> {
        let (name, path) = (self.name.evaluate(context), self.path.evaluate(context));
        let number = self.matches.evaluate(context);
        let number = if number.trim().is_empty() { 0 } else { parse_number(&number) };
        let path = parse_path(&path)?;
        let found: Vec<String> = match document {
            None => Vec::new(),
            Some(document) if path.is_definite() => path.read(document).iter().map(|value| json_text(value)).collect(),
            Some(document) => path.select(document).into_iter().map(json_text).collect(),
        };
        forget(context, &name);
        if found.is_empty() {
            let default = self.default.evaluate(context);
            context.variables.insert(format!("{name}_matchNr"), "0".to_owned());
            context.variables.insert(name, default);
            return Ok(());
        }
        context.variables.insert(format!("{name}_matchNr"), found.len().to_string());
        if number < 0 {
            for (index, value) in found.iter().enumerate() {
                context.variables.insert(format!("{name}_{}", index + 1), value.clone());
            }
            if self.concatenate {
                context.variables.insert(format!("{name}_ALL"), found.join(","));
            }
            return Ok(());
        }
        let index = match usize::try_from(number).unwrap_or(0) {
            0 => context.random.below(found.len()),
            number => number - 1,
        };
        let value = match found.get(index) {
            Some(value) => value.clone(),
            None => self.default.evaluate(context),
        };
        context.variables.insert(name, value);
        Ok(())
    }
}

/// Compiles a JSONPath.
pub fn parse_path(path: &str) -> Result<JsonPath, String> {
    JsonPath::parse(path.trim(), Dialect::Artifacts).map_err(|error| format!("the JSONPath `{path}`: {error}"))
}

fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        other => penstock_json::text::write(other),
    }
}

fn parse_number(text: &str) -> i64 {
    text.trim().parse().unwrap_or(0)
}

/// Removes what an earlier extraction left: the numbered variables.
fn forget(context: &mut Context, name: &str) {
    let count = context.variables.remove(&format!("{name}_matchNr")).map_or(0, |count| parse_number(&count));
    for index in 1..=count {
        let prefix = format!("{name}_{index}");
        context.variables.remove(&prefix);
        context.variables.retain(|other, _| !other.starts_with(&format!("{prefix}_g")));
    }
}

type Match = (String, Vec<Option<String>>);

/// Stores matches the way JMeter's extractors do: one of them under the name, or all with numbers.
fn store(context: &mut Context, name: &str, number: &Text, default: Option<&Text>, found: Vec<Match>) {
    let number = parse_number(&number.evaluate(context));
    forget(context, name);
    let default = default.map(|default| default.evaluate(context));
    if number < 0 {
        if let Some(default) = default {
            context.variables.insert(name.to_owned(), default);
        }
        context.variables.insert(format!("{name}_matchNr"), found.len().to_string());
        for (index, (value, groups)) in found.into_iter().enumerate() {
            let name = format!("{name}_{}", index + 1);
            store_groups(context, &name, &groups);
            context.variables.insert(name, value);
        }
        return;
    }
    let index = match usize::try_from(number).unwrap_or(0) {
        0 if found.is_empty() => 0,
        0 => context.random.below(found.len()),
        number => number - 1,
    };
    match (found.into_iter().nth(index), default) {
        (Some((value, groups)), _) => {
            store_groups(context, name, &groups);
            context.variables.insert(name.to_owned(), value);
        }
        (None, Some(default)) => drop(context.variables.insert(name.to_owned(), default)),
        (None, None) => {}
    }
}

fn store_groups(context: &mut Context, name: &str, groups: &[Option<String>]) {
    if groups.is_empty() {
        return;
    }
    context.variables.insert(format!("{name}_g"), (groups.len() - 1).to_string());
    for (index, group) in groups.iter().enumerate() {
        if let Some(group) = group {
            context.variables.insert(format!("{name}_g{index}"), group.clone());
        }
    }
}

/// A template such as `$1$-$2$` with its groups filled in.
fn fill(template: &str, groups: &[Option<String>]) -> String {
    let (mut filled, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        match after.split_once('$').map(|(digits, tail)| (digits.parse::<usize>(), tail)) {
            Some((Ok(number), tail)) => {
                filled.push_str(groups.get(number).and_then(Option::as_deref).unwrap_or_default());
                rest = tail;
            }
            _ => {
                filled.push('$');
                rest = after;
            }
        }
    }
    filled + rest
}

/// The texts between two others. An empty left boundary is the start, an empty right one the end.
fn between(text: &str, left: &str, right: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while found.len() < MATCHES_MAX {
        let Some(start) = rest.find(left).map(|at| at + left.len()) else { break };
        let inner = &rest[start..];
        let Some(end) = (if right.is_empty() { Some(inner.len()) } else { inner.find(right) }) else { break };
        found.push(inner[..end].to_owned());
        rest = &inner[end + right.len()..];
        if left.is_empty() || right.is_empty() {
            break;
        }
    }
    found
}
