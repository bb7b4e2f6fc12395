//! Go templates as policy definitions use them: values, conditions, trimmed white space, comments.
//!
//! What the language has besides (loops, pipelines, functions of one's own) is an error that names the line.

use std::fmt;
use std::sync::Arc;

/// Conditions inside conditions.
const DEPTH_MAX: usize = 32;

/// The largest result: a definition is a few lines.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Why a template cannot be rendered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.line, self.message)
    }
}

type Values = [(Arc<str>, Arc<str>)];

/// Fills a template.
pub(crate) fn render(template: &str, values: &Values) -> Result<String, TemplateError> {
    let mut renderer = Renderer { values, out: String::with_capacity(template.len()), conditions: Vec::new() };
    let mut rest = template;
    let mut line = 1;
    while let Some(start) = rest.find("{{") {
        let (text, tag) = (&rest[..start], &rest[start + 2..]);
        let at = line + text.matches('\n').count();
        let error = |message: String| TemplateError { line: at, message };
        let Some(end) = tag.find("}}") else { return Err(error("`{{` has no `}}`".into())) };
        let (inside, after) = (&tag[..end], &tag[end + 2..]);
        let (inside, trims_before) = match inside.strip_prefix("- ").or_else(|| inside.strip_prefix("-\n")) {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let (inside, trims_after) = match inside.strip_suffix(" -") {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        renderer.text(if trims_before { text.trim_end() } else { text });
        renderer.tag(inside.trim()).map_err(error)?;
        line = at + inside.matches('\n').count();
        if trims_after {
            let trimmed = after.trim_start();
            line += after[..after.len() - trimmed.len()].matches('\n').count();
            rest = trimmed;
        } else {
            rest = after;
        }
    }
    renderer.text(rest);
    if !renderer.conditions.is_empty() {
        return Err(TemplateError { line, message: "`{{ if }}` has no `{{ end }}`".into() });
    }
    if renderer.out.len() > OUTPUT_BYTES_MAX {
        return Err(TemplateError { line, message: format!("the result is larger than {OUTPUT_BYTES_MAX} bytes") });
    }
    Ok(renderer.out)
}

struct Renderer<'v> {
    values: &'v Values,
    out: String,
    conditions: Vec<Condition>,
}

/// An `if` that is open.
struct Condition {
    /// Whether this branch is written.
    holds: bool,
    /// Whether a branch of it was.
    done: bool,
    /// Whether it stands in what is written.
    outer: bool,
}

impl Renderer<'_> {
    fn writes(&self) -> bool {
        self.conditions.last().is_none_or(|condition| condition.outer && condition.holds)
    }

    fn text(&mut self, text: &str) {
        if self.writes() && self.out.len() <= OUTPUT_BYTES_MAX {
            self.out.push_str(text);
        }
    }

    fn tag(&mut self, tag: &str) -> Result<(), String> {
        if tag.starts_with("/*") && tag.ends_with("*/") {
            return Ok(());
        }
        let words = words(tag)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["if", condition @ ..] => {
                let outer = self.writes();
                if self.conditions.len() >= DEPTH_MAX {
                    return Err(format!("conditions are nested deeper than {DEPTH_MAX}"));
                }
                let holds = self.truth(condition)?;
                self.conditions.push(Condition { holds, done: holds, outer });
            }
            ["else", "if", condition @ ..] => {
                let holds = self.truth(condition)?;
                let open = self.conditions.last_mut().ok_or("`else` without `if`")?;
                open.holds = holds && !open.done;
                open.done |= holds;
            }
            ["else"] => {
                let open = self.conditions.last_mut().ok_or("`else` without `if`")?;
                open.holds = !open.done;
                open.done = true;
            }
            ["end"] => {
                self.conditions.pop().ok_or("`end` without `if`")?;
            }
            [operand] | ["print", operand] => {
                let value = self.value(operand)?;
                self.text(&value);
            }
            ["index", ".", name] => {
                let value = self.named(&self.value(name)?).unwrap_or_default();
                self.text(&value);
            }
            _ => return Err(format!("`{{{{ {tag} }}}}` is not supported in a policy definition")),
        }
        Ok(())
    }

    fn value(&self, operand: &str) -> Result<Arc<str>, String> {
        for quote in ['"', '`'] {
            if let Some(text) = operand.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
                return Ok(text.into());
            }
        }
        if let Some(inner) = grouped(operand) {
            let words = words(inner)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            return match words.as_slice() {
                ["index", ".", name] => Ok(self.named(&self.value(name)?).unwrap_or_default()),
                _ => self.truth(&words).map(|holds| if holds { "true".into() } else { "false".into() }),
            };
        }
        if matches!(operand, "true" | "false") || operand.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(operand.into());
        }
        let Some(name) = operand.strip_prefix('.').filter(|name| !name.is_empty() && !name.contains('.')) else {
            return Err(format!("`{operand}` is not supported in a policy definition"));
        };
        Ok(self.named(name).unwrap_or_default())
    }

    fn named(&self, name: &str) -> Option<Arc<str>> {
        self.values.iter().find(|(key, _)| **key == *name).map(|(_, value)| value.clone())
    }

    fn truth(&self, words: &[&str]) -> Result<bool, String> {
        if let [operand] = words
            && let Some(inner) = grouped(operand)
        {
            let inner = self::words(inner)?;
            return self.truth(&inner.iter().map(String::as_str).collect::<Vec<_>>());
        }
        match words {
            ["not", rest @ ..] => Ok(!self.truth(rest)?),
            ["eq", left, right] => Ok(self.value(left)? == self.value(right)?),
            ["ne", left, right] => Ok(self.value(left)? != self.value(right)?),
            ["and", all @ ..] if !all.is_empty() => {
                all.iter().try_fold(true, |holds, word| Ok(holds & self.truth(&[word])?))
            }
            ["or", all @ ..] if !all.is_empty() => {
                all.iter().try_fold(false, |holds, word| Ok(holds | self.truth(&[word])?))
            }
            // The one function that Choreo Connect adds to those of the language.
            ["isParamExists", ".", name] => Ok(self.named(&self.value(name)?).is_some()),
            // Values are texts; `false` means false.
            [operand] => self.value(operand).map(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false")),
            _ => Err(format!("the condition `{}` is not supported in a policy definition", words.join(" "))),
        }
    }
}

