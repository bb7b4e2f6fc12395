//! What mediators of one program share: counters and caches that several elements name by an `id`.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

type Entry = Arc<dyn Any + Send + Sync>;

/// Things by kind and name. Mediators take theirs when they are compiled; a lookup for each message
/// would be a lock on its path.
#[derive(Default)]
pub struct Shared {
    entries: RwLock<HashMap<(TypeId, Arc<str>), Entry>>,
}

impl Shared {
    /// The thing of that kind and name, made when it is not there.
    pub fn get_or_make<T: Any + Send + Sync>(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry((TypeId::of::<T>(), name.into())).or_insert_with(|| Arc::new(make()));
        entry.clone().downcast().expect("the type is part of the key")
    }

    /// The thing of that kind and name.
    pub fn get<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&(TypeId::of::<T>(), name.into()))?.clone().downcast().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_a_kind() {
        let shared = Shared::default();
        let first = shared.get_or_make("a", || 1u32);
        assert!(Arc::ptr_eq(&first, &shared.get_or_make("a", || 2u32)));
        assert_eq!(*shared.get_or_make("a", || "text".to_owned()), "text");
        assert!(shared.get::<u64>("a").is_none());
    }
}
