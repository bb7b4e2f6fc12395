//! `xsl:result-document`: the tree is collected, then written with properties of its own.

use std::rc::Rc;

use penstock_xml::{Document, NodeId, NodeKind};

use super::Outcome;
use super::machine::Machine;
use super::sink::{Sink, TreeSink};
use crate::output::{Buffers, OutputInfo, OutputProperties, Writer};
use crate::program::ResultDocument;

/// A result document that takes the place of the principal result.
pub(crate) struct PrincipalResult {
    pub document: Rc<Document>,
    pub properties: OutputProperties,
}

impl Machine<'_, '_> {
    pub(super) fn begin_result_document(&mut self) -> Outcome<()> {
        if self.in_temporary_output() {
            return self.failure("XTDE1480", "`xsl:result-document` stands where a temporary tree or value is made");
        }
        self.check_output()?;
        self.push_sink(Sink::Tree(TreeSink::result()));
        Ok(())
    }

    /// Whether what is written now becomes a value of the stylesheet, not a part of a result.
    fn in_temporary_output(&self) -> bool {
        let temporary = |sink: &Sink<'_>| match sink {
            Sink::Bytes(_) => false,
            Sink::Tree(tree) => !tree.is_result,
            Sink::Sequence(sequence) => !sequence.is_result,
            Sink::Text(_) => true,
        };
        // The outermost sink is the principal result, unless this machine computes a value.
        let outermost = self.sinks.first().unwrap_or(&self.sink);
        matches!(outermost, Sink::Sequence(_))
            || self.sinks.iter().skip(1).any(temporary)
            || (!self.sinks.is_empty() && temporary(&self.sink))
    }

    pub(super) fn end_result_document(&mut self, number: u32) -> Outcome<()> {
        let result = &self.program.results[number as usize];
        let properties = self.result_properties(result)?;
        let bytes = self.sink.bytes();
        self.run.temporary.set(self.run.temporary.get() + bytes);
        let document = match self.pop_sink() {
            Sink::Tree(tree) => tree.tree.finish(),
            _ => return Ok(()),
        };
        let href = match &result.href {
            Some(href) => self.avt(href)?.trim().to_owned(),
            None => String::new(),
        };
        if !self.run.written.borrow_mut().insert(href.clone()) {
            return self.failure("XTDE1490", format!("two results are written to `{href}`"));
        }
        if href.is_empty() {
            let principal = self.sinks.first().unwrap_or(&self.sink);
            if !principal.is_untouched() {
                return self.failure("XTDE1490", "the principal result is written twice");
            }
            *self.run.principal.borrow_mut() = Some(PrincipalResult { document: Rc::new(document), properties });
            return Ok(());
        }
        let Some(write) = self.run.options.documents else {
            let message = "`xsl:result-document` with `href` is not supported: a transformation has one result here";
            return self.failure("XTDE1490", message);
        };
        let mut out = Vec::new();
        serialize(&document, &properties, &mut out);
        match write(&href, &out) {
            Ok(()) => Ok(()),
            Err(message) => self.failure("SXRD0004", message),
        }
    }

    /// The output definition that `format` names, with what the instruction itself adds.
    fn result_properties(&self, result: &ResultDocument) -> Outcome<OutputProperties> {
        let (module, node) = result.scope;
        let scope = &self.program.modules.modules[module].document;
        let mut properties = match &result.format {
            None => self.program.output.clone(),
            Some(format) => {
                let lexical = self.avt(format)?;
                let namespace = |prefix: &str| scope.lookup_namespace(node, prefix).map(str::to_owned);
                let found = super::functions::available::expand(&lexical, &namespace).and_then(|(uri, local)| {
                    let name = crate::compile::expanded_name(&uri, &local);
                    let number = self.program.names.iter().position(|known| **known == *name)?;
                    self.program.outputs.get(&(number as u32))
                });
                match found {
                    Some(found) => found.clone(),
                    None => {
                        let message = format!("there is no output definition named `{lexical}`");
                        return self.failure("XTDE1460", message);
                    }
                }
            }
        };
        for (name, value) in &result.properties {
            let value = self.avt(value)?;
            if &**name == "cdata-section-elements" {
                for token in value.split_ascii_whitespace() {
                    self.add_cdata_element(token, scope, node, &mut properties)?;
                }
                continue;
            }
            if let Err((_, message)) = properties.set(name, &value) {
                return self.failure("XTDE0030", message);
            }
        }
        properties.character_map.splice(0..0, result.character_map.iter().cloned());
        match properties.check() {
            Ok(()) => Ok(properties),
            Err((code, message)) => self.failure(code, message),
        }
    }

    fn add_cdata_element(
        &self,
        token: &str,
        scope: &Document,
        node: NodeId,
        properties: &mut OutputProperties,
    ) -> Outcome<()> {
        let (prefix, local) = token.split_once(':').unwrap_or(("", token));
        match scope.lookup_namespace(node, prefix) {
            None if !prefix.is_empty() => self.failure("XTDE0030", format!("the prefix of `{token}` is not declared")),
            namespace => {
                properties.cdata_section_elements.push((namespace.unwrap_or_default().into(), local.into()));
                Ok(())
            }
        }
    }
}

/// Writes a tree.
pub(crate) fn serialize(document: &Document, properties: &OutputProperties, out: &mut Vec<u8>) -> OutputInfo {
    let mut writer = Writer::new(out, properties, Buffers::default());
    let mut open: Vec<usize> = Vec::new();
    for id in document.descendants(Document::ROOT) {
        penstock_budget::step();
        while open.last().is_some_and(|end| *end <= id.index()) {
            open.pop();
            writer.end_element();
        }
        match document.kind(id) {
            NodeKind::Element => {
                let name = document.name(id);
                writer.start_element(name.prefix, name.local, name.namespace);
                for declaration in document.namespace_declarations(id) {
                    writer.declare(document.local_name(declaration), document.text(declaration));
                }
                for attribute in document.attributes(id) {
                    let name = document.name(attribute);
                    writer.attribute(name.prefix, name.local, name.namespace, document.text(attribute));
                }
                open.push(document.subtree(id).end);
            }
            NodeKind::Text => writer.text(document.text(id)),
            NodeKind::Comment => writer.comment(document.text(id)),
            NodeKind::ProcessingInstruction => {
                writer.processing_instruction(document.local_name(id), document.text(id))
            }
            _ => {}
        }
    }
    for _ in open {
        writer.end_element();
    }
    let (method, _) = writer.finish();
    properties.info(method)
}
