//! Items that become part of the output: copies, sequences, and nodes whose content was collected first.

use std::fmt::Write as _;

use penstock_xml::{Document, NodeKind};
use penstock_xpath::{Atomic, ItemRef, Sequence};

use super::Outcome;
use super::machine::Machine;
use super::sink::Sink;
use crate::compile::is_ncname;
use crate::program::ExprId;

impl Machine<'_, '_> {
    pub(super) fn end_comment(&mut self) -> Outcome<()> {
        let text = self.finish_text();
        // `--` and a final `-` cannot be in a comment; a space is put between (XSLT 1.0 §7.4).
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            if c == '-' && safe.ends_with('-') {
                safe.push(' ');
            }
            safe.push(c);
        }
        if safe.ends_with('-') {
            safe.push(' ');
        }
        self.sink.comment(&safe, self.session);
        Ok(())
    }

    pub(super) fn end_instruction(&mut self, number: u32) -> Outcome<()> {
        let data = self.finish_text();
        let target = self.avt(&self.program.computed_names[number as usize].name)?;
        let target = target.trim();
        if !is_ncname(target) || target.eq_ignore_ascii_case("xml") {
            return self.bad_name(target, "XTDE0890");
        }
        let data = data.trim_start_matches([' ', '\t', '\r', '\n']).replace("?>", "? >");
        self.sink.processing_instruction(target, &data, self.session);
        Ok(())
    }

    pub(super) fn end_namespace(&mut self, number: u32) -> Outcome<()> {
        let namespace = self.finish_text();
        let prefix = self.avt(&self.program.computed_names[number as usize].name)?;
        self.sink.declare(prefix.trim(), &namespace);
        Ok(())
    }

    /// `xsl:copy-of`.
    pub(super) fn copy_of(&mut self, expr: ExprId) -> Outcome<()> {
        let value = self.evaluate(expr)?;
        self.add_items(&value, true);
        self.check_output()
    }

    /// `xsl:sequence`: items as they are, copied where the output is a tree.
    pub(super) fn add_sequence(&mut self, expr: ExprId) -> Outcome<()> {
        let value = self.evaluate(expr)?;
        let copy = !matches!(self.sink, Sink::Sequence(_));
        self.add_items(&value, copy);
        self.check_output()
    }

    pub(super) fn add_items(&mut self, value: &Sequence, copy: bool) {
        for item in value.iter() {
            match item {
                ItemRef::Node(node) if copy => {
                    let document = self.session.document(node.document);
                    self.sink.copy_node(document, node.id, true, self.session);
                }
                other => self.add_item(other),
            }
        }
    }

    /// Writes an atomic value, with a space before it when another one was written just before (XSLT 2.0 §5.7.1).
    fn add_atomic(&mut self, atomic: &Atomic) {
        let text = atomic.to_text(!self.program.version_two);
        let spaced = !matches!(&self.sink, Sink::Text(sink) if !sink.spaced);
        if spaced && self.atomic_end == Some((self.sinks.len(), self.sink.bytes())) {
            self.sink.text(" ", self.session);
        }
        self.sink.text(&text, self.session);
        self.atomic_end = Some((self.sinks.len(), self.sink.bytes()));
    }

    /// Adds one item; a node becomes a copy unless a sequence is being made.
    pub(super) fn add_item(&mut self, item: ItemRef<'_>) {
        match (&mut self.sink, item) {
            (Sink::Sequence(sequence), item) if !sequence.is_building() => sequence.items.push(item.to_item()),
            (_, ItemRef::Node(node)) => {
                let document = self.session.document(node.document);
                self.sink.copy_node(document, node.id, true, self.session);
            }
            (_, ItemRef::Atomic(atomic)) => self.add_atomic(atomic),
        }
    }

    pub(super) fn end_message(&mut self, number: u32) -> Outcome<()> {
        let Sink::Tree(tree) = self.pop_sink() else { return Ok(()) };
        let document = tree.tree.finish();
        let mut text = String::new();
        let markup = document.descendants(Document::ROOT).any(|node| document.kind(node) != NodeKind::Text);
        if markup {
            let bytes = penstock_xml::to_vec(&document, Document::ROOT, &penstock_xml::WriteOptions::default());
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", String::from_utf8_lossy(&bytes));
        } else {
            text.push_str(&document.string_value(Document::ROOT));
        }
        (self.run.options.messages)(&text);
        let terminate = self.avt(&self.program.messages[number as usize].terminate)?;
        if matches!(terminate.trim(), "yes" | "true" | "1") {
            return self.failure("XTMM9000", format!("terminated by `xsl:message`: {}", text.trim()));
        }
        Ok(())
    }
}
