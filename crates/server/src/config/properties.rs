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
                let digits: String = letters.clone().take(4).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(decoded) if digits.len() == 4 => {
                        out.push(decoded);
                        letters.nth(3);
                    }
                    _ => out.push('u'),
                }
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
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
