//! JSONPath bound to an exchange: `json-eval($.a)`.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Place};
use penstock_json::path::{Dialect, JsonPath};
use penstock_message::Value;

use crate::Compiler;

/// The path inside `json-eval(…)`; the closing bracket may be missing in old files.
pub(super) fn path_of(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("json-eval(")?;
    Some(inner.trim_end().strip_suffix(')').unwrap_or(inner))
}

/// Compiles a path. `None` after an error was reported.
pub(super) fn compile(cx: &mut Compiler<'_>, text: &str, at: &Place) -> Option<JsonPath> {
    match JsonPath::parse(text, Dialect::Artifacts) {
        Ok(path) => Some(path),
        Err(error) => {
            cx.error(at.clone(), format!("the expression `{text}` is not a valid JSONPath: {error}"));
            None
        }
    }
}

/// What the path finds in the body. A string is text, everything else stays JSON.
pub(super) fn value(path: &JsonPath, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
    let root = exchange.json()?;
    Ok(path.read(&root).map(|found| match found {
        Cow::Borrowed(serde_json::Value::String(text)) => Value::string(text.as_str()),
        Cow::Owned(serde_json::Value::String(text)) => Value::string(text),
        other => Value::Json(Arc::new(other.into_owned())),
    }))
}
