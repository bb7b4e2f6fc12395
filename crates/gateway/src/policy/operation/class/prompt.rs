//! `PromptDecorator` and `PromptTemplate`: what is put around a prompt, and prompts that are named by an address.

use std::collections::HashMap;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use regex::Regex;
use serde_json::Value;

use super::guardrail::failed;
use super::payload::{self, PayloadPart};
use super::settings::{Compiled, PolicyClasses, Settings};
use crate::text;

/// The largest text a template's parameters may make of a payload.
const PROMPTS_BYTES_MAX: usize = 4 * 1024 * 1024;

struct Decorator {
    part: PayloadPart,
    decoration: Value,
    appends: bool,
}

pub(super) fn decorator(settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    let config: Value = settings.json("promptDecoratorConfig")?;
    match config.get("decoration") {
        Some(decoration @ (Value::String(_) | Value::Array(_))) => {
            settings.required("jsonPath")?;
            let (part, appends) = (PayloadPart::from_settings(settings)?, settings.flag("append"));
            Ok(Box::new(Decorator { part, decoration: decoration.clone(), appends }))
        }
        _ => Err("`promptDecoratorConfig` needs `decoration`, a text or a list".to_owned()),
    }
}

impl Mediator for Decorator {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(json) = payload::text(exchange)? else { return Ok(Flow::Next) };
        let changed = self.part.changed(&json, |found| Ok(self.decorated(found)));
        payload::put(exchange, changed.map_err(|why| failed("PromptDecorator", &why))?)?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

impl Decorator {
    fn decorated(&self, found: Value) -> Value {
        match &self.decoration {
            Value::Array(decoration) => {
                let found = if let Value::Array(values) = found { values } else { Vec::new() };
                let (first, second) =
                    if self.appends { (found, decoration.clone()) } else { (decoration.clone(), found) };
                Value::Array(first.into_iter().chain(second).collect())
            }
            decoration => {
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let (decoration, found) = (text(decoration), text(&found));
                Value::String(if self.appends {
                    format!("{found} {decoration}")
                } else {
                    format!("{decoration} {found}")
                })
            }
        }
    }
}

struct Templates {
    prompts: HashMap<String, String>,
    named: Regex,
}

pub(super) fn template(settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    let config: Vec<Value> = settings.json("promptTemplateConfig")?;
    let mut prompts = HashMap::new();
    for one in config {
        let field = |name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(name), Some(prompt)) = (field("name"), field("prompt")) else {
            return Err("each of `promptTemplateConfig` needs `name` and `prompt`".to_owned());
        };
        prompts.insert(name, prompt);
    }
    let named = Regex::new(r#"template://([a-zA-Z0-9_-]+)\?([^\s"']*)"#).map_err(|error| error.to_string())?;
    Ok(Box::new(Templates { prompts, named }))
}

impl Mediator for Templates {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(json) = payload::text(exchange)? else { return Ok(Flow::Next) };
        let (mut text, mut end) = (String::new(), 0);
        for found in self.named.captures_iter(&json) {
            let Some(prompt) = self.prompts.get(&found[1]) else { continue };
            let place = found.get_match().range();
            text.push_str(&json[end..place.start]);
            text.push_str(&filled(prompt, &found[2]));
            end = place.end;
            if text.len() > PROMPTS_BYTES_MAX + json.len() {
                return Err(failed("PromptTemplate", "the prompts are too long"));
            }
        }
        if end > 0 {
            text.push_str(&json[end..]);
            payload::put(exchange, text)?;
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// A prompt with its parameters, as it stands inside of a JSON text. What a parameter brings along is not looked into.
fn filled(prompt: &str, query: &str) -> String {
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| text::percent_decoded(value, false))
    };
    let mut text = String::new();
    let mut rest = prompt;
    while let Some((before, after)) = rest.split_once("[[") {
        text.push_str(before);
        match after.split_once("]]").and_then(|(name, after)| Some((value(name)?, after))) {
            Some((value, after)) => {
                text.push_str(&value);
                rest = after;
            }
            None => {
                text.push_str("[[");
                rest = after;
            }
        }
    }
    text.push_str(rest);
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_fill_a_prompt_once() {
        for (prompt, query, expected) in [
            ("From [[a]] to [[b]].", "a=1&b=%22x%22", r#"From 1 to \"x\"."#),
            ("[[a]] [[c]]", "a=[[a]]&c", "[[a]] [[c]]"),
            ("[[a", "a=1", "[[a"),
        ] {
            assert_eq!(filled(prompt, query), expected, "{prompt}");
        }
    }
}
