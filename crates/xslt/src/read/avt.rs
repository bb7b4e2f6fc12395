//! Attribute value templates: `text {expression} text`.

/// A piece of an attribute value template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AvtPart<'a> {
    /// Text with doubled braces already made single.
    Text(String),
    /// An expression, and the byte offset at which it starts in the attribute value.
    Expression(&'a str, usize),
}

/// Splits an attribute value into its parts; the error is a sentence.
pub(crate) fn split(value: &str) -> Result<Vec<AvtPart<'_>>, &'static str> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut at = 0;
    while let Some(found) = value[at..].find(['{', '}']) {
        let brace = at + found;
        text.push_str(&value[at..brace]);
        let open = value.as_bytes()[brace] == b'{';
        if value.as_bytes().get(brace + 1) == Some(&value.as_bytes()[brace]) {
            text.push(if open { '{' } else { '}' });
            at = brace + 2;
            continue;
        }
        if !open {
            return Err("`}` outside an expression is written `}}`");
        }
        let end = expression_end(value, brace + 1).ok_or("`{` without its `}`")?;
        if !text.is_empty() {
            parts.push(AvtPart::Text(std::mem::take(&mut text)));
        }
        parts.push(AvtPart::Expression(&value[brace + 1..end], brace + 1));
        at = end + 1;
    }
    text.push_str(&value[at..]);
    if !text.is_empty() {
        parts.push(AvtPart::Text(text));
    }
    Ok(parts)
}

/// The `}` that ends an expression: string literals and comments may contain braces.
fn expression_end(value: &str, start: usize) -> Option<usize> {
    let bytes = value.as_bytes();
    let mut at = start;
    let mut quote = None;
    while let Some(byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(q), b) if q == *b => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use AvtPart::{Expression, Text};

    #[test]
    fn parts() {
        assert_eq!(split("a{b}c").unwrap(), [Text("a".into()), Expression("b", 2), Text("c".into())]);
        assert_eq!(split("{{x}}").unwrap(), [Text("{x}".into())]);
        assert_eq!(split("{'}'}").unwrap(), [Expression("'}'", 1)]);
        assert_eq!(split("").unwrap(), []);
        assert!(split("{a").is_err());
        assert!(split("a}").is_err());
    }
}
