//! XML literals, and the expressions in them.

use super::Translator;

impl Translator<'_> {
    /// An XML literal, from its `<` to the end of its last tag.
    pub(super) fn literal(&mut self) -> Result<(), String> {
        let begin = self.at;
        let mut start = self.at;
        let mut open = 0_usize;
        self.out.push_str("__xml([");
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with("<!--") {
                self.at = self.past(self.at, "-->")?;
            } else if rest.starts_with("<![CDATA[") {
                self.at = self.past(self.at, "]]>")?;
            } else if rest.starts_with("<?") {
                self.at = self.past(self.at, "?>")?;
            } else if rest.starts_with("</") {
                self.at = self.past(self.at, ">")?;
                open = open.saturating_sub(1);
                if open == 0 {
                    break;
                }
            } else if rest.starts_with('<') {
                self.at += 1;
                if self.tag(&mut start)? {
                    open += 1;
                } else if open == 0 {
                    break;
                }
            } else if rest.starts_with('{') {
                self.expression(&mut start, "text")?;
            } else if rest.is_empty() {
                return Err("an XML literal does not end".into());
            } else {
                self.at += 1;
            }
        }
        self.piece(start, self.at);
        // Lines keep their numbers.
        let lines = self.text[begin..self.at].matches('\n').count();
        self.out.push_str(&"\n".repeat(lines));
        self.out.push_str("])");
        Ok(())
    }

    /// The rest of an opening tag; whether the element stays open.
    fn tag(&mut self, start: &mut usize) -> Result<bool, String> {
        loop {
            match self.peek(0) {
                b'>' => {
                    self.at += 1;
                    return Ok(true);
                }
                b'/' if self.peek(1) == b'>' => {
                    self.at += 2;
                    return Ok(false);
                }
                quote @ (b'"' | b'\'') => self.at = self.past(self.at + 1, if quote == b'"' { "\"" } else { "'" })?,
                b'{' => {
                    let value = self.text[*start..self.at].trim_end().ends_with('=');
                    self.expression(start, if value { "attribute" } else { "name" })?;
                }
                0 => return Err("a tag of an XML literal does not end".into()),
                _ => self.at += 1,
            }
        }
    }

    /// `{…}` in a literal.
    fn expression(&mut self, start: &mut usize, kind: &str) -> Result<(), String> {
        self.piece(*start, self.at);
        self.at += 1;
        self.out.push_str(&format!(", \"{kind}\", ("));
        self.code(Some(b'}'))?;
        self.at += 1;
        self.out.push_str("), ");
        *start = self.at;
        Ok(())
    }

    fn piece(&mut self, start: usize, end: usize) {
        // A string of JSON is one of JavaScript.
        self.out.push_str(&serde_json::Value::from(&self.text[start..end]).to_string());
    }
}
