//! From XQuery 1.0 to XSLT 2.0: the prolog, functions and expressions. What the two languages share is XPath and stays as it
//! is. Part of an expression that XPath does not have (`for` with `order by`, constructors) becomes a variable before it.
//!
//! `scan.rs` finds the end of an XPath expression, `clauses.rs` translates `for`, `let` and `if`, `constructor.rs` elements.

use super::VARIABLE;

/// The template that is the body of the query.
pub(super) const MAIN: &str = "main";

/// A longer query is a program, which no artifact has.
const QUERY_BYTES_MAX: usize = 256 << 10;

/// Expressions inside expressions.
const DEPTH_MAX: u32 = 64;

/// A variable that the mediator gives.
pub(super) struct External {
    pub(super) name: String,
    /// Its type, `None` for XML.
    pub(super) atomic: Option<&'static str>,
}

/// Why a query is not translated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QueryError {
    /// The offset in the query.
    pub(super) at: usize,
    pub(super) message: String,
}

pub(super) type Translated<T> = Result<T, QueryError>;

/// An expression: XPath, or instructions.
pub(super) struct Part {
    /// Variables that stand before it.
    pub(super) prelude: String,
    pub(super) value: PartValue,
}

pub(super) enum PartValue {
    XPath(String),
    Instructions(String),
}

impl Part {
    /// The expression as instructions.
    pub(super) fn instructions(self) -> String {
        match self.value {
            PartValue::XPath(select) => {
                format!("{}<xsl:sequence select=\"{}\"/>", self.prelude, attribute(&select))
            }
            PartValue::Instructions(text) => self.prelude + &text,
        }
    }
}

/// A query while it is translated.
pub(super) struct Translator<'q> {
    pub(super) text: &'q str,
    pub(super) at: usize,
    pub(super) keeps_space: bool,
    depth: u32,
    /// Variables that were made.
    made: usize,
    externals: &'q [External],
    namespaces: String,
    declarations: String,
}

/// Translates a query to a stylesheet whose template [`MAIN`] returns its result.
pub(super) fn translate(query: &str, externals: &[External]) -> Translated<String> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(QueryError { at: 0, message: format!("it is longer than {QUERY_BYTES_MAX} bytes") });
    }
    let mut translator = Translator {
        text: query,
        at: 0,
        keeps_space: false,
        depth: 0,
        made: 0,
        externals,
        namespaces: String::new(),
        declarations: String::new(),
    };
    translator.prolog()?;
    let body = translator.expression()?;
    translator.skip_space()?;
    if translator.at < query.len() {
        return Err(translator.unexpected());
    }
    Ok(format!(
        "<xsl:stylesheet version=\"2.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:fn=\"http://www.w3.org/2005/xpath-functions\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xmlns:local=\"http://www.w3.org/2005/xquery-local-functions\"{} exclude-result-prefixes=\"#all\">{}\
         <xsl:template name=\"{MAIN}\">{body}</xsl:template></xsl:stylesheet>",
        translator.namespaces, translator.declarations
    ))
}

