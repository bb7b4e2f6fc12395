//! Loops: over items, over groups, over the pieces of a string.

use std::collections::HashMap;
use std::rc::Rc;

use penstock_xpath::collation::Collation;
use penstock_xpath::regex::Captures;
use penstock_xpath::{Atomic, AtomicKey, AtomicType, Item, ItemRef, Sequence};

use super::Outcome;
use super::context::as_node;
use super::frame::{Focus, Frame};
use super::machine::Machine;
use super::source::Source;
use super::values::string_item;
use crate::program::{GroupBy, Pc};

/// The group of `current-group()` and `current-grouping-key()`.
#[derive(Clone, Default)]
pub(crate) struct Group {
    pub items: Sequence,
    pub key: Sequence,
}

/// Groups still to come.
pub(super) struct Groups {
    groups: std::vec::IntoIter<Group>,
    index: usize,
    size: usize,
    body: Pc,
    end: Pc,
    focus: Focus,
    rule: Option<(u32, u32)>,
    outer: Option<Rc<Group>>,
}

/// The pieces of a string still to come: text, and the captured groups of those that matched.
pub(super) struct Pieces {
    pieces: std::vec::IntoIter<(String, Option<Rc<[String]>>)>,
    index: usize,
    size: usize,
    matching: Option<Pc>,
    non_matching: Option<Pc>,
    end: Pc,
    focus: Focus,
    outer: Option<Rc<[String]>>,
}

