//! Compiling one alternative of a pattern.

use super::{Alternative, Key, PatternStep, Root};
use crate::ast::{Axis, AxisStep, Expr, ExprKind, KindTest, NodeTest, PathStart, Step};
use crate::code::{Code, Predicate};
use crate::compile::Compiler;
use crate::error::{Result, Span, XPathError};
use crate::static_context::Version;

fn not_a_pattern(span: Span, why: &str) -> XPathError {
    XPathError::new("XTSE0340", format!("not a pattern: {why}")).at(span)
}

pub(super) fn alternative(expr: &Expr, compiler: &mut Compiler<'_>) -> Result<Alternative> {
    let version = compiler.context.version;
    let path = match &expr.kind {
        ExprKind::Path(path) => path,
        ExprKind::Call(..) => {
            let root = Root::Call(Box::new(root_call(expr, compiler)?));
            return Ok(Alternative { root, steps: Vec::new(), priority: 0.5, key: Key::Anything });
        }
        _ => return Err(not_a_pattern(expr.span, "only paths of children and attributes are")),
    };
    let root = match &path.start {
        PathStart::Context => Root::None,
        PathStart::Root => Root::Document,
        PathStart::Expr(start) => Root::Call(Box::new(root_call(start, compiler)?)),
    };
    let mut steps = Vec::new();
    let mut below = false;
    for step in &path.steps {
        let Step::Axis(axis) = step else { return Err(not_a_pattern(expr.span, "every step must be a node test")) };
        if is_any_descendant(axis) {
            below = true;
            continue;
        }
        let document = matches!(axis.test, NodeTest::Kind(KindTest::Document | KindTest::DocumentOf(_)));
        let on_axis = match axis.axis {
            Axis::Child | Axis::Attribute => true,
            Axis::Myself => document,
            _ => false,
        };
        if !on_axis {
            return Err(not_a_pattern(axis.span, "only the child and attribute axes are allowed"));
        }
        let mut code = compiler.step(axis)?;
        // The only position that is known without visiting all siblings.
        if let [Predicate::Position(position)] = *code.predicates
            && axis.axis == Axis::Child
        {
            code.predicates = Box::new([Predicate::SiblingPosition(position)]);
        }
        let positional = code.predicates.iter().any(crate::compile::is_positional);
        steps.push(PatternStep { step: code, below, positional });
        below = false;
    }
    let last = path.steps.iter().rev().find_map(|step| match step {
        Step::Axis(axis) if !is_any_descendant(axis) => Some(axis),
        _ => None,
    });
    let simple = path.steps.len() == 1 && matches!(path.start, PathStart::Context);
    let priority = match last {
        None if version == Version::Two => -0.5,
        Some(axis) if simple && axis.predicates.is_empty() => test_priority(&axis.test),
        _ => 0.5,
    };
    let key = last.map_or(Key::Document, |axis| key_of(axis.axis, &axis.test));
    Ok(Alternative { root, steps, priority, key })
}

fn is_any_descendant(step: &AxisStep) -> bool {
    step.axis == Axis::DescendantOrSelf && step.test == NodeTest::Kind(KindTest::Any) && step.predicates.is_empty()
}

fn root_call(expr: &Expr, compiler: &mut Compiler<'_>) -> Result<Code> {
    match &expr.kind {
        ExprKind::Call(name, arguments) if matches!(&*name.local, "id" | "key") => {
            let is_fixed = |argument: &Expr| matches!(argument.kind, ExprKind::Literal(_) | ExprKind::Variable(_));
            if !arguments.iter().all(is_fixed) {
                return Err(not_a_pattern(expr.span, "the arguments of `id()` and `key()` are literals or variables"));
            }
            compiler.compile(expr)
        }
        _ => Err(not_a_pattern(expr.span, "it may start with `id()` or `key()` only")),
    }
}

fn test_priority(test: &NodeTest) -> f64 {
    match test {
        NodeTest::Name(_) | NodeTest::UndeclaredPrefix(_) => 0.0,
        NodeTest::Namespace(_) | NodeTest::Local(_) => -0.25,
        NodeTest::AnyName => -0.5,
        NodeTest::Kind(
            KindTest::ProcessingInstruction(Some(_)) | KindTest::Element(Some(_)) | KindTest::Attribute(Some(_)),
        ) => 0.0,
        NodeTest::Kind(KindTest::DocumentOf(inner)) => test_priority(&NodeTest::Kind((**inner).clone())),
        NodeTest::Kind(_) => -0.5,
    }
}

fn key_of(axis: Axis, test: &NodeTest) -> Key {
    let attribute = axis == Axis::Attribute;
    match test {
        NodeTest::Name(name) if attribute => Key::Attribute(name.clone()),
        NodeTest::Name(name) => Key::Element(name.clone()),
        NodeTest::Kind(KindTest::Element(Some(name))) => Key::Element(name.clone()),
        NodeTest::Kind(KindTest::Attribute(Some(name))) => Key::Attribute(name.clone()),
        NodeTest::Kind(KindTest::Text) => Key::Text,
        NodeTest::Kind(KindTest::Comment) => Key::Comment,
        NodeTest::Kind(KindTest::ProcessingInstruction(_)) => Key::ProcessingInstruction,
        NodeTest::Kind(KindTest::Document | KindTest::DocumentOf(_)) if axis == Axis::Myself => Key::Document,
        NodeTest::Kind(KindTest::Element(None)) => Key::AnyElement,
        NodeTest::Kind(KindTest::Attribute(None)) => Key::AnyAttribute,
        _ if attribute => Key::AnyAttribute,
        NodeTest::Kind(KindTest::Any) => Key::AnyChild,
        _ => Key::AnyElement,
    }
}
