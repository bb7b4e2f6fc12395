//! A resequencing store: messages leave a table in the order of their sequence numbers.
//!
//! The next number is the last one plus 1, beginning with 1. A message that comes after its turn is next. When the next number
//! does not come within the timeout, the smallest one that is there is next. One message is out at a time, so that an attempt
//! that fails does not let the following message overtake it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use penstock_engine::database::{Query, SqlValue};
use penstock_engine::ports::LocalFuture;
use penstock_engine::store::{MessageStore, Record, Resequencing, Reservation, StoreError};

use super::table::{Hold, Table, failed};

/// The numbers processed last, by the name of their store, in the layout of Micro Integrator.
pub(super) const LAST_PROCESSED: &str = "CREATE TABLE IF NOT EXISTS tbl_lastprocessid (statement VARCHAR(200) NOT NULL PRIMARY KEY, seq_id BIGINT NOT NULL)";

/// The messages of a store.
pub(super) struct Ordered {
    table: Arc<Table>,
    /// The name of the store.
    store: Arc<str>,
    resequencing: Resequencing,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since when the next number is missing.
    waits_since: Option<Instant>,
    /// The message that is out, and its number.
    out: Option<(i64, i64)>,
}

impl Ordered {
    pub(super) fn new(table: Table, store: Arc<str>, resequencing: Resequencing) -> Ordered {
        Ordered { table: Arc::new(table), store, resequencing, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reserve(self: Arc<Ordered>) -> Result<Option<Reservation>, StoreError> {
        if !self.table.reserved().is_empty() {
            return Ok(None);
        }
        let due = "WHERE seq_id <= COALESCE((SELECT seq_id FROM tbl_lastprocessid WHERE statement = ?), 0) + 1";
        let found = match self.first(due, vec![SqlValue::Text(self.store.clone())]).await? {
            Some(found) => Some(found),
            None => self.first("", Vec::new()).await?.filter(|_| self.has_waited()),
        };
        let Some((index, sequence, record)) = found else { return Ok(None) };
        // Another consumer may have reserved it while the query ran.
        if !self.table.reserved().insert(index) {
            return Ok(None);
        }
        *self.state() = State { waits_since: None, out: Some((index, sequence)) };
        let hold = Hold { table: self.table.clone(), index };
        Ok(Some(Reservation { record, token: index as u64, hold: Some(Box::new(hold)) }))
    }

    /// Whether the next number has been missing for the timeout. The first call begins the wait.
    fn has_waited(&self) -> bool {
        let since = *self.state().waits_since.get_or_insert_with(Instant::now);
        self.resequencing.timeout.is_some_and(|timeout| since.elapsed() >= timeout)
    }

    async fn first(&self, condition: &str, values: Vec<SqlValue>) -> Result<Option<(i64, i64, Record)>, StoreError> {
        let table = self.table.name();
        let columns = "indexId, msg_id, message, seq_id";
        let sql = format!("SELECT {columns} FROM {table} {condition} ORDER BY seq_id, indexId LIMIT 1");
        let answer = self.table.run(sql, values).await?;
        let sequence = answer.row.as_ref().and_then(|row| row.get("seq_id").ok().flatten()?.parse::<i64>().ok());
        let found = self.table.record(answer)?;
        Ok(found
            .zip(sequence)
            .map(|((index, record), sequence)| (index, sequence, Record { sequence: Some(sequence), ..record })))
    }

    /// Removes a message and notes its number, in one transaction.
    async fn acknowledge(&self, index: i64) -> Result<(), StoreError> {
        let sequence = self.state().out.filter(|(out, _)| *out == index).map(|(_, sequence)| sequence);
        let transaction = self.table.begin();
        let source = self.table.source();
        let run = async |sql: String, values: Vec<SqlValue>| {
            transaction.run(source, Query { sql: sql.into(), values }).await.map_err(failed)
        };
        let delete = format!("DELETE FROM {} WHERE indexId = ?", self.table.name());
        run(delete, vec![SqlValue::Integer(index)]).await?;
        if let Some(sequence) = sequence {
            let (store, number) = (|| SqlValue::Text(self.store.clone()), || SqlValue::Integer(sequence));
            let known = "SELECT seq_id FROM tbl_lastprocessid WHERE statement = ?".to_owned();
            match run(known, vec![store()]).await?.row {
                Some(_) => {
                    let update =
                        "UPDATE tbl_lastprocessid SET seq_id = ? WHERE statement = ? AND seq_id < ?".to_owned();
                    run(update, vec![number(), store(), number()]).await?;
                }
                None => {
                    let insert = "INSERT INTO tbl_lastprocessid (statement, seq_id) VALUES (?, ?)".to_owned();
                    run(insert, vec![store(), number()]).await?;
                }
            }
        }
        transaction.commit().await.map_err(failed)
    }
}

/// The store as a core has it.
pub(super) struct Handle(pub(super) Arc<Ordered>);

impl MessageStore for Handle {
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>> {
        let table = self.0.table.clone();
        Box::pin(async move { table.put(record).await })
    }

    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>> {
        Box::pin(self.0.clone().reserve())
    }

    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let ordered = self.0.clone();
        Box::pin(async move { ordered.acknowledge(token as i64).await })
    }

    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        self.0.table.reserved().remove(&(token as i64));
        Box::pin(std::future::ready(Ok(())))
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        let table = self.0.table.clone();
        Box::pin(async move { table.count().await })
    }

    fn browse(&self, most: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let table = self.0.table.clone();
        Box::pin(async move { table.browse(most).await })
    }
}
