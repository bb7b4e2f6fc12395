//! One function for each instruction.

use crate::program::{
    Analysis, Application, Avt, Call, ComputedName, Continuation, GroupBy, Grouping, Level, Loop, Message, NONE,
    Number, Op, Part, Select, SimpleAttribute, SortKey,
};
use crate::run::number_format::NumberFormat;

use super::{At, Compiler, is_ncname};

impl<'t> Compiler<'t> {
    /// Compiles an instruction whose attributes were checked.
    pub fn compile_instruction(&mut self, name: &str, at: At) {
        match name {
            "analyze-string" => self.analyze_string(at),
            "apply-imports" => self.continuation(at, true),
            "apply-templates" => self.apply_templates(at),
            "attribute" => self.attribute_instruction(at),
            "call-template" => self.call_template(at),
            "choose" => self.choose(at),
            "comment" => self.captured_text(at, |_| Op::EndComment),
            "copy" => self.copy(at),
            "copy-of" => {
                let select = self.required_expression(at, "select");
                self.emit(Op::CopyOf(select));
            }
            "document" => {
                self.emit(Op::BeginTree);
                self.isolated_body(at);
                self.emit(Op::EndDocument);
            }
            "element" => self.element_instruction(at),
            "for-each" => self.for_each(at),
            "for-each-group" => self.for_each_group(at),
            "if" => self.conditional(at),
            "message" => self.message(at),
            "namespace" => {
                let name = self.computed_name(at);
                self.captured_text(at, |_| Op::EndNamespace(name));
            }
            "next-match" => self.continuation(at, false),
            "number" => self.number(at),
            "perform-sort" => self.perform_sort(at),
            "processing-instruction" => {
                let name = self.computed_name(at);
                self.captured_text(at, |_| Op::EndProcessingInstruction(name));
            }
            "result-document" => self.result_document(at),
            "sequence" => {
                let select = self.required_expression(at, "select");
                self.emit(Op::Sequence(select));
            }
            "text" => self.text(at),
            "value-of" => self.value_of_instruction(at),
            "variable" => self.local_variable(at),
            other => self.error("XTSE0010", format!("`xsl:{other}` may not stand here"), at),
        }
    }

    /// A body whose output does not go to where the enclosing body's goes.
    fn isolated_body(&mut self, at: At) {
        let literal = self.literal.take();
        self.body(at);
        self.literal = literal;
        self.here = at;
    }

    fn conditional(&mut self, at: At) {
        let test = self.required_expression(at, "test");
        let jump = self.emit(Op::JumpUnless { test, to: 0 });
        self.target();
        self.body(at);
        let to = self.target();
        self.program.ops[jump as usize] = Op::JumpUnless { test, to };
    }

    fn choose(&mut self, at: At) {
        let mut ends = Vec::new();
        let mut otherwise = false;
        let mut whens = 0;
        for child in self.content(at) {
            let name = self.xsl_name(child);
            if let Some(syntax) = name.and_then(crate::read::syntax::element_syntax) {
                self.check_attributes(syntax, child);
            }
            self.here = child;
            match name {
                Some("when") if !otherwise => {
                    whens += 1;
                    let test = self.required_expression(child, "test");
                    let jump = self.emit(Op::JumpUnless { test, to: 0 });
                    self.target();
                    self.body(child);
                    ends.push(self.emit(Op::Jump(0)));
                    let to = self.target();
                    self.program.ops[jump as usize] = Op::JumpUnless { test, to };
                }
                Some("otherwise") if !otherwise => {
                    otherwise = true;
                    self.body(child);
                }
                Some("when" | "otherwise") => {
                    self.error("XTSE0010", "`xsl:otherwise` comes last in `xsl:choose`, and once", child);
                }
                _ => {}
            }
        }
        if whens == 0 {
            self.error("XTSE0010", "`xsl:choose` needs an `xsl:when`", at);
        }
        let end = self.target();
        for jump in ends {
            self.program.ops[jump as usize] = Op::Jump(end);
        }
    }

