//! Items that become part of the output: copies, sequences, and nodes whose content was collected first.

use std::fmt::Write as _;

use penstock_xml::{Document, NodeKind};
use penstock_xpath::{Atomic, ItemRef, Node, Sequence};

use super::Outcome;
use super::machine::Machine;
use super::sink::Sink;
use crate::compile::is_ncname;
use crate::program::ExprId;
use crate::read::values::yes_or_no;

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
        let prefix = prefix.trim();
        let is_xml = namespace == penstock_xml::XML_NAMESPACE;
        if prefix == "xmlns" || !(prefix.is_empty() || is_ncname(prefix)) {
            return self.failure("XTDE0920", format!("`{prefix}` is not a prefix"));
        }
        if (prefix == "xml") != is_xml {
            return self.failure("XTDE0925", "the prefix `xml` and its namespace go together");
        }
        if namespace == penstock_xml::XMLNS_NAMESPACE {
            return self.failure("XTDE0905", "the namespace of declarations cannot be declared");
        }
        if namespace.is_empty() {
            return self.failure("XTDE0930", "a namespace node has a namespace");
        }
        self.check_attribute()?;
        match self.sink.namespace_conflict(prefix, &namespace) {
            Some("XTDE0430") => {
                return self.failure("XTDE0430", format!("two namespaces are declared for the prefix `{prefix}`"));
            }
            Some(code) => {
                let message = "a default namespace cannot be declared on an element that is in no namespace";
                return self.failure(code, message);
            }
            None => {}
        }
        self.sink.declare(prefix, &namespace);
        Ok(())
    }

    /// `xsl:copy-of`.
    pub(super) fn copy_of(&mut self, select: ExprId, namespaces: bool) -> Outcome<()> {
        let value = self.evaluate(select)?;
        self.add_items(&value, true, namespaces)?;
        self.check_output()
    }

    /// `xsl:sequence`: items as they are, copied where the output is a tree.
    pub(super) fn add_sequence(&mut self, expr: ExprId) -> Outcome<()> {
        let value = self.evaluate(expr)?;
        let copy = !matches!(self.sink, Sink::Sequence(_));
        self.add_items(&value, copy, true)?;
        self.check_output()
    }

    pub(super) fn add_items(&mut self, value: &Sequence, copy: bool, namespaces: bool) -> Outcome<()> {
        for item in value.iter() {
            match item {
                ItemRef::Node(node) if copy => self.copy_node(node, namespaces)?,
                other => self.add_item(other)?,
            }
        }
        Ok(())
    }

    fn copy_node(&mut self, node: Node, namespaces: bool) -> Outcome<()> {
        let document = self.session.document(node.document);
        if matches!(document.kind(node.id), NodeKind::Attribute | NodeKind::Namespace) {
            self.check_attribute()?;
        }
        self.sink.copy_node(document, node.id, namespaces, self.session);
        Ok(())
    }

    /// Attributes and namespaces come before the content of an element. XSLT 1.0 lets a processor leave others out.
    pub(super) fn check_attribute(&self) -> Outcome<()> {
        if !self.program.version_two {
            return Ok(());
        }
        match self.sink.takes_attributes() {
            Ok(()) => Ok(()),
            Err("XTDE0410") => {
                self.failure("XTDE0410", "an attribute or namespace comes after the content of its element")
            }
            Err(code) => self.failure(code, "an attribute or namespace has no element here"),
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
    pub(super) fn add_item(&mut self, item: ItemRef<'_>) -> Outcome<()> {
        match (&mut self.sink, item) {
            (Sink::Sequence(sequence), item) if !sequence.is_building() => sequence.items.push(item.to_item()),
            (_, ItemRef::Node(node)) => return self.copy_node(node, true),
            (_, ItemRef::Atomic(atomic)) => self.add_atomic(atomic),
        }
        Ok(())
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
        if yes_or_no(&terminate).is_none() && self.program.version_two {
            return self.failure("XTDE0030", format!("`terminate` is `yes` or `no`, not `{terminate}`"));
        }
        if yes_or_no(&terminate) == Some(true) {
            return self.failure("XTMM9000", format!("terminated by `xsl:message`: {}", text.trim()));
        }
        Ok(())
    }
}
