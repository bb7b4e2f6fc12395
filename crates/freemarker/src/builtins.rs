//! What follows a `?`.

mod list;
mod text;

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::ast::{Expr, ExprKind};
use super::number;
use super::render::{Outcome, Run, fail};
use super::value::Data;

/// A built-in at work.
struct Call<'c, 'd> {
    run: &'c mut Run<'d>,
    /// The whole expression, for messages.
    expr: &'d Expr,
    of: &'d Expr,
    name: &'d str,
    arguments: &'d [Expr],
}

pub(super) fn apply<'d>(
    run: &mut Run<'d>,
    expr: &'d Expr,
    of: &'d Expr,
    name: &'d str,
    arguments: Option<&'d [Expr]>,
) -> Outcome<'d, Data<'d>> {
    let mut call = Call { run, expr, of, name, arguments: arguments.unwrap_or_default() };
    match call.about_loops()? {
        Some(found) => return Ok(found),
        None => {
            if let Some(found) = call.about_presence()? {
                return Ok(found);
            }
        }
    }
    let value = call.run.present(of)?;
    if let Some(found) = call.about_kind(&value) {
        return Ok(found);
    }
    if let Some(found) = call.conversion(&value)? {
        return Ok(found);
    }
    if let Some(found) = call.of_list(&value)? {
        return Ok(found);
    }
    if let Some(found) = call.of_number(&value)? {
        return Ok(found);
    }
    if let Some(found) = call.of_node(&value) {
        return Ok(found);
    }
    if let Some(found) = call.of_text(&value)? {
        return Ok(found);
    }
    fail(expr.at, format!("there is no built-in `?{name}` for {}", value.kind()))
}

