//! `.properties` files and `.env` files.

/// Reads the lines of a `.properties` file, in the order they stand.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut logical = line.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while ends_in_continuation(&logical) {
            logical.pop();
            match lines.next() {
                Some(next) => logical.push_str(next.trim_start()),
                None => break,
            }
        }
        let (key, value) = split(&logical);
        found.push((unescape(key), unescape(value)));
    }
    found
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits at the first separator that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (index, letter) in line.char_indices() {
        if !escaped && (matches!(letter, '=' | ':') || letter.is_whitespace()) {
            let value = line[index..].trim_start();
            let value = value.strip_prefix(['=', ':']).unwrap_or(value);
            return (&line[..index], value.trim_start());
        }
        escaped = letter == '\\' && !escaped;
    }
    (line, "")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('u') => {
                let (Some(first), after) = unit(letters.as_str()) else {
                    out.push('u');
                    continue;
                };
                let second = after.strip_prefix("\\u").map(unit);
                // Java writes what does not fit into 16 bits as two of them.
                let pair = second.and_then(|(second, after)| {
                    let decoded = char::decode_utf16([first, second?]).next()?.ok()?;
                    (decoded.len_utf16() == 2).then_some((decoded, after))
                });
                let (decoded, after) = pair.unwrap_or((char::from_u32(first.into()).unwrap_or('\u{fffd}'), after));
                out.push(decoded);
                letters = after.chars();
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// The four hexadecimal digits that a text begins with, and what follows them.
fn unit(text: &str) -> (Option<u16>, &str) {
    match text.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
        Some(digits) => (u16::from_str_radix(digits, 16).ok(), &text[4..]),
        None => (None, text),
    }
}

/// Writes properties so that [`parse`] and Java read them back.
pub fn write<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        escape(name, true, &mut out);
        out.push('=');
        escape(value, false, &mut out);
        out.push('\n');
    }
    out
}

fn escape(text: &str, is_name: bool, out: &mut String) {
    for (index, letter) in text.char_indices() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', letter]),
            ' ' if is_name || index == 0 => out.push_str("\\ "),
            ' '..='~' => out.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
}

/// Reads the lines of a `.env` file: `NAME=value`, quotes around the value taken off.
pub fn parse_env(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
        found.push((name.trim().to_owned(), value.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
        found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    #[test]
    fn properties_are_read_back() {
        let all = [("a b:c", " x = y\\\n\tz "), ("#", "!"), ("ü€", "😀\u{7f}"), ("", ""), ("n", "")];
        assert_eq!(pairs(&parse(&write(all))), all);
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        let text =
            "# c\n! c\na=1\n b : 2\nc 3\nd\\ e=x=y\nlong=one \\\n   two\nu=\\u00e9\\t\npath=C\\:\\\\x\nempty=\nlast\\";
        let expected = [
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("d e", "x=y"),
            ("long", "one two"),
            ("u", "é\t"),
            ("path", "C:\\x"),
            ("empty", ""),
            ("last", ""),
        ];
        assert_eq!(pairs(&parse(text)), expected);
    }

    #[test]
    fn env_files_are_read() {
        let text = "# c\nA=1\nexport B=\"two words\"\nC='x # y'\nD=z # note\nnonsense\nE=";
        assert_eq!(pairs(&parse_env(text)), [("A", "1"), ("B", "two words"), ("C", "x # y"), ("D", "z"), ("E", "")]);
    }
}
