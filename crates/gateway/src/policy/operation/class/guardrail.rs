//! Guardrails of AI APIs: what a payload may hold, in either direction. A violation is answered with 446 and says which
//! guardrail intervened.

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_json::schema::JsonSchema;
use regex::Regex;
use serde_json::{Value, json};

use super::payload::{self, PayloadPart};
use super::settings::{Compiled, PolicyClasses, Settings};
use crate::error::{GatewayError, codes};
use crate::policy::measure;

/// How often a payload may be read when objects begin in it that do not end.
const WORK_FACTOR: usize = 8;
const WORK_LEAST: usize = 64 * 1024;

/// Looks at payloads.
struct Guardrail {
    name: String,
    kind: &'static str,
    reason: &'static str,
    part: PayloadPart,
    /// Intervenes when the check holds, not when it fails.
    inverted: bool,
    /// Includes the findings in the response.
    shows: bool,
    check: Check,
}

enum Check {
    Words(Range),
    Sentences(Range),
    Bytes(Range),
    Pattern(Regex),
    /// The schema, and its text.
    Schema(Box<JsonSchema>, String),
}

/// From, to, both included.
struct Range {
    min: usize,
    max: usize,
}

/// Whether a payload is as it should be, and what there is to say when it is not.
struct Finding {
    holds: bool,
    assessment: String,
}

fn guardrail(settings: &Settings, kind: &'static str, reason: &'static str, check: Check) -> Compiled {
    Ok(Box::new(Guardrail {
        name: settings.required("name")?.to_owned(),
        kind,
        reason,
        part: PayloadPart::from_settings(settings)?,
        inverted: settings.flag("invert"),
        shows: settings.flag("showAssessment"),
        check,
    }))
}

fn range(settings: &Settings) -> Result<Range, String> {
    let range = Range { min: settings.number("min")?, max: settings.number("max")? };
    if range.min > range.max { Err("`min` is greater than `max`".to_owned()) } else { Ok(range) }
}

pub(super) fn words(settings: &Settings, _: &PolicyClasses) -> Compiled {
    let reason = "Violation of applied word count constraints detected.";
    guardrail(settings, "WORD_COUNT_GUARDRAIL", reason, Check::Words(range(settings)?))
}

pub(super) fn sentences(settings: &Settings, _: &PolicyClasses) -> Compiled {
    let reason = "Violation of applied sentence count constraints detected.";
    guardrail(settings, "SENTENCE_COUNT_GUARDRAIL", reason, Check::Sentences(range(settings)?))
}

pub(super) fn bytes(settings: &Settings, _: &PolicyClasses) -> Compiled {
    let reason = "Violation of applied content length constraints detected.";
    guardrail(settings, "CONTENT_LENGTH_GUARDRAIL", reason, Check::Bytes(range(settings)?))
}

pub(super) fn pattern(settings: &Settings, _: &PolicyClasses) -> Compiled {
    let text = settings.required("regex")?;
    let pattern = Regex::new(text).map_err(|_| format!("`regex` is `{text}`, not a regular expression here"))?;
    let reason = "Violation of regular expression detected.";
    guardrail(settings, "REGEX_GUARDRAIL", reason, Check::Pattern(pattern))
}

pub(super) fn schema(settings: &Settings, _: &PolicyClasses) -> Compiled {
    let value: Value = settings.json("schema")?;
    let wrong = |errors: Vec<_>| format!("`schema`: {}", errors.first().map(ToString::to_string).unwrap_or_default());
    let schema = JsonSchema::compile(&value).map_err(wrong)?;
    let check = Check::Schema(Box::new(schema), settings.required("schema")?.to_owned());
    guardrail(settings, "JSON_SCHEMA_GUARDRAIL", "Violation of enforced JSON schema detected.", check)
}

