//! XML in JavaScript (E4X), which engines of the past had: literals and operators become calls of functions of `xml.js`.
//!
//! Only a text that is no JavaScript gets here. What is not E4X is copied as it stands, line by line the same.

mod literal;

/// Literals and the expressions in them may stand in one another this deep.
const DEPTH_MAX: usize = 32;

/// The script in plain JavaScript. `Err` says what has no end.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let mut translator = Translator {
        source: source.as_bytes(),
        text: source,
        at: 0,
        out: String::with_capacity(source.len() * 2),
        depth: 0,
    };
    translator.code(None)?;
    Ok(translator.out)
}

struct Translator<'s> {
    source: &'s [u8],
    text: &'s str,
    at: usize,
    out: String,
    depth: usize,
}

/// After these a value begins, so `<` opens a literal and `/` a regular expression.
const BEFORE_VALUES: [&str; 14] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "delete",
    "void",
    "throw",
    "new",
    "else",
    "do",
    "instanceof",
    "yield",
    "await",
];

impl<'s> Translator<'s> {
    fn peek(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Copies up to `end`.
    fn copy_to(&mut self, end: usize) {
        let end = end.min(self.source.len());
        self.out.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    /// Where the next `mark` ends.
    fn past(&self, from: usize, mark: &str) -> Result<usize, String> {
        match self.text[from..].find(mark) {
            Some(found) => Ok(from + found + mark.len()),
            None => Err(format!("`{mark}` is missing at the end")),
        }
    }

    /// Translates up to a closing bracket that was not opened here, or to the end. The bracket is left.
    fn code(&mut self, closing: Option<u8>) -> Result<(), String> {
        self.code_until(closing, false)
    }

    /// The same; `of_assignment` ends at the end of an assignment, too.
    fn code_until(&mut self, closing: Option<u8>, of_assignment: bool) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("XML literals stand too deep in one another".into());
        }
        // With the beginning of the expression that goes on behind the closing bracket.
        let mut open: Vec<usize> = Vec::new();
        let mut operand = false;
        // Where in the output the operand begins.
        let mut begin = self.out.len();
        // How deep the brackets of a `for each` are whose `in` has not come yet.
        let mut each_at: Option<usize> = None;
        while self.at < self.source.len() {
            let byte = self.source[self.at];
            if of_assignment && open.is_empty() && self.ends_assignment(operand) {
                self.depth -= 1;
                return Ok(());
            }
            if !operand && !byte.is_ascii_whitespace() {
                begin = self.out.len();
            }
            match byte {
                b'/' if self.peek(1) == b'/' => {
                    let end = self.text[self.at..].find('\n').map_or(self.source.len(), |found| self.at + found);
                    self.copy_to(end);
                }
                b'/' if self.peek(1) == b'*' => self.copy_to(self.past(self.at + 2, "*/")?),
                b'/' if !operand => {
                    self.copy_to(self.end_of_pattern());
                    operand = true;
                }
                b'"' | b'\'' | b'`' => {
                    self.copy_to(self.end_of_string(byte));
                    operand = true;
                }
                b'<' if !operand && (is_name_start(self.peek(1)) || self.peek(1) == b'>') => {
                    self.literal()?;
                    operand = true;
                }
                b'@' if !operand && (is_name_start(self.peek(1)) || self.peek(1) == b'*') => {
                    self.selector("__children")?;
                    operand = true;
                }
                b'.' if operand && self.peek(1) == b'.' && self.peek(2) != b'.' => {
                    self.at += 2;
                    self.out.push('.');
                    self.selector("__descendants")?;
                }
                b'.' if operand => self.after_dot()?,
                b'+' if operand && self.peek(1) == b'=' && self.may_be_xml(begin) => {
                    let target = self.out[begin..].trim_end().to_owned();
                    self.at += 2;
                    self.out.push_str(&format!("= __add({target},"));
                    self.code_until(closing, true)?;
                    self.out.push(')');
                }
                b'+' if operand && self.adds_literal() => {
                    let left = self.out.split_off(begin);
                    self.at += 1;
                    self.out.push_str(&format!("__add({}, ", left.trim_end()));
                    while self.peek(0).is_ascii_whitespace() {
                        self.copy_to(self.at + 1);
                    }
                    self.literal()?;
                    self.out.push(')');
                }
                _ if is_name_start(byte) => {
                    begin = self.out.len();
                    let word = self.word();
                    let each = word == "for" && self.each();
                    if each {
                        each_at = Some(open.len() + 1);
                    } else if word == "in" && each_at == Some(open.len()) {
                        self.out.truncate(self.out.len() - word.len());
                        self.out.push_str("of");
                        each_at = None;
                    }
                    operand = !BEFORE_VALUES.contains(&word);
                }
                b'0'..=b'9' => {
                    let number = |at: usize| {
                        let byte = self.source[at];
                        byte.is_ascii_alphanumeric()
                            || byte == b'.' && self.source.get(at + 1).is_some_and(u8::is_ascii_digit)
                    };
                    let end = (self.at..self.source.len()).find(|at| !number(*at)).unwrap_or(self.source.len());
                    self.copy_to(end);
                    operand = true;
                }
                b'(' | b'[' | b'{' => {
                    open.push(begin);
                    self.copy_to(self.at + 1);
                    operand = false;
                }
                b')' | b']' | b'}' => {
                    match open.pop() {
                        Some(before) => begin = before,
                        None if closing == Some(byte) => {
                            self.depth -= 1;
                            return Ok(());
                        }
                        None => {}
                    }
                    self.copy_to(self.at + 1);
                    operand = byte != b'}';
                }
                b'+' | b'-' if self.peek(1) == byte => self.copy_to(self.at + 2),
                _ if byte.is_ascii_whitespace() => self.copy_to(self.at + 1),
                _ => {
                    let end = (self.at + 1..=self.source.len()).find(|at| self.text.is_char_boundary(*at));
                    self.copy_to(end.unwrap_or(self.source.len()));
                    operand = false;
                }
            }
        }
        self.depth -= 1;
        match closing {
            Some(_) if !of_assignment => Err("an expression in an XML literal does not end".into()),
            _ => Ok(()),
        }
    }

