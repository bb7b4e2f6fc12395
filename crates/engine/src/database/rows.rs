//! Queries of which all rows are read, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use super::{DatabaseError, Query, SqlValue};
use crate::ports::LocalFuture;

/// A query whose rows are read one batch after another.
#[derive(Debug, Clone)]
pub struct RowQuery {
    /// The statement and its values.
    pub query: Query,
    /// Whether other queries of the session run before all rows are read.
    pub is_interleaved: bool,
    /// What the rows are.
    pub yields: Yields,
    /// How long the database may take for one batch, when it is not the time of the pool.
    pub timeout: Option<Duration>,
}

/// What the rows of a query are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Yields {
    /// What the statement selects.
    Rows,
    /// The keys that an INSERT generated: these columns, or those that the database chooses.
    Keys(Vec<Arc<str>>),
    /// The result of a stored procedure or function, `call name(…)`, whose places are used so. The values of places that
    /// are only written are absent from the query.
    Call(Vec<CallPlace>),
}

/// How a stored procedure uses a place of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallPlace {
    /// It reads a value.
    In,
    /// It writes a value, which becomes a column of this name.
    Out(Arc<str>),
    /// Both.
    InOut(Arc<str>),
}

/// Rows that were read at once.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The names of the columns.
    pub columns: Arc<[Arc<str>]>,
    /// The values of each row, in the order of the columns.
    pub rows: Vec<Vec<SqlValue>>,
    /// Rows that the statement changed.
    pub changed: u64,
}

/// The rows of a query that is running.
pub trait Rows {
    /// The next rows; `None` after the last. The first batch may be empty.
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>>;
}

/// The maximum of rows in one batch: enough to make the way to another thread cheap.
pub const BATCH_ROWS_MAX: usize = 256;

/// A batch ends after so many bytes of values, so that rows with large values do not pile up.
pub const BATCH_BYTES_MAX: usize = 128 << 10;

impl SqlValue {
    /// About how much memory the value takes.
    pub fn size(&self) -> usize {
        match self {
            SqlValue::Text(text) | SqlValue::Decimal(text) | SqlValue::Temporal(text) => text.len() + 16,
            SqlValue::Bytes(bytes) => bytes.len() + 16,
            _ => 16,
        }
    }
}
