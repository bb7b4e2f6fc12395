//! Variables, parameters and what is passed to them.

use crate::program::{Block, NONE, Op, Parameter, Passed, Slot};

use super::{At, Compiler};

impl Compiler<'_> {
    /// `xsl:variable` inside a body.
    pub fn local_variable(&mut self, at: At) {
        let slot = self.frame.new_slot();
        self.binding(at, slot);
        if let Some(name) = self.binding_name(at) {
            self.frame.visible.push((name, slot));
        }
    }

    fn binding_name(&mut self, at: At) -> Option<u32> {
        self.declared_name(at)
    }

    /// The value of `xsl:variable`, `xsl:param` or `xsl:with-param`, put into a slot.
    pub fn binding(&mut self, at: At, slot: Slot) {
        self.here = at;
        let as_type = self.as_type(at);
        let content = self.content(at);
        if let Some(text) = self.attribute(at, "select") {
            if !content.is_empty() {
                self.error("XTSE0620", "a variable has either `select` or content", at);
            }
            let expr = self.expression(text, self.attribute_place(at, "select"));
            self.emit(Op::SetVariable { slot, expr, as_type });
            return;
        }
        if content.is_empty() {
            // XSLT 2.0 §9.5: a parameter whose type excludes the empty sequence has no default.
            if as_type != NONE && self.xsl_name(at) == Some("param") && self.excludes_empty(as_type) {
                self.fail("XTDE0610".into(), "a parameter of this type was not passed".to_owned());
                return;
            }
            let text = if as_type == NONE { "''" } else { "()" };
            let expr = self.expression(text, at);
            self.emit(Op::SetVariable { slot, expr, as_type });
            return;
        }
        let literal = self.literal.take();
        if as_type == NONE {
            self.emit(Op::BeginTree);
            self.body(at);
            self.here = at;
            self.emit(Op::EndTree { slot });
        } else {
            self.emit(Op::BeginSequence);
            self.body(at);
            self.here = at;
            self.emit(Op::EndSequence { slot, as_type });
        }
        self.literal = literal;
    }

    /// Whether a type does not have the empty sequence.
    fn excludes_empty(&self, as_type: u32) -> bool {
        self.program.types.get(as_type as usize).is_some_and(|sequence_type| !sequence_type.allows_empty())
    }

    /// The `xsl:param` children of a template or function, in order.
    pub fn param_elements(&self, parent: At) -> Vec<At> {
        self.content(parent).into_iter().filter(|child| self.xsl_name(*child) == Some("param")).collect()
    }

    /// Compiles the parameters of a template; returns the names of those that do not tunnel.
    pub fn template_params(&mut self, template: At) -> Vec<u32> {
        let mut names = Vec::new();
        for at in self.param_elements(template) {
            self.here = at;
            if let Some(syntax) = crate::read::syntax::element_syntax("param") {
                self.check_attributes(syntax, at);
            }
            let Some(name) = self.binding_name(at) else { continue };
            let tunnel = self.flag(at, "tunnel");
            let required = self.flag(at, "required");
            if self.frame.visible.iter().any(|(known, _)| *known == name) {
                self.error("XTSE0580", "two parameters have the same name", at);
            }
            let slot = self.frame.new_slot();
            let as_type = self.as_type(at);
            let number = self.program.parameters.len();
            self.program.parameters.push(Parameter { name, slot, tunnel, required, as_type, after: 0 });
            self.emit(Op::Param(number as u32));
            if !required {
                self.binding(at, slot);
            } else {
                self.check_required(at);
            }
            self.program.parameters[number].after = self.target();
            self.frame.visible.push((name, slot));
            if !tunnel {
                names.push(name);
            }
        }
        names
    }

    /// A parameter that is required has no default.
    pub(super) fn check_required(&mut self, at: At) {
        if self.attribute(at, "select").is_some() || !self.content(at).is_empty() {
            self.error("XTSE0010", "a parameter that is required has no default", at);
        }
    }

    /// Evaluates the `xsl:with-param` children into slots.
    pub fn passed_params(&mut self, at: At) -> Vec<Passed> {
        let mut passed: Vec<Passed> = Vec::new();
        for child in self.content(at) {
            if self.xsl_name(child) != Some("with-param") {
                continue;
            }
            if let Some(syntax) = crate::read::syntax::element_syntax("with-param") {
                self.check_attributes(syntax, child);
            }
            let Some(name) = self.binding_name(child) else { continue };
            if passed.iter().any(|other| other.name == name) {
                self.error("XTSE0670", "the same parameter is passed twice", child);
            }
            let tunnel = self.flag(child, "tunnel");
            let slot = self.frame.new_slot();
            self.binding(child, slot);
            passed.push(Passed { name, tunnel, slot });
        }
        self.here = at;
        passed
    }

    /// Compiles code that has variables of its own.
    pub fn block<R>(&mut self, compile: impl FnOnce(&mut Self) -> R) -> (Block, R) {
        let outer = std::mem::take(&mut self.frame);
        let literal = self.literal.take();
        let entry = self.target();
        let result = compile(self);
        self.emit(Op::Return);
        self.target();
        self.literal = literal;
        let frame = std::mem::replace(&mut self.frame, outer);
        (Block { entry, slots: frame.slots }, result)
    }
}
