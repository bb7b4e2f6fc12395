//! Sequence constructors: the content of templates, loops, variables and elements.

use crate::program::Op;
use crate::read::syntax::{self, Place};
use crate::run::functions::EXSLT_COMMON;

use super::{At, Compiler};

/// Children of instructions that are not part of their body.
const NOT_BODY: &[&str] = &["param", "sort", "with-param", "fallback"];

impl Compiler<'_> {
    /// Compiles the content of an element as a sequence constructor with a variable scope of its own.
    pub fn body(&mut self, parent: At) {
        let content = self.content(parent);
        let visible = self.frame.visible.len();
        for child in content {
            self.here = child;
            self.item(child);
        }
        self.frame.visible.truncate(visible);
    }

    fn item(&mut self, at: At) {
        let document = &self.module(at).document;
        if !document.is_element(at.node) {
            let text = document.text(at.node);
            self.literal_text(text);
            return;
        }
        match self.xsl_name(at) {
            Some(name) => self.instruction(name, at),
            None if self.is_exslt_document(at) => self.result_document(at),
            None if self.is_extension(at) => self.unknown_instruction(at, "XTDE1450"),
            None => self.literal_element(at),
        }
        self.here = at;
        if let Some((code, message)) = self.pending_failure.take() {
            self.fail(code, message);
        }
    }

    /// Whether an element is the instruction `exsl:document`, which does what `xsl:result-document` does.
    fn is_exslt_document(&self, at: At) -> bool {
        let document = &self.module(at).document;
        document.local_name(at.node) == "document"
            && document.namespace(at.node) == EXSLT_COMMON
            && self.is_extension(at)
    }

    fn instruction(&mut self, name: &str, at: At) {
        let Some(element) = syntax::element_syntax(name) else {
            if self.forwards_compatible(at) {
                self.unknown_instruction(at, "XTDE1450");
                return;
            }
            let mut message = format!("unknown instruction `xsl:{name}`");
            if let Some(known) = syntax::suggestion(name, syntax::element_names()) {
                message.push_str(&format!(", did you mean `xsl:{known}`?"));
            }
            self.error("XTSE0010", message, at);
            return;
        };
        if NOT_BODY.contains(&name) {
            // The others are checked by the elements they belong to.
            if name == "fallback" {
                self.check_attributes(element, at);
            }
            self.check_parent(element, at);
            return;
        }
        match element.place {
            Place::Instruction | Place::Both => {
                self.check_attributes(element, at);
                self.compile_instruction(name, at);
            }
            Place::Declaration => {
                self.error("XTSE0010", format!("`xsl:{name}` stands at the top level of a stylesheet only"), at);
            }
            Place::Within(parents) => {
                let parents = parents.join("`, `xsl:");
                self.error("XTSE0010", format!("`xsl:{name}` stands inside `xsl:{parents}` only"), at);
            }
        }
    }

    /// `xsl:param`, `xsl:sort` and the like were compiled with their parent; here only a wrong parent is noticed.
    fn check_parent(&mut self, element: &'static syntax::ElementSyntax, at: At) {
        let document = &self.module(at).document;
        let parent = document.parent(at.node).map(|node| At { node, ..at });
        let parent_name = parent.and_then(|parent| self.xsl_name(parent)).unwrap_or_default();
        let fits = match element.place {
            Place::Within(parents) => parents.contains(&parent_name),
            _ if element.name == "param" => matches!(parent_name, "template" | "function"),
            _ => true,
        };
        if !fits && !self.forwards_compatible(at) {
            let name = element.name;
            self.error("XTSE0010", format!("`xsl:{name}` may not stand here"), at);
        }
    }

    /// An unknown instruction: its fallback, or an error when it is reached.
    fn unknown_instruction(&mut self, at: At, code: &str) {
        let fallbacks: Vec<At> =
            self.content(at).into_iter().filter(|child| self.xsl_name(*child) == Some("fallback")).collect();
        if fallbacks.is_empty() {
            let document = &self.module(at).document;
            let name = document.name(at.node).to_string();
            self.fail(code.to_owned(), format!("the instruction `{name}` is not available"));
            return;
        }
        for fallback in fallbacks {
            self.body(fallback);
        }
    }

    /// An error raised when the place is reached.
    pub fn fail(&mut self, code: String, message: String) {
        self.program.deferred.push((code, message));
        self.emit(Op::Fail(self.program.deferred.len() as u32 - 1));
    }
}
