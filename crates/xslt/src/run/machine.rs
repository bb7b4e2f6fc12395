//! The machine: explicit stacks for frames, variables and sinks, and what every operation needs of them. The loop over
//! operations is in `execute`.

use std::rc::Rc;

use penstock_xml::{NameTable, NodeKind};
use penstock_xpath::{DynamicContext, Item, Node, Sequence, Session, XPathError};

use super::context::{Known, as_node};
use super::dispatch::Dispatch;
use super::frame::{Focus, Frame, Params, Saved};
use super::sink::{Sink, TextSink};
use super::{Outcome, Run};
use crate::error::{XsltError, codes};
use crate::program::{Block, ExprId, Function, NONE, Passed, Pc, Program, Slot};

/// What a machine allocates for itself and the next one can use again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The names of the source document, and what the program's names are among them.
    pub names: Option<(NameTable, Known)>,
    children: super::children::ChildCache,
    variables: Vec<Sequence>,
}

/// Stack that one level of functions may need: an expression as high as the parser allows.
const STACK_LEFT_MIN: usize = 512 << 10;

/// Stack that is added at a time.
const STACK_SEGMENT: usize = 4 << 20;

/// Room for the frames of most transformations.
const FRAMES: usize = 8;

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
    /// Where the output ended when an atomic value was written to it last: depth of the sink, and its size.
    pub(super) atomic_end: Option<(usize, usize)>,
    pub(super) dispatch: Option<Dispatch>,
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
            frames: Vec::with_capacity(FRAMES),
            sinks: Vec::new(),
            sink,
            rule: None,
            mode: 0,
            params: None,
            tunnel: None,
            named: Vec::new(),
            atomic_end: None,
            dispatch: None,
            children: Default::default(),
            search: None,
        }
    }

    /// The destination, when the run is over.
    pub fn into_sink(self) -> Sink<'o> {
        self.sink
    }

    /// Reuses the memory of an earlier run, whose document had the same names or others.
    pub fn reuse(&mut self, memory: &mut Memory, same_names: bool) {
        self.children = std::mem::take(&mut memory.children);
        if !same_names {
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
        let failed = |(code, message): (String, String)| Box::new(XsltError::new(code, message, Default::default()));
        let mut machine = Machine::nested(run, function.block)?;
        for ((slot, argument), as_type) in machine.variables.iter_mut().zip(arguments).zip(&function.params) {
            *slot = match *as_type {
                NONE => argument.clone(),
                as_type => super::sequence::convert(run, argument.clone(), as_type, "XTTE0790", "an argument")
                    .map_err(failed)?,
            };
        }
        // Functions see neither the group nor the captured substrings of their caller (XSLT 2.0 §14.1, §15.3).
        let (group, captured) = (run.group.take(), run.regex_groups.take());
        let result = machine.execute_nested(function.block);
        *run.group.borrow_mut() = group;
        *run.regex_groups.borrow_mut() = captured;
        result?;
        let Sink::Sequence(sequence) = machine.sink else { return Ok(Sequence::Empty) };
        let value = Sequence::from_items(sequence.items);
        if function.as_type == NONE {
            return Ok(value);
        }
        super::sequence::convert(run, value, function.as_type, "XTTE0780", "the result of the function").map_err(failed)
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
        // Expressions that call functions recurse; the stack grows on the heap as they do.
        let result = stacker::maybe_grow(STACK_LEFT_MIN, STACK_SEGMENT, || self.execute());
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

    /// The code of a value that does not fit its variable: parameters have one of their own for their defaults.
    pub(super) fn binding_code(&self) -> &'static str {
        let place = self.program.places.get((self.pc as usize).saturating_sub(1));
        let module =
            place.and_then(|place| Some((self.program.modules.modules.get(place.module as usize)?, place.node)));
        match module {
            Some((module, node)) if module.is_xsl(node, "param") => "XTTE0600",
            Some((module, node)) if module.is_xsl(node, "with-param") => "XTTE0570",
            _ => "XTTE0570",
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

    #[inline]
    pub(super) fn kind(&self, node: Node) -> NodeKind {
        self.session.document(node.document).kind(node.id)
    }
}
