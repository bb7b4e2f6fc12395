//! Where the messages of message stores lie: the back ends behind [`penstock_engine::store`].

mod memory;
mod table;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::database::Databases;
use penstock_engine::ports::ConnectionFactory;
use penstock_engine::store::{MessageStore, StoreBackend, StoreDefinition, StoreError, Stores};

#[cfg(any(feature = "jms", feature = "rabbitmq"))]
use crate::broker::store::BrokerStore;
#[cfg(feature = "jms")]
use crate::jms;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq;
use memory::Memory;
use table::Table;

/// The message stores of the process.
pub struct MessageStores {
    databases: Arc<dyn Databases>,
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
    #[cfg(feature = "jms")]
    Jms(BrokerStore<jms::StoreQueue>),
    #[cfg(feature = "rabbitmq")]
    RabbitMq(BrokerStore<rabbitmq::StoreQueue>),
}

impl MessageStores {
    /// Stores in memory, in these databases, and at brokers, whose connections `factories` may replace.
    pub fn new(databases: Arc<dyn Databases>, factories: &[ConnectionFactory]) -> MessageStores {
        MessageStores { databases, factories: factories.to_vec(), open: Mutex::default() }
    }

    fn make(&self, definition: &StoreDefinition) -> Result<Backend, StoreError> {
        match &definition.backend {
            StoreBackend::Memory => Ok(Backend::Memory(Arc::default())),
            StoreBackend::Table { source, table } => {
                Ok(Backend::Table(Arc::new(Table::new(self.databases.clone(), source.clone(), table.clone()))))
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
            #[cfg(feature = "jms")]
            Backend::Jms(store) => Rc::new(store),
            #[cfg(feature = "rabbitmq")]
            Backend::RabbitMq(store) => Rc::new(store),
        })
    }
}