    fn for_each(&mut self, at: At) {
        let text = self.attribute(at, "select").unwrap_or("()");
        let select = self.select(text, self.attribute_place(at, "select"));
        let sort = self.sort_keys(at);
        let number = self.program.loops.len();
        self.program.loops.push(Loop { select, sort, end: 0 });
        self.emit(Op::ForEach(number as u32));
        self.target();
        self.body(at);
        self.emit(Op::Next);
        self.program.loops[number].end = self.target();
    }

    fn perform_sort(&mut self, at: At) {
        let sort = self.sort_keys(at);
        let select = match self.attribute(at, "select") {
            Some(text) => self.select(text, self.attribute_place(at, "select")),
            None => {
                // The content is a sequence; it is kept in a variable that only the sort sees.
                let slot = self.frame.new_slot();
                self.emit(Op::BeginSequence);
                self.isolated_body(at);
                self.emit(Op::EndSequence { slot, as_type: NONE });
                let name = self.expanded("urn:penstock:internal", "sorted");
                self.frame.visible.push((name, slot));
                let expr = self.internal_variable(at);
                Select::Expr(expr)
            }
        };
        let number = self.program.loops.len();
        self.program.loops.push(Loop { select, sort, end: 0 });
        self.emit(Op::PerformSort(number as u32));
        self.program.loops[number].end = self.target();
    }

    /// An expression that yields the content of the innermost `xsl:perform-sort`.
    fn internal_variable(&mut self, at: At) -> u32 {
        self.internal_prefix = true;
        let expr = self.expression("$penstock-internal:sorted", at);
        self.internal_prefix = false;
        self.frame.visible.pop();
        expr
    }

    fn for_each_group(&mut self, at: At) {
        let select = self.required_expression(at, "select");
        let attributes = ["group-by", "group-adjacent", "group-starting-with", "group-ending-with"];
        let given: Vec<&str> = attributes.iter().copied().filter(|name| self.attribute(at, name).is_some()).collect();
        let &[name] = &given[..] else {
            let message = "`xsl:for-each-group` has exactly one of `group-by`, `group-adjacent`, \
                           `group-starting-with` and `group-ending-with`";
            self.error("XTSE1080", message, at);
            return;
        };
        let place = self.attribute_place(at, name);
        let text = self.attribute(at, name).unwrap_or_default();
        let by = match name {
            "group-by" => GroupBy::Key(self.expression(text, place)),
            "group-adjacent" => GroupBy::Adjacent(self.expression(text, place)),
            "group-starting-with" => GroupBy::StartingWith(self.pattern(text, place).unwrap_or_default()),
            _ => GroupBy::EndingWith(self.pattern(text, place).unwrap_or_default()),
        };
        let sort = self.sort_keys(at);
        let number = self.program.groupings.len();
        self.program.groupings.push(Grouping { select, by, sort, end: 0 });
        self.emit(Op::ForEachGroup(number as u32));
        self.target();
        self.body(at);
        self.emit(Op::Next);
        self.program.groupings[number].end = self.target();
    }

    fn analyze_string(&mut self, at: At) {
        let select = self.required_expression(at, "select");
        let regex = self.avt_attribute(at, "regex", "");
        let flags = self.avt_attribute(at, "flags", "");
        let number = self.program.analyses.len();
        self.program.analyses.push(Analysis { select, regex, flags, matching: None, non_matching: None, end: 0 });
        self.emit(Op::AnalyzeString(number as u32));
        let mut bodies = 0;
        for child in self.content(at) {
            let matching = match self.xsl_name(child) {
                Some("matching-substring") => true,
                Some("non-matching-substring") => false,
                _ => continue,
            };
            bodies += 1;
            let entry = self.target();
            self.body(child);
            self.emit(Op::Next);
            let analysis = &mut self.program.analyses[number];
            if matching { analysis.matching = Some(entry) } else { analysis.non_matching = Some(entry) }
        }
        if bodies == 0 {
            self.error("XTSE1130", "`xsl:analyze-string` needs a `xsl:matching-substring` or the other", at);
        }
        self.program.analyses[number].end = self.target();
    }

