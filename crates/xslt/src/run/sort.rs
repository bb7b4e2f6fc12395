//! `xsl:sort` and `xsl:perform-sort`.

use std::cmp::Ordering;
use std::rc::Rc;

use penstock_xpath::{Atomic, Item, ItemRef};

use super::Outcome;
use super::collate::Collation;
use super::frame::Focus;
use super::group::Group;
use super::machine::Machine;
use super::source::Source;
use crate::program::SortKey;

/// A sort key's value for one item.
enum Value {
    /// NaN and the empty sequence come first.
    Number(f64),
    Text(Vec<u8>),
}

/// How one key compares.
struct Order {
    descending: bool,
    collation: Collation,
    /// `None`: numbers when the values are numbers (2.0).
    numeric: Option<bool>,
}

impl<'a> Machine<'a, '_> {
    /// The items in the order of the keys.
    pub(super) fn sorted(&mut self, source: Source<'a>, keys: &'a [SortKey]) -> Outcome<Source<'a>> {
        let items: Vec<Item> = source.collect();
        let items = self.sort_items(items, keys)?;
        Ok(Source::Items { items: items.into(), next: 0 })
    }

    pub(super) fn sort_items(&mut self, items: Vec<Item>, keys: &'a [SortKey]) -> Outcome<Vec<Item>> {
        let mut orders = Vec::with_capacity(keys.len());
        for key in keys {
            orders.push(self.order(key)?);
        }
        let outer = self.focus.clone();
        let size = items.len();
        let mut keyed: Vec<(Vec<Value>, Item)> = Vec::with_capacity(size);
        for (index, item) in items.into_iter().enumerate() {
            self.tick()?;
            self.focus = Focus { item: Some(item.clone()), position: index + 1, size };
            let values: Outcome<Vec<Value>> =
                keys.iter().zip(&orders).map(|(key, order)| self.sort_value(key, order)).collect();
            keyed.push((values?, item));
        }
        self.focus = outer;
        keyed.sort_by(|(a, _), (b, _)| compare_all(&orders, a, b));
        Ok(keyed.into_iter().map(|(_, item)| item).collect())
    }

    /// The order of groups, by keys evaluated for the first item of each.
    pub(super) fn sorted_indices(&mut self, groups: &[Rc<Group>], keys: &'a [SortKey]) -> Outcome<Vec<usize>> {
        let mut orders = Vec::with_capacity(keys.len());
        for key in keys {
            orders.push(self.order(key)?);
        }
        let outer = self.focus.clone();
        let mut keyed: Vec<(Vec<Value>, usize)> = Vec::with_capacity(groups.len());
        for (index, group) in groups.iter().enumerate() {
            let item = group.items.first().map(ItemRef::to_item);
            self.focus = Focus { item, position: index + 1, size: groups.len() };
            *self.run.group.borrow_mut() = Some(Rc::clone(group));
            let values: Outcome<Vec<Value>> =
                keys.iter().zip(&orders).map(|(key, order)| self.sort_value(key, order)).collect();
            keyed.push((values?, index));
        }
        self.focus = outer;
        keyed.sort_by(|(a, _), (b, _)| compare_all(&orders, a, b));
        Ok(keyed.into_iter().map(|(_, index)| index).collect())
    }

    fn order(&self, key: &'a SortKey) -> Outcome<Order> {
        let lang = self.avt(&key.lang)?;
        let order = self.avt(&key.order)?;
        let data_type = self.avt(&key.data_type)?;
        let case_order = self.avt(&key.case_order)?;
        let numeric = match data_type.trim() {
            "number" => Some(true),
            "text" => Some(false),
            _ if key.untyped => Some(false),
            _ => None,
        };
        Ok(Order {
            descending: order.trim() == "descending",
            collation: Collation::for_language(&lang, case_order.trim() == "upper-first"),
            numeric,
        })
    }

    fn sort_value(&self, key: &SortKey, order: &Order) -> Outcome<Value> {
        let expression = &self.program.expressions[key.select as usize];
        let number = |text: &str| penstock_xpath::value::number::parse(text, true);
        if let Some(numeric) = order.numeric {
            let context = self.context();
            let text = match expression.evaluate_string(&context) {
                Ok(text) => text,
                Err(error) => return self.xpath_failure(&error, key.select),
            };
            return Ok(if numeric { Value::Number(number(&text)) } else { Value::Text(order.collation.key(&text)) });
        }
        let sequence = self.evaluate(key.select)?;
        Ok(match sequence.first() {
            None => Value::Text(Vec::new()),
            Some(ItemRef::Atomic(atomic)) => match atomic {
                Atomic::Integer(value) => Value::Number(*value as f64),
                Atomic::Decimal(_) | Atomic::Float(_) => Value::Number(number(&atomic.to_text(true))),
                Atomic::Double(value) => Value::Number(*value),
                other => Value::Text(order.collation.key(&other.to_text(false))),
            },
            Some(ItemRef::Node(node)) => Value::Text(order.collation.key(&self.session.string_value(node))),
        })
    }

    pub(super) fn perform_sort(&mut self, number: u32) -> Outcome<()> {
        let sorting = &self.program.loops[number as usize];
        let source = self.source(sorting.select)?;
        let items = self.sort_items(source.collect(), &sorting.sort)?;
        for item in items {
            self.add_item(item.as_ref());
        }
        self.pc = sorting.end;
        Ok(())
    }
}

fn compare_all(orders: &[Order], a: &[Value], b: &[Value]) -> Ordering {
    orders
        .iter()
        .zip(a.iter().zip(b))
        .map(|(order, (a, b))| compare(order, a, b))
        .find(|ordering| *ordering != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

fn compare(order: &Order, a: &Value, b: &Value) -> Ordering {
    let ordering = match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        },
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Number(_), Value::Text(_)) => Ordering::Less,
        (Value::Text(_), Value::Number(_)) => Ordering::Greater,
    };
    if order.descending { ordering.reverse() } else { ordering }
}
