//! Tokens of XQuery as far as the translation needs them, and the end of an XPath expression.

use super::translate::{Translated, Translator};

/// Keywords that end an expression when an operator could stand in their place.
const ENDS: [&str; 12] = [
    "return",
    "where",
    "order",
    "stable",
    "let",
    "for",
    "then",
    "else",
    "ascending",
    "descending",
    "empty",
    "collation",
];

/// Operators that are words.
const OPERATORS: [&str; 20] = [
    "and",
    "or",
    "div",
    "idiv",
    "mod",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "is",
    "to",
    "union",
    "intersect",
    "except",
    "instance",
    "treat",
    "castable",
    "cast",
];

pub(super) fn is_name_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn is_name_part(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

impl Translator<'_> {
    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips white space and comments, which nest.
    pub(super) fn skip_space(&mut self) -> Translated<()> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if !self.rest().starts_with("(:") {
                return Ok(());
            }
            let mut depth = 0usize;
            loop {
                let rest = self.rest();
                if rest.starts_with("(:") {
                    depth += 1;
                    self.at += 2;
                } else if rest.starts_with(":)") {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        break;
                    }
                } else {
                    self.at += rest.chars().next().ok_or_else(|| self.error("a comment is not closed"))?.len_utf8();
                }
            }
        }
    }

    /// Whether a word begins here that is no part of a longer name.
    pub(super) fn is_keyword(&self, word: &str) -> bool {
        self.rest()
            .strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|letter| is_name_part(letter) || letter == ':'))
    }

    /// Whether a letter follows a word of this length.
    pub(super) fn follows(&self, length: usize, letter: char) -> bool {
        self.rest()[length..].trim_start().starts_with(letter)
    }

    pub(super) fn eat_keyword(&mut self, word: &str) -> Translated<bool> {
        self.skip_space()?;
        let is_there = self.is_keyword(word);
        self.at += if is_there { word.len() } else { 0 };
        Ok(is_there)
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Translated<()> {
        match self.eat_keyword(word)? {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn eat(&mut self, symbol: &str) -> bool {
        let is_there = self.rest().starts_with(symbol);
        self.at += if is_there { symbol.len() } else { 0 };
        is_there
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Translated<()> {
        self.skip_space()?;
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    /// Whether something begins here that XPath does not have.
    pub(super) fn begins_special(&self) -> bool {
        let rest = self.rest();
        rest.starts_with("<!--")
            || rest.strip_prefix('<').is_some_and(|rest| rest.starts_with(is_name_start))
            || ((self.is_keyword("for") || self.is_keyword("let")) && self.follows(3, '$'))
            || (self.is_keyword("if") && self.follows(2, '('))
            || (self.is_keyword("typeswitch") && self.follows("typeswitch".len(), '('))
            || self.computed_kind().is_some()
    }

    /// A name, with or without a prefix.
    pub(super) fn name(&mut self) -> Translated<String> {
        self.skip_space()?;
        let rest = self.rest();
        if !rest.starts_with(is_name_start) {
            return Err(self.unexpected());
        }
        let end = |text: &str| text.find(|letter| !is_name_part(letter)).unwrap_or(text.len());
        let mut length = end(rest);
        if let Some(local) = rest[length..].strip_prefix(':').filter(|local| local.starts_with(is_name_start)) {
            length += 1 + end(local);
        }
        let name = rest[..length].to_owned();
        self.at += length;
        Ok(name)
    }

    /// `$name`, without the dollar sign.
    pub(super) fn variable_name(&mut self) -> Translated<String> {
        self.expect("$")?;
        self.name()
    }

    /// `element(a)*`, `xs:string?`, `document-node()`.
    pub(super) fn sequence_type(&mut self) -> Translated<String> {
        let mut out = self.name()?;
        if self.eat("(") {
            let length = self.rest().find(')').ok_or_else(|| self.error("a type is not closed"))?;
            out.push_str(&format!("({})", &self.rest()[..length]));
            self.at += length + 1;
        }
        if let Some(sign @ ('?' | '*' | '+')) = self.peek() {
            out.push(sign);
            self.at += 1;
        }
        Ok(out)
    }

    /// A text in quotes, in which a doubled quote is one, with its references replaced.
    pub(super) fn literal(&mut self) -> Translated<String> {
        self.skip_space()?;
        let quote = self.peek().filter(|letter| matches!(letter, '"' | '\'')).ok_or_else(|| self.unexpected())?;
        self.at += 1;
        let mut out = String::new();
        loop {
            let letter = self.peek().ok_or_else(|| self.error("a text has no closing quote"))?;
            if letter == '&' {
                out.push(self.reference()?);
                continue;
            }
            self.at += letter.len_utf8();
            if letter == quote {
                if self.peek() != Some(quote) {
                    return Ok(out);
                }
                self.at += 1;
            }
            out.push(letter);
        }
    }

    /// `&lt;`, `&#65;`, `&#x41;`.
    pub(super) fn reference(&mut self) -> Translated<char> {
        let length =
            self.rest().find(';').filter(|length| *length <= 10).ok_or_else(|| self.error("`&` is not escaped"))?;
        let name = &self.rest()[1..length];
        let number = name.strip_prefix('#').and_then(|digits| match digits.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        });
        let letter = match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => number.and_then(char::from_u32),
        };
        let letter = letter.ok_or_else(|| self.error(format!("`&{name};` is not a reference")))?;
        self.at += length + 1;
        Ok(letter)
    }

    /// An XPath expression up to what ends it. Parts that XPath does not have become variables in the prelude.
    pub(super) fn xpath(&mut self, prelude: &mut String) -> Translated<String> {
        let mut out = String::new();
        let mut brackets: Vec<char> = Vec::new();
        // Whether an operand comes next, and whether it is the name of a step.
        let (mut wants_operand, mut is_step) = (true, false);
        let mut quantified = 0usize;
        loop {
            let before = self.at;
            self.skip_space()?;
            if self.at > before {
                out.push(' ');
            }
            let Some(letter) = self.peek() else { break };
            if wants_operand && !is_step && self.begins_special() {
                // The variable stands before the expression, where a predicate's context is not known.
                if brackets.contains(&'[') || quantified > 0 {
                    return Err(self.unsupported("a constructor, `for`, `let` or `if` inside a predicate"));
                }
                let part = self.single()?;
                let select = self.selected(part, prelude);
                out.push_str(&select);
                wants_operand = false;
                continue;
            }
            match letter {
                '"' | '\'' => {
                    let text = self.literal()?;
                    out.push_str(&format!("\"{}\"", text.replace('"', "\"\"")));
                    (wants_operand, is_step) = (false, false);
                }
                '(' | '[' => {
                    brackets.push(letter);
                    self.copy_letter(letter, &mut out);
                    (wants_operand, is_step) = (true, false);
                }
                ')' | ']' => {
                    let opening = if letter == ')' { '(' } else { '[' };
                    match brackets.pop() {
                        None => break,
                        Some(open) if open == opening => self.copy_letter(letter, &mut out),
                        Some(_) => return Err(self.unexpected()),
                    }
                    (wants_operand, is_step) = (false, false);
                }
                ',' | ';' | '{' | '}' if brackets.is_empty() => break,
                ',' => {
                    self.copy_letter(letter, &mut out);
                    (wants_operand, is_step) = (true, false);
                }
                '$' => {
                    let name = self.variable_name()?;
                    out.push_str(&format!("${name}"));
                    (wants_operand, is_step) = (false, false);
                }
                '*' if wants_operand => {
                    self.copy_letter(letter, &mut out);
                    (wants_operand, is_step) = (false, false);
                }
                '@' | '/' => {
                    self.copy_letter(letter, &mut out);
                    (wants_operand, is_step) = (true, true);
                }
                ':' if self.rest().starts_with("::") => {
                    out.push_str("::");
                    self.at += 2;
                    (wants_operand, is_step) = (true, true);
                }
                '.' | '0'..='9' => {
                    let rest = self.rest();
                    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
                    let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                    out.push_str(&rest[..length]);
                    self.at += length;
                    (wants_operand, is_step) = (false, false);
                }
                '+' | '-' | '*' | '=' | '!' | '|' | '<' | '>' => {
                    self.copy_letter(letter, &mut out);
                    (wants_operand, is_step) = (true, false);
                }
                letter if is_name_start(letter) => {
                    let start = self.at;
                    let name = self.name()?;
                    if wants_operand {
                        let binds = !is_step && matches!(name.as_str(), "some" | "every") && self.follows(0, '$');
                        quantified += usize::from(binds);
                        out.push_str(&name);
                        // `p:*`
                        if self.rest().starts_with(":*") {
                            out.push_str(":*");
                            self.at += 2;
                        }
                        (wants_operand, is_step) = (binds, false);
                        if binds {
                            let variable = self.variable_name()?;
                            out.push_str(&format!(" ${variable}"));
                            wants_operand = false;
                        }
                        continue;
                    }
                    match name.as_str() {
                        "in" | "satisfies" if quantified > 0 => wants_operand = true,
                        "of" | "as" => {
                            out.push_str(&format!("{name} {}", self.sequence_type()?));
                            continue;
                        }
                        operator if OPERATORS.contains(&operator) => {
                            wants_operand = !matches!(operator, "instance" | "treat" | "castable" | "cast");
                        }
                        end if brackets.is_empty() && ENDS.contains(&end) => {
                            self.at = start;
                            break;
                        }
                        _ => {
                            self.at = start;
                            return Err(self.unexpected());
                        }
                    }
                    out.push_str(&name);
                }
                _ => return Err(self.unexpected()),
            }
        }
        if !brackets.is_empty() || wants_operand {
            return Err(self.unexpected());
        }
        Ok(out.trim().to_owned())
    }

    fn copy_letter(&mut self, letter: char, out: &mut String) {
        out.push(letter);
        self.at += letter.len_utf8();
    }

    /// The XPath of an expression whose parts have commas between them.
    pub(super) fn selected_expression(&mut self, prelude: &mut String) -> Translated<String> {
        let mut parts = Vec::new();
        loop {
            let part = self.single()?;
            parts.push(self.selected(part, prelude));
            self.skip_space()?;
            if !self.eat(",") {
                break;
            }
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => format!("({})", parts.join(", ")),
        })
    }
}
