//! Paths: axis steps with their tests worked out, `//name` as one scan, and what is known about the order.

use std::sync::Arc;

use super::Compiler;
use super::focus::focus_use;
use super::steps::{finish, push_step};
use crate::ast::{Axis, AxisStep, Comparison, Expr, ExprKind, KindTest, Name, NodeTest, Path, PathStart, Step};
use crate::code::{Code, Op, Predicate, StartCode, StepCode, Test, TestName};
use crate::error::{Result, Span};
use crate::functions;
use crate::static_context::{FUNCTION_NAMESPACE, ResultKind};
use crate::value::{Item, Sequence};

impl Compiler<'_> {
    pub(super) fn path(&mut self, path: &Path, span: Span) -> Result<(Op, ResultKind)> {
        let mut start = match &path.start {
            PathStart::Context => StartCode::Context,
            PathStart::Root => StartCode::Root,
            PathStart::Expr(expr) => StartCode::Code(self.compile(expr)?),
        };
        let mut steps = Vec::new();
        for step in &path.steps {
            match step {
                Step::Axis(axis) => {
                    let step = self.step(axis)?;
                    push_step(&mut steps, step);
                }
                Step::Expr(expr) => {
                    let left = finish(start, std::mem::take(&mut steps), span);
                    let right = self.compile(expr)?;
                    let result = if right.result == ResultKind::Nodes { ResultKind::Nodes } else { ResultKind::Any };
                    start = StartCode::Code(Code { op: Op::Slash(Box::new((left, right))), span, result });
                }
            }
        }
        let code = finish(start, steps, span);
        Ok((code.op, code.result))
    }

    pub(crate) fn step(&mut self, step: &AxisStep) -> Result<StepCode> {
        let test = self.test(step.axis, &step.test);
        let (test, predicates) = match step.predicates.split_first() {
            Some((first, rest)) => match self.narrowed(&test, first) {
                Some(narrowed) => (narrowed, rest),
                None => (test, &*step.predicates),
            },
            None => (test, &*step.predicates),
        };
        let predicates = self.predicates(predicates)?;
        let needs_size = predicates.iter().any(needs_size);
        Ok(StepCode { axis: step.axis, test, predicates, needs_size, span: step.span })
    }

    /// `*[local-name() = 'a']`, with `namespace-uri() = 'b'` or without, is a test on the name.
    fn narrowed(&self, test: &Test, predicate: &Expr) -> Option<Test> {
        let mut local = None;
        let mut namespace = None;
        let parts = match &predicate.kind {
            ExprKind::And(parts) if parts.len() == 2 => parts.as_slice(),
            _ => std::slice::from_ref(predicate),
        };
        for part in parts {
            match name_condition(part)? {
                ("local-name", value) => local = Some(value),
                (_, value) => namespace = Some(value),
            }
        }
        let local: Arc<str> = local?.into();
        match (test, namespace) {
            (Test::AnyElement, None) => Some(Test::ElementLocal(local)),
            (Test::AnyAttribute, None) => Some(Test::AttributeLocal(local)),
            (Test::AnyElement, Some(uri)) => {
                let namespace = if uri.is_empty() { None } else { Some(uri.into()) };
                Some(Test::Element(self.test_name(&Name { prefix: None, local, namespace })))
            }
            _ => None,
        }
    }

    pub(super) fn filter(&mut self, base: &Expr, predicates: &[Expr]) -> Result<(Op, ResultKind)> {
        let base = self.compile(base)?;
        let result = if base.result == ResultKind::Nodes { ResultKind::Nodes } else { ResultKind::Any };
        let mut compiled = Vec::with_capacity(predicates.len());
        for predicate in predicates {
            compiled.push(match self.predicate(predicate)? {
                Predicate::Either(code, _) if is_independent(predicate) => Predicate::Independent(code),
                other => other,
            });
        }
        let predicates = compiled.into();
        Ok((Op::Filter(Box::new((base, predicates))), result))
    }

    fn predicates(&mut self, predicates: &[Expr]) -> Result<Box<[Predicate]>> {
        predicates.iter().map(|predicate| self.predicate(predicate)).collect()
    }

    fn predicate(&mut self, expr: &Expr) -> Result<Predicate> {
        let code = self.compile(expr)?;
        if let Some(number) = constant_number(&code) {
            // A position that cannot be is a condition that never holds.
            return Ok(match position(number) {
                Some(position) => Predicate::Position(position),
                None => Predicate::Condition(constant_false(code.span), false),
            });
        }
        if is_call(&code, "last") {
            return Ok(Predicate::Last);
        }
        if let Op::General(Comparison::Equal, pair) | Op::Value(Comparison::Equal, pair) = &code.op
            && let Some(shortcut) = position_shortcut(&pair.0, &pair.1).or_else(|| position_shortcut(&pair.1, &pair.0))
        {
            return Ok(shortcut);
        }
        let needs_size = focus_use(expr).size;
        Ok(match code.result {
            ResultKind::Boolean | ResultKind::String | ResultKind::Nodes => Predicate::Condition(code, needs_size),
            ResultKind::Number | ResultKind::Any if self.never_number(&code) => Predicate::Condition(code, needs_size),
            ResultKind::Number | ResultKind::Any => Predicate::Either(code, needs_size),
        })
    }

    /// Value comparisons are boolean or empty.
    fn never_number(&self, code: &Code) -> bool {
        matches!(code.op, Op::Value(..) | Op::Nodes(..))
    }

    fn test_name(&self, name: &Name) -> TestName {
        let index = self.context.pool.intern(name.namespace.as_ref(), &name.local);
        let namespace = name.namespace.clone().unwrap_or_else(|| "".into());
        TestName { index, namespace, local: name.local.clone() }
    }

    fn test(&self, axis: Axis, test: &NodeTest) -> Test {
        let kind = match test {
            NodeTest::Kind(kind) => return self.kind_test(kind),
            _ => axis,
        };
        match (kind, test) {
            (Axis::Attribute, NodeTest::Name(name)) => Test::Attribute(self.test_name(name)),
            (Axis::Attribute, NodeTest::AnyName) => Test::AnyAttribute,
            (Axis::Attribute, NodeTest::Namespace(name)) => Test::AttributeInNamespace(uri(name)),
            (Axis::Attribute, NodeTest::Local(local)) => Test::AttributeLocal(local.clone()),
            (Axis::Attribute, NodeTest::UndeclaredPrefix(name)) => Test::AttributeLocal(name.local.clone()),
            (Axis::Namespace, NodeTest::Name(name) | NodeTest::UndeclaredPrefix(name)) => {
                Test::NamespaceNode(name.local.clone())
            }
            (Axis::Namespace, NodeTest::Local(local)) => Test::NamespaceNode(local.clone()),
            (Axis::Namespace, _) => Test::AnyNamespace,
            (_, NodeTest::Name(name)) => Test::Element(self.test_name(name)),
            (_, NodeTest::Namespace(name)) => Test::ElementInNamespace(uri(name)),
            (_, NodeTest::Local(local)) => Test::ElementLocal(local.clone()),
            (_, NodeTest::UndeclaredPrefix(name)) => Test::ElementLocal(name.local.clone()),
            (_, NodeTest::AnyName | NodeTest::Kind(_)) => Test::AnyElement,
        }
    }

    pub(crate) fn kind_test(&self, kind: &KindTest) -> Test {
        match kind {
            KindTest::Any => Test::Any,
            KindTest::Text => Test::Text,
            KindTest::Comment => Test::Comment,
            KindTest::ProcessingInstruction(target) => Test::ProcessingInstruction(target.clone()),
            KindTest::Document => Test::Document,
            KindTest::DocumentOf(inner) => Test::DocumentOf(Box::new(self.kind_test(inner))),
            KindTest::Nothing => Test::Nothing,
            KindTest::Element(None) => Test::AnyElement,
            KindTest::Element(Some(name)) => Test::Element(self.test_name(name)),
            KindTest::Attribute(None) => Test::AnyAttribute,
            KindTest::Attribute(Some(name)) => Test::Attribute(self.test_name(name)),
        }
    }
}

