//! Where the messages of message stores lie: the back ends behind [`penstock_engine::store`].

mod memory;
mod ordered;
mod table;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::database::{DataSource, Databases};
use penstock_engine::ports::ConnectionFactory;
use penstock_engine::store::{MessageStore, StoreBackend, StoreDefinition, StoreError, Stores};

#[cfg(any(feature = "jms", feature = "rabbitmq"))]
use crate::broker::store::BrokerStore;
#[cfg(feature = "jms")]
use crate::jms;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq;
use memory::Memory;
use ordered::Ordered;
use table::Table;

/// The message stores of the process.
pub struct MessageStores {
    databases: Arc<dyn Databases>,
    /// Where stores in memory keep their messages instead.
    durable: Option<Arc<DataSource>>,
    /// Connections of the configuration.
    #[cfg_attr(not(feature = "jms"), expect(dead_code, reason = "a lean build has no broker that uses them"))]
    factories: Vec<ConnectionFactory>,
    open: Mutex<HashMap<Arc<str>, Open>>,
}

/// A store that was opened, as all cores share it.
struct Open {
    definition: StoreDefinition,
    backend: Backend,
}

#[derive(Clone)]
enum Backend {
    Memory(Arc<Memory>),
    Table(Arc<Table>),
    Ordered(Arc<Ordered>),
    #[cfg(feature = "jms")]
    Jms(BrokerStore<jms::StoreQueue>),
    #[cfg(feature = "rabbitmq")]
    RabbitMq(BrokerStore<rabbitmq::StoreQueue>),
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

    fn make(&self, definition: &StoreDefinition) -> Result<Backend, StoreError> {
        match &definition.backend {
            StoreBackend::Memory => Ok(match &self.durable {
                Some(source) => Backend::Table(Arc::new(self.table(source, memory_table(&definition.name)))),
                None => Backend::Memory(Arc::default()),
            }),
            StoreBackend::Table { source, table, resequencing: None } => {
                Ok(Backend::Table(Arc::new(self.table(source, table.clone()))))
            }
            StoreBackend::Table { source, table, resequencing: Some(resequencing) } => {
                let table = self.table(source, table.clone()).with_sequence_numbers();
                Ok(Backend::Ordered(Arc::new(Ordered::new(table, definition.name.clone(), *resequencing))))
            }
            #[cfg(feature = "jms")]
            StoreBackend::Broker { scheme: jms::SCHEME, parameters } => {
                let queue = jms::StoreQueue::new(&definition.name, parameters, &self.factories)?;
                Ok(Backend::Jms(BrokerStore::new(queue)))
            }
            #[cfg(feature = "rabbitmq")]
            StoreBackend::Broker { scheme: rabbitmq::SCHEME, parameters } => {
                let queue = rabbitmq::StoreQueue::new(&definition.name, parameters)?;
                Ok(Backend::RabbitMq(BrokerStore::new(queue)))
            }
            StoreBackend::Broker { scheme, .. } => Err(StoreError {
                message: format!("this build of Penstock has no message stores over the transport `{scheme}`"),
                is_unreachable: false,
            }),
        }
    }
}

impl Stores for MessageStores {
    fn open(&self, definition: &StoreDefinition) -> Result<Rc<dyn MessageStore>, StoreError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let backend = match open.get(&definition.name) {
            Some(found) if found.definition == *definition => found.backend.clone(),
            // A definition that changed is another store; what lies in the memory of the old one is lost with it.
            _ => {
                let backend = self.make(definition)?;
                let opened = Open { definition: definition.clone(), backend: backend.clone() };
                open.insert(definition.name.clone(), opened);
                backend
            }
        };
        Ok(match backend {
            Backend::Memory(memory) => Rc::new(memory::Handle(memory)),
            Backend::Table(table) => Rc::new(table::Handle(table)),
            Backend::Ordered(ordered) => Rc::new(ordered::Handle(ordered)),
            #[cfg(feature = "jms")]
            Backend::Jms(store) => Rc::new(store),
            #[cfg(feature = "rabbitmq")]
            Backend::RabbitMq(store) => Rc::new(store),
        })
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