    fn apply_templates(&mut self, at: At) {
        let select = match self.attribute(at, "select") {
            Some(text) => self.select(text, self.attribute_place(at, "select")),
            None => Select::Children,
        };
        let mode = match self.attribute(at, "mode").map(str::trim) {
            None | Some("#default") => 0,
            Some("#current") => NONE,
            Some(name) => self.mode(name, self.attribute_place(at, "mode")).unwrap_or(0),
        };
        let sort = self.sort_keys(at);
        let params = self.passed_params(at);
        self.program.applications.push(Application { select, mode, sort, params });
        self.emit(Op::ApplyTemplates(self.program.applications.len() as u32 - 1));
        self.target();
    }

    fn call_template(&mut self, at: At) {
        let Some(text) = self.attribute(at, "name") else { return };
        let Some(name) = self.qname(text, self.attribute_place(at, "name")) else { return };
        let params = self.passed_params(at);
        let Some(template) = self.program.template_names.get(&name).copied() else {
            if self.forwards_compatible(at) {
                self.fail("XTSE0650".into(), format!("there is no template named `{text}`"));
                return;
            }
            let mut message = format!("there is no template named `{text}`");
            let names: Vec<_> = self.program.template_names.keys().map(|n| &*self.program.names[*n as usize]).collect();
            if let Some(known) = crate::read::syntax::suggestion(text, names) {
                message.push_str(&format!(", did you mean `{known}`?"));
            }
            self.error("XTSE0650", message, self.attribute_place(at, "name"));
            return;
        };
        self.calls_to_check.push((at, template, params.iter().filter(|p| !p.tunnel).map(|p| p.name).collect()));
        self.program.calls.push(Call { template, params });
        self.emit(Op::Call(self.program.calls.len() as u32 - 1));
        self.target();
    }

    fn continuation(&mut self, at: At, imports_only: bool) {
        let params = self.passed_params(at);
        self.program.continuations.push(Continuation { imports_only, params });
        self.emit(Op::Continue(self.program.continuations.len() as u32 - 1));
        self.target();
    }

    /// The `xsl:sort` children.
    fn sort_keys(&mut self, at: At) -> Vec<SortKey> {
        let mut keys = Vec::new();
        for child in self.content(at) {
            if self.xsl_name(child) != Some("sort") {
                continue;
            }
            let select = match self.attribute(child, "select") {
                Some(text) => self.expression(text, self.attribute_place(child, "select")),
                None => self.expression(".", child),
            };
            keys.push(SortKey {
                select,
                lang: self.avt_attribute(child, "lang", ""),
                order: self.avt_attribute(child, "order", "ascending"),
                data_type: self.avt_attribute(child, "data-type", ""),
                case_order: self.avt_attribute(child, "case-order", ""),
                untyped: self.version(child) < 2.0,
            });
        }
        keys
    }

    fn copy(&mut self, at: At) {
        let sets = self.attribute(at, "use-attribute-sets").unwrap_or_default();
        let sets = self.attribute_set_list(sets, at);
        let copy = self.emit(Op::Copy { jump: 0 });
        self.target();
        for set in sets {
            self.emit(Op::UseAttributeSet(set));
        }
        self.isolated_body(at);
        self.emit(Op::EndCopy);
        let jump = self.target();
        self.program.ops[copy as usize] = Op::Copy { jump };
    }

    fn element_instruction(&mut self, at: At) {
        let name = self.computed_name(at);
        let sets = self.attribute(at, "use-attribute-sets").unwrap_or_default();
        let sets = self.attribute_set_list(sets, at);
        self.emit(Op::StartElement(name));
        for set in sets {
            self.emit(Op::UseAttributeSet(set));
        }
        self.isolated_body(at);
        self.emit(Op::EndComputedElement);
    }

    /// The `name` and `namespace` attributes of an instruction.
    fn computed_name(&mut self, at: At) -> u32 {
        let name = self.name_parts(at);
        self.program.computed_names.push(name);
        self.program.computed_names.len() as u32 - 1
    }