impl<'a> Machine<'a, '_> {
    pub(super) fn for_each(&mut self, number: u32) -> Outcome<()> {
        let looped = &self.program.loops[number as usize];
        let mut source = self.source(looped.select)?;
        if !looped.sort.is_empty() {
            source = self.sorted(source, &looped.sort)?;
        }
        let size = self.size_of(&source);
        let (body, end) = (self.pc, looped.end);
        let (focus, rule) = (self.focus.clone(), self.rule.take());
        self.push_frame(Frame::Loop { source, index: 0, size, body, end, focus, rule })?;
        self.next()
    }

    /// Goes on with the next item of the innermost loop, or behind it.
    #[inline]
    pub(super) fn next(&mut self) -> Outcome<()> {
        self.tick()?;
        match self.frames.last_mut() {
            Some(Frame::Loop { source, index, size, body, .. }) => {
                if let Some(item) = source.next() {
                    *index += 1;
                    let (position, size, body) = (*index, *size, *body);
                    self.focus.item = Some(item);
                    self.focus.position = position;
                    self.focus.size = size;
                    self.pc = body;
                    return self.check_output();
                }
                if let Some(Frame::Loop { end, focus, rule, .. }) = self.frames.pop() {
                    self.focus = focus;
                    self.rule = rule;
                    self.pc = end;
                }
                Ok(())
            }
            Some(Frame::Groups(_)) => self.next_group(),
            Some(Frame::Pieces(_)) => self.next_piece(),
            _ => Ok(()),
        }
    }

    pub(super) fn for_each_group(&mut self, number: u32) -> Outcome<()> {
        let grouping = &self.program.groupings[number as usize];
        let items: Vec<Item> = Source::Sequence { items: self.evaluate(grouping.select)?, next: 0 }.collect();
        let collation = match &grouping.collation {
            None => grouping.default_collation,
            Some(uri) => {
                let uri = self.avt(uri)?;
                match Collation::from_uri(&uri) {
                    Some(collation) => collation,
                    None => return self.failure("XTDE1110", format!("unknown collation `{uri}`")),
                }
            }
        };
        let mut groups = match &grouping.by {
            GroupBy::Key(expr) => self.group_by(items, &collation, |machine| machine.evaluate(*expr))?,
            GroupBy::Adjacent(expr) => self.group_adjacent(items, &collation, |machine| machine.evaluate(*expr))?,
            GroupBy::StartingWith(pattern) => self.group_starting(items, *pattern)?,
            GroupBy::EndingWith(pattern) => self.group_ending(items, *pattern)?,
        };
        if !grouping.sort.is_empty() {
            groups = self.sort_groups(groups, number)?;
        }
        let frame = Groups {
            size: groups.len(),
            groups: groups.into_iter(),
            index: 0,
            body: self.pc,
            end: grouping.end,
            focus: self.focus.clone(),
            rule: self.rule.take(),
            outer: self.run.group.borrow().clone(),
        };
        self.push_frame(Frame::Groups(Box::new(frame)))?;
        self.next_group()
    }

    /// Evaluates something for each item with that item as the context.
    fn for_items<T>(&mut self, items: &[Item], mut each: impl FnMut(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let outer = self.focus.clone();
        let mut results = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.tick()?;
            self.focus = Focus { item: Some(item.clone()), position: index + 1, size: items.len() };
            results.push(each(self)?);
        }
        self.focus = outer;
        Ok(results)
    }

    fn group_by(
        &mut self,
        items: Vec<Item>,
        collation: &Collation,
        key: impl Fn(&Self) -> Outcome<Sequence>,
    ) -> Outcome<Vec<Group>> {
        let keys = self.for_items(&items, |machine| key(machine))?;
        let mut order: Vec<(Item, Vec<Item>)> = Vec::new();
        let mut found: HashMap<AtomicKey, usize> = HashMap::new();
        for (item, keys) in items.into_iter().zip(keys) {
            let mut own: Vec<usize> = Vec::new();
            for key in keys.iter() {
                let index = *found.entry(self.grouping_key(key, collation)).or_insert_with(|| {
                    order.push((self.atomized(key), Vec::new()));
                    order.len() - 1
                });
                // An item with the same key twice is in the group once.
                if !own.contains(&index) {
                    own.push(index);
                    order[index].1.push(item.clone());
                }
            }
        }
        let group = |(key, items)| Group { items: Sequence::from_items(items), key: Sequence::from(key) };
        Ok(order.into_iter().map(group).collect())
    }

    fn group_adjacent(
        &mut self,
        items: Vec<Item>,
        collation: &Collation,
        key: impl Fn(&Self) -> Outcome<Sequence>,
    ) -> Outcome<Vec<Group>> {
        let keys = self.for_items(&items, |machine| key(machine))?;
        let mut groups: Vec<(AtomicKey, Item, Vec<Item>)> = Vec::new();
        for (item, keys) in items.into_iter().zip(keys) {
            let Some(key) = keys.first().filter(|_| keys.len() == 1) else {
                return self.failure("XTTE1100", "an item has not exactly one grouping key");
            };
            let text = self.grouping_key(key, collation);
            match groups.last_mut() {
                Some((last, _, members)) if *last == text => members.push(item),
                _ => groups.push((text, self.atomized(key), vec![item])),
            }
        }
        let group = |(_, key, items)| Group { items: Sequence::from_items(items), key: Sequence::from(key) };
        Ok(groups.into_iter().map(group).collect())
    }

    fn item_matches(&mut self, items: &[Item], pattern: u32) -> Outcome<Vec<bool>> {
        self.for_items(items, |machine| match machine.focus.item.as_ref().and_then(as_node) {
            Some(node) => machine.matches_any(pattern, node),
            None => machine.failure("XTTE1120", "only nodes can be grouped by a pattern"),
        })
    }

    fn group_starting(&mut self, items: Vec<Item>, pattern: u32) -> Outcome<Vec<Group>> {
        let starts = self.item_matches(&items, pattern)?;
        let mut groups: Vec<Vec<Item>> = Vec::new();
        for (item, starts) in items.into_iter().zip(starts) {
            match groups.last_mut() {
                Some(group) if !starts => group.push(item),
                _ => groups.push(vec![item]),
            }
        }
        Ok(groups.into_iter().map(plain_group).collect())
    }

    fn group_ending(&mut self, items: Vec<Item>, pattern: u32) -> Outcome<Vec<Group>> {
        let ends = self.item_matches(&items, pattern)?;
        let mut groups: Vec<Vec<Item>> = Vec::new();
        let mut open = false;
        for (item, ends) in items.into_iter().zip(ends) {
            match groups.last_mut().filter(|_| open) {
                Some(group) => group.push(item),
                None => groups.push(vec![item]),
            }
            open = !ends;
        }
        Ok(groups.into_iter().map(plain_group).collect())
    }

    /// Sorts groups: the keys are evaluated for the first item of each group.
    fn sort_groups(&mut self, groups: Vec<Group>, number: u32) -> Outcome<Vec<Group>> {
        let grouping = &self.program.groupings[number as usize];
        let outer = self.run.group.borrow().clone();
        let groups: Vec<Rc<Group>> = groups.into_iter().map(Rc::new).collect();
        let order = self.sorted_indices(&groups, &grouping.sort);
        *self.run.group.borrow_mut() = outer;
        Ok(order?.into_iter().map(|index| (*groups[index]).clone()).collect())
    }

    fn next_group(&mut self) -> Outcome<()> {
        let Some(Frame::Groups(frame)) = self.frames.last_mut() else { return Ok(()) };
        if let Some(group) = frame.groups.next() {
            frame.index += 1;
            let item = group.items.first().map(ItemRef::to_item);
            self.focus = Focus { item, position: frame.index, size: frame.size };
            self.pc = frame.body;
            *self.run.group.borrow_mut() = Some(Rc::new(group));
            return self.check_output();
        }
        if let Some(Frame::Groups(frame)) = self.frames.pop() {
            self.focus = frame.focus;
            self.rule = frame.rule;
            self.pc = frame.end;
            *self.run.group.borrow_mut() = frame.outer;
        }
        Ok(())
    }

    pub(super) fn analyze_string(&mut self, number: u32) -> Outcome<()> {
        let analysis = &self.program.analyses[number as usize];
        let selected = self.evaluate(analysis.select)?;
        let is_text = |item: ItemRef<'_>| match item {
            ItemRef::Node(_) => true,
            ItemRef::Atomic(value) => {
                let kind = value.atomic_type();
                kind.derives_from(AtomicType::String) || matches!(kind, AtomicType::Untyped | AtomicType::Uri)
            }
        };
        if self.program.version_two && (selected.len() != 1 || !selected.iter().all(is_text)) {
            return self.failure("XPTY0004", "`xsl:analyze-string` takes one string");
        }
        let input = selected.first().map_or_else(String::new, |item| self.item_text(item).into_owned());
        let (regex, flags) = (self.avt(&analysis.regex)?, self.avt(&analysis.flags)?);
        let pieces = match self.session.regex(&regex, &flags) {
            Ok(regex) if regex.is_match("").unwrap_or(false) => {
                return self.failure("XTDE1150", "the regular expression matches the empty string");
            }
            Ok(regex) => regex.find_all(&input),
            Err(error) if error.code() == "FORX0001" => return self.failure("XTDE1145", error.message()),
            Err(error) => return self.failure("XTDE1140", error.message()),
        };
        let pieces = match pieces {
            Ok(found) => split(&input, &found),
            Err(error) => return self.failure(error.code().to_owned(), error.message()),
        };
        let frame = Pieces {
            size: pieces.len(),
            pieces: pieces.into_iter(),
            index: 0,
            matching: analysis.matching,
            non_matching: analysis.non_matching,
            end: analysis.end,
            focus: self.focus.clone(),
            outer: self.run.regex_groups.borrow().clone(),
        };
        self.push_frame(Frame::Pieces(Box::new(frame)))?;
        self.next_piece()
    }

    fn next_piece(&mut self) -> Outcome<()> {
        while let Some(Frame::Pieces(frame)) = self.frames.last_mut() {
            let Some((text, groups)) = frame.pieces.next() else { break };
            frame.index += 1;
            let body = if groups.is_some() { frame.matching } else { frame.non_matching };
            let Some(body) = body else { continue };
            self.focus = Focus { item: Some(string_item(&text)), position: frame.index, size: frame.size };
            self.pc = body;
            *self.run.regex_groups.borrow_mut() = groups;
            return self.check_output();
        }
        if let Some(Frame::Pieces(frame)) = self.frames.pop() {
            self.focus = frame.focus;
            self.pc = frame.end;
            *self.run.regex_groups.borrow_mut() = frame.outer;
        }
        Ok(())
    }

    fn grouping_key(&self, item: ItemRef<'_>, collation: &Collation) -> AtomicKey {
        match item {
            ItemRef::Atomic(atomic) => AtomicKey::collated(atomic, collation),
            ItemRef::Node(_) => AtomicKey::collated(&Atomic::Untyped(self.item_text(item).into()), collation),
        }
    }

    fn atomized(&self, item: ItemRef<'_>) -> Item {
        match item {
            ItemRef::Atomic(_) => item.to_item(),
            ItemRef::Node(_) => Item::Atomic(Atomic::Untyped(self.item_text(item).into())),
        }
    }
}

fn plain_group(items: Vec<Item>) -> Group {
    Group { items: Sequence::from_items(items), key: Sequence::Empty }
}

/// The matching and the other pieces of a string, in order.
fn split(input: &str, found: &[Captures]) -> Vec<(String, Option<Rc<[String]>>)> {
    let mut pieces = Vec::new();
    let mut end = 0;
    for groups in found {
        let Some(Some((start, after))) = groups.first().copied() else { continue };
        if start > end {
            pieces.push((input[end..start].to_owned(), None));
        }
        let text = |group: &Option<(usize, usize)>| group.map_or("", |(start, end)| &input[start..end]).to_owned();
        pieces.push((input[start..after].to_owned(), Some(groups.iter().map(text).collect())));
        end = after;
    }
    if end < input.len() {
        pieces.push((input[end..].to_owned(), None));
    }
    pieces
}
