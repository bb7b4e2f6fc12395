//! `for`, `let`, `where`, `order by` and `if`, which become `xsl:for-each`, `xsl:variable`, `xsl:if` and `xsl:choose`.

use super::translate::{Part, PartValue, Translated, Translator, as_attribute, attribute, bound};

/// What is open around the rest of the clauses, and the last `for`, which `order by` sorts.
#[derive(Default)]
struct Clauses {
    text: String,
    /// What ends the open instructions, the innermost first.
    ends: Vec<&'static str>,
    last_for: Option<For>,
    for_count: usize,
    /// What came after the last `for`, when it keeps `order by` from being translated.
    after_for: Option<&'static str>,
}

/// A `for`, kept open until it is known whether its items are sorted.
struct For {
    name: String,
    select: String,
    /// The bindings inside.
    bindings: String,
    has_position: bool,
    /// Conditions of `where`.
    conditions: Vec<String>,
}

impl Clauses {
    /// Writes the last `for`.
    fn flush(&mut self, sorts: &str) {
        let Some(found) = self.last_for.take() else { return };
        let For { name, select, bindings, conditions, .. } = found;
        let select = match (sorts.is_empty(), conditions.is_empty()) {
            (false, false) => {
                let all = conditions.iter().map(|test| format!("boolean({test})")).collect::<Vec<_>>().join(" and ");
                format!("for ${name} in ({select}) return if ({all}) then ${name} else ()")
            }
            _ => select,
        };
        self.text.push_str(&format!("<xsl:for-each select=\"{}\">{sorts}{bindings}", attribute(&select)));
        self.ends.push("</xsl:for-each>");
        if sorts.is_empty() {
            for test in conditions {
                self.text.push_str(&format!("<xsl:if test=\"{}\">", attribute(&test)));
                self.ends.push("</xsl:if>");
            }
        }
    }
}

