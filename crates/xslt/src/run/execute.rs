//! The loop over operations, and the operations that are small enough to stand in it.

use penstock_xml::NodeKind;
use penstock_xpath::{ItemRef, Node, Sequence};

use super::Outcome;
use super::frame::Frame;
use super::machine::Machine;
use super::sink::{SequenceSink, Sink, TextSink};
use crate::program::{NONE, Op};

impl Machine<'_, '_> {
    /// Runs until the frame [`Frame::Stop`] returns.
    pub(super) fn execute(&mut self) -> Outcome<()> {
        loop {
            let op = self.program.ops[self.pc as usize];
            self.pc += 1;
            match op {
                Op::Fragment(number) => {
                    let fragment = &self.program.fragments[number as usize];
                    self.sink.fragment(fragment, self.program, self.session);
                }
                Op::ValueOf(number) => self.value_of(number)?,
                Op::Text(number) => self.sink.text(&self.program.strings[number as usize], self.session),
                Op::RawText(number) => self.sink.raw(&self.program.strings[number as usize], self.session),
                Op::StartLiteral(number) => self.start_literal(number),
                Op::LiteralAttribute(number) => self.literal_attribute(number)?,
                Op::EndElement => self.sink.end_element(self.session),
                Op::IsolateNamespaces => self.sink.isolate_namespaces(),
                Op::Jump(to) => self.pc = to,
                Op::JumpUnless { test, to } => {
                    if !self.test(test)? {
                        self.pc = to;
                    }
                }
                Op::ForEach(number) => self.for_each(number)?,
                Op::Next => self.next()?,
                Op::ApplyTemplates(number) => self.apply_templates(number)?,
                Op::Call(number) => self.call(number)?,
                Op::Return => match self.frames.last() {
                    Some(Frame::Apply(_)) => self.apply_next()?,
                    Some(Frame::Call(_)) => {
                        if let Some(Frame::Call(saved)) = self.frames.pop() {
                            self.restore(saved);
                        }
                    }
                    _ => {
                        self.frames.pop();
                        return Ok(());
                    }
                },
                other => self.rare(other)?,
            }
        }
    }

    /// The operations that are not carried out for every node.
    fn rare(&mut self, op: Op) -> Outcome<()> {
        match op {
            Op::Param(number) => self.param(number),
            Op::SetVariable { slot, expr, as_type } => {
                let value = self.evaluate(expr)?;
                let value = self.convert(value, as_type, self.binding_code())?;
                self.set_slot(slot, value);
                Ok(())
            }
            Op::Copy { jump, namespaces } => self.copy(jump, namespaces),
            Op::EndCopy => {
                if self.node().is_some_and(|node| self.kind(node) == NodeKind::Element) {
                    self.sink.end_element(self.session);
                }
                Ok(())
            }
            Op::CopyOf { select, namespaces } => self.copy_of(select, namespaces),
            Op::Sequence(expr) => self.add_sequence(expr),
            Op::SimpleAttribute(number) => self.simple_attribute(number),
            Op::StartElement(number) => self.start_computed(number),
            Op::EndComputedElement => {
                if self.named.pop().unwrap_or(false) {
                    self.sink.end_element(self.session);
                }
                Ok(())
            }
            Op::BeginText { spaced } => {
                self.push_sink(Sink::Text(TextSink { spaced, ..TextSink::default() }));
                Ok(())
            }
            Op::BeginTree => {
                self.check_output()?;
                self.push_sink(Sink::Tree(Default::default()));
                Ok(())
            }
            Op::BeginSequence => {
                self.push_sink(Sink::Sequence(Default::default()));
                Ok(())
            }
            Op::BeginTypedResult => {
                self.push_sink(Sink::Sequence(SequenceSink::result()));
                Ok(())
            }
            Op::BeginResultDocument => self.begin_result_document(),
            Op::EndResultDocument(number) => self.end_result_document(number),
            Op::EndTree { slot } => {
                let root = self.finish_tree();
                self.set_slot(slot, Sequence::from(root));
                Ok(())
            }
            Op::EndSequence { slot, as_type } => {
                let value = self.finish_sequence();
                let value = self.convert(value, as_type, self.binding_code())?;
                self.set_slot(slot, value);
                Ok(())
            }
            Op::EndTypedResult { as_type } => {
                let value = self.finish_sequence();
                let value = self.convert(value, as_type, "XTTE0505")?;
                self.add_items(&value, !matches!(self.sink, Sink::Sequence(_)), true)?;
                self.check_output()
            }
            Op::EndJoined { separator, raw } => {
                let text = self.finish_joined(separator)?;
                if raw {
                    self.sink.raw(&text, self.session)
                } else {
                    self.sink.text(&text, self.session)
                }
                Ok(())
            }
            Op::EndJoinedAttribute { separator, name } => {
                let text = self.finish_joined(separator)?;
                self.add_attribute(name, &text)
            }
            Op::EndDocument => {
                let root = self.finish_tree();
                self.add_item(ItemRef::Node(root))
            }
            Op::EndAttribute(number) => self.end_attribute(number),
            Op::EndComment => self.end_comment(),
            Op::EndProcessingInstruction(number) => self.end_instruction(number),
            Op::EndNamespace(number) => self.end_namespace(number),
            Op::EndValueOf { raw } => {
                let text = self.finish_text();
                if raw {
                    self.sink.raw(&text, self.session)
                } else {
                    self.sink.text(&text, self.session)
                }
                Ok(())
            }
            Op::EndMessage(number) => self.end_message(number),
            Op::Number(number) => self.number(number),
            Op::ForEachGroup(number) => self.for_each_group(number),
            Op::AnalyzeString(number) => self.analyze_string(number),
            Op::PerformSort(number) => self.perform_sort(number),
            Op::UseAttributeSet(number) => self.use_attribute_set(number),
            Op::Continue(number) => self.continuation(number),
            Op::Fail(number) => {
                let (code, message) = &self.program.deferred[number as usize];
                self.failure(code.clone(), message.clone())
            }
            _ => Ok(()),
        }
    }