impl Mediator for Guardrail {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        // An error of the backend is not what the model said.
        if exchange.is_response() && !(200..300).contains(&exchange.message.status) {
            return Ok(Flow::Next);
        }
        let payload = payload::text(exchange)?;
        if payload.is_none() && matches!(self.check, Check::Schema(..)) {
            return Ok(Flow::Next);
        }
        let part = match payload {
            None => String::new(),
            Some(payload) => self.part.text(&payload).map_err(|why| failed(self.kind, &why))?,
        };
        let finding = self.check.of(&part, self.inverted);
        let finding = finding.ok_or_else(|| failed(self.kind, "the payload has too many beginnings of objects"))?;
        if finding.holds != self.inverted {
            return Ok(Flow::Next);
        }
        let mut message = json!({
            "action": "GUARDRAIL_INTERVENED",
            "interveningGuardrail": self.name,
            "direction": if exchange.is_response() { "RESPONSE" } else { "REQUEST" },
            "actionReason": self.reason,
        });
        if self.shows {
            message["assessments"] = finding.assessment.into();
        }
        let answer = json!({ "code": codes::GUARDRAIL.to_string(), "type": self.kind, "message": message });
        Err(GatewayError::described(codes::GUARDRAIL, answer.to_string()).because(self.reason).into())
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// A payload that cannot be looked at is not let through.
pub(super) fn failed(kind: &str, why: &str) -> Fault {
    let description = format!("Error occurred during {kind} mediation");
    GatewayError::described(codes::GUARDRAIL_FAILED, description).because(why).into()
}

impl Check {
    /// `None` when it would take too long to say.
    fn of(&self, text: &str, inverted: bool) -> Option<Finding> {
        let counted = |range: &Range, count: usize, say: fn(&str, usize) -> String| {
            let Range { min, max } = range;
            let expected = match inverted {
                true => format!("less than {min} or more than {max}"),
                false => format!("between {min} and {max}"),
            };
            Finding { holds: (*min..=*max).contains(&count), assessment: say(&expected, count) }
        };
        Some(match self {
            Check::Words(range) => counted(range, measure::words(text), |expected, count| {
                format!("Violation of word count detected. Expected {expected} words. But found {count} words.")
            }),
            Check::Sentences(range) => counted(range, measure::sentences(text), |expected, count| {
                format!(
                    "Violation of sentence count detected: expected {expected} sentences. But found {count} sentences."
                )
            }),
            Check::Bytes(range) => {
                counted(range, text.len(), |expected, count| format!("Expected {expected} bytes. But found {count}."))
            }
            Check::Pattern(pattern) => Finding {
                holds: pattern.is_match(text),
                assessment: format!("Violated regular expression: {}", pattern.as_str()),
            },
            Check::Schema(schema, source) => Finding {
                holds: holds_object(schema, text)?,
                assessment: format!(
                    "The inspected response payload content: {text} does not satisfy the JSON schema: {source}"
                ),
            },
        })
    }
}

/// Whether a text is, or has in it, an object that a schema allows: models add text around the requested JSON.
/// `None` when so many objects begin and do not end that looking for the right one would take too long.
fn holds_object(schema: &JsonSchema, text: &str) -> Option<bool> {
    let mut work_left = text.len().saturating_mul(WORK_FACTOR) + WORK_LEAST;
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let read = match values.next() {
            Some(Ok(value)) if schema.is_valid(&value) => return Some(true),
            // What is inside of an object that does not fit is not looked at by itself.
            Some(Ok(_)) => {
                rest = &rest[values.byte_offset()..];
                continue;
            }
            Some(Err(error)) => read_before(rest, &error),
            None => 0,
        };
        work_left = work_left.checked_sub(read)?;
        rest = &rest[1..];
    }
    Some(false)
}

/// How many bytes were read before an error.
fn read_before(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
    lines.sum::<usize>() + error.column()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_measured() {
        let range = |min, max| Range { min, max };
        for (check, text, holds) in [
            (Check::Words(range(2, 3)), "one two  three", true),
            (Check::Words(range(2, 3)), "one", false),
            (Check::Sentences(range(1, 2)), "One. Two! ", true),
            (Check::Sentences(range(1, 2)), "One. Two! Three?", false),
            (Check::Bytes(range(0, 4)), "äö", true),
            (Check::Bytes(range(0, 3)), "äö", false),
        ] {
            assert_eq!(check.of(text, false).map(|finding| finding.holds), Some(holds), "{text}");
        }
        let found = Check::Words(range(2, 3)).of("one", true).expect("it counts").assessment;
        let expected =
            "Violation of word count detected. Expected less than 2 or more than 3 words. But found 1 words.";
        assert_eq!(found, expected);
    }

    #[test]
    fn an_object_is_found_among_words() {
        let schema = json!({ "type": "object", "required": ["a"] });
        let schema = JsonSchema::compile(&schema).unwrap_or_else(|_| panic!("a schema"));
        for (text, holds) in [
            (r#"{"a":1}"#, true),
            (r#"Here it is: {"b":1} or {"a":{"c":2}} there"#, true),
            (r#"{"b":1}"#, false),
            ("{{{{", false),
            ("", false),
        ] {
            assert_eq!(holds_object(&schema, text), Some(holds), "{text}");
        }
        let many = format!("{}[{}", "{\"a\":".repeat(100), "1,".repeat(100_000));
        assert_eq!(holds_object(&schema, &many), None, "objects that do not end");
    }
}
