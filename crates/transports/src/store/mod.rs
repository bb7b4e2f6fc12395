//! Where the messages of message stores lie: the back ends behind [`penstock_engine::store`].

mod memory;
mod ordered;
mod table;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_compile::OpenStore;
use penstock_engine::database::{DataSource, Databases};
use penstock_engine::ports::ConnectionFactory;
use penstock_engine::store::{MessageStore, StoreBackend, StoreDefinition, StoreError, Stores};

use crate::TRANSPORTS;
use memory::Memory;
use ordered::Ordered;
use table::Table;

/// The message stores of the process.
pub struct MessageStores {
    databases: Arc<dyn Databases>,
    /// Where stores in memory keep their messages instead.
    durable: Option<Arc<DataSource>>,
    /// Connections of the configuration.
    factories: Vec<ConnectionFactory>,
    open: Mutex<HashMap<Arc<str>, Open>>,
}

/// A store that was opened, as all cores share it.
struct Open {
    definition: StoreDefinition,
    store: OpenStore,
}

impl MessageStores {
    /// Stores in memory, in these databases, and at brokers, whose connections `factories` may replace.
    pub fn new(databases: Arc<dyn Databases>, factories: &[ConnectionFactory]) -> MessageStores {
        MessageStores { databases, durable: None, factories: factories.to_vec(), open: Mutex::default() }
    }

    /// Keeps the messages of stores in memory in tables of this database, so that they outlive the process.
    pub fn keep_memory_in(mut self, database: Option<Arc<DataSource>>) -> MessageStores {
        self.durable = database;
        self
    }

    fn table(&self, source: &Arc<DataSource>, table: Arc<str>) -> Table {
        Table::new(self.databases.clone(), source.clone(), table)
    }

    fn make(&self, definition: &StoreDefinition) -> Result<OpenStore, StoreError> {
        Ok(match &definition.backend {
            StoreBackend::Memory => match &self.durable {
                Some(source) => handles(self.table(source, memory_table(&definition.name)), table::Handle),
                None => handles(Memory::default(), memory::Handle),
            },
            StoreBackend::Table { source, table, resequencing: None } => {
                handles(self.table(source, table.clone()), table::Handle)
            }
            StoreBackend::Table { source, table, resequencing: Some(resequencing) } => {
                let table = self.table(source, table.clone()).with_sequence_numbers();
                handles(Ordered::new(table, definition.name.clone(), *resequencing), ordered::Handle)
            }
            StoreBackend::Broker { scheme, parameters } => {
                let transport = TRANSPORTS.iter().find(|transport| transport.name == *scheme);
                let Some(kind) = transport.and_then(|transport| transport.store.as_ref()) else {
                    let message = format!("the transport `{scheme}` has no message stores");
                    return Err(StoreError { message, is_unreachable: false });
                };
                (kind.open)(&definition.name, parameters, &self.factories)?
            }
        })
    }
}

/// A store whose handles share `shared`.
fn handles<T: Send + Sync + 'static, H: MessageStore + 'static>(shared: T, handle: fn(Arc<T>) -> H) -> OpenStore {
    let shared = Arc::new(shared);
    Arc::new(move || Rc::new(handle(shared.clone())))
}

impl Stores for MessageStores {
    fn open(&self, definition: &StoreDefinition) -> Result<Rc<dyn MessageStore>, StoreError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = open.get(&definition.name).filter(|found| found.definition == *definition) {
            return Ok((found.store)());
        }
        // A definition that changed is another store; what lies in the memory of the old one is lost with it.
        let store = self.make(definition)?;
        let handle = store();
        open.insert(definition.name.clone(), Open { definition: definition.clone(), store });
        Ok(handle)
    }
}

/// Longer names of tables are cut off by databases.
const TABLE_NAME_MAX: usize = 60;

/// The table of a store in memory: its name with other letters as numbers, so that no two stores share one.
fn memory_table(store: &str) -> Arc<str> {
    let mut name = String::from("memory_store_");
    for byte in store.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => name.push(byte.into()),
            other => name.push_str(&format!("_{other:02x}")),
        }
    }
    if name.len() > TABLE_NAME_MAX {
        let digest = ring::digest::digest(&ring::digest::SHA256, store.as_bytes());
        name.truncate(TABLE_NAME_MAX - 33);
        name.push('_');
        name.extend(digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")));
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_store_in_memory_has_a_table_of_its_own() {
        assert_eq!(&*memory_table("orders2"), "memory_store_orders2");
        assert_eq!(&*memory_table("Orders-2"), "memory_store__4frders_2d2");
        let (one, two) = ("x".repeat(80) + "1", "x".repeat(80) + "2");
        assert_ne!(memory_table(&one), memory_table(&two));
        assert_eq!(memory_table(&one).len(), TABLE_NAME_MAX);
    }
}