    /// The tree that was collected, as a new document.
    fn finish_tree(&mut self) -> Node {
        let temporary = self.sink.bytes() + super::sink::TREE_BYTES;
        self.run.temporary.set(self.run.temporary.get() + temporary);
        let document = match self.pop_sink() {
            Sink::Tree(tree) => tree.tree.finish(),
            _ => penstock_xml::TreeBuilder::new().finish(),
        };
        self.session.add(std::sync::Arc::new(document))
    }

    /// The sequence that was collected.
    pub(super) fn finish_sequence(&mut self) -> Sequence {
        self.run.temporary.set(self.run.temporary.get() + self.sink.bytes());
        match self.pop_sink() {
            Sink::Sequence(sequence) => Sequence::from_items(sequence.items),
            _ => Sequence::Empty,
        }
    }

    /// The items that were collected as one text.
    fn finish_joined(&mut self, separator: u32) -> Outcome<String> {
        let value = self.finish_sequence();
        let separator = self.avt(&self.program.separators[separator as usize])?;
        Ok(self.joined(&value, &separator))
    }

    pub(super) fn finish_text(&mut self) -> String {
        match self.pop_sink() {
            Sink::Text(sink) => sink.text,
            _ => String::new(),
        }
    }

    fn param(&mut self, number: u32) -> Outcome<()> {
        let parameter = &self.program.parameters[number as usize];
        let passed = if parameter.tunnel { &self.tunnel } else { &self.params };
        let given = passed.as_ref().and_then(|list| list.iter().find(|(name, _)| *name == parameter.name));
        match given.map(|(_, value)| value.clone()) {
            Some(value) => {
                let value = self.convert(value, parameter.as_type, "XTTE0590")?;
                self.set_slot(parameter.slot, value);
                self.pc = parameter.after;
                Ok(())
            }
            None if parameter.required => {
                let name = &self.program.names[parameter.name as usize];
                self.failure("XTDE0700", format!("the parameter `{name}` is required and was not passed"))
            }
            None => Ok(()),
        }
    }

    fn convert(&self, value: Sequence, as_type: u32, code: &'static str) -> Outcome<Sequence> {
        if as_type == NONE {
            return Ok(value);
        }
        super::sequence::convert(self.run, value, as_type, code, "the value")
            .or_else(|(code, message)| self.failure(code, message))
    }
}
