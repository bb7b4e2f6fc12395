//! One function for each instruction.

mod loops;
mod nodes;
mod results;

use crate::program::{Application, Call, Continuation, NONE, Op, Select};

use super::{At, Compiler};

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
            "comment" => {
                self.check_select(at, "XTSE0940");
                self.captured_text(at, true, |_| Op::EndComment);
            }
            "copy" => self.copy(at),
            "copy-of" => {
                let select = self.required_expression(at, "select");
                let namespaces = self.flag_unless_no(at, "copy-namespaces");
                self.emit(Op::CopyOf { select, namespaces });
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
                self.check_select(at, "XTSE0910");
                if self.attribute(at, "select").is_none() && self.sequence_constructor(at).is_empty() {
                    self.error("XTSE0910", "`xsl:namespace` needs `select` or content", at);
                }
                let name = self.computed_name(at);
                self.captured_text(at, true, |_| Op::EndNamespace(name));
            }
            "next-match" => self.continuation(at, false),
            "number" => self.number(at),
            "perform-sort" => self.perform_sort(at),
            "processing-instruction" => {
                self.check_select(at, "XTSE0880");
                let name = self.computed_name(at);
                self.captured_text(at, true, |_| Op::EndProcessingInstruction(name));
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
}
