//! JSONPath: what parses can be evaluated, and selecting, locating and reading agree.

use penstock_json::path::{Dialect, JsonPath, remove, replace, value_at};
use serde_json::Value;

/// Pieces of paths.
pub const DICTIONARY: &[&str] = &[
    "$", "@", "..", ".*", "[*]", "[?(", ")]", "['", "']", "[-1]", "[::2]", "&&", "||", "!", "==", "<=", "=~", "/a/i",
    "in", "nin", "size", "empty", "length()", ".sum()", ".first()", "count(", "match(", "search(", "value(", "\\u0041",
    "\n",
];

/// The first line is a path, the rest a document; a document that is none is replaced by one.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (path, document) = text.split_once('\n').unwrap_or((text, ""));
    let root: Value = serde_json::from_str(document).unwrap_or_else(
        |_| serde_json::json!({"a": [1, {"b": "x"}, [true, null]], "b": {"a": 2.5, "c": "yy"}, "": [[]]}),
    );
    for dialect in [Dialect::Artifacts, Dialect::Rfc9535] {
        match JsonPath::parse(path, dialect) {
            Ok(path) => agrees(&path, &root),
            Err(error) => assert!(error.span.start <= error.span.end && error.span.end <= path.len(), "{error:?}"),
        }
    }
}

fn agrees(path: &JsonPath, root: &Value) {
    let selected = path.select(root);
    let located = path.locate(root);
    assert_eq!(selected.len(), located.len());
    let mut copy = root.clone();
    for (value, location) in selected.iter().zip(&located) {
        assert_eq!(value_at(&mut copy, location).as_deref(), Some(*value));
    }
    let _ = (path.read(root), path.text(root).len(), path.items(root).map(|items| items.len()));
    assert_eq!(replace(&mut copy, path, &Value::Null) > 0, !located.is_empty());
    copy = root.clone();
    remove(&mut copy, path);
}
