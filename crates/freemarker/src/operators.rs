//! Comparisons, calculations and what `+` puts together.

use std::cmp::Ordering;
use std::rc::Rc;

use super::ast::{Expr, Operator};
use super::evaluate::RANGE_MAX;
use super::render::{Outcome, Run, fail};
use super::value::Data;
use super::{OUTPUT_BYTES_MAX, builtins};

impl<'d> Run<'d> {
    pub(super) fn combine(
        &self,
        operator: Operator,
        left: &Data<'d>,
        right: &Data<'d>,
        expr: &Expr,
    ) -> Outcome<'d, Data<'d>> {
        let order = |wanted: fn(Ordering) -> bool| match builtins::compare(left, right) {
            Some(order) => Ok(Data::Boolean(wanted(order))),
            None => fail(expr.at, format!("{} and {} have no order", left.kind(), right.kind())),
        };
        match operator {
            Operator::Equal => Ok(Data::Boolean(builtins::equal(left, right))),
            Operator::Unequal => Ok(Data::Boolean(!builtins::equal(left, right))),
            Operator::Less => order(Ordering::is_lt),
            Operator::LessOrEqual => order(Ordering::is_le),
            Operator::Greater => order(Ordering::is_gt),
            Operator::GreaterOrEqual => order(Ordering::is_ge),
            Operator::Add => self.add(left, right, expr),
            _ => {
                let (Data::Number(left), Data::Number(right)) = (left, right) else {
                    return fail(expr.at, format!("{} and {} are not two numbers", left.kind(), right.kind()));
                };
                Ok(Data::Number(match operator {
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide if *right == 0.0 => return fail(expr.at, "division by zero"),
                    Operator::Divide => left / right,
                    _ if right.trunc() == 0.0 => return fail(expr.at, "division by zero"),
                    _ => left.trunc() % right.trunc(),
                }))
            }
        }
    }

    fn add(&self, left: &Data<'d>, right: &Data<'d>, expr: &Expr) -> Outcome<'d, Data<'d>> {
        if let (Data::Number(left), Data::Number(right)) = (left, right) {
            return Ok(Data::Number(left + right));
        }
        if let (Some(mut all), Some(more)) = (left.members(), right.members()) {
            for (name, value) in more {
                match all.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, old)) => *old = value,
                    None => all.push((name, value)),
                }
            }
            return Ok(Data::Hash(Rc::new(all)));
        }
        let is_list = |data: &Data<'d>| !matches!(data, Data::Nodes(..));
        if let (Some(mut all), Some(more)) =
            (left.items().filter(|_| is_list(left)), right.items().filter(|_| is_list(right)))
        {
            if all.len() + more.len() > RANGE_MAX as usize {
                return fail(expr.at, "the list is too long");
            }
            all.extend(more);
            return Ok(Data::List(Rc::new(all)));
        }
        let (left, right) = (self.output(left, expr)?, self.output(right, expr)?);
        if left.len() + right.len() > OUTPUT_BYTES_MAX {
            return fail(expr.at, "the text is too long");
        }
        penstock_budget::reserve(left.len() + right.len());
        Ok(Data::text(format!("{left}{right}")))
    }
}
