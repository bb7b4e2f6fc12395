//! Evaluation. One way in per kind of answer wanted (sequence, boolean, string, number, nodes one by one), so that
//! an answer is never built in a larger form than it is used in.

mod args;
mod arithmetic;
mod compare;
mod convert;
mod nodes;
mod predicates;
mod types;
mod walk;

use std::cell::{OnceCell, RefCell};
use std::time::SystemTime;

pub(crate) use args::Args;
pub(crate) use arithmetic::on_atomics;
pub use compare::compare_values;
pub(crate) use compare::{atomic_equal, collated};
pub(crate) use types::matches_type;

use penstock_xml::{Document, NodeId, NodeKind};

use crate::ast::Quantifier;
use crate::code::{Code, Op};
use crate::context::{DynamicContext, HostCall, NoHost};
use crate::error::{Result, XPathError, type_error};
use crate::functions::Run;
use crate::program::Program;
use crate::session::{BYTES_PER_FUEL, Session, check_items};
use crate::static_context::{ResultKind, StaticContext};
use crate::value::{Atomic, Item, ItemRef, Node, Sequence, cast};

/// Whether the receiver of nodes wants more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// The answer is known.
    Stop,
}

/// Receives nodes one by one.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(Node) -> Result<Flow>;

/// The context item with its position; the size is only filled in for code that was compiled to need it.
#[derive(Clone, Copy)]
pub(crate) struct Focus<'f> {
    pub(crate) item: Option<ItemRef<'f>>,
    pub(crate) position: usize,
    pub(crate) size: usize,
}

impl Focus<'_> {
    pub(crate) fn node(node: Node, position: usize, size: usize) -> Focus<'static> {
        Focus { item: Some(ItemRef::Node(node)), position, size }
    }
}

/// One evaluation of one compiled expression.
pub(crate) struct Evaluator<'a> {
    pub(crate) cx: &'a DynamicContext<'a>,
    pub(crate) session: &'a Session,
    pub(crate) program: &'a Program,
    /// `current()`: the context item of the whole expression.
    pub(crate) current: Option<ItemRef<'a>>,
    locals: RefCell<Vec<Sequence>>,
    /// The time that all calls of one evaluation see.
    now: OnceCell<SystemTime>,
}

/// Evaluates what needs no context at all, for constant folding.
pub(crate) fn constant(code: &Code, context: &StaticContext<'_>) -> Result<Sequence> {
    let session = Session::new();
    session.set_fuel(FOLDING_FUEL);
    let program = Program::of_context(context, 0);
    let cx = DynamicContext::new(&session, &NoHost);
    let evaluator = Evaluator::new(&cx, &program);
    evaluator.eval(code, &evaluator.initial_focus())
}

/// Folding must stay cheap, and a constant must stay small.
const FOLDING_FUEL: u64 = 10_000;

impl<'a> Evaluator<'a> {
    pub(crate) fn new(cx: &'a DynamicContext<'a>, program: &'a Program) -> Evaluator<'a> {
        let locals = RefCell::new(vec![Sequence::Empty; program.locals as usize]);
        let current = cx.item.as_ref().map(Item::as_ref);
        Evaluator { cx, session: cx.session, program, current, locals, now: OnceCell::new() }
    }

    pub(crate) fn initial_focus(&self) -> Focus<'a> {
        Focus { item: self.current, position: self.cx.position, size: self.cx.size }
    }

    pub(crate) fn compat(&self) -> bool {
        self.program.compat
    }

    #[inline]
    pub(crate) fn charge(&self, work: usize) -> Result<()> {
        self.session.charge(work as u64)
    }

