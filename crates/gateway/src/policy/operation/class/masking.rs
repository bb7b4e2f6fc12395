//! `PIIMaskingRegex`: what identifies a person is masked on the way to a model and put back into its answer, or blackened.

use std::collections::HashMap;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::Value as PropertyValue;
use regex::{NoExpand, Regex};
use serde_json::Value;

use super::guardrail::failed;
use super::payload::{self, PayloadPart};
use super::settings::{Compiled, PolicyClasses, Settings};

const KIND: &str = "PIIMaskingRegex";
const REDACTED: &str = "*****";
/// The property in which an answer finds what was masked in its request.
const MASKED: &str = "PII_ENTITIES";

struct Masking {
    part: PayloadPart,
    redacts: bool,
    /// What each pattern finds is called.
    patterns: Vec<(String, Regex)>,
    /// Finds the placeholders of masked text.
    marks: Regex,
}

/// What was found, by what stands in its place.
type Masked = HashMap<String, String>;

pub(super) fn compile(settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    let entities: Vec<Value> = settings.json("piiEntities")?;
    let mut patterns = Vec::new();
    for entity in entities {
        let field = |name: &str| entity.get(name).and_then(Value::as_str);
        let (Some(name), Some(text)) = (field("piiEntity"), field("piiRegex")) else {
            return Err("each of `piiEntities` needs `piiEntity` and `piiRegex`".to_owned());
        };
        let pattern = Regex::new(text).map_err(|_| format!("`{text}` is not a regular expression here"))?;
        patterns.push((name.to_owned(), pattern));
    }
    let names: Vec<String> = patterns.iter().map(|(name, _)| regex::escape(name)).collect();
    let marks = format!("(?:{})_[0-9a-f]{{4,}}", names.join("|"));
    let marks = Regex::new(&marks).map_err(|_| "`piiEntities` has too many names".to_owned())?;
    Ok(Box::new(Masking {
        part: PayloadPart::from_settings(settings)?,
        redacts: settings.flag("redact"),
        patterns,
        marks,
    }))
}

impl Mediator for Masking {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(payload) = payload::text(exchange)? else { return Ok(Flow::Next) };
        let text = self.part.text(&payload).map_err(|why| failed(KIND, &why))?;
        let changed = match (self.redacts, exchange.is_response()) {
            (true, _) => self.redacted(&text),
            (false, true) => self.unmasked(exchange, &text),
            (false, false) => {
                let (changed, masked) = self.masked(&text);
                if !masked.is_empty() {
                    let kept = serde_json::to_string(&masked).map_err(|error| failed(KIND, &error.to_string()))?;
                    exchange.message.properties.set(MASKED, PropertyValue::string(kept));
                }
                changed
            }
        };
        if changed != text {
            let changed = self.part.replaced(&payload, changed).map_err(|why| failed(KIND, &why))?;
            payload::put(exchange, changed)?;
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

impl Masking {
    fn redacted(&self, text: &str) -> String {
        let one =
            |text: String, (_, pattern): &(String, Regex)| pattern.replace_all(&text, NoExpand(REDACTED)).into_owned();
        self.patterns.iter().fold(text.to_owned(), one)
    }

    /// The same thing has the same mark wherever it stands.
    fn masked(&self, text: &str) -> (String, Masked) {
        let mut marks: HashMap<String, String> = HashMap::new();
        let mut text = text.to_owned();
        for (name, pattern) in &self.patterns {
            let mark = |found: &regex::Captures<'_>| {
                if let Some(mark) = marks.get(&found[0]) {
                    return mark.clone();
                }
                let mark = format!("{name}_{:04x}", marks.len());
                marks.insert(found[0].to_owned(), mark.clone());
                mark
            };
            text = pattern.replace_all(&text, mark).into_owned();
        }
        (text, marks.into_iter().map(|(original, mark)| (mark, original)).collect())
    }

    fn unmasked(&self, exchange: &Exchange, text: &str) -> String {
        let kept = exchange.message.property_text(MASKED).unwrap_or_default();
        let masked: Masked = serde_json::from_str(&kept).unwrap_or_default();
        let original = |found: &regex::Captures<'_>| masked.get(&found[0]).map_or(&found[0], String::as_str).to_owned();
        self.marks.replace_all(text, original).into_owned()
    }
}
