//! How long a text is for the guardrails of either product.

/// Without the quotes that JSON puts around a text.
pub(super) fn without_quotes(text: &str) -> &str {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.strip_suffix('"').unwrap_or(text)
}

/// What stands between white space.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// What stands between full stops, exclamation and question marks.
pub(super) fn sentences(text: &str) -> usize {
    text.split(['.', '!', '?']).filter(|sentence| !sentence.trim().is_empty()).count()
}