impl Translator<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> QueryError {
        QueryError { at: self.at, message: message.into() }
    }

    pub(super) fn unsupported(&self, what: &str) -> QueryError {
        self.error(format!("{what} is not supported"))
    }

    pub(super) fn unexpected(&self) -> QueryError {
        let rest: String = self.text[self.at..].chars().take(20).collect();
        match rest.is_empty() {
            true => self.error("it ends early"),
            false => self.error(format!("`{}` is not expected", rest.trim_end())),
        }
    }

    fn prolog(&mut self) -> Translated<()> {
        loop {
            self.skip_space()?;
            if self.is_keyword("xquery") {
                self.skip_declaration()?;
            } else if self.is_keyword("import") || self.is_keyword("module") {
                return Err(self.unsupported("a module"));
            } else if self.is_keyword("declare") {
                self.at += "declare".len();
                self.declaration()?;
            } else {
                return Ok(());
            }
        }
    }

    fn declaration(&mut self) -> Translated<()> {
        self.skip_space()?;
        if self.eat_keyword("namespace")? {
            let prefix = self.name()?;
            self.expect("=")?;
            let uri = self.literal()?;
            self.namespaces.push_str(&format!(" xmlns:{prefix}=\"{}\"", attribute(&uri)));
        } else if self.eat_keyword("default")? {
            let is_element = self.eat_keyword("element")?;
            if !is_element && !self.eat_keyword("function")? {
                // The order of empty values and the collation have the same default in both languages.
                return self.skip_declaration();
            }
            if !self.eat_keyword("namespace")? {
                return Err(self.unexpected());
            }
            let uri = attribute(&self.literal()?);
            if is_element {
                self.namespaces.push_str(&format!(" xmlns=\"{uri}\" xpath-default-namespace=\"{uri}\""));
            }
        } else if self.eat_keyword("boundary-space")? {
            self.keeps_space = self.eat_keyword("preserve")?;
            return self.skip_declaration();
        } else if self.eat_keyword("variable")? {
            self.variable()?;
        } else if self.eat_keyword("function")? {
            self.function()?;
        } else {
            return self.skip_declaration();
        }
        self.expect(";")
    }

    fn skip_declaration(&mut self) -> Translated<()> {
        let length = self.text[self.at..].find(';').ok_or_else(|| self.error("a declaration has no `;`"))?;
        self.at += length + 1;
        Ok(())
    }

    fn variable(&mut self) -> Translated<()> {
        let name = self.variable_name()?;
        let declared = if self.eat_keyword("as")? { Some(self.sequence_type()?) } else { None };
        if !self.eat_keyword("external")? {
            self.expect(":=")?;
            let part = self.single()?;
            let as_type = as_attribute(declared.as_deref());
            let text = bound(&name, &as_type, part, "variable");
            self.declarations.push_str(&text);
            return Ok(());
        }
        let external = self.externals.iter().find(|external| external.name == name);
        let text = match external.map(|external| external.atomic) {
            Some(None) => format!("<xsl:param name=\"{name}\" select=\"document('{VARIABLE}{name}')\"/>"),
            Some(Some(atomic)) => {
                let declared = declared.unwrap_or_else(|| atomic.to_owned());
                format!("<xsl:param name=\"{name}\" as=\"{}\" required=\"yes\"/>", attribute(&declared))
            }
            None => return Err(self.error(format!("the mediator has no <variable name=\"{name}\">"))),
        };
        self.declarations.push_str(&text);
        Ok(())
    }

    fn function(&mut self) -> Translated<()> {
        self.skip_space()?;
        let name = self.name()?;
        self.expect("(")?;
        let mut parameters = String::new();
        self.skip_space()?;
        while !self.eat(")") {
            let parameter = self.variable_name()?;
            let kind = if self.eat_keyword("as")? { Some(self.sequence_type()?) } else { None };
            parameters.push_str(&format!("<xsl:param name=\"{parameter}\"{}/>", as_attribute(kind.as_deref())));
            self.skip_space()?;
            if !self.eat(",") && !self.text[self.at..].starts_with(')') {
                return Err(self.unexpected());
            }
            self.skip_space()?;
        }
        let kind = if self.eat_keyword("as")? { Some(self.sequence_type()?) } else { None };
        let body = self.enclosed()?;
        let kind = as_attribute(kind.as_deref());
        self.declarations.push_str(&format!("<xsl:function name=\"{name}\"{kind}>{parameters}{body}</xsl:function>"));
        Ok(())
    }

    /// `{ expression }` as instructions.
    pub(super) fn enclosed(&mut self) -> Translated<String> {
        self.expect("{")?;
        self.skip_space()?;
        if self.eat("}") {
            return Ok(String::new());
        }
        let body = self.expression()?;
        self.expect("}")?;
        Ok(body)
    }

    /// Expressions with commas between them, as instructions.
    pub(super) fn expression(&mut self) -> Translated<String> {
        let mut out = self.single()?.instructions();
        self.skip_space()?;
        while self.eat(",") {
            out.push_str(&self.single()?.instructions());
            self.skip_space()?;
        }
        Ok(out)
    }

    /// An expression without commas.
    pub(super) fn single(&mut self) -> Translated<Part> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("expressions are nested deeper than {DEPTH_MAX}")));
        }
        self.skip_space()?;
        let part = match self.special()? {
            Some(instructions) => Part { prelude: String::new(), value: PartValue::Instructions(instructions) },
            None => {
                let mut prelude = String::new();
                let select = self.xpath(&mut prelude)?;
                Part { prelude, value: PartValue::XPath(select) }
            }
        };
        self.depth -= 1;
        Ok(part)
    }

    /// What XPath does not have, when it begins here.
    fn special(&mut self) -> Translated<Option<String>> {
        if !self.begins_special() {
            return Ok(None);
        }
        if self.rest().starts_with('<') {
            return self.direct().map(Some);
        }
        if self.is_keyword("typeswitch") {
            return Err(self.unsupported("`typeswitch`"));
        }
        match self.computed_kind() {
            Some(kind) => self.computed(kind).map(Some),
            None if self.is_keyword("if") => self.conditional().map(Some),
            None => self.flwor().map(Some),
        }
    }

    /// The value of an expression as XPath; instructions become a variable in the prelude.
    pub(super) fn selected(&mut self, part: Part, prelude: &mut String) -> String {
        prelude.push_str(&part.prelude);
        match part.value {
            PartValue::XPath(select) => select,
            PartValue::Instructions(instructions) => self.hoist(&instructions, prelude),
        }
    }

    /// Makes a variable of instructions and returns the reference to it.
    pub(super) fn hoist(&mut self, instructions: &str, prelude: &mut String) -> String {
        self.made += 1;
        let name = format!("_q{}", self.made);
        prelude.push_str(&format!("<xsl:variable name=\"{name}\" as=\"item()*\">{instructions}</xsl:variable>"));
        format!("${name}")
    }
}