/// Whether an expression has the same value for every item it filters.
fn is_independent(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Variable(_) => true,
        ExprKind::Arithmetic(_, left, right) => is_independent(left) && is_independent(right),
        ExprKind::Sign(_, operand) => is_independent(operand),
        ExprKind::Call(name, arguments) if name.namespace.as_deref() == Some(FUNCTION_NAMESPACE) => {
            let of_context = matches!(&*name.local, "position" | "last" | "current");
            let known = functions::find(&name.local).is_some_and(|found| !found.reads_context(arguments.len()));
            known && !of_context && arguments.iter().all(is_independent)
        }
        _ => false,
    }
}

/// `local-name() = 'a'` or `namespace-uri() = 'a'`, either way round: the function and the text.
fn name_condition(expr: &Expr) -> Option<(&str, &str)> {
    let ExprKind::GeneralComparison(Comparison::Equal, left, right) = &expr.kind else { return None };
    let (call, literal) = match (&left.kind, &right.kind) {
        (ExprKind::Call(name, arguments), ExprKind::Literal(literal))
        | (ExprKind::Literal(literal), ExprKind::Call(name, arguments))
            if arguments.is_empty() =>
        {
            (name, literal)
        }
        _ => return None,
    };
    let standard = call.namespace.as_deref() == Some(FUNCTION_NAMESPACE);
    let known = standard && matches!(&*call.local, "local-name" | "namespace-uri");
    known.then_some((&*call.local, &**literal.as_text()?))
}

