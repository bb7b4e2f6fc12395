//! `<!ENTITY`, `<!ATTLIST`, `<!ELEMENT` and `<!NOTATION`.

use std::sync::Arc;

use super::{AttributeKind, AttributeRule, Entity, Parser};
use crate::doctype::UnparsedEntity;
use crate::entity::{Failure, Normalise};

/// Groups inside one another in a content model. Deeper than any schema; keeps the recursion on the stack.
const GROUP_DEPTH_MAX: usize = 128;

impl Parser<'_> {
    pub(super) fn markup_declaration(&mut self) -> Result<(), Failure> {
        if self.eat("<!ENTITY") {
            self.entity()
        } else if self.eat("<!ATTLIST") {
            self.attribute_list()
        } else if self.eat("<!ELEMENT") {
            self.element()
        } else if self.eat("<!NOTATION") {
            self.notation()
        } else {
            let rest = self.rest();
            let cut = ["<!ENTITY", "<!ATTLIST", "<!ELEMENT", "<!NOTATION"].iter().any(|word| word.starts_with(rest));
            Err(if cut { self.short() } else { self.fail("this is not a declaration that XML knows") })
        }
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.space();
        self.expect(">")
    }

    fn entity(&mut self) -> Result<(), Failure> {
        self.required_space()?;
        let is_parameter = self.eat("%");
        if is_parameter {
            self.required_space()?;
        }
        let name = self.name()?;
        if name.contains(':') {
            return Err(self.fail("the name of an entity may not contain a colon"));
        }
        self.required_space()?;
        let entity = match self.external_id(true)? {
            None => {
                let raw = self.quoted()?;
                let text = self.entity_value(raw)?;
                self.close()?;
                Entity::Internal(Arc::from(text))
            }
            Some(id) => {
                let had_space = self.space();
                if had_space && !is_parameter && self.eat("NDATA") {
                    self.required_space()?;
                    let notation = self.name()?.into();
                    self.close()?;
                    Entity::Unparsed(UnparsedEntity { public: id.public, system: id.system, notation })
                } else {
                    self.close()?;
                    Entity::External(id)
                }
            }
        };
        // The first declaration of an entity is the one that counts (XML 1.0 §4.2).
        let table = if is_parameter { &mut self.dtd.parameters } else { &mut self.dtd.entities };
        table.entry(name.into()).or_insert(entity);
        Ok(())
    }

    fn notation(&mut self) -> Result<(), Failure> {
        self.required_space()?;
        self.name()?;
        self.required_space()?;
        if self.external_id(false)?.is_none() {
            return Err(self.fail("a notation needs SYSTEM or PUBLIC and an identifier"));
        }
        self.close()
    }

    fn attribute_list(&mut self) -> Result<(), Failure> {
        self.required_space()?;
        let element: Box<str> = self.name()?.into();
        let mut rules = Vec::new();
        loop {
            let had_space = self.space();
            if self.eat(">") {
                break;
            }
            if !had_space {
                self.required_space()?;
            }
            rules.push(self.attribute_rule()?);
        }
        let known = self.dtd.attributes.entry(element).or_default();
        for rule in rules {
            if known.len() >= self.options.limits.attributes_max {
                return Err(Failure::new(
                    crate::error::XmlErrorKind::Limit,
                    self.at,
                    "too many attributes are declared for one element",
                ));
            }
            // The first declaration of an attribute is the one that counts (XML 1.0 §3.3).
            if !known.iter().any(|earlier: &AttributeRule| earlier.name == rule.name) {
                known.push(rule);
            }
        }
        Ok(())
    }

    fn attribute_rule(&mut self) -> Result<AttributeRule, Failure> {
        let name: Box<str> = self.name()?.into();
        self.required_space()?;
        let kind = self.attribute_kind()?;
        self.required_space()?;
        let default = if self.eat("#REQUIRED") || self.eat("#IMPLIED") {
            None
        } else {
            if self.eat("#FIXED") {
                self.required_space()?;
            }
            let raw = self.quoted()?;
            if raw.contains('<') {
                return Err(self.fail("`<` may not stand in the value of an attribute, write `&lt;`"));
            }
            let at = self.at;
            let mut value = String::new();
            Normalise::new(Some(self.dtd), &self.options.limits, self.used)
                .attribute(raw, &mut value)
                .map_err(|failure| Failure { offset: at, ..failure })?;
            Some(kind.finish(value).into())
        };
        Ok(AttributeRule { name, kind, default })
    }

    fn attribute_kind(&mut self) -> Result<AttributeKind, Failure> {
        if self.eat("(") {
            self.choices(false)?;
            return Ok(AttributeKind::Tokens);
        }
        match self.token()? {
            "CDATA" => Ok(AttributeKind::Text),
            "ID" => Ok(AttributeKind::Id),
            "IDREF" | "IDREFS" | "ENTITY" | "ENTITIES" | "NMTOKEN" | "NMTOKENS" => Ok(AttributeKind::Tokens),
            "NOTATION" => {
                self.required_space()?;
                self.expect("(")?;
                self.choices(true)?;
                Ok(AttributeKind::Tokens)
            }
            other => Err(self.fail(format!("`{other}` is not a type of attribute"))),
        }
    }

    /// The rest of `(a | b | c)`.
    fn choices(&mut self, names: bool) -> Result<(), Failure> {
        loop {
            self.space();
            if names {
                self.name()?
            } else {
                self.token()?
            };
            self.space();
            if self.eat(")") {
                return Ok(());
            }
            self.expect("|")?;
        }
    }

    fn element(&mut self) -> Result<(), Failure> {
        self.required_space()?;
        self.name()?;
        self.required_space()?;
        if !self.eat("EMPTY") && !self.eat("ANY") {
            self.expect("(")?;
            self.space();
            if self.eat("#PCDATA") { self.mixed()? } else { self.group(0)? }
        }
        self.close()
    }

    /// The rest of `(#PCDATA | a | b)*`.
    fn mixed(&mut self) -> Result<(), Failure> {
        let mut names = false;
        loop {
            self.space();
            if self.eat(")") {
                if !self.eat("*") && names {
                    return Err(self.fail("`(#PCDATA | …)` with names must end with `*`"));
                }
                return Ok(());
            }
            self.expect("|")?;
            self.space();
            self.name()?;
            names = true;
        }
    }

    /// The rest of a group of element names after its `(`, with what repeats it.
    fn group(&mut self, depth: usize) -> Result<(), Failure> {
        if depth > GROUP_DEPTH_MAX {
            return Err(self.fail("the groups of this content model are nested too deeply"));
        }
        let mut separator = None;
        loop {
            self.space();
            if self.eat("(") {
                self.group(depth + 1)?;
            } else {
                self.name()?;
                self.repetition();
            }
            self.space();
            if self.eat(")") {
                self.repetition();
                return Ok(());
            }
            let found = match self.rest().as_bytes().first() {
                Some(b'|') => "|",
                Some(b',') => ",",
                None => return Err(self.short()),
                Some(_) => return Err(self.fail("`|`, `,` or `)` is expected in this content model")),
            };
            if *separator.get_or_insert(found) != found {
                return Err(self.fail("`|` and `,` may not be mixed in one group"));
            }
            self.at += 1;
        }
    }

    fn repetition(&mut self) {
        if self.rest().starts_with(['?', '*', '+']) {
            self.at += 1;
        }
    }
}

impl AttributeKind {
    /// The last step of XML 1.0 §3.3.3: other than `CDATA`, blanks at the ends go and those within become one.
    pub(crate) fn finish(self, value: String) -> String {
        if self == AttributeKind::Text {
            return value;
        }
        let words: Vec<&str> = value.split(' ').filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }
}
