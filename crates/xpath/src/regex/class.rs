//! Character classes: `[a-z-[aeiou]]`, `\p{IsGreek}`, `\i`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::blocks::block;
use super::parse::{Parsed, Parser, push_literal};

/// Classes taken away from classes; the parser recurses.
const MAX_NESTING: usize = 20;

/// The characters that names begin with (XML 1.0 §2.3), as items of a class.
const NAME_START: &str = concat!(
    r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}",
    r"\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}"
);

/// Those that names have besides.
const NAME_MORE: &str = r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}";

/// What a backslash begins.
pub(super) enum Escape {
    One(char),
    /// Items of a class, and whether the other characters are meant.
    Many(String, bool),
}

impl Escape {
    /// As an atom. The flag `i` is ignored on sets of characters that a name stands for (F&O §7.6.1.1).
    pub(super) fn alone(&self, ignore_case: bool) -> String {
        match self {
            Escape::One(c) => {
                let mut out = String::new();
                push_literal(&mut out, *c);
                out
            }
            Escape::Many(items, negated) => {
                let class = format!("[{}{items}]", if *negated { "^" } else { "" });
                if ignore_case { format!("(?-i:{class})") } else { class }
            }
        }
    }
}

/// After the backslash.
pub(super) fn escape(parser: &mut Parser) -> Parsed<Escape> {
    let Some(c) = parser.next() else { return Err("ends with a backslash".to_string()) };
    let many = |items: &str| Ok(Escape::Many(items.to_string(), c.is_ascii_uppercase()));
    match c {
        'n' => Ok(Escape::One('\n')),
        'r' => Ok(Escape::One('\r')),
        't' => Ok(Escape::One('\t')),
        '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^' => Ok(Escape::One(c)),
        '$' if parser.options.dialect == super::Dialect::XPath => Ok(Escape::One(c)),
        's' | 'S' => many(r" \t\n\r"),
        'd' | 'D' => many(r"\p{Nd}"),
        'i' | 'I' => many(NAME_START),
        'c' | 'C' => many(&format!("{NAME_START}{NAME_MORE}")),
        // Words are what is neither punctuation nor separator nor other.
        'w' => Ok(Escape::Many(r"\p{P}\p{Z}\p{C}".to_string(), true)),
        'W' => Ok(Escape::Many(r"\p{P}\p{Z}\p{C}".to_string(), false)),
        'p' | 'P' => property(parser, c == 'P'),
        other => Err(format!("unknown escape `\\{other}`")),
    }
}

/// The general categories of Unicode.
const CATEGORIES: &[&str] = &[
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi",
    "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
];

/// `\p{Lu}` or `\p{IsGreek}`.
fn property(parser: &mut Parser, negated: bool) -> Parsed<Escape> {
    if !parser.eat('{') {
        return Err("`\\p` is followed by `{`".to_string());
    }
    let mut name = String::new();
    loop {
        match parser.next() {
            Some('}') => break,
            Some(c) => name.push(c),
            None => return Err("`\\p{` without its `}`".to_string()),
        }
    }
    let unknown = || format!("unknown category or block `{name}`");
    if let Some(wanted) = name.strip_prefix("Is") {
        let (first, last) = block(wanted).ok_or_else(unknown)?;
        return Ok(Escape::Many(format!(r"\x{{{first:X}}}-\x{{{last:X}}}"), negated));
    }
    if !CATEGORIES.contains(&&*name) {
        return Err(unknown());
    }
    Ok(Escape::Many(format!(r"\p{{{name}}}"), negated))
}

/// After `[`: the class in the syntax of the `regex` crate.
pub(super) fn expression(parser: &mut Parser, depth: usize) -> Parsed<String> {
    if depth > MAX_NESTING {
        return Err(format!("classes nested more than {MAX_NESTING} levels deep"));
    }
    let negated = parser.eat('^');
    let mut literals: Vec<(char, char)> = Vec::new();
    let mut named = String::new();
    let mut subtracted = None;
    // Where a hyphen stands for itself: at the beginning, and after a range or a set, which begin no range.
    let mut hyphen_allowed = true;
    let mut first = true;
    loop {
        match parser.peek() {
            None => return Err("`[` without its `]`".to_string()),
            Some(']') if !first => {
                parser.next();
                break;
            }
            Some('-') if !first && parser.peek_second() == Some('[') => {
                parser.next();
                parser.next();
                subtracted = Some(expression(parser, depth + 1)?);
                if !parser.eat(']') {
                    return Err("nothing follows a class that is taken away".to_string());
                }
                break;
            }
            Some(_) => hyphen_allowed = item(parser, hyphen_allowed, &mut literals, &mut named)?,
        }
        first = false;
    }
    let items = format!("{}{named}", ranges(&literals, parser.options.ignore_case));
    let class = format!("[{}{items}]", if negated { "^" } else { "" });
    let class = match subtracted {
        Some(subtracted) => format!("[{class}--{subtracted}]"),
        None => class,
    };
    // Case was folded here already.
    Ok(if parser.options.ignore_case && depth == 0 { format!("(?-i:{class})") } else { class })
}

/// One character, range or escape of a class; returns whether a hyphen may follow.
fn item(
    parser: &mut Parser,
    hyphen_allowed: bool,
    literals: &mut Vec<(char, char)>,
    named: &mut String,
) -> Parsed<bool> {
    let start = match single(parser)? {
        Escape::One(c) => c,
        Escape::Many(items, negated) => {
            named.push_str(&format!("[{}{items}]", if negated { "^" } else { "" }));
            return Ok(true);
        }
    };
    let escaped = parser.previous_was_escape(start);
    let range = parser.peek() == Some('-') && !matches!(parser.peek_second(), Some(']' | '[') | None);
    if start == '-' && !escaped {
        let last =
            matches!(parser.peek(), Some(']')) || (parser.peek() == Some('-') && parser.peek_second() == Some('['));
        if range || !(hyphen_allowed || last) {
            return Err("a hyphen in a class is written `\\-`".to_string());
        }
    }
    if !range {
        literals.push((start, start));
        return Ok(false);
    }
    parser.next();
    match single(parser)? {
        Escape::One('-') if !parser.previous_was_escape('-') => Err("a hyphen in a class is written `\\-`".to_string()),
        Escape::One(end) if end < start => Err(format!("the range `{start}-{end}` ends before it begins")),
        Escape::One(end) => {
            literals.push((start, end));
            Ok(true)
        }
        Escape::Many(..) => Err("a range ends with a character".to_string()),
    }
}

fn single(parser: &mut Parser) -> Parsed<Escape> {
    match parser.next() {
        Some('\\') => escape(parser),
        Some(c @ ('[' | ']')) => Err(format!("`{c}` in a class is written `\\{c}`")),
        Some(c) => Ok(Escape::One(c)),
        None => Err("`[` without its `]`".to_string()),
    }
}

/// Ranges as items of a class, with the other case of each letter where case is ignored.
fn ranges(literals: &[(char, char)], ignore_case: bool) -> String {
    let mut class = ClassUnicode::new(literals.iter().map(|(start, end)| ClassUnicodeRange::new(*start, *end)));
    if ignore_case {
        // Fails only when the tables for it were left out of the build, which then stays case-sensitive.
        let _ = class.try_case_fold_simple();
    }
    let one =
        |range: &ClassUnicodeRange| format!(r"\x{{{:X}}}-\x{{{:X}}}", u32::from(range.start()), u32::from(range.end()));
    class.ranges().iter().map(one).collect()
}