fn uri(name: &Name) -> Arc<str> {
    name.namespace.clone().unwrap_or_else(|| "".into())
}

fn constant_false(span: Span) -> Code {
    Code { op: Op::Constant(Sequence::from(false)), span, result: ResultKind::Boolean }
}

fn constant_number(code: &Code) -> Option<f64> {
    match code.constant()? {
        Sequence::One(Item::Atomic(atomic)) if atomic.is_numeric() => Some(atomic.to_number(true)),
        _ => None,
    }
}

fn position(number: f64) -> Option<usize> {
    (number >= 1.0 && number.fract() == 0.0 && number < 4e9).then_some(number as usize)
}

fn is_call(code: &Code, name: &str) -> bool {
    matches!(&code.op, Op::Call(builtin, _, _) if builtin.name == name)
}

/// `position() = 3` and `position() = last()`.
fn position_shortcut(left: &Code, right: &Code) -> Option<Predicate> {
    if !is_call(left, "position") {
        return None;
    }
    if is_call(right, "last") {
        return Some(Predicate::Last);
    }
    constant_number(right).and_then(position).map(Predicate::Position)
}

pub(super) fn needs_size(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Last => true,
        Predicate::Position(_) | Predicate::SiblingPosition(_) | Predicate::SiblingLast => false,
        Predicate::Independent(_) => false,
        Predicate::Condition(_, needs_size) | Predicate::Either(_, needs_size) => *needs_size,
    }
}

/// Whether a predicate's outcome depends on where the candidate stands among the others.
pub(crate) fn is_positional(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Position(_) | Predicate::Last | Predicate::Either(..) | Predicate::Independent(_) => true,
        Predicate::SiblingPosition(_) | Predicate::SiblingLast => false,
        Predicate::Condition(code, needs_size) => *needs_size || mentions_position(code),
    }
}

/// Whether `position()` is called anywhere in a condition; inner predicates count too, which only costs speed.
fn mentions_position(code: &Code) -> bool {
    let any = |many: &[Code]| many.iter().any(mentions_position);
    match &code.op {
        Op::Call(builtin, arguments, _) => builtin.name == "position" || any(arguments),
        Op::Constant(_) | Op::ContextItem | Op::Slot(_) | Op::Local(_) => false,
        Op::HostVariable(_) | Op::NamedVariable(_) => false,
        Op::Or(many) | Op::And(many) | Op::Union(many) => any(many),
        Op::General(_, pair) | Op::Value(_, pair) | Op::Arithmetic(_, pair) => {
            mentions_position(&pair.0) || mentions_position(&pair.1)
        }
        Op::Path(path) => match &path.start {
            StartCode::Code(start) => mentions_position(start),
            _ => false,
        },
        _ => true,
    }
}
