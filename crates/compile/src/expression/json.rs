//! JSONPath bound to an exchange: `json-eval($.a)` on the body, `json-eval($ctx:name.a)` on a
//! property.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Place};
use penstock_json::path::{Dialect, JsonPath};
use penstock_message::{Form, MediaType, Scope, Value};
use serde_json::Value as Json;

use crate::Compiler;

/// A JSONPath and what it is evaluated on.
pub(super) struct JsonExpression {
    path: JsonPath,
    /// A property instead of the body.
    property: Option<(Scope, Arc<str>)>,
}

/// The path inside `json-eval(…)`; the closing bracket may be missing in old files.
pub(super) fn path_of(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("json-eval(")?;
    Some(inner.trim_end().strip_suffix(')').unwrap_or(inner))
}

/// `$ctx:name` and its kin at the beginning of a path: scope, name, and the path from there.
fn property_of(text: &str) -> Option<(Scope, &str, &str)> {
    let (prefix, rest) = text.trim().strip_prefix('$')?.split_once(':')?;
    let scope = super::scope_of(prefix)?;
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    Some((scope, &rest[..end], &rest[end..]))
}

impl JsonExpression {
    /// Compiles a path. `None` after an error was reported.
    pub(super) fn compile(cx: &mut Compiler<'_>, text: &str, at: &Place) -> Option<JsonExpression> {
        let (property, path) = match property_of(text) {
            // Real files close one bracket too many here.
            Some((scope, name, path)) => (Some((scope, name.into())), format!("${}", unbalanced_tail_off(path))),
            None => (None, text.to_owned()),
        };
        match JsonPath::parse(&path, Dialect::Artifacts) {
            Ok(path) => Some(JsonExpression { path, property }),
            Err(error) => match JsonPath::parse_tolerantly(&path) {
                Ok(path) => {
                    let text = format!(
                        "`{text}` is probably a mistake: {error}; it is used as the name of a member, as in Micro Integrator"
                    );
                    cx.warn(at.clone(), text);
                    Some(JsonExpression { path, property })
                }
                Err(_) => {
                    cx.error(at.clone(), format!("the expression `{text}` is not a valid JSONPath: {error}"));
                    None
                }
            },
        }
    }

    /// The path, when it is evaluated on the body.
    pub(super) fn body_path(&self) -> Option<&JsonPath> {
        self.property.is_none().then_some(&self.path)
    }

    /// Whether the body is looked at.
    pub(super) fn reads_body(&self) -> bool {
        self.property.is_none()
    }

    /// What the path finds. A string is text, everything else stays JSON.
    pub(super) fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        let Some(root) = self.root(exchange)? else { return Ok(None) };
        Ok(self.path.read(&root).map(|found| match found {
            Cow::Borrowed(Json::String(text)) => Value::string(text.as_str()),
            Cow::Owned(Json::String(text)) => Value::string(text),
            other => Value::Json(Arc::new(other.into_owned())),
        }))
    }

    /// What the path finds, as text.
    pub(super) fn text(&self, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        let root = self.root(exchange)?;
        if self.property.is_none()
            && self.path.is_root()
            && let Some(text) = whole_text(exchange)
        {
            return Ok(Some(text));
        }
        Ok(match root {
            None if self.property.is_none() => Some(String::new()),
            root => root.map(|root| self.path.text(&root).into_owned()),
        })
    }

    fn root(&self, exchange: &mut Exchange) -> Result<Option<Arc<Json>>, Fault> {
        let Some((scope, name)) = &self.property else {
            // Nothing is found in a body that is not there.
            return if exchange.message.body.is_empty() { Ok(None) } else { exchange.json().map(Some) };
        };
        Ok(match exchange.property(*scope, name) {
            None => None,
            Some(Value::Json(json)) => Some(json),
            Some(other) => {
                let parsed = serde_json::from_str(&other.to_text());
                Some(Arc::new(
                    parsed.map_err(|error| Fault::new(format!("the property `{name}` is not JSON: {error}")))?,
                ))
            }
        })
    }
}

/// A path without the closing brackets at its end that nothing opened.
fn unbalanced_tail_off(path: &str) -> &str {
    let mut path = path.trim_end();
    while path.ends_with(')') && path.matches(')').count() > path.matches('(').count() {
        path = &path[..path.len() - 1];
    }
    path
}

/// A JSON body as it was written: white space, number formats and all.
fn whole_text(exchange: &Exchange) -> Option<String> {
    let message = &exchange.message;
    let Form::Bytes(bytes) = message.body.form() else { return None };
    if message.source_media() != MediaType::Json || message.headers.contains("Content-Encoding") {
        return None;
    }
    std::str::from_utf8(bytes).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_as_roots() {
        for (text, expected) in [
            ("$ctx:a.b[0]", Some((Scope::Default, "a", ".b[0]"))),
            ("$trp:p", Some((Scope::Transport, "p", ""))),
            ("$.a", None),
            ("$['x:y']", None),
        ] {
            assert_eq!(property_of(text), expected, "{text}");
        }
        assert_eq!(unbalanced_tail_off(".b[?(@.x > 1)])"), ".b[?(@.x > 1)]");
    }
}
