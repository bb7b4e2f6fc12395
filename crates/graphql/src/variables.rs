//! Sets of variables. A small query can use thousands of them in a fragment and that fragment thousands of times, so a
//! variable is a number here, and a set a row of bits.

use std::collections::HashMap;

/// The variables of a document, by number.
#[derive(Debug, Default)]
pub(super) struct Names<'t> {
    numbers: HashMap<&'t str, usize>,
    names: Vec<&'t str>,
}

impl<'t> Names<'t> {
    pub(super) fn number(&mut self, name: &'t str) -> usize {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    pub(super) fn name(&self, number: usize) -> &'t str {
        self.names.get(number).copied().unwrap_or_default()
    }
}

/// Some of them.
#[derive(Debug, Default)]
pub(super) struct Variables(Vec<u64>);

impl Variables {
    /// Adds one; whether it was not there.
    pub(super) fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub(super) fn add(&mut self, others: &Variables) {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        self.0.iter_mut().zip(&others.0).for_each(|(word, other)| *word |= other);
    }

    /// Those that are not among others.
    pub(super) fn beyond(&self, others: &Variables) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let rest = word & !others.0.get(at).copied().unwrap_or(0);
            (0..64).filter(move |bit| rest & (1 << bit) != 0).map(move |bit| at * 64 + bit)
        })
    }
}
