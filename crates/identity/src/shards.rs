//! A map whose copies share what they have in common: a change copies one small part, so its cost does not grow with the map
//! for as long as a part has few entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

/// Parts of a map. With 100,000 entries a change copies 100 of them.
const SHARDS: usize = 1024;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct ShardedMap<K, V> {
    hasher: RandomState,
    shards: Vec<Arc<HashMap<K, V>>>,
}

impl<K, V> Default for ShardedMap<K, V> {
    fn default() -> Self {
        let empty = Arc::default();
        ShardedMap { hasher: RandomState::new(), shards: vec![empty; SHARDS] }
    }
}

impl<K: Eq + Hash, V> ShardedMap<K, V> {
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[self.index(key)].get(key)
    }

    /// The part that has a key.
    fn index(&self, key: &(impl Hash + ?Sized)) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }
}

impl<K: Eq + Hash + Clone, V: Clone> ShardedMap<K, V> {
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let index = self.index(&key);
        Arc::make_mut(&mut self.shards[index]).insert(key, value);
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let index = self.index(key);
        Arc::make_mut(&mut self.shards[index]).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_all_parts_but_the_changed_one() {
        let mut first = ShardedMap::default();
        (0..10_000).for_each(|number| first.insert(number, number));
        let mut second = first.clone();
        second.insert(7, 70);
        second.remove(&7_000_000);
        assert_eq!((first.get(&7), second.get(&7), second.get(&8)), (Some(&7), Some(&70), Some(&8)));
        let differ = first.shards.iter().zip(&second.shards).filter(|(one, other)| !Arc::ptr_eq(one, other)).count();
        assert!(differ <= 2, "{differ} parts were copied");
        second.remove(&7);
        assert_eq!((first.get(&7), second.get(&7)), (Some(&7), None));
    }
}
