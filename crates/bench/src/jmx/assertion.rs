//! Assertions: what a response must be like to count as a success.
use super::context::Context;
use super::extract::{ExtractSource, parse_path};
use super::patterns::Patterns;
use super::response::Response;
use super::text::Text;

/// An assertion.
#[derive(Debug, Clone)]
pub enum Assertion {
    Response(ResponseAssertion),
    /// The response must be there within this many milliseconds.
    Duration(Text),
    Size {
        of: SizeOf,
        bytes: Text,
        comparison: Comparison,
    },
    JsonPath {
        path: Text,
        expected: Option<Text>,
        regex: bool,
        expect_null: bool,
        inverted: bool,
    },
}

/// JMeter's response assertion.
#[derive(Debug, Clone)]
pub struct ResponseAssertion {
    pub field: Field,
    pub patterns: Vec<Text>,
    pub kind: Match,
    pub negated: bool,
    /// One pattern is enough.
    pub any: bool,
    /// The status code does not decide.
    pub ignore_status: bool,
}

/// Which text an assertion looks at.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Response(ExtractSource),
    RequestBody,
    Variable(String),
}

/// How a text is compared with a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The regular expression covers the whole text.
    Whole,
    /// The regular expression is found in the text.
    Found,
    Equal,
    Substring,
}

/// What a size assertion measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeOf {
    Response,
    Body,
    Head,
}

/// How sizes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl Comparison {
    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Greater => left > right,
            Comparison::Less => left < right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::LessOrEqual => left <= right,
        }
    }
}

impl Assertion {
    /// Whether the body must be kept.
    pub fn reads_body(&self) -> bool {
        match self {
            Assertion::Response(assertion) => assertion.field == Field::Response(ExtractSource::Body),
            Assertion::JsonPath { .. } => true,
            Assertion::Duration(_) | Assertion::Size { .. } => false,
        }
    }

    /// Whether it decides instead of the status code.
    pub fn ignores_status(&self) -> bool {
        matches!(self, Assertion::Response(assertion) if assertion.ignore_status)
    }

    /// Why the assertion does not hold, if it does not.
    pub fn failure(&self, response: &Response, context: &mut Context, patterns: &mut Patterns) -> Option<String> {
        match self {
            Assertion::Response(assertion) => assertion.failure(response, context, patterns),
            Assertion::Duration(limit_ms) => {
                let limit_ms = limit_ms.evaluate(context).trim().parse::<u64>().unwrap_or(0);
                (limit_ms > 0 && response.elapsed_ms > limit_ms)
                    .then(|| format!("the response took {} ms, more than {limit_ms} ms", response.elapsed_ms))
            }
            Assertion::Size { of, bytes, comparison } => {
                let size = match of {
                    SizeOf::Response => response.received_bytes,
                    SizeOf::Body => response.body_bytes,
                    SizeOf::Head => response.head.len() as u64,
                };
                let expected = bytes.evaluate(context).trim().parse::<u64>().unwrap_or(0);
                (!comparison.holds(size, expected))
                    .then(|| format!("{size} bytes instead of {comparison:?} {expected}"))
            }
            Assertion::JsonPath { path, expected, regex, expect_null, inverted } => {
                let failure = json_failure(
                    &path.evaluate(context),
                    expected.as_ref().map(|text| text.evaluate(context)),
                    (*regex, *expect_null),
                    response,
                    patterns,
                );
                match (failure, inverted) {
                    (failure, false) => failure,
                    (Some(_), true) => None,
                    (None, true) => Some("the JSON assertion holds, but it is inverted".to_owned()),
                }
            }
        }
    }
}

fn json_failure(
    path: &str,
    expected: Option<String>,
    (regex, expect_null): (bool, bool),
    response: &Response,
    patterns: &mut Patterns,
) -> Option<String> {
    let parsed = match parse_path(path) {
        Ok(parsed) => parsed,
        Err(why) => return Some(why),
    };
    let Ok(document) = penstock_json::text::parse(&response.body) else {
        return Some("the response body is not JSON".to_owned());
    };
    let found = parsed.select(&document);
    if found.is_empty() {
        return Some(format!("the response body has no `{path}`"));
    }
    if expect_null {
        let null = found.iter().any(|value| value.is_null());
        return (!null).then(|| format!("`{path}` is not null"));
    }
    let expected = expected?;
    for value in found {
        let text = value.as_str().map_or_else(|| penstock_json::text::write(value), str::to_owned);
        let matches = match regex {
            false => Ok(text == expected),
            true => whole(patterns, &expected, &text),
        };
        match matches {
            Ok(true) => return None,
            Ok(false) => {}
            Err(why) => return Some(why),
        }
    }
    Some(format!("`{path}` is not `{expected}`"))
}

fn whole(patterns: &mut Patterns, pattern: &str, text: &str) -> Result<bool, String> {
    found(patterns, &format!(r"\A(?:{pattern})\z"), text)
}

fn found(patterns: &mut Patterns, pattern: &str, text: &str) -> Result<bool, String> {
    patterns.get(pattern)?.is_match(text).map_err(|error| format!("`{pattern}` is too costly: {error}"))
}

impl ResponseAssertion {
    fn failure(&self, response: &Response, context: &mut Context, patterns: &mut Patterns) -> Option<String> {
        let text = match &self.field {
            Field::Response(source) => source.text(response),
            Field::RequestBody => response.request_body.clone(),
            Field::Variable(name) => context.variables.get(name).cloned().unwrap_or_default(),
        };
        let mut failures = Vec::new();
        for pattern in &self.patterns {
            let pattern = pattern.evaluate(context);
            let matches = match self.kind {
                Match::Equal => Ok(text == pattern),
                Match::Substring => Ok(text.contains(&pattern)),
                Match::Whole => whole(patterns, &pattern, &text),
                Match::Found => found(patterns, &pattern, &text),
            };
            match matches {
                Ok(matches) if matches != self.negated => {
                    if self.any {
                        return None;
                    }
                }
                Ok(_) => failures.push(self.explain(&pattern)),
                Err(why) => return Some(why),
            }
        }
        failures.into_iter().next()
    }

    fn explain(&self, pattern: &str) -> String {
        let field = match &self.field {
            Field::Response(ExtractSource::Body) => "the response body".to_owned(),
            Field::Response(ExtractSource::Code) => "the status code".to_owned(),
            Field::Response(ExtractSource::Message) => "the reason phrase".to_owned(),
            Field::Response(ExtractSource::Url) => "the address".to_owned(),
            Field::Response(ExtractSource::ResponseHeaders) => "the response head".to_owned(),
            Field::Response(ExtractSource::RequestHeaders) => "the request head".to_owned(),
            Field::RequestBody => "the request body".to_owned(),
            Field::Variable(name) => format!("the variable `{name}`"),
        };
        let verb = match (self.kind, self.negated) {
            (Match::Equal, false) => "does not equal",
            (Match::Equal, true) => "equals",
            (Match::Whole, false) => "does not match",
            (Match::Whole, true) => "matches",
            (Match::Substring | Match::Found, false) => "does not contain",
            (Match::Substring | Match::Found, true) => "contains",
        };
        format!("{field} {verb} `{pattern}`")
    }
}
