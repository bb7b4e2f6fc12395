//! Syntax tree to compiled form: names to numbers, constants folded, paths specialised.

mod calls;
mod focus;
mod path;
mod steps;

pub(crate) use path::is_positional;

use crate::ast::{self, Expr, ExprKind, Name};
use crate::code::{Code, Op};
use crate::error::{Result, Span, XPathError};
use crate::eval;
use crate::static_context::{ResultKind, StaticContext, VariablePolicy, VariableRef};
use crate::suggest;
use crate::value::{Atomic, Sequence};

pub(crate) struct Compiler<'c> {
    pub(crate) context: &'c StaticContext<'c>,
    /// Variables bound around the present point, innermost last.
    scope: Vec<(Name, u32)>,
    /// Local variables so far; every binding has its own number, so evaluation needs no frames.
    pub(crate) locals: u32,
    /// Free variables, each once.
    pub(crate) variables: Vec<Name>,
    /// Functions of the host, each once.
    pub(crate) functions: Vec<Name>,
}

impl<'c> Compiler<'c> {
    pub(crate) fn new(context: &'c StaticContext<'c>) -> Compiler<'c> {
        Compiler { context, scope: Vec::new(), locals: 0, variables: Vec::new(), functions: Vec::new() }
    }

    pub(crate) fn compile(&mut self, expr: &Expr) -> Result<Code> {
        let (op, result) = self.op(expr)?;
        let code = Code { op, span: expr.span, result };
        Ok(self.fold(code))
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Code>> {
        self.compile(expr).map(Box::new)
    }

    fn pair(&mut self, left: &Expr, right: &Expr) -> Result<Box<(Code, Code)>> {
        Ok(Box::new((self.compile(left)?, self.compile(right)?)))
    }

    pub(crate) fn all(&mut self, exprs: &[Expr]) -> Result<Box<[Code]>> {
        exprs.iter().map(|expr| self.compile(expr)).collect()
    }

    fn op(&mut self, expr: &Expr) -> Result<(Op, ResultKind)> {
        use ResultKind as R;
        Ok(match &expr.kind {
            ExprKind::Literal(atomic) => {
                let kind = if atomic.is_numeric() { R::Number } else { R::String };
                (Op::Constant(Sequence::from(atomic.clone())), kind)
            }
            ExprKind::Variable(name) => (self.variable(name, expr.span)?, R::Any),
            ExprKind::ContextItem => (Op::ContextItem, R::Any),
            ExprKind::Sequence(items) if items.is_empty() => (Op::Constant(Sequence::Empty), R::Any),
            ExprKind::Sequence(items) => (Op::Sequence(self.all(items)?), R::Any),
            ExprKind::Call(name, arguments) => return self.call(name, arguments, expr.span),
            ExprKind::Path(path) => return self.path(path, expr.span),
            ExprKind::Filter(base, predicates) => return self.filter(base, predicates),
            ExprKind::Or(operands) => (Op::Or(self.all(operands)?), R::Boolean),
            ExprKind::And(operands) => (Op::And(self.all(operands)?), R::Boolean),
            ExprKind::GeneralComparison(operator, a, b) => (Op::General(*operator, self.pair(a, b)?), R::Boolean),
            // May be empty, so the kind is not one boolean.
            ExprKind::ValueComparison(operator, a, b) => (Op::Value(*operator, self.pair(a, b)?), R::Any),
            ExprKind::NodeComparison(operator, a, b) => (Op::Nodes(*operator, self.pair(a, b)?), R::Any),
            ExprKind::Concat(operands) => return self.concatenation(operands),
            ExprKind::Range(a, b) => (Op::Range(self.pair(a, b)?), R::Any),
            ExprKind::Arithmetic(operator, a, b) => {
                let kind = if self.compat() { R::Number } else { R::Any };
                (Op::Arithmetic(*operator, self.pair(a, b)?), kind)
            }
            ExprKind::Sign(negative, operand) => {
                let kind = if self.compat() { R::Number } else { R::Any };
                (Op::Sign(*negative, self.boxed(operand)?), kind)
            }
            ExprKind::Union(operands) => (Op::Union(self.all(operands)?), R::Nodes),
            ExprKind::Intersect(a, b) => (Op::Intersect(self.pair(a, b)?), R::Nodes),
            ExprKind::Except(a, b) => (Op::Except(self.pair(a, b)?), R::Nodes),
            ExprKind::Map(a, b) => (Op::Map(self.pair(a, b)?), R::Any),
            ExprKind::If(condition, then, otherwise) => {
                let parts = (self.compile(condition)?, self.compile(then)?, self.compile(otherwise)?);
                let kind = if parts.1.result == parts.2.result { parts.1.result } else { R::Any };
                (Op::If(Box::new(parts)), kind)
            }
            ExprKind::For(name, value, body) => {
                let (slot, parts) = self.bound(name, value, body)?;
                (Op::For(slot, parts), R::Any)
            }
            ExprKind::Let(name, value, body) => {
                let (slot, parts) = self.bound(name, value, body)?;
                let kind = parts.1.result;
                (Op::Let(slot, parts), kind)
            }
            ExprKind::Quantified(quantifier, name, value, body) => {
                let (slot, parts) = self.bound(name, value, body)?;
                (Op::Quantified(*quantifier, slot, parts), R::Boolean)
            }
            ExprKind::InstanceOf(operand, wanted) => {
                (Op::InstanceOf(Box::new((self.compile(operand)?, wanted.clone()))), R::Boolean)
            }
            ExprKind::TreatAs(operand, wanted) => {
                (Op::Treat(Box::new((self.compile(operand)?, wanted.clone()))), R::Any)
            }
            ExprKind::CastAs(operand, wanted, optional) => match self.constant_qname(*wanted, operand)? {
                Some(name) => (Op::Constant(Sequence::from(name)), R::Any),
                None => (Op::Cast(self.boxed(operand)?, *wanted, *optional), R::Any),
            },
            ExprKind::CastableAs(operand, wanted, optional) => {
                (Op::Castable(self.boxed(operand)?, *wanted, *optional), R::Boolean)
            }
        })
    }

    pub(crate) fn compat(&self) -> bool {
        self.context.version == crate::Version::One
    }

    fn bound(&mut self, name: &Name, value: &Expr, body: &Expr) -> Result<(u32, Box<(Code, Code)>)> {
        let value = self.compile(value)?;
        let slot = self.locals;
        self.locals += 1;
        self.scope.push((name.clone(), slot));
        let body = self.compile(body);
        self.scope.pop();
        Ok((slot, Box::new((value, body?))))
    }

    fn variable(&mut self, name: &Name, span: Span) -> Result<Op> {
        let same = |other: &Name| {
            other.local == name.local
                && other.namespace == name.namespace
                && (name.namespace.is_some() || other.prefix == name.prefix)
        };
        if let Some((_, slot)) = self.scope.iter().rev().find(|(known, _)| same(known)) {
            return Ok(Op::Local(*slot));
        }
        if !self.variables.iter().any(same) {
            self.variables.push(name.clone());
        }
        if let Some(found) = self.context.resolver.and_then(|resolver| resolver.variable(name)) {
            return Ok(match found {
                VariableRef::Slot(slot) => Op::Slot(slot),
                VariableRef::Index(index) => Op::HostVariable(index),
                VariableRef::Name => Op::NamedVariable(Box::new(name.clone())),
            });
        }
        let lexical = name.lexical();
        let hint = match &self.context.variables {
            VariablePolicy::Any => return Ok(Op::NamedVariable(Box::new(name.clone()))),
            VariablePolicy::Declared(known) if known.contains(&lexical) => {
                return Ok(Op::NamedVariable(Box::new(name.clone())));
            }
            VariablePolicy::Declared(known) => suggest::nearest(&lexical, known.iter().map(String::as_str)),
            VariablePolicy::Resolver => None,
        };
        let hint = hint.map_or(String::new(), |name| format!(", did you mean `${name}`?"));
        Err(XPathError::new("XPST0008", format!("unknown variable `${lexical}`{hint}")).at(span))
    }

    /// Replaces what depends on nothing by its value. An error stays for run time: it may never be reached.
    fn fold(&self, code: Code) -> Code {
        let foldable = match &code.op {
            Op::General(_, pair) | Op::Value(_, pair) | Op::Arithmetic(_, pair) => {
                pair.0.constant().is_some() && pair.1.constant().is_some()
            }
            Op::Sign(_, operand) | Op::Cast(operand, _, _) | Op::Castable(operand, _, _) => {
                operand.constant().is_some()
            }
            Op::Or(operands) | Op::And(operands) => operands.iter().all(|operand| operand.constant().is_some()),
            Op::Call(builtin, arguments, _) => {
                builtin.is_pure() && arguments.iter().all(|argument| argument.constant().is_some())
            }
            _ => false,
        };
        if !foldable {
            return code;
        }
        match eval::constant(&code, self.context) {
            Ok(value) => {
                let result = match (&value, code.result) {
                    (Sequence::One(crate::value::Item::Atomic(atomic)), _) => kind_of(atomic),
                    (_, kind) => kind,
                };
                Code { op: Op::Constant(value), span: code.span, result }
            }
            Err(_) => code,
        }
    }
}

