//! `$NAME` and `${NAME}` in descriptors: values of the environment.

use std::sync::Arc;

use penstock_catalog::At;

use super::Import;
use super::document::{Node, Value};

/// Replaces the placeholders of every value. A `${NAME}` that is not set stays and is said; a bare `$NAME` that is not
/// set is taken for text, since passwords and patterns contain dollar signs.
pub(super) fn apply(import: &mut Import<'_>, file: &Arc<str>, node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| apply(import, file, item)),
        Value::Map(entries) => {
            for entry in entries {
                // A bare `$` belongs to the name: `$ref`.
                if entry.key.contains("${") {
                    entry.key = replace(&entry.key, &|name| import.variables.get(name).cloned()).0.into();
                }
                apply(import, file, &mut entry.value);
            }
        }
        Value::Scalar(scalar) if scalar.text.contains('$') => {
            let (text, missing) = replace(&scalar.text, &|name| import.variables.get(name).cloned());
            scalar.text = text.into();
            for name in missing {
                let at = At { file: file.clone(), line: node.line, column: node.column };
                import.warn(&at, format!("`${{{name}}}` stays as it is: the environment variable `{name}` is not set"));
            }
        }
        Value::Scalar(_) => {}
    }
}

/// The text, and the names in braces that are not set.
pub(super) fn replace(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> (String, Vec<String>) {
    let (mut out, mut missing) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let (name, behind, braces) = match after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((name, behind)) => (name, behind, true),
            None => {
                let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let (name, behind) = after.split_at(end.unwrap_or(after.len()));
                (name, behind, false)
            }
        };
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match lookup(name).filter(|_| is_name) {
            Some(value) => out.push_str(&value),
            None => {
                if braces && is_name {
                    missing.push(name.to_owned());
                }
                out.push_str(&rest[start..rest.len() - behind.len()]);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    (out, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced() {
        let lookup = |name: &str| (name == "HOST").then(|| "h".to_owned());
        for (text, expected, missing) in [
            ("http://${HOST}/$HOST.x", "http://h/h.x", vec![]),
            ("${NONE} $NONE", "${NONE} $NONE", vec!["NONE"]),
            ("p$ss$w0rd$", "p$ss$w0rd$", vec![]),
            ("^[a-z]{1}$", "^[a-z]{1}$", vec![]),
            ("${not closed", "${not closed", vec![]),
            ("${uri.var.a}", "${uri.var.a}", vec![]),
            ("$${HOST}", "$h", vec![]),
        ] {
            assert_eq!(replace(text, &lookup), (expected.to_owned(), missing.into_iter().map(str::to_owned).collect()));
        }
    }
}