impl Translator<'_> {
    /// `for … let … where … order by … return …`.
    pub(super) fn flwor(&mut self) -> Translated<String> {
        let mut clauses = Clauses::default();
        loop {
            if self.eat_keyword("for")? {
                self.each_binding(&mut clauses, Translator::for_clause)?;
            } else if self.eat_keyword("let")? {
                self.each_binding(&mut clauses, Translator::let_clause)?;
            } else if self.eat_keyword("where")? {
                self.where_clause(&mut clauses)?;
            } else if self.eat_keyword("return")? {
                break;
            } else {
                self.eat_keyword("stable")?;
                self.skip_space()?;
                let at = self.at;
                self.expect_keyword("order")?;
                self.expect_keyword("by")?;
                self.order_clause(&mut clauses, at)?;
            }
        }
        clauses.flush("");
        let mut text = clauses.text + &self.single()?.instructions();
        clauses.ends.iter().rev().for_each(|end| text.push_str(end));
        Ok(text)
    }

    /// `$a in …, $b in …`.
    fn each_binding(
        &mut self,
        clauses: &mut Clauses,
        read: fn(&mut Self, &mut Clauses) -> Translated<()>,
    ) -> Translated<()> {
        loop {
            read(self, clauses)?;
            self.skip_space()?;
            if !self.eat(",") {
                return Ok(());
            }
        }
    }

    fn for_clause(&mut self, clauses: &mut Clauses) -> Translated<()> {
        clauses.flush("");
        clauses.after_for = None;
        clauses.for_count += 1;
        let name = self.variable_name()?;
        let kind = if self.eat_keyword("as")? { Some(self.sequence_type()?) } else { None };
        let position = if self.eat_keyword("at")? { Some(self.variable_name()?) } else { None };
        self.expect_keyword("in")?;
        let part = self.single()?;
        let mut prelude = String::new();
        let select = self.selected(part, &mut prelude);
        clauses.text.push_str(&prelude);
        let kind = as_attribute(kind.as_deref());
        let mut bindings = format!("<xsl:variable name=\"{name}\"{kind} select=\".\"/>");
        if let Some(position) = &position {
            bindings.push_str(&format!("<xsl:variable name=\"{position}\" select=\"position()\"/>"));
        }
        let has_position = position.is_some();
        clauses.last_for = Some(For { name, select, bindings, has_position, conditions: Vec::new() });
        Ok(())
    }

    fn let_clause(&mut self, clauses: &mut Clauses) -> Translated<()> {
        clauses.flush("");
        clauses.after_for = Some("`order by` after `let`");
        let name = self.variable_name()?;
        let kind = if self.eat_keyword("as")? { Some(self.sequence_type()?) } else { None };
        self.expect(":=")?;
        let part = self.single()?;
        clauses.text.push_str(&bound(&name, &as_attribute(kind.as_deref()), part, "variable"));
        Ok(())
    }

    fn where_clause(&mut self, clauses: &mut Clauses) -> Translated<()> {
        let part = self.single()?;
        if let (Some(last), PartValue::XPath(test), true) =
            (&mut clauses.last_for, &part.value, part.prelude.is_empty())
        {
            last.conditions.push(test.clone());
            return Ok(());
        }
        clauses.flush("");
        clauses.after_for = Some("`order by` after a `where` with a constructor");
        let mut prelude = String::new();
        let test = self.selected(part, &mut prelude);
        clauses.text.push_str(&format!("{prelude}<xsl:if test=\"{}\">", attribute(&test)));
        clauses.ends.push("</xsl:if>");
        Ok(())
    }

    fn order_clause(&mut self, clauses: &mut Clauses, at: usize) -> Translated<()> {
        let refused = match (&clauses.last_for, clauses.after_for) {
            (_, Some(what)) => Some(what),
            (None, None) => Some("`order by` without `for`"),
            (Some(found), None) if found.has_position => Some("`order by` with `at`"),
            _ if clauses.for_count > 1 => Some("`order by` of several `for`"),
            _ => None,
        };
        let name = match (refused, &clauses.last_for) {
            (None, Some(found)) => found.name.clone(),
            (what, _) => {
                self.at = at;
                return Err(self.unsupported(what.unwrap_or("`order by`")));
            }
        };
        let mut sorts = String::new();
        loop {
            let Part { prelude, value } = self.single()?;
            let PartValue::XPath(key) = value else { return Err(self.unsupported("such a key of `order by`")) };
            // The sort key is evaluated with the item as context, before the variable is bound.
            let key = of_context(&key, &name).filter(|_| prelude.is_empty());
            let key = key.ok_or_else(|| self.unsupported("such a key of `order by`"))?;
            let is_descending = !self.eat_keyword("ascending")? && self.eat_keyword("descending")?;
            if self.eat_keyword("empty")? && !self.eat_keyword("least")? {
                return Err(self.unsupported("`empty greatest`"));
            }
            let order = if is_descending { " order=\"descending\"" } else { "" };
            sorts.push_str(&format!("<xsl:sort select=\"{}\"{order}/>", attribute(&key)));
            self.skip_space()?;
            if !self.eat(",") {
                break;
            }
        }
        clauses.flush(&sorts);
        clauses.after_for = Some("a second `order by`");
        Ok(())
    }

    /// `if (…) then … else …`.
    pub(super) fn conditional(&mut self) -> Translated<String> {
        self.expect_keyword("if")?;
        self.expect("(")?;
        let mut prelude = String::new();
        let test = self.selected_expression(&mut prelude)?;
        self.expect(")")?;
        self.expect_keyword("then")?;
        let then = self.single()?.instructions();
        self.expect_keyword("else")?;
        let otherwise = self.single()?.instructions();
        Ok(format!(
            "{prelude}<xsl:choose><xsl:when test=\"{}\">{then}</xsl:when><xsl:otherwise>{otherwise}</xsl:otherwise></xsl:choose>",
            attribute(&test)
        ))
    }
}

/// An expression with the context item in place of a variable; `None` when the variable stands in a predicate.
fn of_context(text: &str, name: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut depth = 0i32;
    while let Some(at) = rest.find(['$', '[', ']', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut length = 1;
        match from.as_bytes()[0] {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b'"' => length = from[1..].find('"').map_or(from.len(), |end| end + 2),
            _ => {
                let is_it = from[1..].strip_prefix(name).is_some_and(|after| {
                    !after
                        .starts_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':'))
                });
                if is_it {
                    if depth > 0 {
                        return None;
                    }
                    out.push('.');
                    rest = &from[1 + name.len()..];
                    continue;
                }
            }
        }
        out.push_str(&from[..length]);
        rest = &from[length..];
    }
    Some(out + rest)
}

#[cfg(test)]
mod tests {
    use super::of_context;

    #[test]
    fn sort_keys_are_relative_to_the_item() {
        for (text, expected) in [
            ("$a/price", Some("./price")),
            ("concat($a/@x, \"$a\", $ab)", Some("concat(./@x, \"$a\", $ab)")),
            ("$a", Some(".")),
            ("$b[@id = $a/@id]", None),
            ("$a/b[1]", Some("./b[1]")),
        ] {
            assert_eq!(of_context(text, "a").as_deref(), expected, "{text}");
        }
    }
}