    /// The value, of any type.
    pub(crate) fn eval(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Sequence> {
        self.value(code, focus).map_err(|error| error.at(code.span))
    }

    fn value(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Sequence> {
        Ok(match &code.op {
            Op::Constant(value) => value.clone(),
            Op::Slot(slot) => self.slot(*slot)?.clone(),
            Op::Local(slot) => self.local(*slot),
            Op::HostVariable(index) => self.cx.host.variable_at(*index, self.session)?,
            Op::NamedVariable(name) => self.cx.host.variable(name, self.session)?,
            Op::ContextItem => Sequence::One(context_item(focus)?.to_item()),
            Op::Path(_) | Op::Filter(_) | Op::Union(_) | Op::Intersect(_) | Op::Except(_) | Op::Slash(_) => {
                return self.node_expression(code, focus);
            }
            Op::Or(_) | Op::And(_) | Op::General(..) | Op::Quantified(..) | Op::InstanceOf(_) => {
                Sequence::from(self.boolean(code, focus)?)
            }
            Op::Sequence(parts) => self.concatenate(parts, focus)?,
            Op::Value(operator, pair) => return self.value_comparison(*operator, pair, focus),
            Op::Nodes(operator, pair) => return self.node_comparison(*operator, pair, focus),
            Op::Range(pair) => return self.range(pair, focus),
            Op::Arithmetic(operator, pair) => return self.arithmetic(*operator, pair, focus),
            Op::Sign(negative, operand) => return self.sign(*negative, operand, focus),
            Op::Map(pair) => return self.map(pair, focus),
            Op::If(parts) => {
                let branch = if self.boolean(&parts.0, focus)? { &parts.1 } else { &parts.2 };
                return self.eval(branch, focus);
            }
            Op::For(slot, pair) => return self.for_each(*slot, pair, focus),
            Op::Let(slot, pair) => {
                let value = self.eval(&pair.0, focus)?;
                self.bind(*slot, value);
                return self.eval(&pair.1, focus);
            }
            Op::Treat(parts) => return self.treat(parts, focus),
            Op::Argument(parts) => {
                let value = self.eval(&parts.0, focus)?;
                return parts.1.convert(&value, self.session, false).map_err(|error| error.at(code.span));
            }
            Op::Cast(operand, wanted, optional) => return self.cast(operand, *wanted, *optional, focus),
            Op::Castable(operand, wanted, optional) => {
                let value = self.eval(operand, focus)?;
                Sequence::from(self.castable(&value, *wanted, *optional))
            }
            Op::Call(builtin, arguments, prepared) => {
                let args = Args { ev: self, focus, codes: arguments, prepared: prepared.as_deref() };
                return run(&builtin.run, &args);
            }
            Op::HostCall(call) => return self.host_call(call, focus),
        })
    }

    pub(crate) fn slot(&self, slot: u32) -> Result<&'a Sequence> {
        let missing = || XPathError::new("XPDY0002", "variable without a value");
        self.cx.slots.get(slot as usize).ok_or_else(missing)
    }

    fn local(&self, slot: u32) -> Sequence {
        self.locals.borrow().get(slot as usize).cloned().unwrap_or_default()
    }

    fn bind(&self, slot: u32, value: Sequence) {
        if let Some(place) = self.locals.borrow_mut().get_mut(slot as usize) {
            *place = value;
        }
    }

    fn concatenate(&self, parts: &'a [Code], focus: &Focus<'_>) -> Result<Sequence> {
        let mut items = Vec::new();
        for part in parts {
            let part = self.eval(part, focus)?;
            penstock_budget::make_room(&mut items, part.len());
            part.append_to(&mut items);
            check_items(items.len())?;
        }
        self.charge(items.len())?;
        Ok(Sequence::from_items(items))
    }

    fn range(&self, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<Sequence> {
        let Some((from, to)) = self.range_bounds(pair, focus)? else { return Ok(Sequence::Empty) };
        let length = usize::try_from(i128::from(to) - i128::from(from) + 1).unwrap_or(usize::MAX);
        self.charge(length)?;
        check_items(length)?;
        Ok((from..=to).map(Item::from).collect())
    }

    /// First and last number of a range that is not empty.
    fn range_bounds(&self, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<Option<(i64, i64)>> {
        let (Some(from), Some(to)) = (self.integer(&pair.0, focus)?, self.integer(&pair.1, focus)?) else {
            return Ok(None);
        };
        Ok((from <= to).then_some((from, to)))
    }

    fn for_each(&self, slot: u32, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<Sequence> {
        let mut items = Vec::new();
        self.each_binding(slot, &pair.0, focus, &mut || {
            let value = self.eval(&pair.1, focus)?;
            self.charge(value.len())?;
            penstock_budget::make_room(&mut items, value.len());
            value.append_to(&mut items);
            check_items(items.len())?;
            Ok(Flow::Continue)
        })?;
        Ok(Sequence::from_items(items))
    }

    /// Binds a variable to each item in turn. Ranges are counted through without being built.
    fn each_binding(
        &self,
        slot: u32,
        values: &'a Code,
        focus: &Focus<'_>,
        body: &mut dyn FnMut() -> Result<Flow>,
    ) -> Result<()> {
        if let Op::Range(pair) = &values.op {
            let Some((from, to)) = self.range_bounds(pair, focus).map_err(|error| error.at(values.span))? else {
                return Ok(());
            };
            for number in from..=to {
                self.charge(1)?;
                self.bind(slot, Sequence::from(number));
                if body()? == Flow::Stop {
                    break;
                }
            }
            return Ok(());
        }
        for item in self.eval(values, focus)?.iter() {
            self.charge(1)?;
            self.bind(slot, Sequence::One(item.to_item()));
            if body()? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn quantified(&self, wanted: Quantifier, slot: u32, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<bool> {
        let decisive = wanted == Quantifier::Some;
        let mut found = false;
        self.each_binding(slot, &pair.0, focus, &mut || {
            found = self.boolean(&pair.1, focus)? == decisive;
            Ok(if found { Flow::Stop } else { Flow::Continue })
        })?;
        Ok(found == decisive)
    }

    fn map(&self, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<Sequence> {
        let base = self.eval(&pair.0, focus)?;
        let mut items = Vec::new();
        for (index, item) in base.iter().enumerate() {
            let inner = Focus { item: Some(item), position: index + 1, size: base.len() };
            let value = self.eval(&pair.1, &inner)?;
            self.charge(1 + value.len())?;
            penstock_budget::make_room(&mut items, value.len());
            value.append_to(&mut items);
            check_items(items.len())?;
        }
        Ok(Sequence::from_items(items))
    }

    fn host_call(&self, call: &'a crate::code::HostCallCode, focus: &Focus<'_>) -> Result<Sequence> {
        self.charge(1)?;
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.eval(argument, focus)?);
        }
        self.cx.host.call(&HostCall {
            index: call.index,
            name: &call.name,
            arguments: &arguments,
            item: focus.item,
            current: self.current,
            session: self.session,
            base_uri: self.program.base_uri.as_deref(),
            compat: self.compat(),
        })
    }

    fn cast(
        &self,
        operand: &'a Code,
        wanted: crate::value::AtomicType,
        optional: bool,
        focus: &Focus<'_>,
    ) -> Result<Sequence> {
        let value = self.eval(operand, focus)?;
        if value.is_empty() && optional {
            return Ok(Sequence::Empty);
        }
        let atomic = self.single_atomic(&value)?.ok_or_else(|| type_error("cannot cast the empty sequence"))?;
        cast::cast(&atomic, wanted, self.compat()).map(Sequence::from)
    }

    /// The time of this evaluation.
    pub(crate) fn now(&self) -> SystemTime {
        *self.now.get_or_init(|| self.cx.host.now())
    }

    fn castable(&self, value: &Sequence, wanted: crate::value::AtomicType, optional: bool) -> bool {
        match self.single_atomic(value) {
            Ok(Some(atomic)) => cast::cast(&atomic, wanted, self.compat()).is_ok(),
            Ok(None) => optional,
            Err(_) => false,
        }
    }
}

/// The element of a document that holds one element, beside comments and processing instructions.
fn only_element(document: &Document) -> Option<NodeId> {
    let mut found = None;
    for child in document.children(Document::ROOT) {
        match document.kind(child) {
            NodeKind::Element if found.is_none() => found = Some(child),
            NodeKind::Element | NodeKind::Text => return None,
            _ => {}
        }
    }
    found
}

/// Runs a standard function with any result type.
fn run(run: &Run, args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(match run {
        Run::Boolean(function) => Sequence::from(function(args)?),
        Run::Integer(function) => Sequence::from(function(args)?),
        Run::Number(function) => Sequence::from(function(args)?),
        Run::Text(function) => {
            let text = function(args)?;
            args.ev.charge(text.len() / BYTES_PER_FUEL)?;
            Sequence::from(Atomic::from(text))
        }
        Run::Numeric(number, typed) => {
            if args.ev.compat() {
                Sequence::from(number(args)?)
            } else {
                typed(args)?
            }
        }
        Run::Nodes(function) | Run::Any(function) => function(args)?,
    })
}

pub(crate) fn context_item<'f>(focus: &Focus<'f>) -> Result<ItemRef<'f>> {
    focus.item.ok_or_else(|| XPathError::new("XPDY0002", "there is no context item here"))
}

pub(crate) fn context_node(focus: &Focus<'_>) -> Result<Node> {
    match context_item(focus)? {
        ItemRef::Node(node) => Ok(node),
        ItemRef::Atomic(_) => Err(XPathError::new("XPTY0020", "the context item is not a node")),
    }
}

/// Whether code is known to give nodes.
pub(crate) fn gives_nodes(code: &Code) -> bool {
    code.result == ResultKind::Nodes
}
