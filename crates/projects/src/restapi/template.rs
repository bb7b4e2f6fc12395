//! `{{ env "NAME" | default "value" }}` in resources: values of the environment.
//!
//! The API Platform fills the text of a file in before it reads it; here values are filled in once they are read, so that
//! every place stays what it was, and what the environment holds cannot become another key.

use std::sync::Arc;

use penstock_catalog::At;

use crate::Import;
use crate::document::{Node, Value};

/// Fills in every value.
pub(super) fn apply(import: &mut Import<'_>, file: &Arc<str>, node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| apply(import, file, item)),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| apply(import, file, &mut entry.value)),
        Value::Scalar(scalar) if scalar.text.contains("{{") => {
            match fill(&scalar.text, &|name| import.variables.get(name).cloned()) {
                Ok(text) => scalar.text = text.into(),
                Err(why) => {
                    let at = At { file: file.clone(), line: node.line, column: node.column };
                    import.error(&at, why);
                }
            }
        }
        Value::Scalar(_) => {}
    }
}

/// The text with its expressions filled in, or what is wrong with one of them. The API Platform's configuration writes
/// `{{ env "NAME" "default" }}` for the same.
pub fn fill(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("{{") {
        let (expression, behind) = inside.split_once("}}").ok_or("`{{` without `}}`")?;
        out.push_str(before);
        out.push_str(&value(expression.trim_matches(['-', ' ']), lookup)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// A row of functions, each of which gets what the one before made.
fn value(expression: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut value = String::new();
    for (index, call) in expression.split('|').map(str::trim).enumerate() {
        let (function, argument) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let argument = argument.trim();
        let (quoted, otherwise) = match argument.split_once("\" \"") {
            Some((name, otherwise)) if function == "env" => (name.strip_prefix('"'), otherwise.strip_suffix('"')),
            _ => {
                let inside = |mark| argument.strip_prefix(mark).and_then(|text: &str| text.strip_suffix(mark));
                (inside('"').or_else(|| inside('`')), Some(""))
            }
        };
        match (function, quoted) {
            ("env", Some(name)) if index == 0 && otherwise.is_some() => {
                value = lookup(name).unwrap_or_else(|| otherwise.unwrap_or_default().to_owned());
            }
            ("required", Some(name)) if index == 0 => {
                value = lookup(name)
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| format!("the environment variable `{name}` is required and not set"))?;
            }
            ("default", Some(other)) if index > 0 => {
                if value.is_empty() {
                    value = other.to_owned();
                }
            }
            // Nothing of a configuration is shown here anyway.
            ("redact", None) if index > 0 && argument.is_empty() => {}
            _ => {
                let known = "`env`, `required`, `default` and `redact` are";
                return Err(format!(
                    "`{{{{ {expression} }}}}` cannot be filled in: {known} known, with a text in quotes"
                ));
            }
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_filled_in() {
        let lookup = |name: &str| (name == "HOST").then(|| "h".to_owned());
        for (text, expected) in [
            ("http://{{ env \"HOST\" }}/x", Ok("http://h/x")),
            ("{{env \"NONE\" | default \"d\"}}{{ env `HOST` | redact }}", Ok("dh")),
            ("{{ env \"NONE\" }}", Ok("")),
            ("{{ env \"NONE\" \"d e\" }}{{ env \"HOST\" \"d\" }}", Ok("d eh")),
            ("{{ required \"HOST\" | redact }}", Ok("h")),
            ("a } b }}", Ok("a } b }}")),
            ("{{ env \"HOST\"", Err("`{{` without `}}`")),
            ("{{ required \"NONE\" }}", Err("the environment variable `NONE` is required and not set")),
        ] {
            assert_eq!(fill(text, &lookup).as_deref().map_err(|why| &**why), expected, "{text}");
        }
        for bad in ["{{ secret \"x\" }}", "{{ env HOST }}", "{{ . }}", "{{ \"x\" | env \"HOST\" }}"] {
            assert!(fill(bad, &lookup).is_err(), "{bad}");
        }
    }
}
