//! Constructors of nodes: `<a b="{…}">…</a>`, and `element a {…}` with its like.

use super::scan::is_name_start;
use super::translate::{Translated, Translator, attribute};

/// The constructors with a keyword.
const COMPUTED: [&str; 5] = ["element", "attribute", "document", "text", "comment"];

/// Content of an element while it is read.
#[derive(Default)]
struct Content {
    out: String,
    text: String,
    /// Whether the text has references or CDATA, which white space between elements never has.
    is_kept: bool,
    /// Whether an enclosed expression was the last.
    follows_enclosed: bool,
}

impl Content {
    fn flush(&mut self, keeps_space: bool) {
        let is_boundary = !self.is_kept && self.text.chars().all(char::is_whitespace);
        if !self.text.is_empty() && (!is_boundary || keeps_space) {
            self.out.push_str(&format!("<xsl:text>{}</xsl:text>", escaped(&self.text)));
            self.follows_enclosed = false;
        }
        self.text.clear();
        self.is_kept = false;
    }
}

impl Translator<'_> {
    /// An element or comment as it is written in XML.
    pub(super) fn direct(&mut self) -> Translated<String> {
        if self.eat("<!--") {
            let length = self.rest().find("-->").ok_or_else(|| self.error("a comment is not closed"))?;
            let text = escaped(&self.rest()[..length]);
            self.at += length + "-->".len();
            return Ok(format!("<xsl:comment>{text}</xsl:comment>"));
        }
        self.expect("<")?;
        let name = self.name()?;
        let (mut prelude, mut attributes) = (String::new(), String::new());
        loop {
            let before = self.at;
            self.at += self.rest().len() - self.rest().trim_start().len();
            if self.eat("/>") {
                return Ok(format!("{prelude}<{name}{attributes}/>"));
            }
            if self.eat(">") {
                break;
            }
            if before == self.at {
                return Err(self.unexpected());
            }
            let attribute_name = self.name()?;
            self.expect("=")?;
            let is_namespace = attribute_name == "xmlns" || attribute_name.starts_with("xmlns:");
            let value = match is_namespace {
                true => attribute(&self.literal()?),
                false => self.attribute_value(&mut prelude)?,
            };
            attributes.push_str(&format!(" {attribute_name}=\"{value}\""));
            if attribute_name == "xmlns" {
                attributes.push_str(&format!(" xsl:xpath-default-namespace=\"{value}\""));
            }
        }
        let content = self.element_content(&name)?;
        Ok(format!("{prelude}<{name}{attributes}>{content}</{name}>"))
    }

    /// The value of an attribute as an attribute value template.
    fn attribute_value(&mut self, prelude: &mut String) -> Translated<String> {
        self.skip_space()?;
        let quote = self.peek().filter(|letter| matches!(letter, '"' | '\'')).ok_or_else(|| self.unexpected())?;
        self.at += 1;
        let mut out = String::new();
        loop {
            let letter = self.peek().ok_or_else(|| self.error("an attribute has no closing quote"))?;
            if self.eat("{{") {
                out.push_str("{{");
            } else if self.eat("}}") {
                out.push_str("}}");
            } else if letter == '{' {
                self.at += 1;
                let select = self.selected_expression(prelude)?;
                self.expect("}")?;
                out.push_str(&format!("{{{}}}", attribute(&select)));
            } else if letter == '&' {
                out.push_str(&attribute(&self.reference()?.to_string()));
            } else {
                self.at += letter.len_utf8();
                if letter == quote {
                    if self.peek() != Some(quote) {
                        return Ok(out);
                    }
                    self.at += 1;
                }
                out.push_str(&attribute(&letter.to_string()));
            }
        }
    }

    /// What stands between the tags of an element.
    fn element_content(&mut self, name: &str) -> Translated<String> {
        let mut content = Content::default();
        loop {
            let letter = self.peek().ok_or_else(|| self.unexpected())?;
            if self.rest().starts_with("</") {
                content.flush(self.keeps_space);
                let at = self.at;
                self.at += 2;
                let end = self.name()?;
                if end != name {
                    self.at = at;
                    return Err(self.error(format!("`</{end}>` does not end `<{name}>`")));
                }
                self.expect(">")?;
                return Ok(content.out);
            }
            if self.eat("<![CDATA[") {
                let length = self.rest().find("]]>").ok_or_else(|| self.error("CDATA is not closed"))?;
                content.text.push_str(&self.rest()[..length]);
                content.is_kept = true;
                self.at += length + "]]>".len();
            } else if letter == '<' {
                let is_node = self.rest().starts_with("<!--") || self.rest()[1..].starts_with(is_name_start);
                if !is_node {
                    return Err(self.unexpected());
                }
                content.flush(self.keeps_space);
                let part = self.single()?;
                content.out.push_str(&part.instructions());
                content.follows_enclosed = false;
            } else if self.eat("{{") {
                content.text.push('{');
            } else if self.eat("}}") {
                content.text.push('}');
            } else if letter == '{' {
                content.flush(self.keeps_space);
                // XSLT would put a space between the values of two expressions.
                if content.follows_enclosed {
                    content.out.push_str("<xsl:value-of select=\"''\"/>");
                }
                content.out.push_str(&self.enclosed()?);
                content.follows_enclosed = true;
            } else if letter == '}' {
                return Err(self.unexpected());
            } else if letter == '&' {
                content.text.push(self.reference()?);
                content.is_kept = true;
            } else {
                content.text.push(letter);
                self.at += letter.len_utf8();
            }
        }
    }

    /// The keyword of a constructor that begins here: `element a {`, `text {`.
    pub(super) fn computed_kind(&self) -> Option<&'static str> {
        let kind = COMPUTED.into_iter().find(|kind| self.is_keyword(kind))?;
        let rest = self.rest()[kind.len()..].trim_start();
        let takes_name = matches!(kind, "element" | "attribute");
        if rest.starts_with('{') {
            return Some(kind);
        }
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
        let after = rest.trim_start_matches(is_name);
        (takes_name && rest.starts_with(is_name_start) && after.trim_start().starts_with('{')).then_some(kind)
    }

    /// `element a {…}`, `attribute {…} {…}`, `text {…}`.
    pub(super) fn computed(&mut self, kind: &'static str) -> Translated<String> {
        self.at += kind.len();
        self.skip_space()?;
        if kind == "document" {
            return Ok(format!("<xsl:document>{}</xsl:document>", self.enclosed()?));
        }
        if kind == "comment" {
            return Ok(format!("<xsl:comment>{}</xsl:comment>", self.enclosed()?));
        }
        let mut prelude = String::new();
        if kind == "text" {
            self.expect("{")?;
            let select = attribute(&self.selected_expression(&mut prelude)?);
            self.expect("}")?;
            return Ok(format!("{prelude}<xsl:value-of select=\"{select}\"/>"));
        }
        let name = match self.eat("{") {
            true => {
                let select = self.selected_expression(&mut prelude)?;
                self.expect("}")?;
                format!("{{{}}}", attribute(&select))
            }
            false => self.name()?,
        };
        let content = self.enclosed()?;
        Ok(format!("{prelude}<xsl:{kind} name=\"{name}\">{content}</xsl:{kind}>"))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#13;")
}
