//! `xsl:number`: counting nodes.

use std::borrow::Cow;

use penstock_xml::{Document, NodeId, NodeKind};
use penstock_xpath::{Item, ItemRef, Node};

use super::Outcome;
use super::machine::Machine;
use super::number_format::NumberFormat;
use crate::program::{Level, Number};

impl<'a> Machine<'a, '_> {
    pub(super) fn number(&mut self, number: u32) -> Outcome<()> {
        let number = &self.program.numbers[number as usize];
        let mut text = String::new();
        let values = match number.value {
            Some(expr) => {
                let sequence = self.evaluate(expr)?;
                let mut values = Vec::new();
                let first_only = number.first_only;
                for item in sequence.iter().take(if first_only { 1 } else { usize::MAX }) {
                    match self.integer(item) {
                        Ok(value) => values.push(value),
                        Err(plain) if !first_only => {
                            return self.failure("XTDE0980", format!("`{plain}` is not a number that counts"));
                        }
                        // What is not a number that can be counted to is written as it is (XSLT 1.0 erratum 24).
                        Err(plain) => {
                            self.sink.text(&plain, self.session);
                            return Ok(());
                        }
                    }
                }
                if sequence.is_empty() && first_only {
                    self.sink.text("NaN", self.session);
                    return Ok(());
                }
                values
            }
            None => {
                let node = match number.select {
                    Some(expr) => {
                        let selected = self.evaluate(expr)?;
                        match selected.first() {
                            Some(ItemRef::Node(node)) if selected.len() == 1 || number.first_only => Some(node),
                            _ => return self.failure("XTTE1000", "`select` of `xsl:number` is one node"),
                        }
                    }
                    None => self.node(),
                };
                let Some(node) = node else {
                    return self.failure("XTTE0990", "there is no context node to number");
                };
                self.place(number, node)?
            }
        };
        let format = match &number.fixed_format {
            Some(format) => Cow::Borrowed(format),
            None => {
                let (format, letter_value) = (self.avt(&number.format)?, self.avt(&number.letter_value)?);
                let accepted = matches!(letter_value.trim(), "" | "alphabetic" | "traditional");
                if !accepted && self.program.version_two {
                    return self.failure("XTDE0030", format!("`letter-value` is not `{letter_value}`"));
                }
                let ordinal = !self.avt(&number.ordinal)?.is_empty();
                Cow::Owned(NumberFormat::parse(&format, &letter_value, ordinal))
            }
        };
        let separator = self.avt(&number.grouping_separator)?;
        let size = self.avt(&number.grouping_size)?;
        let size = match size.trim() {
            "" => 0,
            size => match size.parse() {
                Ok(size) => size,
                Err(_) if number.first_only => 0,
                Err(_) => return self.failure("XTDE0030", format!("`grouping-size` is a number, not `{size}`")),
            },
        };
        let grouping = (!separator.is_empty() && size > 0).then_some((&*separator, size));
        if !values.is_empty() {
            format.write(&values, grouping, &mut text);
        }
        self.sink.text(&text, self.session);
        Ok(())
    }

    /// A value as the number to write, or as text when it is none.
    fn integer(&self, item: ItemRef<'_>) -> Result<u64, String> {
        let text = self.item_text(item);
        let value = penstock_xpath::value::number::round(penstock_xpath::value::number::parse(&text, true));
        if value.is_finite() && (0.0..1e18).contains(&value) {
            return Ok(value as u64);
        }
        Err(penstock_xpath::value::number::format_double(value, true).into_owned())
    }

    /// The numbers of a node's place.
    fn place(&mut self, number: &'a Number, node: Node) -> Outcome<Vec<u64>> {
        let document: &'a Document = self.session.document(node.document);
        match number.level {
            Level::Single | Level::Multiple => {
                let mut values = Vec::new();
                let mut at = Some(node.id);
                let mut begun = number.from.is_none();
                while let Some(id) = at {
                    let from = self.is_from(number, node, id)?;
                    // XSLT 1.0 §7.7 counts up to the node that `from` matches, 2.0 §12.2 includes it.
                    if number.first_only && from && id != node.id && number.level == Level::Multiple {
                        break;
                    }
                    let wanted = number.level == Level::Multiple || values.is_empty();
                    if wanted && self.counts(number, node, id)? {
                        values.push(self.among_siblings(number, node, id)?);
                    }
                    if from && !(number.first_only && id == node.id) {
                        begun = true;
                        break;
                    }
                    at = document.parent(id);
                }
                // Outside of what `from` matches, nothing that `count` matches is numbered.
                if !begun && !number.first_only && number.level == Level::Single && number.count.is_some() {
                    values.clear();
                }
                values.reverse();
                Ok(values)
            }
            Level::Any => self.any_level(number, node),
        }
    }

    fn any_level(&mut self, number: &'a Number, node: Node) -> Outcome<Vec<u64>> {
        let document: &'a Document = self.session.document(node.document);
        let mut count = 0;
        let nodes = std::iter::once(Document::ROOT).chain(document.descendants(Document::ROOT));
        for id in nodes.take_while(|id| *id <= node.id) {
            self.tick()?;
            if !(number.first_only && id == node.id) && self.is_from(number, node, id)? {
                count = 0;
                if number.first_only {
                    continue;
                }
            }
            if self.counts(number, node, id)? {
                count += 1;
            }
        }
        if document.kind(node.id) == NodeKind::Attribute && self.counts(number, node, node.id)? {
            count += 1;
        }
        // XSLT 1.0 writes the zero, 2.0 writes nothing.
        Ok(if count == 0 && self.program.version_two { Vec::new() } else { vec![count] })
    }

    fn is_from(&mut self, number: &'a Number, node: Node, id: NodeId) -> Outcome<bool> {
        match number.from {
            Some(pattern) => self.matches_any(pattern, Node { id, ..node }),
            None => Ok(false),
        }
    }

    /// Whether a node is counted: by the pattern, or by being like the node that is numbered.
    fn counts(&mut self, number: &'a Number, node: Node, id: NodeId) -> Outcome<bool> {
        if let Some(pattern) = number.count {
            return self.matches_any(pattern, Node { id, ..node });
        }
        let document = self.session.document(node.document);
        let kind = document.kind(node.id);
        if document.kind(id) != kind {
            return Ok(false);
        }
        Ok(match kind {
            NodeKind::Element | NodeKind::Attribute => document.name_id(id) == document.name_id(node.id),
            NodeKind::ProcessingInstruction => document.local_name(id) == document.local_name(node.id),
            _ => true,
        })
    }

    fn among_siblings(&mut self, number: &'a Number, node: Node, id: NodeId) -> Outcome<u64> {
        let document: &'a Document = self.session.document(node.document);
        let mut count = 1;
        let mut at = document.previous_sibling(id);
        while let Some(sibling) = at {
            self.tick()?;
            if self.counts(number, node, sibling)? {
                count += 1;
            }
            at = document.previous_sibling(sibling);
        }
        Ok(count)
    }

    /// Whether a node matches a pattern, with that node as the context item.
    pub(super) fn matches_any(&mut self, pattern: u32, node: Node) -> Outcome<bool> {
        let outer = self.focus.item.replace(Item::Node(node));
        let compiled = &self.program.patterns[pattern as usize];
        let result = compiled.matches(node, &self.context());
        self.focus.item = outer;
        match result {
            Ok(matches) => Ok(matches),
            Err(error) => self.failure(error.code().to_owned(), error.message()),
        }
    }
}
