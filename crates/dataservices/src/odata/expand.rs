//! `$expand`: which links are followed, and the options of each.

use super::Refusal;

/// A longer text is no query that a person or a tool writes.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Links inside links.
const DEPTH_MAX: usize = 5;

/// Links that one request follows on one level.
const LINKS_MAX: usize = 32;

/// A link that is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Its name.
    pub name: String,
    /// Whether only references are returned (`/$ref`).
    pub is_reference: bool,
    /// `$select`.
    pub select: Option<String>,
    /// `$filter`.
    pub filter: Option<String>,
    /// `$orderby`.
    pub order: Option<String>,
    /// `$skip`.
    pub skip: usize,
    /// `$top`.
    pub top: Option<usize>,
    /// `$count`.
    pub has_count: bool,
    /// `$expand`.
    pub expansions: Vec<Expansion>,
}

/// Reads `$expand`: `Orders,Owner($select=Name;$expand=Town)`.
pub fn parse(text: &str) -> Result<Vec<Expansion>, Refusal> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Refusal::invalid(format!("`$expand` is longer than {TEXT_BYTES_MAX} bytes")));
    }
    parse_level(text, 1)
}

fn parse_level(text: &str, depth: usize) -> Result<Vec<Expansion>, Refusal> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    if depth > DEPTH_MAX {
        return Err(Refusal::invalid(format!("`$expand` is nested deeper than {DEPTH_MAX}")));
    }
    let items = divided(text, ',')?;
    if items.len() > LINKS_MAX {
        return Err(Refusal::invalid(format!("`$expand` follows more than {LINKS_MAX} links")));
    }
    items.into_iter().map(|item| parse_item(item.trim(), depth)).collect()
}

fn parse_item(text: &str, depth: usize) -> Result<Expansion, Refusal> {
    let (path, options) = match text.split_once('(') {
        Some((path, rest)) => {
            let options = rest.strip_suffix(')').ok_or_else(|| Refusal::invalid("a parenthesis is not closed"))?;
            (path.trim(), options)
        }
        None => (text, ""),
    };
    let (name, is_reference) = match path.strip_suffix("/$ref") {
        Some(name) => (name, true),
        None => (path, false),
    };
    if name.is_empty() || name == "*" || name.contains('/') {
        return Err(Refusal::unsupported(&format!("`$expand={path}`")));
    }
    let mut expansion = Expansion { name: name.to_owned(), is_reference, ..Expansion::default() };
    for option in divided(options, ';')?.into_iter().map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) =
            option.split_once('=').ok_or_else(|| Refusal::invalid(format!("`{option}` has no value")))?;
        let number = || value.parse().map_err(|_| Refusal::invalid(format!("`{name}` is not a number")));
        match name {
            "$select" => expansion.select = Some(value.to_owned()),
            "$filter" => expansion.filter = Some(value.to_owned()),
            "$orderby" => expansion.order = Some(value.to_owned()),
            "$top" => expansion.top = Some(number()?),
            "$skip" => expansion.skip = number()?,
            "$count" => expansion.has_count = value == "true",
            "$expand" => expansion.expansions = parse_level(value, depth + 1)?,
            other => return Err(Refusal::unsupported(&format!("`{other}` inside `$expand`"))),
        }
    }
    Ok(expansion)
}

/// The pieces between separators that are neither in quotes nor in parentheses.
fn divided(text: &str, separator: char) -> Result<Vec<&str>, Refusal> {
    let mut pieces = Vec::new();
    let (mut from, mut depth, mut is_quoted) = (0, 0usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(|| Refusal::invalid("a parenthesis is not open"))?,
            _ if letter == separator && depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    if is_quoted || depth > 0 {
        return Err(Refusal::invalid("a quotation or a parenthesis is not closed"));
    }
    pieces.push(&text[from..]);
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_their_options_are_read() {
        let found =
            parse("Orders($filter=contains(Note,'a;b,(c');$top=2;$expand=Lines($count=true)),Owner/$ref").unwrap();
        let lines = Expansion { name: "Lines".into(), has_count: true, ..Expansion::default() };
        let orders = Expansion {
            name: "Orders".into(),
            filter: Some("contains(Note,'a;b,(c')".into()),
            top: Some(2),
            expansions: vec![lines],
            ..Expansion::default()
        };
        let owner = Expansion { name: "Owner".into(), is_reference: true, ..Expansion::default() };
        assert_eq!(found, [orders, owner]);
    }

    #[test]
    fn what_is_no_expansion_is_refused() {
        let deep = "A($expand=".repeat(10) + &")".repeat(10);
        for text in ["A(", "A)", "*", "A/B", "A($top=x)", "A($levels=2)", "A($filter=x eq 'y)", ",", &deep] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
