//! Built-ins of lists and hashes.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::render::{Outcome, fail};
use super::super::value::Data;
use super::{Call, compare, equal};

impl<'d> Call<'_, 'd> {
    pub(super) fn of_list(&mut self, value: &Data<'d>) -> Outcome<'d, Option<Data<'d>>> {
        if matches!(self.name, "keys" | "values" | "size")
            && let Some(members) = value.members()
        {
            return Ok(Some(match self.name {
                "keys" => list(members.into_iter().map(|(name, _)| Data::Text(name)).collect()),
                "values" => list(members.into_iter().map(|(_, value)| value).collect()),
                _ => Data::Number(members.len() as f64),
            }));
        }
        let Some(length) = value.length() else { return Ok(None) };
        // Copied only by builtins that read all items.
        let items = || value.items().unwrap_or_default();
        Ok(Some(match self.name {
            "size" => Data::Number(length as f64),
            "first" => value.item(0),
            "last" => length.checked_sub(1).map_or(Data::Missing, |last| value.item(last)),
            "reverse" => list(items().into_iter().rev().collect()),
            "join" => self.join(&items())?,
            "seq_contains" => {
                let wanted = self.argument(0)?;
                Data::Boolean((0..length).any(|index| equal(&value.item(index), &wanted)))
            }
            "seq_index_of" | "seq_last_index_of" => {
                let wanted = self.argument(0)?;
                let mut places = (0..length).filter(|at| equal(&value.item(*at), &wanted));
                let found = if self.name == "seq_index_of" { places.next() } else { places.next_back() };
                Data::Number(found.map_or(-1.0, |at| at as f64))
            }
            "sort" => self.sorted(items(), None)?,
            "sort_by" => {
                let path = match self.argument(0)? {
                    Data::Text(name) => vec![name],
                    other => other.items().unwrap_or_default().iter().filter_map(super::plain).collect(),
                };
                self.sorted(items(), Some(path))?
            }
            "chunk" => {
                let size = self.count_argument(0)?.max(1);
                let mut chunks: Vec<Vec<Data<'d>>> = items().chunks(size).map(<[_]>::to_vec).collect();
                if self.arguments.len() > 1
                    && let Some(last) = chunks.last_mut()
                {
                    // The last one is filled up; an unused size is not created.
                    let filler = self.argument(1)?;
                    let missing = size.min(length.max(1)).saturating_sub(last.len());
                    last.extend(std::iter::repeat_n(filler, missing));
                }
                list(chunks.into_iter().map(list).collect())
            }
            "min" | "max" => {
                let wanted = if self.name == "min" { Ordering::Less } else { Ordering::Greater };
                let mut best = Data::Missing;
                for item in items() {
                    if matches!(best, Data::Missing) || compare(&item, &best) == Some(wanted) {
                        best = item;
                    }
                }
                best
            }
            "map" | "filter" | "take_while" | "drop_while" => self.through(items())?,
            "sequence" => list(items()),
            _ => return Ok(None),
        }))
    }

    fn join(&mut self, items: &[Data<'d>]) -> Outcome<'d, Data<'d>> {
        if items.is_empty() && self.arguments.len() > 1 {
            return Ok(Data::Text(self.text_argument(1)?));
        }
        let between = self.text_argument(0)?;
        let mut joined = String::new();
        let mut any = false;
        for item in items {
            if matches!(item, Data::Missing) {
                continue;
            }
            if any {
                joined.push_str(&between);
            }
            any = true;
            joined.push_str(&self.run.output(item, self.of)?);
        }
        if any && self.arguments.len() > 2 {
            joined.push_str(&self.text_argument(2)?);
        }
        Ok(Data::text(joined))
    }

    fn sorted(&mut self, items: Vec<Data<'d>>, path: Option<Vec<Rc<str>>>) -> Outcome<'d, Data<'d>> {
        let key = |item: &Data<'d>| {
            let steps = path.iter().flatten();
            steps.fold(item.clone(), |at, step| at.member(step))
        };
        let mut keyed: Vec<(Data<'d>, Data<'d>)> = items.into_iter().map(|item| (key(&item), item)).collect();
        if keyed.windows(2).any(|pair| compare(&pair[0].0, &pair[1].0).is_none()) {
            return fail(self.expr.at, format!("what `?{}` compares has no order", self.name));
        }
        // Texts are compared without case first, as people sort them.
        keyed.sort_by(|(left, _), (right, _)| match (super::plain(left), super::plain(right)) {
            (Some(a), Some(b)) => a.to_lowercase().cmp(&b.to_lowercase()).then_with(|| a.cmp(&b)),
            _ => compare(left, right).unwrap_or(Ordering::Equal),
        });
        Ok(list(keyed.into_iter().map(|(_, item)| item).collect()))
    }

    fn through(&mut self, items: Vec<Data<'d>>) -> Outcome<'d, Data<'d>> {
        let function = self.argument(0)?;
        let mut made = Vec::new();
        let mut dropping = true;
        for item in items {
            let answer = self.run.apply(&function, vec![item.clone()], self.expr.at)?;
            let holds = matches!(answer, Data::Boolean(true));
            match self.name {
                "map" => made.push(answer),
                "filter" if holds => made.push(item),
                "take_while" if holds => made.push(item),
                "take_while" => break,
                "drop_while" => {
                    dropping &= holds;
                    if !dropping {
                        made.push(item);
                    }
                }
                _ => {}
            }
        }
        Ok(list(made))
    }
}

fn list<'d>(items: Vec<Data<'d>>) -> Data<'d> {
    Data::List(Rc::new(items))
}
