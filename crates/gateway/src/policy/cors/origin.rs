//! Patterns of origins.

/// Whether an origin matches a pattern in which `*` stands for any text.
pub(super) fn matches_origin(pattern: &str, origin: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == origin };
    let Some(mut text) = origin.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("*", "http://a", true),
            ("http://a", "http://a", true),
            ("http://a", "http://a.evil", false),
            ("http://*.a.com", "http://x.y.a.com", true),
            ("http://*.a.com", "http://a.com", false),
            ("http://*.a.com", "http://x.a.com.evil", false),
            ("*://a*b*", "https://a-b", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches_origin(pattern, text), expected, "{pattern} {text}");
        }
    }
}