    fn name_parts(&mut self, at: At) -> ComputedName {
        let name = self.avt_attribute(at, "name", "");
        let namespace = self.optional_avt(at, "namespace");
        ComputedName { name, namespace, scope: (at.module, at.node) }
    }

    fn attribute_instruction(&mut self, at: At) {
        if let Some(value) = self.simple_text(at) {
            let name = self.name_parts(at);
            let plain = name.namespace.is_none().then(|| name.name.as_constant()).flatten();
            let fixed = plain
                .filter(|local| is_ncname(local) && *local != "xmlns")
                .map(|local| crate::program::OutName { prefix: "".into(), local: local.into(), namespace: "".into() });
            self.program.simple_attributes.push(SimpleAttribute { name, fixed, value });
            self.emit(Op::SimpleAttribute(self.program.simple_attributes.len() as u32 - 1));
            return;
        }
        let name = self.computed_name(at);
        self.captured_text(at, |_| Op::EndAttribute(name));
    }

    /// The content (or `select`) as text and expressions, when it is nothing but those.
    fn simple_text(&mut self, at: At) -> Option<Avt> {
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
    fn captured_text(&mut self, at: At, end: impl FnOnce(&mut Self) -> Op) {
        self.emit(Op::BeginText);
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

    fn text(&mut self, at: At) {
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

    fn value_of_instruction(&mut self, at: At) {
        let raw = self.flag(at, "disable-output-escaping");
        let Some(text) = self.attribute(at, "select") else {
            if self.version(at) < 2.0 {
                self.error("XTSE0870", "`xsl:value-of` needs the attribute `select`", at);
            }
            self.emit(Op::BeginText);
            self.isolated_body(at);
            self.emit(Op::EndValueOf { raw });
            return;
        };
        let separator = self.optional_avt(at, "separator");
        let mut value = self.value_of(text, separator, self.attribute_place(at, "select"));
        value.raw = raw;
        self.program.values_of.push(value);
        self.emit(Op::ValueOf(self.program.values_of.len() as u32 - 1));
    }

    fn message(&mut self, at: At) {
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

    fn result_document(&mut self, at: At) {
        if self.attribute(at, "href").is_some_and(|href| !href.trim().is_empty()) {
            let message = "`xsl:result-document` with `href` is not supported: a transformation has one result here";
            self.fail("XTDE1490".into(), message.into());
            return;
        }
        self.body(at);
    }

    fn number(&mut self, at: At) {
        self.program.looks_up = true;
        let level = match self.attribute(at, "level") {
            None | Some("single") => Level::Single,
            Some("multiple") => Level::Multiple,
            Some("any") => Level::Any,
            Some(other) => {
                let message = format!("`level` is `single`, `multiple` or `any`, not `{other}`");
                self.error("XTSE0020", message, self.attribute_place(at, "level"));
                Level::Single
            }
        };
        let pattern = |compiler: &mut Self, name: &str| {
            let text = compiler.attribute(at, name)?;
            compiler.pattern(text, compiler.attribute_place(at, name))
        };
        let count = pattern(self, "count");
        let from = pattern(self, "from");
        let format = self.avt_attribute(at, "format", "1");
        let letter_value = self.avt_attribute(at, "letter-value", "");
        let fixed_format = match (format.as_constant(), letter_value.as_constant()) {
            (Some(format), Some(letter_value)) => Some(NumberFormat::parse(format, letter_value)),
            _ => None,
        };
        let number = Number {
            value: self.optional_expression(at, "value"),
            select: self.optional_expression(at, "select"),
            level,
            count,
            from,
            format,
            fixed_format,
            letter_value,
            grouping_separator: self.avt_attribute(at, "grouping-separator", ""),
            grouping_size: self.avt_attribute(at, "grouping-size", ""),
        };
        self.program.numbers.push(number);
        self.emit(Op::Number(self.program.numbers.len() as u32 - 1));
    }
}