/// A variable or parameter with the value of an expression.
pub(super) fn bound(name: &str, as_type: &str, part: Part, instruction: &str) -> String {
    let prelude = &part.prelude;
    match part.value {
        PartValue::XPath(select) => {
            let select = attribute(&select);
            format!("{prelude}<xsl:{instruction} name=\"{name}\"{as_type} select=\"{select}\"/>")
        }
        PartValue::Instructions(text) => {
            let as_type = if as_type.is_empty() { " as=\"item()*\"" } else { as_type };
            format!("{prelude}<xsl:{instruction} name=\"{name}\"{as_type}>{text}</xsl:{instruction}>")
        }
    }
}

pub(super) fn as_attribute(kind: Option<&str>) -> String {
    kind.map_or_else(String::new, |kind| format!(" as=\"{}\"", attribute(kind)))
}

/// A text in an attribute of the stylesheet.
pub(super) fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\t' => out.push_str("&#9;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_translated_has_a_place() {
        for (query, at, message) in [
            ("import module namespace a = 'b'; 1", 0, "a module is not supported"),
            ("declare variable $x external; $x", 28, "the mediator has no <variable name=\"x\">"),
            ("<a>{1}</b>", 6, "`</b>` does not end `<a>`"),
            ("<a>", 3, "it ends early"),
            ("typeswitch (1) case xs:integer return 1", 0, "`typeswitch` is not supported"),
            ("(1, 2", 5, "it ends early"),
            ("1 }", 2, "`}` is not expected"),
            ("for $x in (1, 2) let $y := $x order by $y return $y", 30, "`order by` after `let` is not supported"),
            ("$a[<b/>]", 3, "a constructor, `for`, `let` or `if` inside a predicate is not supported"),
        ] {
            let found = translate(query, &[]).unwrap_err();
            assert_eq!((found.at, found.message.as_str()), (at, message), "{query}");
        }
        assert!(translate(&"(<a>{".repeat(500), &[]).is_err());
    }

    #[test]
    fn a_query_that_ends_early_is_refused_or_translated() {
        let query = "declare function local:f($a as element()*) as xs:string? { \"x\" }; (: c :) \
                     <a b=\"{1}&lt;\" xmlns:p='u'><!-- c --><![CDATA[d]]>{{é}}{for $x in $y[@z = '&#65;'] \
                     where some $q in (1, 2) satisfies $q lt 3 order by $x descending return element {'n'} {text {$x}}}</a>";
        for (end, _) in query.char_indices() {
            translate(&query[..end], &[]).ok();
            translate(&query[end..], &[]).ok();
        }
        assert!(translate(query, &[]).is_ok());
    }
}
