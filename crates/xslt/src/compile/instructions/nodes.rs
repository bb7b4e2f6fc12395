//! Instructions that make nodes.

use super::super::{At, Compiler, is_ncname};
use crate::program::{Avt, ComputedName, Level, Message, Number, Op, OutName, Part, SimpleAttribute};
use crate::run::number_format::NumberFormat;

impl Compiler<'_> {
    pub(super) fn copy(&mut self, at: At) {
        let sets = self.attribute(at, "use-attribute-sets").unwrap_or_default();
        let sets = self.attribute_set_list(sets, at);
        let namespaces = self.flag_unless_no(at, "copy-namespaces");
        let copy = self.emit(Op::Copy { jump: 0, namespaces });
        self.target();
        self.namespace_inheritance(at);
        for set in sets {
            self.emit(Op::UseAttributeSet(set));
        }
        self.isolated_body(at);
        self.emit(Op::EndCopy);
        let jump = self.target();
        self.program.ops[copy as usize] = Op::Copy { jump, namespaces };
    }

    pub(super) fn element_instruction(&mut self, at: At) {
        let name = self.computed_name(at);
        let sets = self.attribute(at, "use-attribute-sets").unwrap_or_default();
        let sets = self.attribute_set_list(sets, at);
        self.emit(Op::StartElement(name));
        self.namespace_inheritance(at);
        for set in sets {
            self.emit(Op::UseAttributeSet(set));
        }
        self.isolated_body(at);
        self.emit(Op::EndComputedElement);
    }

    fn namespace_inheritance(&mut self, at: At) {
        if !self.flag_unless_no(at, "inherit-namespaces") {
            self.emit(Op::IsolateNamespaces);
        }
    }

    /// The `name` and `namespace` attributes of an instruction.
    pub(super) fn computed_name(&mut self, at: At) -> u32 {
        let name = self.name_parts(at);
        self.program.computed_names.push(name);
        self.program.computed_names.len() as u32 - 1
    }

    pub(super) fn name_parts(&mut self, at: At) -> ComputedName {
        let name = self.avt_attribute(at, "name", "");
        let namespace = self.optional_avt(at, "namespace");
        ComputedName { name, namespace, scope: (at.module, at.node) }
    }

    pub(super) fn attribute_instruction(&mut self, at: At) {
        self.check_select(at, "XTSE0840");
        if let Some(value) = self.simple_text(at) {
            let name = self.name_parts(at);
            let plain = name.namespace.is_none().then(|| name.name.as_constant()).flatten();
            let fixed = plain.filter(|local| is_ncname(local) && *local != "xmlns").map(|local| OutName {
                prefix: "".into(),
                local: local.into(),
                namespace: "".into(),
            });
            self.program.simple_attributes.push(SimpleAttribute { name, fixed, value });
            self.emit(Op::SimpleAttribute(self.program.simple_attributes.len() as u32 - 1));
            return;
        }
        let name = self.computed_name(at);
        match self.separator(at) {
            Some(separator) => self.joined_body(at, Op::EndJoinedAttribute { separator, name }),
            None => self.captured_text(at, false, |_| Op::EndAttribute(name)),
        }
    }

    /// The `separator` of an instruction with content.
    fn separator(&mut self, at: At) -> Option<u32> {
        let separator = self.optional_avt(at, "separator")?;
        self.program.separators.push(separator);
        Some(self.program.separators.len() as u32 - 1)
    }

    fn joined_body(&mut self, at: At, end: Op) {
        self.emit(Op::BeginSequence);
        self.isolated_body(at);
        self.emit(end);
    }

    /// The content (or `select`) as text and expressions, when it is nothing but those.
    pub(super) fn simple_text(&mut self, at: At) -> Option<Avt> {
        let separator = self.optional_avt(at, "separator");
        if let Some(text) = self.attribute(at, "select") {
            let value = self.value_of(text, separator, self.attribute_place(at, "select"));
            return Some(Avt { parts: vec![Part::Value(value)] });
        }
        let simple = self.content(at).into_iter().all(|child| match self.xsl_name(child) {
            Some("text") => true,
            Some("value-of") => self.attribute(child, "select").is_some() && self.content(child).is_empty(),
            Some(_) => false,
            None => !self.module(child).document.is_element(child.node),
        });
        // Version 2.0 separates adjacent items, which the general way takes care of.
        if !simple || separator.is_some() {
            return None;
        }
        let mut avt = Avt::default();
        for child in self.content(at) {
            let document = &self.module(child).document;
            match self.xsl_name(child) {
                Some("value-of") => {
                    if let Some(syntax) = crate::read::syntax::element_syntax("value-of") {
                        self.check_attributes(syntax, child);
                    }
                    let separator = self.optional_avt(child, "separator");
                    let text = self.attribute(child, "select").unwrap_or_default();
                    let value = self.value_of(text, separator, self.attribute_place(child, "select"));
                    avt.parts.push(Part::Value(value));
                }
                _ => avt.parts.push(Part::Text(document.string_value(child.node).into())),
            }
        }
        Some(avt)
    }

    /// A body whose output becomes the text of one node.
    pub(super) fn captured_text(&mut self, at: At, spaced: bool, end: impl FnOnce(&mut Self) -> Op) {
        self.emit(Op::BeginText { spaced });
        if let Some(text) = self.attribute(at, "select") {
            let value = self.value_of(text, None, self.attribute_place(at, "select"));
            self.program.values_of.push(value);
            self.emit(Op::ValueOf(self.program.values_of.len() as u32 - 1));
        } else {
            self.isolated_body(at);
        }
        let end = end(self);
        self.emit(end);
    }

    pub(super) fn text(&mut self, at: At) {
        let raw = self.flag(at, "disable-output-escaping");
        let document = &self.module(at).document;
        if let Some(child) = self.content(at).into_iter().find(|child| document.is_element(child.node)) {
            self.error("XTSE0010", "`xsl:text` contains text only", child);
        }
        let text = document.string_value(at.node);
        if raw {
            let number = self.string(&text);
            self.emit(Op::RawText(number));
        } else {
            self.literal_text(&text);
        }
    }

    pub(super) fn value_of_instruction(&mut self, at: At) {
        self.check_select(at, "XTSE0870");
        let raw = self.flag(at, "disable-output-escaping");
        let Some(text) = self.attribute(at, "select") else {
            if self.version(at) < 2.0 || self.sequence_constructor(at).is_empty() {
                self.error("XTSE0870", "`xsl:value-of` needs the attribute `select`", at);
            }
            match self.separator(at) {
                Some(separator) => self.joined_body(at, Op::EndJoined { separator, raw }),
                None => {
                    self.emit(Op::BeginText { spaced: false });
                    self.isolated_body(at);
                    self.emit(Op::EndValueOf { raw });
                }
            }
            return;
        };
        let separator = self.optional_avt(at, "separator");
        let mut value = self.value_of(text, separator, self.attribute_place(at, "select"));
        value.raw = raw;
        self.program.values_of.push(value);
        self.emit(Op::ValueOf(self.program.values_of.len() as u32 - 1));
    }

    pub(super) fn message(&mut self, at: At) {
        let terminate = self.avt_attribute(at, "terminate", "no");
        self.emit(Op::BeginTree);
        if let Some(text) = self.attribute(at, "select") {
            let select = self.expression(text, self.attribute_place(at, "select"));
            self.emit(Op::Sequence(select));
        }
        self.isolated_body(at);
        self.program.messages.push(Message { terminate });
        self.emit(Op::EndMessage(self.program.messages.len() as u32 - 1));
    }

    pub(super) fn number(&mut self, at: At) {
        let places = ["select", "level", "count", "from"];
        if self.attribute(at, "value").is_some()
            && self.version(at) >= 2.0
            && places.iter().any(|name| self.attribute(at, name).is_some())
        {
            self.error("XTSE0975", "`value` excludes `select`, `level`, `count` and `from`", at);
        }
        self.program.looks_up = true;
        let level = match self.attribute(at, "level") {
            None | Some("single") => Level::Single,
            Some("multiple") => Level::Multiple,
            Some("any") => Level::Any,
            // A wrong value was reported with the attributes.
            Some(_) => Level::Single,
        };
        let pattern = |compiler: &mut Self, name: &str| {
            let text = compiler.attribute(at, name)?;
            compiler.pattern(text, compiler.attribute_place(at, name))
        };
        let count = pattern(self, "count");
        let from = pattern(self, "from");
        let format = self.avt_attribute(at, "format", "1");
        let letter_value = self.avt_attribute(at, "letter-value", "");
        let ordinal = self.avt_attribute(at, "ordinal", "");
        let fixed_format = match (format.as_constant(), letter_value.as_constant(), ordinal.as_constant()) {
            (Some(format), Some(letter_value), Some(ordinal)) => {
                Some(NumberFormat::parse(format, letter_value, !ordinal.is_empty()))
            }
            _ => None,
        };
        let number = Number {
            value: self.optional_expression(at, "value"),
            first_only: self.version(at) < 2.0,
            select: self.optional_expression(at, "select"),
            level,
            count,
            from,
            format,
            fixed_format,
            letter_value,
            ordinal,
            grouping_separator: self.avt_attribute(at, "grouping-separator", ""),
            grouping_size: self.avt_attribute(at, "grouping-size", ""),
        };
        self.program.numbers.push(number);
        self.emit(Op::Number(self.program.numbers.len() as u32 - 1));
    }
}
