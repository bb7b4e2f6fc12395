//! Texts of a plan with `${variable}` and `${__function(…)}`, compiled once and evaluated for every request.
//!
//! The syntax is JMeter's: a text without any `${…}` stays as it is, backslashes included; in any other text a backslash
//! protects `$`, `,` and itself.
use super::context::Context;
use super::functions::Call;

/// A compiled text.
#[derive(Debug, Clone, Default)]
pub struct Text(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Plain(String),
    Variable(String),
    Call(Box<Call>),
}

/// The mistake in a text.
pub type Mistake = String;

/// Functions inside of arguments of functions; deeper nesting is a mistake, and parsing recurses.
const DEPTH_MAX: usize = 16;

impl Text {
    /// Compiles the text of a property.
    pub fn parse(text: &str) -> Result<Text, Mistake> {
        let parsed = parse_pieces(text, 0)?;
        if parsed.0.iter().all(|piece| matches!(piece, Piece::Plain(_))) {
            return Ok(Text::plain(text));
        }
        Ok(parsed)
    }

    /// A text without variables and functions.
    pub fn plain(text: &str) -> Text {
        Text(if text.is_empty() { Vec::new() } else { vec![Piece::Plain(text.to_owned())] })
    }

    /// The text, if it is always the same.
    pub fn constant(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the text is always empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the values of its variables and functions. A variable without a value stays as it is written, which
    /// is what JMeter sends.
    pub fn evaluate(&self, context: &mut Context) -> String {
        let mut out = String::new();
        self.evaluate_into(context, &mut out);
        out
    }

    /// Appends the evaluated text.
    pub fn evaluate_into(&self, context: &mut Context, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Variable(name) => match context.variables.get(name) {
                    Some(value) => out.push_str(value),
                    None => {
                        out.push_str("${");
                        out.push_str(name);
                        out.push('}');
                    }
                },
                Piece::Call(call) => out.push_str(&call.evaluate(context)),
            }
        }
    }

    /// Calls `act` with each variable that the text reads.
    pub fn each_variable(&self, act: &mut dyn FnMut(&str)) {
        for piece in &self.0 {
            match piece {
                Piece::Plain(_) => {}
                Piece::Variable(name) => act(name),
                Piece::Call(call) => call.each_variable(act),
            }
        }
    }

    /// Calls `act` with each variable that a function of the text sets.
    pub fn each_set(&self, act: &mut dyn FnMut(&str)) {
        for piece in &self.0 {
            if let Piece::Call(call) = piece {
                call.each_set(act);
            }
        }
    }
}

/// Compiles a text in which a backslash protects `$`, `,` and itself.
fn parse_pieces(text: &str, depth: usize) -> Result<Text, Mistake> {
    if depth > DEPTH_MAX {
        return Err("functions are nested too deep".to_owned());
    }
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("${") {
            let (piece, tail) = reference(after, depth)?;
            if !plain.is_empty() {
                pieces.push(Piece::Plain(std::mem::take(&mut plain)));
            }
            pieces.push(piece);
            rest = tail;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.chars().next() {
            Some(protected @ ('$' | ',' | '\\')) => {
                plain.push(protected);
                rest = &rest[1..];
            }
            Some(other) => {
                plain.extend(['\\', other]);
                rest = &rest[other.len_utf8()..];
            }
            None => plain.push('\\'),
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    Ok(Text(pieces))
}

/// What stands after `${`, and the text behind its `}`.
fn reference(text: &str, depth: usize) -> Result<(Piece, &str), Mistake> {
    let end = text.find(['}', '(']).ok_or_else(|| format!("`${{{}` has no closing `}}`", shortened(text)))?;
    let (name, rest) = text.split_at(end);
    let function = name.trim().strip_prefix("__");
    if let (Some(function), Some(arguments)) = (function, rest.strip_prefix('(')) {
        let (arguments, rest) = split_arguments(arguments)
            .ok_or_else(|| format!("the arguments of `__{function}` do not end with `)}}`"))?;
        let arguments: Result<Vec<Text>, Mistake> =
            arguments.into_iter().map(|argument| parse_pieces(argument, depth + 1)).collect();
        return Ok((Piece::Call(Box::new(Call::compile(function, arguments?)?)), rest));
    }
    if let (Some(function), Some(rest)) = (function, rest.strip_prefix('}')) {
        return Ok((Piece::Call(Box::new(Call::compile(function, Vec::new())?)), rest));
    }
    // A parenthesis in the name of a variable has no meaning.
    let (name, rest) = text.split_once('}').ok_or_else(|| format!("`${{{}` has no closing `}}`", shortened(text)))?;
    Ok((Piece::Variable(name.to_owned()), rest))
}

/// Splits the arguments of a function up to `)}`; a comma inside of parentheses, of `${…}` or behind a backslash separates
/// nothing.
fn split_arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut arguments, mut begin) = (Vec::new(), 0);
    let (mut braces, mut parentheses) = (0_usize, 0_usize);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                braces += 1;
                at += 1;
            }
            b'}' if braces > 0 => braces -= 1,
            b'(' if braces == 0 => parentheses += 1,
            b')' if braces == 0 && parentheses > 0 => parentheses -= 1,
            b',' if braces == 0 && parentheses == 0 => {
                arguments.push(text.get(begin..at)?);
                begin = at + 1;
            }
            b')' if braces == 0 => {
                if at > begin || !arguments.is_empty() {
                    arguments.push(text.get(begin..at)?);
                }
                return Some((arguments, text.get(at + 1..)?.strip_prefix('}')?));
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    text.chars().take(SHOWN).collect()
}
