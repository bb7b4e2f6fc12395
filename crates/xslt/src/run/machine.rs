//! The machine: one loop over operations, with explicit stacks for frames, variables and sinks.

use std::rc::Rc;

use penstock_xml::{NameTable, NodeKind};
use penstock_xpath::{DynamicContext, Item, ItemRef, Node, Sequence, Session, XPathError};

use super::context::{Symbols, as_node};
use super::sink::{Sink, TextSink};
use super::source::Source;
use super::{Outcome, Run};
use crate::error::{XsltError, codes};
use crate::program::{Block, ExprId, Function, NONE, Op, Passed, Pc, Program, Slot};

/// Passed parameters by name.
pub(super) type Params = Option<Rc<Vec<(u32, Sequence)>>>;

/// The context item with its position. The size is only right when the program uses `last()`.
#[derive(Clone)]
pub(super) struct Focus {
    pub item: Option<Item>,
    pub position: usize,
    pub size: usize,
}

/// What a call changes and a return puts back.
pub(super) struct Saved {
    pub pc: Pc,
    pub focus: Focus,
    pub base: usize,
    pub top: usize,
    pub rule: Option<(u32, u32)>,
    pub mode: u32,
    pub params: Params,
    pub tunnel: Params,
}

/// An application of templates in progress.
pub(super) struct Application<'a> {
    pub saved: Saved,
    pub source: Source<'a>,
    pub index: usize,
    pub size: usize,
    pub mode: u32,
    pub params: Params,
    pub tunnel: Params,
    /// Whether it was begun by a built-in or identity rule, not by an instruction.
    pub nested: bool,
    /// Whether an element is open that ends with it; it is a copy of this node.
    pub copied: Option<Node>,
}

pub(super) enum Frame<'a> {
    Loop { source: Source<'a>, index: usize, size: usize, body: Pc, end: Pc, focus: Focus, rule: Option<(u32, u32)> },
    Groups(Box<super::group::Groups>),
    Pieces(Box<super::group::Pieces>),
    Apply(Application<'a>),
    Call(Saved),
    Stop,
}

/// What a machine allocates for itself and the next one can use again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The names of the source document, and what the program's names are among them.
    pub names: Option<(NameTable, Symbols)>,
    children: super::children::ChildCache,
    variables: Vec<Sequence>,
}

/// Runs operations. Functions and global variables get a machine of their own over the same [`Run`].
pub(crate) struct Machine<'a, 'o> {
    pub(super) run: &'a Run<'a>,
    pub(super) program: &'a Program,
    pub(super) session: &'a Session,
    pub(super) pc: Pc,
    pub(super) focus: Focus,
    pub(super) variables: Vec<Sequence>,
    pub(super) base: usize,
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) sinks: Vec<Sink<'o>>,
    pub(super) sink: Sink<'o>,
    /// The current template rule: mode and index of the rule.
    pub(super) rule: Option<(u32, u32)>,
    pub(super) mode: u32,
    pub(super) params: Params,
    pub(super) tunnel: Params,
    /// Whether each `xsl:element` that is open had a usable name.
    pub(super) named: Vec<bool>,
    pub(super) dispatch: Option<(u32, u32, Rc<super::apply::DispatchTable>)>,
    pub(super) children: super::children::ChildCache,
    pub(super) search: Option<super::children::ChildSearch<'a>>,
}

impl<'a, 'o> Machine<'a, 'o> {
    pub fn new(run: &'a Run<'a>, sink: Sink<'o>) -> Self {
        Machine {
            run,
            program: run.program,
            session: run.session,
            pc: 0,
            focus: Focus { item: None, position: 1, size: 1 },
            variables: Vec::new(),
            base: 0,
            frames: Vec::new(),
            sinks: Vec::new(),
            sink,
            rule: None,
            mode: 0,
            params: None,
            tunnel: None,
            named: Vec::new(),
            dispatch: None,
            children: Default::default(),
            search: None,
        }
    }

