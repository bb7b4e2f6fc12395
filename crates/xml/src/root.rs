//! The root element of a document that is not parsed.

use std::borrow::Cow;

/// The local name of the root element of a document that begins with these bytes; `None` when they hold none.
pub fn root_name(bytes: &[u8]) -> Option<String> {
    let mut text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        // UTF-16 has a null beside each letter of the markup.
        text = Cow::Owned(text.replace('\0', ""));
    }
    // A byte order mark, of UTF-8 or of UTF-16.
    let mut rest = text.trim_start_matches(['\u{feff}', '\u{fffd}']);
    loop {
        rest = rest.trim_start();
        rest = if let Some(comment) = rest.strip_prefix("<!--") {
            comment.split_once("-->")?.1
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            instruction.split_once("?>")?.1
        } else if rest.starts_with("<!") {
            after_doctype(rest)?
        } else {
            break;
        };
    }
    let tag = rest.strip_prefix('<')?;
    let end = tag.find(|next: char| next.is_whitespace() || matches!(next, '>' | '/'))?;
    let name = tag[..end].rsplit(':').next().unwrap_or_default();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Behind a document type declaration, its internal subset included.
fn after_doctype(text: &str) -> Option<&str> {
    let mut inside = 0usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '[' => inside += 1,
            ']' => inside = inside.saturating_sub(1),
            '>' if inside == 0 => return text.get(index + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_element_is_found_behind_the_prolog() {
        for (text, expected) in [
            ("<api/>", Some("api")),
            ("\u{feff}<?xml version='1.0'?>\n<!-- <x> --> <syn:proxy name='a'>", Some("proxy")),
            ("<!DOCTYPE a [<!ENTITY b '>'>]><a>", Some("a")),
            ("", None),
            ("{\"a\": 1}", None),
            ("<!-- never closed", None),
            ("<name", None),
            ("<>", None),
        ] {
            assert_eq!(root_name(text.as_bytes()).as_deref(), expected, "{text}");
        }
        let wide: Vec<u8> = "\u{feff}<Envelope >".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(root_name(&wide).as_deref(), Some("Envelope"));
    }
}