/// What stands between parentheses, when an operand is that.
fn grouped(operand: &str) -> Option<&str> {
    operand.strip_prefix('(').and_then(|operand| operand.strip_suffix(')'))
}

/// Words between blanks; a quoted text is one, and so is what stands between parentheses.
fn words(tag: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = tag.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' | '`' => rest[1..].find(first).map(|end| end + 2).ok_or("a quote is not closed")?,
            '(' => group_bytes(rest)?,
            _ => rest.find(|letter: char| letter.is_whitespace() || letter == '(').unwrap_or(rest.len()),
        };
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    Ok(words)
}

/// How long the parentheses are with which a text begins.
fn group_bytes(text: &str) -> Result<usize, String> {
    let (mut depth, mut quote) = (0, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(letter),
            (None, '(') if depth >= DEPTH_MAX => return Err(format!("parentheses are nested deeper than {DEPTH_MAX}")),
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => return Ok(at + 1),
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    Err("a parenthesis is not closed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_definitions_use_is_rendered() {
        let values: Vec<(Arc<str>, Arc<str>)> =
            [("a", "1"), ("flag", "false"), ("on", "true")].map(|(name, value)| (name.into(), value.into())).into();
        for (template, expected) in [
            ("x: {{ .a }}", Ok("x: 1")),
            ("{{.a}}{{ .missing }}|", Ok("1|")),
            ("a\n  {{- if .a }}\n  b: {{ .a }}\n  {{- end }}\nc", Ok("a\n  b: 1\nc")),
            ("{{ if .missing }}x{{ else if .on }}y{{ else }}z{{ end }}", Ok("y")),
            ("{{ if .flag }}x{{ else }}z{{ end }}", Ok("z")),
            ("{{ if .flag }}{{ if .a }}x{{ end }}{{ else }}{{ if .a }}y{{ end }}{{ end }}", Ok("y")),
            ("{{ if eq .a \"1\" }}x{{ end }}{{ if ne .a \"1\" }}y{{ end }}", Ok("x")),
            ("{{ if and .a .on }}x{{ end }}{{ if or .missing .flag }}y{{ end }}{{ if not .flag }}z{{ end }}", Ok("xz")),
            ("a {{- \" b \" -}} c", Ok("a b c")),
            ("{{ if isParamExists . \"flag\" }}x{{ end }}{{ if isParamExists . \"missing\" }}y{{ end }}", Ok("x")),
            ("{{- if and (isParamExists . \"a\") (or (eq .a \"(\") (not .flag)) -}} x {{- end }}", Ok("x")),
            (
                "{{ if not (eq .a `1`) }}x{{ else }}{{ index . \"a\" }}{{ end }}{{ if (and .on (.a)) }}z{{ end }}",
                Ok("1z"),
            ),
            ("{{ if (.a }}{{ end }}", Err("1: a parenthesis is not closed")),
            ("{{/* nothing */}}a", Ok("a")),
            ("a\n{{ range .a }}{{ end }}", Err("2: `{{ range .a }}` is not supported in a policy definition")),
            ("a\n\n{{ if .a }}", Err("3: `{{ if }}` has no `{{ end }}`")),
            ("{{ .a", Err("1: `{{` has no `}}`")),
            ("{{ end }}", Err("1: `end` without `if`")),
            ("{{ .a.b }}", Err("1: `.a.b` is not supported in a policy definition")),
        ] {
            let outcome = render(template, &values).map_err(|error| error.to_string());
            assert_eq!(outcome.as_deref().map_err(String::as_str), expected, "{template}");
        }
    }
}