    /// Whether the right side of an assignment is over here.
    fn ends_assignment(&self, operand: bool) -> bool {
        match self.peek(0) {
            b';' | b',' | b')' | b']' | b'}' => true,
            // Without a semicolon the line ends it, unless the next one goes on.
            b'\n' if operand => {
                let next = self.text[self.at..].trim_start().bytes().next();
                !next.is_some_and(|next| b".+-*/%&|?:<>=([,".contains(&next))
            }
            _ => false,
        }
    }

    /// Whether what stands before and behind `+=` may be XML: a target that is written out twice must not do anything.
    fn may_be_xml(&self, begin: usize) -> bool {
        let behind = self.text[self.at + 2..].trim_start().bytes().next();
        let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'"' | b'\'' | b'`');
        !behind.is_some_and(is_plain) && !self.out[begin..].contains(['(', '+', '-'])
    }

    /// Whether `+` and a literal stand here.
    fn adds_literal(&self) -> bool {
        let behind = self.text[self.at + 1..].trim_start().as_bytes();
        behind.first() == Some(&b'<') && behind.get(1).is_some_and(|next| is_name_start(*next) || *next == b'>')
    }

    fn word(&mut self) -> &'s str {
        let end = (self.at..self.source.len())
            .find(|at| !is_name_start(self.source[*at]) && !self.source[*at].is_ascii_digit())
            .unwrap_or(self.source.len());
        let word = &self.text[self.at..end];
        self.copy_to(end);
        word
    }

    /// Whether `each` follows, which is ignored: the loop over values is written `for (… of …)` today.
    fn each(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let word = rest.trim_start();
        match word.strip_prefix("each") {
            Some(after) if after.trim_start().starts_with('(') => {
                self.at += rest.len() - after.len();
                true
            }
            _ => false,
        }
    }

    /// A dot: E4X has `.*`, `.@name`, `.ns::name` and `.(condition)`; anything else is a member.
    fn after_dot(&mut self) -> Result<(), String> {
        self.copy_to(self.at + 1);
        match self.peek(0) {
            // Attributes are written to as well.
            b'@' if is_name_start(self.peek(1)) && !self.is_qualified(self.at + 1) => {
                self.out.pop();
                self.at += 1;
                let name = self.part()?;
                self.out.push_str(&format!("[\"@{name}\"]"));
                Ok(())
            }
            b'*' | b'@' => self.selector("__children"),
            b'(' => {
                self.at += 1;
                self.out.push_str("__filter(function () { with (this) { return (");
                self.code(Some(b')'))?;
                self.at += 1;
                self.out.push_str("); } })");
                Ok(())
            }
            first if is_name_start(first) => {
                if self.is_qualified(self.at) {
                    return self.selector("__children");
                }
                self.word();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether `::` follows the name at this place.
    fn is_qualified(&self, at: usize) -> bool {
        let in_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        self.text[at..].trim_start_matches(in_name).starts_with("::")
    }

    /// `name`, `*`, `ns::name` or one of these after `@`, as arguments of a function.
    fn selector(&mut self, function: &str) -> Result<(), String> {
        let attribute = self.peek(0) == b'@';
        if attribute {
            self.at += 1;
        }
        let first = self.part()?;
        let (namespace, name) = if self.text[self.at..].starts_with("::") {
            self.at += 2;
            (Some(first), self.part()?)
        } else {
            (None, first)
        };
        let sign = if attribute { "@" } else { "" };
        self.out.push_str(&format!("{function}(\"{sign}{name}\""));
        match namespace {
            Some("*") => self.out.push_str(", \"*\""),
            Some(variable) => self.out.push_str(&format!(", {variable}")),
            None => {}
        }
        self.out.push(')');
        Ok(())
    }

    fn part(&mut self) -> Result<&'s str, String> {
        let start = self.at;
        if self.peek(0) == b'*' {
            self.at += 1;
        } else {
            while is_name_start(self.peek(0)) || self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if start == self.at {
            return Err("after `..`, `.@` and `::` comes a name or `*`".into());
        }
        Ok(&self.text[start..self.at])
    }

    fn end_of_string(&self, quote: u8) -> usize {
        let mut at = self.at + 1;
        while at < self.source.len() && self.source[at] != quote {
            at += if self.source[at] == b'\\' { 2 } else { 1 };
        }
        self.boundary(at + 1)
    }

    fn end_of_pattern(&self) -> usize {
        let mut at = self.at + 1;
        let mut in_class = false;
        while at < self.source.len() && (in_class || self.source[at] != b'/') && self.source[at] != b'\n' {
            match self.source[at] {
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                _ => {}
            }
            at += 1;
        }
        self.boundary(at + 1)
    }

    /// The next place that is not inside a letter.
    fn boundary(&self, at: usize) -> usize {
        (at..self.source.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(self.source.len())
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests;
