//! Calls of stored procedures in the forms of JDBC.

/// A call: `{call name(?, ?)}`, `{? = call name(?)}`, `call name(?)`, `exec name ?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The procedure or function.
    pub name: String,
    /// What stands between the parentheses.
    pub arguments: String,
    /// Whether the first place is the result of a function.
    pub has_result: bool,
    /// Whether braces stand around it: the driver chooses between a function and a procedure.
    pub is_escaped: bool,
}

impl Call {
    /// Reads a call; `None` when the text is none.
    pub(crate) fn parse(sql: &str) -> Option<Call> {
        let text = sql.trim().trim_end_matches(';').trim();
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).map(str::trim);
        let is_escaped = inner.is_some();
        let text = inner.unwrap_or(text);
        let (has_result, text) =
            match text.strip_prefix('?').map(str::trim_start).and_then(|rest| rest.strip_prefix('=')) {
                Some(rest) => (true, rest.trim_start()),
                None => (false, text),
            };
        let (word, rest) = text.split_once(char::is_whitespace)?;
        if !["call", "exec", "execute"].iter().any(|known| word.eq_ignore_ascii_case(known)) {
            return None;
        }
        let rest = rest.trim();
        let (name, arguments) = match rest.split_once('(') {
            Some((name, arguments)) => (name.trim(), arguments.trim_end().strip_suffix(')')?.trim()),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        let is_name = |text: &str| {
            !text.is_empty()
                && text.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '"' | '$' | '`'))
        };
        is_name(name).then(|| Call {
            name: name.to_owned(),
            arguments: arguments.trim().to_owned(),
            has_result,
            is_escaped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let call = |name: &str, arguments: &str, has_result, is_escaped| {
            Some(Call { name: name.into(), arguments: arguments.into(), has_result, is_escaped })
        };
        for (sql, expected) in [
            ("call add_order(?, ?)", call("add_order", "?, ?", false, false)),
            ("{call add_order(?)};", call("add_order", "?", false, true)),
            ("{ ? = CALL shop.total( ? ) }", call("shop.total", "?", true, true)),
            ("exec report ?, 1", call("report", "?, 1", false, false)),
            ("call refresh", call("refresh", "", false, false)),
            ("select 1", None),
            ("call a; drop table b", None),
        ] {
            assert_eq!(Call::parse(sql), expected, "{sql}");
        }
    }
}
