//! Quoted texts that go on at the indentation of their key, or before it.

/// The text with the lines of such texts indented, which changes nothing in them: line breaks in quotes fold to a blank
/// together with the blanks around them. `None` when there are none.
pub(super) fn indented(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut changed = false;
    // The quote of the text that goes on, and the indentation of its key.
    let mut open: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        match open {
            None => open = opens(line, indentation),
            Some((quote, key)) => {
                if indentation <= key && !line.trim().is_empty() {
                    out.push_str(&" ".repeat(key + 1 - indentation));
                    changed = true;
                }
                if closes(line, quote) {
                    open = None;
                }
            }
        }
        out.push_str(line);
    }
    changed.then_some(out)
}

/// `key: "text` with no end: the quote, and where the key begins.
fn opens(line: &str, indentation: usize) -> Option<(char, usize)> {
    let mut content = line[indentation..].trim_end();
    let mut key = indentation;
    while let Some(inside) = content.strip_prefix("- ") {
        key += content.len() - inside.trim_start().len();
        content = inside.trim_start();
    }
    let (name, value) = content.split_once(": ")?;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '$' | '/');
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let value = value.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    (!closes(&value[1..], quote)).then_some((quote, key))
}

/// Whether a quote that ends a text stands in the rest of it.
fn closes(rest: &str, quote: char) -> bool {
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        if quote == '"' && letter == '\\' {
            letters.next();
        } else if letter == quote {
            // A single quote is written as two.
            if quote == '\'' && letters.peek() == Some(&'\'') {
                letters.next();
            } else {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quoted_texts_are_indented() {
        for (text, expected) in [
            ("a: 'x\ny'\nb: 1\n", Some("a: 'x\n y'\nb: 1\n")),
            ("- - a: \"x\n  y\\\"\n  z\"\n", Some("- - a: \"x\n     y\\\"\n     z\"\n")),
            ("a: 'it''s\n  fine'\n", None),
            ("a: x\nb: 'y'\n", None),
            ("a: |\n  don't: 'x\n", None),
        ] {
            assert_eq!(indented(text).as_deref(), expected, "{text:?}");
        }
    }
}
