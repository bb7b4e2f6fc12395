//! Messages in the memory of the process: first in, first out, shared by all cores, lost when the process ends.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_engine::ports::LocalFuture;
use penstock_engine::store::{MessageStore, Record, Reservation, StoreError};

/// What one store may hold. Micro Integrator has no limit and ends with its memory; here a full store is a fault.
const BYTES_MAX: usize = 256 << 20;

/// The messages of one store.
#[derive(Default)]
pub(super) struct Memory {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    next_token: u64,
}

struct Entry {
    token: u64,
    record: Record,
    is_reserved: bool,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, record: Record) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.bytes + record.bytes.len() > BYTES_MAX {
            let message =
                format!("the store is full: it holds {} messages, {} bytes", state.entries.len(), state.bytes);
            return Err(StoreError { message, is_unreachable: false });
        }
        state.bytes += record.bytes.len();
        state.next_token += 1;
        let token = state.next_token;
        state.entries.push_back(Entry { token, record, is_reserved: false });
        Ok(())
    }

    fn reserve(self: &Arc<Memory>) -> Option<Reservation> {
        let mut state = self.lock();
        let entry = state.entries.iter_mut().find(|entry| !entry.is_reserved)?;
        entry.is_reserved = true;
        let (record, token) = (entry.record.clone(), entry.token);
        Some(Reservation { record, token, hold: Some(Box::new(Hold { memory: self.clone(), token })) })
    }

    fn acknowledge(&self, token: u64) {
        let mut state = self.lock();
        if let Some(at) = state.entries.iter().position(|entry| entry.token == token)
            && let Some(entry) = state.entries.remove(at)
        {
            state.bytes -= entry.record.bytes.len();
        }
    }

    fn release(&self, token: u64) {
        if let Some(entry) = self.lock().entries.iter_mut().find(|entry| entry.token == token) {
            entry.is_reserved = false;
        }
    }
}

/// Releases a record whose consumer is gone.
struct Hold {
    memory: Arc<Memory>,
    token: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.memory.release(self.token);
    }
}

/// The store as a core has it.
pub(super) struct Handle(pub(super) Arc<Memory>);

impl MessageStore for Handle {
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>> {
        Box::pin(ready(self.0.put(record)))
    }

    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>> {
        Box::pin(ready(Ok(self.0.reserve())))
    }

    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        self.0.acknowledge(token);
        Box::pin(ready(Ok(())))
    }

    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        self.0.release(token);
        Box::pin(ready(Ok(())))
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        let count = self.0.lock().entries.len() as u64;
        Box::pin(ready(Ok(Some(count))))
    }

    fn browse(&self, most: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let records = self.0.lock().entries.iter().take(most).map(|entry| entry.record.clone()).collect();
        Box::pin(ready(Ok(records)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str) -> Record {
        Record { id: id.into(), priority: None, sequence: None, bytes: id.to_owned().into() }
    }

    #[test]
    fn a_record_has_one_consumer_until_it_is_acknowledged_or_released() {
        let memory = Arc::new(Memory::default());
        for id in ["a", "b"] {
            memory.put(record(id)).unwrap();
        }
        let first = memory.reserve().unwrap();
        let second = memory.reserve().unwrap();
        assert_eq!((&*first.record.id, &*second.record.id), ("a", "b"));
        assert!(memory.reserve().is_none());
        drop(first);
        let again = memory.reserve().unwrap();
        assert_eq!(&*again.record.id, "a");
        memory.acknowledge(second.token);
        drop(second);
        memory.release(again.token);
        memory.acknowledge(again.token);
        assert!(memory.reserve().is_none());
        assert_eq!(memory.lock().bytes, 0);
    }

    #[test]
    fn a_full_store_refuses_messages() {
        let memory = Memory::default();
        let large = bytes::Bytes::from(vec![0; BYTES_MAX / 2 + 1]);
        memory.put(Record { bytes: large.clone(), ..record("a") }).unwrap();
        assert!(memory.put(Record { bytes: large, ..record("b") }).unwrap_err().message.contains("full"));
    }
}
