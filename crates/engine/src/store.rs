//! Message stores as the engine sees them: a queue of records whose consumers acknowledge. Shaped like
//! [`crate::database`]: a port for the whole process, implemented where sockets and files are known.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::database::DataSource;
use crate::ports::LocalFuture;

/// What a store is: its name, its back end, and that back end's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreDefinition {
    /// The name.
    pub name: Arc<str>,
    /// Where messages lie.
    pub backend: StoreBackend,
}

/// Where the messages of a store lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreBackend {
    /// In the memory of this process; lost when it ends.
    Memory,
    /// In a table.
    Table {
        /// The database.
        source: Arc<DataSource>,
        /// The table's name.
        table: Arc<str>,
        /// Set when messages leave in the order of their sequence numbers.
        resequencing: Option<Resequencing>,
    },
    /// In a back end that a transport implements, by the scheme of its transport: `rabbitmq`, `jms`.
    Broker {
        /// The scheme.
        scheme: &'static str,
        /// Its parameters as the artifact writes them.
        parameters: Vec<(Arc<str>, Arc<str>)>,
    },
}

/// How a store waits for the next sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resequencing {
    /// After this time the smallest number that is there is next; `None`: it waits for ever.
    pub timeout: Option<Duration>,
}

/// A message in a store. What the bytes mean is the business of who stores and reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Unique in its store.
    pub id: Arc<str>,
    /// Brokers deliver higher ones first; `None` is the broker's default.
    pub priority: Option<u8>,
    /// Its place in the order of a resequencing store.
    pub sequence: Option<i64>,
    /// The message.
    pub bytes: Bytes,
}

/// A record that one consumer has and no other gets, until it acknowledges or releases it.
pub struct Reservation {
    /// The record.
    pub record: Record,
    /// What the back end finds it by.
    pub token: u64,
    /// Releases the record when it is dropped before it was acknowledged, where the back end keeps reservations itself.
    pub hold: Option<Box<dyn std::any::Any>>,
}

/// Why an operation of a store failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// What happened, without secrets.
    pub message: String,
    /// Whether the back end cannot be reached at present.
    pub is_unreachable: bool,
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// A store that is open.
pub trait MessageStore {
    /// Adds a record at the end. When it returns, the record is as durable as the back end makes it.
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>>;

    /// The first record that no consumer has reserved.
    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>>;

    /// Removes a reserved record.
    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>>;

    /// Puts a reserved record back where it was. Also happens to all records of a process that ends.
    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>>;

    /// How many records there are; `None` when the back end does not say.
    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>>;

    /// The first records, without reserving them; at most `most`.
    fn browse(&self, most: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>>;
}

/// The message stores. One for the whole process.
pub trait Stores: Send + Sync {
    /// Opens a store, or returns the one that is open with the same definition. Nothing is connected before it is used.
    fn open(&self, definition: &StoreDefinition) -> Result<Rc<dyn MessageStore>, StoreError>;
}
