//! The expressions of JMeter that stand in plans: `${__P(name,default)}` and `${variable}`.
use crate::http::request::TOKEN;
use std::collections::BTreeMap;

/// Values of `-Jname=value`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// What JMeter's `__P` gives for a property without value and default.
const DEFAULT: &str = "1";

impl Properties {
    /// Adds `name=value`; `false` if the text is none.
    pub fn add(&mut self, text: &str) -> bool {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                self.0.insert(name.to_owned(), value.to_owned());
                true
            }
            _ => false,
        }
    }

    /// Replaces every `${__P(…)}`. Variables stay, for a CSV data set to fill in.
    pub fn evaluate(&self, text: &str) -> Result<String, String> {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            result.push_str(before);
            let (expression, tail) =
                after.split_once('}').ok_or_else(|| format!("`${{{after}` has no closing `}}`"))?;
            match expression.strip_prefix("__") {
                None => result.push_str(&format!("${{{expression}}}")),
                Some(function) => result.push_str(&self.call(function)?),
            }
            rest = tail;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn call(&self, function: &str) -> Result<String, String> {
        let unknown = || format!("the function `__{function}` is not supported, only `__P(name,default)` is");
        let arguments = function.strip_prefix("P(").and_then(|rest| rest.strip_suffix(')')).ok_or_else(unknown)?;
        let (name, default) = arguments.split_once(',').unwrap_or((arguments, DEFAULT));
        Ok(self.0.get(name.trim()).map_or(default, String::as_str).to_owned())
    }
}

/// Replaces `${variable}` by the placeholder of the load, and notes the names.
pub fn variables_to_token(text: &str, used: &mut Vec<String>) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else { break };
        result.push_str(before);
        result.push_str(TOKEN);
        if !used.iter().any(|other| other == name) {
            used.push(name.to_owned());
        }
        rest = tail;
    }
    result.push_str(rest);
    result
}
