//! `xsl:sort` and `xsl:perform-sort`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use penstock_xpath::collation::{Collation, LetterOrder};
use penstock_xpath::{Atomic, Item, ItemRef, Sequence, compare_values};

use super::Outcome;
use super::frame::{Focus, Frame};
use super::group::Group;
use super::machine::Machine;
use super::sink::Sink;
use super::source::Source;
use crate::program::{Avt, Pc, SortBy, SortKey};
use crate::read::values::AttributeValue;

/// A sort key's value for one item.
enum Value {
    /// The empty sequence comes first, then NaN.
    Nothing,
    Number(f64),
    Text(Vec<u8>),
    /// Dates, durations, booleans.
    Typed(Atomic),
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
        self.check_comparable(keyed.iter().map(|(values, _)| &values[..]))?;
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
        self.check_comparable(keyed.iter().map(|(values, _)| &values[..]))?;
        keyed.sort_by(|(a, _), (b, _)| compare_all(&orders, a, b));
        Ok(keyed.into_iter().map(|(_, index)| index).collect())
    }

    fn order(&self, key: &'a SortKey) -> Outcome<Order> {
        let lang = self.avt(&key.lang)?;
        let order = self.checked(&key.order, "order")?;
        let data_type = self.checked(&key.data_type, "data-type")?;
        let case_order = self.checked(&key.case_order, "case-order")?;
        self.checked(&key.stable, "stable")?;
        let numeric = match data_type.trim() {
            "number" => Some(true),
            "text" => Some(false),
            _ if key.untyped => Some(false),
            _ => None,
        };
        let collation = match &*self.avt(&key.collation)? {
            // XSLT 2.0 §13.1.3: the default collation, unless the language or the order of cases matters.
            "" if !key.untyped && lang.is_empty() && case_order.is_empty() => key.default_collation,
            "" => Collation::Letters(LetterOrder::for_language(&lang, case_order.trim() == "upper-first")),
            uri => match Collation::from_uri(uri) {
                Some(collation) => collation,
                None => return self.failure("XTDE1035", format!("unknown collation `{uri}`")),
            },
        };
        Ok(Order { descending: order.trim() == "descending", collation, numeric })
    }

    /// The value of an attribute of `xsl:sort`, which must be one of those it may have.
    fn checked(&self, value: &'a Avt, name: &str) -> Outcome<Cow<'a, str>> {
        let text = self.avt(value)?;
        if text.is_empty() && value.parts.is_empty() {
            return Ok(text);
        }
        match AttributeValue::find("sort", name) {
            Some((accepted, _)) if !accepted.accepts(&text) => {
                self.failure("XTDE0030", format!("`{name}` is {}, not `{text}`", accepted.describe()))
            }
            _ => Ok(text),
        }
    }

    /// Values of one key go together, or there is no order (XTDE1030).
    fn check_comparable<'v>(&self, rows: impl Iterator<Item = &'v [Value]>) -> Outcome<()> {
        let mut first: Vec<Option<&Value>> = Vec::new();
        for row in rows {
            first.resize(row.len(), None);
            for (known, value) in first.iter_mut().zip(row) {
                let fits = match (*known, value) {
                    (_, Value::Nothing) | (None, _) => true,
                    (Some(Value::Typed(known)), Value::Typed(value)) => compare_values(known, value).is_ok(),
                    (Some(known), value) => std::mem::discriminant(known) == std::mem::discriminant(value),
                };
                if !fits {
                    return self.failure("XTDE1030", "the values of a sort key have types without a common order");
                }
                if !matches!(value, Value::Nothing) {
                    *known = Some(value);
                }
            }
        }
        Ok(())
    }

    fn sort_value(&mut self, key: &SortKey, order: &Order) -> Outcome<Value> {
        let number = |text: &str| penstock_xpath::value::number::parse(text, true);
        if let (Some(numeric), SortBy::Expr(select)) = (order.numeric, key.value) {
            let expression = &self.program.expressions[select as usize];
            let context = self.context();
            let text = match expression.evaluate_string(&context) {
                Ok(text) => text,
                Err(error) => return self.xpath_failure(&error, select),
            };
            return Ok(if numeric { Value::Number(number(&text)) } else { order.text(&text) });
        }
        let sequence = match key.value {
            SortBy::Expr(select) => self.evaluate(select)?,
            SortBy::Body(entry) => self.body_value(entry)?,
        };
        if sequence.len() > 1 && !key.untyped {
            return self.failure("XTTE1020", "a sort key has more than one value");
        }
        let Some(item) = sequence.first() else { return Ok(Value::Nothing) };
        let text = self.item_text(item);
        Ok(match (order.numeric, item) {
            (Some(true), _) => Value::Number(number(&text)),
            (None, ItemRef::Atomic(atomic)) if atomic.is_numeric() => Value::Number(atomic.to_number(false)),
            (None, ItemRef::Atomic(atomic)) if atomic.as_text().is_none() => Value::Typed(atomic.clone()),
            _ => order.text(&text),
        })
    }

    /// What the content of `xsl:sort` yields, with the variables of the surrounding template.
    fn body_value(&mut self, entry: Pc) -> Outcome<Sequence> {
        let after = self.pc;
        self.push_frame(Frame::Stop)?;
        self.push_sink(Sink::Sequence(Default::default()));
        self.pc = entry;
        self.execute()?;
        self.pc = after;
        Ok(self.finish_sequence())
    }

    pub(super) fn perform_sort(&mut self, number: u32) -> Outcome<()> {
        let sorting = &self.program.loops[number as usize];
        let source = self.source(sorting.select)?;
        let items = self.sort_items(source.collect(), &sorting.sort)?;
        for item in items {
            self.add_item(item.as_ref())?;
        }
        self.pc = sorting.end;
        Ok(())
    }
}

impl Order {
    fn text(&self, text: &str) -> Value {
        Value::Text(self.collation.key(text).into_owned())
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
        (Value::Typed(a), Value::Typed(b)) => compare_values(a, b).ok().flatten().unwrap_or(Ordering::Equal),
        (Value::Nothing, Value::Nothing) => Ordering::Equal,
        (Value::Nothing, _) => Ordering::Less,
        (_, Value::Nothing) => Ordering::Greater,
        // Checked before: values of one key are alike.
        _ => Ordering::Equal,
    };
    if order.descending { ordering.reverse() } else { ordering }
}
