//! From values to strings, numbers and booleans, by the rules of the version.

use std::borrow::Cow;

use super::{Args, Evaluator, Flow, Focus, context_item, gives_nodes};
use crate::code::{Code, Op};
use crate::error::{Result, XPathError, type_error};
use crate::functions::Run;
use crate::session::BYTES_PER_FUEL;
use crate::value::{Atomic, AtomicType, Item, ItemRef, Node, Sequence, cast, number};

impl<'a> Evaluator<'a> {
    /// The effective boolean value.
    pub(crate) fn boolean(&self, code: &'a Code, focus: &Focus<'_>) -> Result<bool> {
        self.boolean_here(code, focus).map_err(|error| error.at(code.span))
    }

    fn boolean_here(&self, code: &'a Code, focus: &Focus<'_>) -> Result<bool> {
        match &code.op {
            Op::Path(_) | Op::Union(_) => self.exists(code, focus),
            Op::Or(operands) => {
                for operand in operands {
                    if self.boolean(operand, focus)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Op::And(operands) => {
                for operand in operands {
                    if !self.boolean(operand, focus)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Op::General(operator, pair) => self.general_comparison(*operator, pair, focus),
            Op::Quantified(quantifier, slot, pair) => self.quantified(*quantifier, *slot, pair, focus),
            Op::InstanceOf(parts) => {
                let value = self.eval(&parts.0, focus)?;
                Ok(super::matches_type(&value, &parts.1, self.session))
            }
            Op::Call(builtin, arguments, prepared) => {
                if let Run::Boolean(function) = &builtin.run {
                    return function(&Args { ev: self, focus, codes: arguments, prepared: prepared.as_deref() });
                }
                self.effective_boolean(&self.eval(code, focus)?)
            }
            Op::Slot(slot) => self.effective_boolean(self.slot(*slot)?),
            Op::Constant(value) => self.effective_boolean(value),
            _ => self.effective_boolean(&self.eval(code, focus)?),
        }
    }

    pub(crate) fn effective_boolean(&self, value: &Sequence) -> Result<bool> {
        let Some(first) = value.first() else { return Ok(false) };
        let atomic = match first {
            ItemRef::Node(_) => return Ok(true),
            ItemRef::Atomic(atomic) => atomic,
        };
        if value.len() > 1 && !self.compat() {
            return Err(XPathError::new("FORG0006", "a sequence of several atomic values is neither true nor false"));
        }
        match atomic {
            Atomic::Boolean(value) => Ok(*value),
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) | Atomic::DerivedString(_, text) => {
                Ok(!text.is_empty())
            }
            _ if atomic.is_numeric() => {
                let number = atomic.to_number(true);
                Ok(number != 0.0 && !number.is_nan())
            }
            _ => {
                let message = format!("a value of type {} is neither true nor false", atomic.atomic_type().name());
                Err(XPathError::new("FORG0006", message))
            }
        }
    }

    /// `string()`: of several items the first counts (1.0) or there must be only one (2.0); none is the empty string.
    pub(crate) fn string(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Cow<'a, str>> {
        self.string_here(code, focus).map_err(|error| error.at(code.span))
    }

    fn string_here(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Cow<'a, str>> {
        match &code.op {
            Op::Constant(Sequence::One(Item::Atomic(atomic))) => Ok(atomic.to_text(self.compat())),
            Op::Call(builtin, arguments, prepared) => {
                let args = Args { ev: self, focus, codes: arguments, prepared: prepared.as_deref() };
                match &builtin.run {
                    Run::Text(function) => function(&args),
                    Run::Boolean(function) => Ok(Cow::Borrowed(if function(&args)? { "true" } else { "false" })),
                    Run::Number(function) => Ok(number::format_double(function(&args)?, self.compat())),
                    _ => self.string_of(self.eval(code, focus)?),
                }
            }
            Op::Slot(slot) => {
                let value = self.slot(*slot)?;
                self.refuse_many(value.len())?;
                Ok(value.first().map_or(Cow::Borrowed(""), |item| self.item_text(item)))
            }
            Op::ContextItem => match context_item(focus)? {
                ItemRef::Node(node) => Ok(self.session.string_value(node)),
                ItemRef::Atomic(atomic) => Ok(Cow::Owned(atomic.to_text(self.compat()).into_owned())),
            },
            _ if gives_nodes(code) => {
                let node = if self.compat() { self.first_node(code, focus)? } else { self.only_node(code, focus)? };
                Ok(node.map_or(Cow::Borrowed(""), |node| self.session.string_value(node)))
            }
            _ => self.string_of(self.eval(code, focus)?),
        }
    }

    fn string_of(&self, value: Sequence) -> Result<Cow<'a, str>> {
        self.refuse_many(value.len())?;
        Ok(match value.first() {
            None => Cow::Borrowed(""),
            Some(ItemRef::Node(node)) => self.session.string_value(node),
            Some(ItemRef::Atomic(atomic)) => Cow::Owned(atomic.to_text(self.compat()).into_owned()),
        })
    }

    fn refuse_many(&self, items: usize) -> Result<()> {
        if items > 1 && !self.compat() {
            return Err(type_error(format!("expected one item, found {items}")));
        }
        Ok(())
    }

    pub(crate) fn item_text<'v>(&self, item: ItemRef<'v>) -> Cow<'v, str>
    where
        'a: 'v,
    {
        match item {
            ItemRef::Node(node) => self.session.string_value(node),
            ItemRef::Atomic(atomic) => atomic.to_text(self.compat()),
        }
    }

    /// The node of an expression that may give at most one.
    pub(super) fn only_node(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Option<Node>> {
        let mut found = None;
        let mut many = false;
        self.each_node(code, focus, &mut |node| {
            many = found.is_some();
            found = found.or(Some(node));
            Ok(if many { Flow::Stop } else { Flow::Continue })
        })?;
        if many { Err(type_error("expected one item, found several")) } else { Ok(found) }
    }

    /// `number()`: NaN for what is none.
    pub(crate) fn number(&self, code: &'a Code, focus: &Focus<'_>) -> Result<f64> {
        self.number_here(code, focus).map_err(|error| error.at(code.span))
    }

    fn number_here(&self, code: &'a Code, focus: &Focus<'_>) -> Result<f64> {
        match &code.op {
            Op::Constant(Sequence::One(Item::Atomic(atomic))) => Ok(atomic.to_number(self.compat())),
            Op::Arithmetic(operator, pair) if self.compat() => {
                let (left, right) = (self.number(&pair.0, focus)?, self.number(&pair.1, focus)?);
                super::arithmetic::on_doubles(*operator, left, right)
            }
            Op::Sign(negative, operand) if self.compat() => {
                let value = self.number(operand, focus)?;
                Ok(if *negative { -value } else { value })
            }
            Op::Call(builtin, arguments, prepared) => {
                let args = Args { ev: self, focus, codes: arguments, prepared: prepared.as_deref() };
                match &builtin.run {
                    Run::Number(function) => function(&args),
                    Run::Numeric(function, _) if self.compat() => function(&args),
                    Run::Integer(function) => function(&args).map(|value| value as f64),
                    Run::Text(function) => Ok(number::parse(&function(&args)?, self.compat())),
                    _ => self.number_of(&self.eval(code, focus)?),
                }
            }
            Op::Slot(slot) => self.number_of(self.slot(*slot)?),
            _ if gives_nodes(code) && self.compat() => {
                let node = self.first_node(code, focus)?;
                Ok(node.map_or(f64::NAN, |node| number::parse(&self.session.string_value(node), true)))
            }
            _ => self.number_of(&self.eval(code, focus)?),
        }
    }

    fn number_of(&self, value: &Sequence) -> Result<f64> {
        self.refuse_many(value.len())?;
        Ok(match value.first() {
            None => f64::NAN,
            Some(ItemRef::Node(node)) => number::parse(&self.session.string_value(node), self.compat()),
            Some(ItemRef::Atomic(atomic)) => atomic.to_number(self.compat()),
        })
    }

    /// An optional integer, as ranges and positions need.
    pub(crate) fn integer(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Option<i64>> {
        let value = self.eval(code, focus)?;
        let Some(atomic) = self.single_atomic(&value).map_err(|error| error.at(code.span))? else { return Ok(None) };
        let integer = match &atomic {
            Atomic::Integer(integer) | Atomic::DerivedInteger(_, integer) => Some(*integer),
            Atomic::Double(number) if self.compat() && number.fract() == 0.0 => exact_integer(*number),
            Atomic::Untyped(_) => return self.cast_integer(&atomic).map(Some),
            Atomic::String(_) if self.compat() => return self.cast_integer(&atomic).map(Some),
            _ => None,
        };
        let mismatch = || type_error(format!("expected an integer, found {}", atomic.atomic_type().name()));
        integer.map(Some).ok_or_else(|| mismatch().at(code.span))
    }

    fn cast_integer(&self, atomic: &Atomic) -> Result<i64> {
        match cast::cast(atomic, AtomicType::Integer, self.compat())? {
            Atomic::Integer(integer) => Ok(integer),
            _ => Err(XPathError::new("FOAR0002", "integer out of range")),
        }
    }

    /// The typed value of an item: nodes are untyped, except those whose string value is a string by definition.
    pub(crate) fn atomize(&self, item: ItemRef<'_>) -> Atomic {
        match item {
            ItemRef::Atomic(atomic) => atomic.clone(),
            ItemRef::Node(node) => {
                use penstock_xml::NodeKind as K;
                let text = self.session.string_value(node).into();
                match self.session.document_of(node).kind(node.id) {
                    K::Comment | K::ProcessingInstruction | K::Namespace => Atomic::String(text),
                    _ => Atomic::Untyped(text),
                }
            }
        }
    }

    /// The atomized items of an expression.
    pub(crate) fn atomized(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Vec<Atomic>> {
        let value = self.eval(code, focus)?;
        let mut atomics = Vec::with_capacity(value.len());
        for item in value.iter() {
            let atomic = self.atomize(item);
            self.charge(1 + atomic.as_text().map_or(0, |text| text.len() / BYTES_PER_FUEL))?;
            atomics.push(atomic);
        }
        Ok(atomics)
    }

    /// The one atomic value, or none. Of several the first counts in 1.0.
    pub(crate) fn single_atomic(&self, value: &Sequence) -> Result<Option<Atomic>> {
        self.refuse_many(value.len())?;
        Ok(value.first().map(|item| self.atomize(item)))
    }

    pub(crate) fn optional_atomic(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Option<Atomic>> {
        let value = self.eval(code, focus)?;
        self.single_atomic(&value).map_err(|error| error.at(code.span))
    }
}

/// A double as an integer when it is one.
pub(crate) fn exact_integer(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9.2e18).then_some(number as i64)
}