fn kind_of(atomic: &Atomic) -> ResultKind {
    match atomic {
        Atomic::Boolean(_) => ResultKind::Boolean,
        Atomic::String(_) => ResultKind::String,
        _ if atomic.is_numeric() => ResultKind::Number,
        _ => ResultKind::Any,
    }
}

/// Whether an expression or any part of it looks at the context item, its tree, or the host's functions.
pub(crate) fn uses_context(expr: &Expr) -> bool {
    let here = match &expr.kind {
        ExprKind::ContextItem => true,
        ExprKind::Path(path) => !matches!(path.start, ast::PathStart::Expr(_)),
        ExprKind::Call(name, arguments) => calls::reads_context(name, arguments.len()),
        _ => false,
    };
    if here {
        return true;
    }
    let mut found = false;
    match &expr.kind {
        // Steps and predicates look at what the start gives them, not at the context of the whole.
        ExprKind::Path(path) => {
            if let ast::PathStart::Expr(start) = &path.start {
                found = uses_context(start);
            }
            found |= focus::inner_expressions(path).any(uses_outer_context);
        }
        ExprKind::Filter(base, predicates) => {
            found = uses_context(base) || predicates.iter().any(uses_outer_context);
        }
        ExprKind::Map(base, body) => found = uses_context(base) || uses_outer_context(body),
        _ => expr.for_each_child(&mut |child| found |= uses_context(child)),
    }
    found
}

/// Inside predicates the context is another one; only `current()` and absolute paths still reach the outer tree.
fn uses_outer_context(expr: &Expr) -> bool {
    let mut found = match &expr.kind {
        ExprKind::Path(path) => matches!(path.start, ast::PathStart::Root),
        ExprKind::Call(name, _) => &*name.local == "current",
        _ => false,
    };
    expr.for_each_child(&mut |child| found |= uses_outer_context(child));
    found
}