impl<'d> Call<'_, 'd> {
    fn argument(&mut self, index: usize) -> Outcome<'d, Data<'d>> {
        match self.arguments.get(index) {
            Some(argument) => self.run.present(argument),
            None => fail(self.expr.at, format!("`?{}` needs {} arguments", self.name, index + 1)),
        }
    }

    fn text_argument(&mut self, index: usize) -> Outcome<'d, Rc<str>> {
        match self.arguments.get(index) {
            Some(argument) => self.run.text_of(argument),
            None => fail(self.expr.at, format!("`?{}` needs {} arguments", self.name, index + 1)),
        }
    }

    fn count_argument(&mut self, index: usize) -> Outcome<'d, usize> {
        match self.arguments.get(index) {
            Some(argument) => Ok(self.run.number(argument)?.max(0.0) as usize),
            None => fail(self.expr.at, format!("`?{}` needs {} arguments", self.name, index + 1)),
        }
    }

    /// `item?index` and its kin: the name is that of a loop variable.
    fn about_loops(&mut self) -> Outcome<'d, Option<Data<'d>>> {
        let known = [
            "index",
            "counter",
            "has_next",
            "is_first",
            "is_last",
            "is_odd_item",
            "is_even_item",
            "item_parity",
            "item_parity_cap",
            "item_cycle",
        ];
        let ExprKind::Name(variable) = &*self.of.kind else { return Ok(None) };
        if !known.contains(&self.name) {
            return Ok(None);
        }
        let Some((index, length)) = self.run.loop_of(variable) else {
            return fail(self.expr.at, format!("`{variable}` is not a loop variable"));
        };
        let is_odd = index % 2 == 0;
        Ok(Some(match self.name {
            "index" => Data::Number(index as f64),
            "counter" => Data::Number(index as f64 + 1.0),
            "has_next" => Data::Boolean(index + 1 < length),
            "is_first" => Data::Boolean(index == 0),
            "is_last" => Data::Boolean(index + 1 == length),
            "is_odd_item" => Data::Boolean(is_odd),
            "is_even_item" => Data::Boolean(!is_odd),
            "item_parity" => Data::text(if is_odd { "odd" } else { "even" }),
            "item_parity_cap" => Data::text(if is_odd { "Odd" } else { "Even" }),
            _ => self.argument(index % self.arguments.len().max(1))?,
        }))
    }

    /// Built-ins of missing values.
    fn about_presence(&mut self) -> Outcome<'d, Option<Data<'d>>> {
        Ok(Some(match self.name {
            "has_content" => Data::Boolean(self.run.lenient(self.of)?.has_content()),
            "exists" => Data::Boolean(!matches!(self.run.lenient(self.of)?, Data::Missing)),
            "if_exists" => match self.run.lenient(self.of)? {
                Data::Missing => Data::text(""),
                found => found,
            },
            "default" => match self.run.lenient(self.of)? {
                Data::Missing => self.argument(0)?,
                found => found,
            },
            _ => return Ok(None),
        }))
    }

    fn about_kind(&self, value: &Data<'d>) -> Option<Data<'d>> {
        let is_list = matches!(value, Data::List(_) | Data::Json(Json::Array(_)));
        Some(Data::Boolean(match self.name {
            "is_string" => matches!(value, Data::Text(_) | Data::Nodes(..)),
            "is_number" => matches!(value, Data::Number(_)),
            "is_boolean" => matches!(value, Data::Boolean(_)),
            "is_sequence" | "is_indexable" => is_list || matches!(value, Data::Nodes(..)),
            "is_enumerable" | "is_collection" => is_list,
            "is_hash" | "is_hash_ex" => value.is_hash(),
            "is_node" => matches!(value, Data::Nodes(..)),
            "is_macro" | "is_directive" => matches!(value, Data::Macro(_)),
            "is_method" => matches!(value, Data::Lambda(_)),
            "is_date" | "is_date_like" | "is_datetime" => matches!(value, Data::Now),
            _ => return None,
        }))
    }

    fn conversion(&mut self, value: &Data<'d>) -> Outcome<'d, Option<Data<'d>>> {
        Ok(Some(match (self.name, value) {
            ("c" | "cn", Data::Number(given)) => Data::text(number::for_programs(*given)),
            ("c" | "cn", Data::Boolean(flag)) => Data::text(if *flag { "true" } else { "false" }),
            ("c" | "cn", Data::Text(text)) => Data::text(Json::String(text.to_string()).to_string()),
            ("string", Data::Boolean(flag)) if self.arguments.len() >= 2 => {
                Data::Text(self.text_argument(usize::from(!*flag))?)
            }
            ("string", Data::Number(given)) if !self.arguments.is_empty() => {
                Data::text(number::by_pattern(*given, &self.text_argument(0)?))
            }
            ("string", Data::Now) => {
                let pattern = if self.arguments.is_empty() { None } else { Some(self.text_argument(0)?) };
                Data::text((self.run.model.now)(pattern.as_deref()))
            }
            ("string", other) => Data::Text(self.run.output(other, self.of)?),
            ("then", Data::Boolean(flag)) => self.argument(usize::from(!*flag))?,
            ("switch", value) => {
                let mut index = 0;
                while index + 1 < self.arguments.len() {
                    if equal(value, &self.argument(index)?) {
                        return Ok(Some(self.argument(index + 1)?));
                    }
                    index += 2;
                }
                self.argument(index)?
            }
            ("number", Data::Number(given)) => Data::Number(*given),
            ("number", other) => {
                let text = self.run.output(other, self.of)?;
                match text.trim().parse::<f64>() {
                    Ok(number) => Data::Number(number),
                    Err(_) => return fail(self.expr.at, format!("`{text}` is not a number")),
                }
            }
            ("boolean", Data::Boolean(flag)) => Data::Boolean(*flag),
            ("boolean", other) => match &*self.run.output(other, self.of)? {
                "true" => Data::Boolean(true),
                "false" => Data::Boolean(false),
                text => return fail(self.expr.at, format!("`{text}` is not true or false")),
            },
            ("date" | "time" | "datetime", Data::Now) => Data::Now,
            ("iso_utc" | "iso_local" | "iso_utc_ms", Data::Now) => {
                Data::text((self.run.model.now)(Some("yyyy-MM-dd'T'HH:mm:ssX")))
            }
            _ => return Ok(None),
        }))
    }

    fn of_number(&mut self, value: &Data<'d>) -> Outcome<'d, Option<Data<'d>>> {
        let Data::Number(given) = value else { return Ok(None) };
        Ok(Some(Data::Number(match self.name {
            "abs" => given.abs(),
            // A half goes up, as Java's own rounding has it.
            "round" => (given + 0.5).floor(),
            "floor" => given.floor(),
            "ceiling" => given.ceil(),
            "int" | "long" | "short" | "byte" => given.trunc(),
            "float" | "double" => *given,
            "lower_abc" | "upper_abc" => {
                let mut left = *given as u64;
                let mut letters = Vec::new();
                let first = if self.name == "lower_abc" { b'a' } else { b'A' };
                while left > 0 {
                    letters.push(char::from(first + ((left - 1) % 26) as u8));
                    left = (left - 1) / 26;
                }
                return Ok(Some(Data::text(letters.into_iter().rev().collect::<String>())));
            }
            _ => return Ok(None),
        })))
    }

    fn of_node(&mut self, value: &Data<'d>) -> Option<Data<'d>> {
        let Data::Nodes(document, nodes) = value else { return None };
        let node = *nodes.first()?;
        Some(match self.name {
            "node_name" => Data::text(document.local_name(node)),
            "node_namespace" => Data::text(document.namespace(node)),
            "node_type" => Data::text(if document.is_element(node) { "element" } else { "text" }),
            "children" => Data::Nodes(document, Rc::new(document.children(node).collect())),
            "parent" => document.parent(node).map_or(Data::Missing, |parent| Data::node(document, parent)),
            "root" => Data::node(document, penstock_xml::Document::ROOT),
            _ => return None,
        })
    }
}

/// Whether two values are equal. Nodes are compared by their text.
pub(super) fn equal(left: &Data<'_>, right: &Data<'_>) -> bool {
    match (left, right) {
        (Data::Boolean(left), Data::Boolean(right)) => left == right,
        _ => compare(left, right) == Some(Ordering::Equal),
    }
}

/// The order of two values of one kind.
pub(super) fn compare(left: &Data<'_>, right: &Data<'_>) -> Option<Ordering> {
    match (left, right) {
        (Data::Number(left), Data::Number(right)) => left.partial_cmp(right),
        _ => Some(plain(left)?.cmp(&plain(right)?)),
    }
}

fn plain(data: &Data<'_>) -> Option<Rc<str>> {
    match data {
        Data::Text(text) => Some(text.clone()),
        Data::Nodes(document, nodes) => Some(document.string_value(*nodes.first()?).into()),
        _ => None,
    }
}