    /// The destination, when the run is over.
    pub fn into_sink(self) -> Sink<'o> {
        self.sink
    }

    /// Takes over the memory of an earlier run.
    pub fn reuse(&mut self, memory: &mut Memory) {
        self.children = std::mem::take(&mut memory.children);
        if memory.names.is_none() {
            self.children.reset();
        }
        self.variables = std::mem::take(&mut memory.variables);
    }

    /// Hands the memory on to the next run.
    pub fn release(&mut self, memory: &mut Memory) {
        memory.children = std::mem::take(&mut self.children);
        self.variables.clear();
        memory.variables = std::mem::take(&mut self.variables);
    }

    /// The value that a block leaves in a slot.
    pub fn value(run: &'a Run<'a>, block: Block, slot: Slot, context: Option<Node>) -> Outcome<Sequence> {
        let mut machine = Machine::nested(run, block)?;
        machine.focus.item = context.map(Item::Node);
        machine.execute_nested(block)?;
        Ok(std::mem::take(&mut machine.variables[slot as usize]))
    }

    /// The result of a function.
    pub fn function(run: &'a Run<'a>, function: &Function, arguments: &[Sequence]) -> Outcome<Sequence> {
        let mut machine = Machine::nested(run, function.block)?;
        machine.variables[..arguments.len()].clone_from_slice(arguments);
        let group = run.group.take();
        let result = machine.execute_nested(function.block);
        *run.group.borrow_mut() = group;
        result?;
        let Sink::Sequence(sequence) = machine.sink else { return Ok(Sequence::Empty) };
        let value = Sequence::from_items(sequence.items);
        if function.as_type == NONE {
            return Ok(value);
        }
        super::sequence::convert(run, value, function.as_type, "XTTE0780", "the result of the function")
            .map_err(|error| Box::new(XsltError::new(error.0, error.1, Default::default())))
    }

    fn nested(run: &'a Run<'a>, block: Block) -> Outcome<Self> {
        let depth = run.depth.get() + 1;
        if depth > run.options.limits.function_depth_max {
            let message = format!("functions call each other more than {depth} levels deep");
            let at = run.position(run.program.places[block.entry as usize]);
            return Err(Box::new(XsltError::new(codes::TOO_DEEP, message, at)));
        }
        let mut machine = Machine::new(run, Sink::Sequence(Default::default()));
        machine.variables.resize(block.slots as usize, Sequence::Empty);
        Ok(machine)
    }

    fn execute_nested(&mut self, block: Block) -> Outcome<()> {
        self.run.depth.set(self.run.depth.get() + 1);
        self.pc = block.entry;
        self.frames.push(Frame::Stop);
        let result = self.execute();
        self.run.depth.set(self.run.depth.get() - 1);
        result
    }

    /// An error at the operation being carried out.
    #[cold]
    pub(super) fn failure<T>(
        &self,
        code: impl Into<std::borrow::Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Outcome<T> {
        let place = self.program.places.get((self.pc as usize).saturating_sub(1)).copied();
        let at = place.map(|place| self.run.position(place)).unwrap_or_default();
        let mut error = XsltError::new(code, message, at);
        if let Some(Item::Node(node)) = &self.focus.item {
            let document = self.session.document_of(*node);
            let place = document.position(node.id);
            if place.line > 0 {
                let uri = document.base_uri().unwrap_or_default().into();
                error.source_at = Some(crate::error::Position { uri, line: place.line, column: place.column });
            }
        }
        Err(Box::new(error))
    }

    /// An error of an expression.
    #[cold]
    pub(super) fn xpath_failure<T>(&self, error: &XPathError, expr: ExprId) -> Outcome<T> {
        if let Some(mut failure) = self.run.passing.borrow_mut().take() {
            if failure.at.line == 0 {
                let place = self.program.expression_places.get(expr as usize).copied();
                failure.at = place.map(|place| self.run.position(place)).unwrap_or_default();
            }
            return Err(failure);
        }
        self.failure(error.code().to_owned(), error.message())
    }

    #[inline]
    pub(super) fn tick(&self) -> Outcome<()> {
        match self.run.tick() {
            Ok(()) => Ok(()),
            Err(codes::OUT_OF_TIME) => {
                self.failure(codes::OUT_OF_TIME, "the transformation takes longer than the limit allows")
            }
            Err(code) => self.failure(code, "the transformation takes more steps than the limit allows"),
        }
    }

    /// Called where output may grow without end.
    #[inline]
    pub(super) fn check_output(&self) -> Outcome<()> {
        if self.sink.bytes() + self.run.temporary.get() > self.run.options.limits.output_bytes_max {
            return self.failure(codes::OUTPUT_TOO_LARGE, "the result is larger than the limit allows");
        }
        Ok(())
    }

    #[inline]
    pub(super) fn context(&self) -> DynamicContext<'_> {
        DynamicContext {
            session: self.session,
            host: self.run,
            item: self.focus.item.clone(),
            position: self.focus.position,
            size: self.focus.size,
            slots: &self.variables[self.base..],
        }
    }

    pub(super) fn evaluate(&self, expr: ExprId) -> Outcome<Sequence> {
        match self.program.expressions[expr as usize].evaluate(&self.context()) {
            Ok(value) => Ok(value),
            Err(error) => self.xpath_failure(&error, expr),
        }
    }

    pub(super) fn test(&self, expr: ExprId) -> Outcome<bool> {
        match self.program.expressions[expr as usize].evaluate_boolean(&self.context()) {
            Ok(value) => Ok(value),
            Err(error) => self.xpath_failure(&error, expr),
        }
    }

    #[inline]
    pub(super) fn node(&self) -> Option<Node> {
        self.focus.item.as_ref().and_then(as_node)
    }

    #[inline]
    pub(super) fn set_slot(&mut self, slot: Slot, value: Sequence) {
        let at = self.base + slot as usize;
        self.variables[at] = value;
    }

    /// Redirects output until the matching [`Machine::pop_sink`].
    pub(super) fn push_sink(&mut self, sink: Sink<'o>) {
        let outer = std::mem::replace(&mut self.sink, sink);
        self.sinks.push(outer);
    }

    pub(super) fn pop_sink(&mut self) -> Sink<'o> {
        match self.sinks.pop() {
            Some(outer) => std::mem::replace(&mut self.sink, outer),
            None => std::mem::replace(&mut self.sink, Sink::Text(TextSink::default())),
        }
    }

    /// Adds a frame, within the limit.
    pub(super) fn push_frame(&mut self, frame: Frame<'a>) -> Outcome<()> {
        if self.frames.len() >= self.run.options.limits.depth_max {
            let depth = self.frames.len();
            return self.failure(codes::TOO_DEEP, format!("templates call each other more than {depth} levels deep"));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// The state a call has to put back.
    pub(super) fn save(&self) -> Saved {
        Saved {
            pc: self.pc,
            focus: self.focus.clone(),
            base: self.base,
            top: self.variables.len(),
            rule: self.rule,
            mode: self.mode,
            params: self.params.clone(),
            tunnel: self.tunnel.clone(),
        }
    }

    pub(super) fn restore(&mut self, saved: Saved) {
        self.pc = saved.pc;
        self.focus = saved.focus;
        self.base = saved.base;
        self.variables.truncate(saved.top);
        self.rule = saved.rule;
        self.mode = saved.mode;
        self.params = saved.params;
        self.tunnel = saved.tunnel;
    }

    /// Makes room for the variables of a block and goes there.
    #[inline]
    pub(super) fn enter(&mut self, block: Block) {
        self.base = self.variables.len();
        self.variables.resize(self.base + block.slots as usize, Sequence::Empty);
        self.pc = block.entry;
    }

    /// The parameters of an instruction: those passed, and the tunnel with what it adds.
    pub(super) fn pass(&self, passed: &[Passed]) -> (Params, Params) {
        if passed.is_empty() {
            return (None, self.tunnel.clone());
        }
        let value = |passed: &Passed| (passed.name, self.variables[self.base + passed.slot as usize].clone());
        let plain: Vec<_> = passed.iter().filter(|passed| !passed.tunnel).map(value).collect();
        let params = (!plain.is_empty()).then(|| Rc::new(plain));
        let mut added: Vec<_> = passed.iter().filter(|passed| passed.tunnel).map(value).collect();
        if added.is_empty() {
            return (params, self.tunnel.clone());
        }
        if let Some(tunnel) = &self.tunnel {
            let kept: Vec<_> =
                tunnel.iter().filter(|(name, _)| !added.iter().any(|(added, _)| added == name)).cloned().collect();
            added.extend(kept);
        }
        (params, Some(Rc::new(added)))
    }

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
                let value = self.convert(value, as_type)?;
                self.set_slot(slot, value);
                Ok(())
            }
            Op::Copy { jump } => self.copy(jump),
            Op::EndCopy => {
                if self.node().is_some_and(|node| self.kind(node) == NodeKind::Element) {
                    self.sink.end_element(self.session);
                }
                Ok(())
            }
            Op::CopyOf(expr) => self.copy_of(expr),
            Op::Sequence(expr) => self.add_sequence(expr),
            Op::SimpleAttribute(number) => self.simple_attribute(number),
            Op::StartElement(number) => self.start_computed(number),
            Op::EndComputedElement => {
                if self.named.pop().unwrap_or(false) {
                    self.sink.end_element(self.session);
                }
                Ok(())
            }
            Op::BeginText => {
                self.push_sink(Sink::Text(TextSink::default()));
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
            Op::EndTree { slot } => {
                let root = self.finish_tree();
                self.set_slot(slot, Sequence::from(root));
                Ok(())
            }
            Op::EndSequence { slot, as_type } => {
                self.run.temporary.set(self.run.temporary.get() + self.sink.bytes());
                let value = match self.pop_sink() {
                    Sink::Sequence(sequence) => Sequence::from_items(sequence.items),
                    _ => Sequence::Empty,
                };
                let value = self.convert(value, as_type)?;
                self.set_slot(slot, value);
                Ok(())
            }
            Op::EndDocument => {
                let root = self.finish_tree();
                self.add_item(ItemRef::Node(root));
                Ok(())
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

    #[inline]
    pub(super) fn kind(&self, node: Node) -> NodeKind {
        self.session.document(node.document).kind(node.id)
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
                let value = self.convert(value, parameter.as_type)?;
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

    fn convert(&self, value: Sequence, as_type: u32) -> Outcome<Sequence> {
        if as_type == NONE {
            return Ok(value);
        }
        super::sequence::convert(self.run, value, as_type, "XTTE0570", "the value")
            .or_else(|(code, message)| self.failure(code, message))
    }
}
