//! Identifiers and references of schemas (RFC 3986 as far as schemas use it).

use percent_encoding::percent_decode_str;

/// A reference seen from a base. Fragments are kept.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    if has_scheme(reference) {
        return reference.to_owned();
    }
    let base = without_fragment(base);
    if reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    let (root, path) = split_authority(base);
    if let Some(rest) = reference.strip_prefix("//") {
        let scheme = base.split_once("//").map_or("", |(scheme, _)| scheme);
        return format!("{scheme}//{rest}");
    }
    if reference.starts_with('/') {
        return format!("{root}{reference}");
    }
    let folder = path.rfind('/').map_or("", |end| &path[..=end]);
    format!("{root}{}", without_dots(&format!("{folder}{reference}")))
}

fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
    })
}

/// The part before the path, and the path.
fn split_authority(uri: &str) -> (&str, &str) {
    let from = match uri.find("://") {
        Some(at) => uri[at + 3..].find('/').map_or(uri.len(), |end| at + 3 + end),
        None => uri.find(':').map_or(0, |at| at + 1),
    };
    uri.split_at(from)
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.len() > 1 => drop(parts.pop()),
            ".." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

pub(super) fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

pub(super) fn fragment(uri: &str) -> &str {
    uri.split_once('#').map_or("", |(_, fragment)| fragment)
}

/// A part of a JSON pointer as a name.
pub(super) fn unescape(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().replace("~1", "/").replace("~0", "~")
}

/// A name as a part of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_seen_from_their_base() {
        for (base, reference, expected) in [
            ("http://h/a/b.json", "c.json", "http://h/a/c.json"),
            ("http://h/a/b.json#x", "#/y", "http://h/a/b.json#/y"),
            ("http://h/a/b/", "../c", "http://h/a/c"),
            ("http://h/a", "/c/d", "http://h/c/d"),
            ("", "item.json", "item.json"),
            ("http://h", "c", "http://hc"),
            ("urn:x:y", "#a", "urn:x:y#a"),
            ("http://h/a", "urn:q", "urn:q"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{base} {reference}");
        }
        assert_eq!(unescape("a~1b%25~0"), "a/b%~");
    }
}
