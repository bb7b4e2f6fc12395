//! `$ref` inside a document.

use percent_encoding::percent_decode_str;

use crate::Import;
use crate::document::{Item, Value};

/// References that lead to references: more is a circle.
const HOPS_MAX: usize = 16;

/// What an item stands for: itself, or what its `$ref` leads to. `None` after it was said that it leads nowhere.
pub(crate) fn resolve<'d>(import: &mut Import<'_>, root: Item<'d>, item: Item<'d>) -> Option<Item<'d>> {
    let mut item = item;
    for _ in 0..HOPS_MAX {
        let Some(reference) = item.get("$ref") else { return Some(item) };
        let at = reference.at();
        let Some(text) = reference.text().cloned() else {
            import.error(&at, format!("`$ref` must be a text, not {}", reference.kind()));
            return None;
        };
        let Some(pointer) = text.strip_prefix('#') else {
            import.warn(&at, format!("`{text}` is not followed: references lead inside the same document"));
            return None;
        };
        let Some(target) = follow(root, pointer) else {
            import.error(&at, format!("`{text}` cannot be resolved"));
            return None;
        };
        item = target;
    }
    import.error(&item.at(), format!("references lead to each other more than {HOPS_MAX} times"));
    None
}

/// RFC 6901.
pub(crate) fn follow<'d>(root: Item<'d>, pointer: &str) -> Option<Item<'d>> {
    let mut item = root;
    for token in pointer.strip_prefix('/')?.split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        item = match &item.node().value {
            Value::Map(entries) => {
                let found = entries.iter().find(|entry| *entry.key == *token);
                // A path in a reference of the fragment form is percent-encoded.
                let found = found.or_else(|| entries.iter().find(|entry| *entry.key == *decoded(&token)));
                item.sibling(&found?.value)
            }
            Value::List(items) => item.sibling(items.get(token.parse::<usize>().ok()?)?),
            Value::Scalar(_) => return None,
        };
    }
    Some(item)
}

fn decoded(token: &str) -> String {
    percent_decode_str(token).decode_utf8_lossy().into_owned()
}
