//! Messages in a table of Micro Integrator's layout: an increasing number, an identifier, the message.
//!
//! Reservations are kept in this process. Two processes that consume one table need a lease around their processors.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_engine::database::{
    Answer, DataSource, DatabaseError, DatabaseErrorKind, Databases, Dialect, Query, SqlValue, Transaction,
};
use penstock_engine::ports::LocalFuture;
use penstock_engine::store::{MessageStore, Record, Reservation, StoreError};
use tokio::sync::OnceCell;

use super::ordered;

/// The messages of one store.
pub(super) struct Table {
    databases: Arc<dyn Databases>,
    source: Arc<DataSource>,
    table: Arc<str>,
    /// Whether the table was made, or is there.
    prepared: OnceCell<()>,
    reserved: Mutex<BTreeSet<i64>>,
    /// Whether the table has the column `seq_id`.
    has_sequence_numbers: bool,
}

impl Table {
    pub(super) fn new(databases: Arc<dyn Databases>, source: Arc<DataSource>, table: Arc<str>) -> Table {
        let (prepared, reserved) = (OnceCell::new(), Mutex::default());
        Table { databases, source, table, prepared, reserved, has_sequence_numbers: false }
    }

    pub(super) fn with_sequence_numbers(self) -> Table {
        Table { has_sequence_numbers: true, ..self }
    }

    pub(super) fn name(&self) -> &str {
        &self.table
    }

    pub(super) fn begin(&self) -> Rc<dyn Transaction> {
        self.databases.begin()
    }

    pub(super) fn source(&self) -> &Arc<DataSource> {
        &self.source
    }

    pub(super) fn reserved(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a statement. The name of the table is checked when the artifact is compiled; values are bound.
    pub(super) async fn run(&self, sql: String, values: Vec<SqlValue>) -> Result<Answer, StoreError> {
        self.prepared.get_or_try_init(|| self.prepare()).await?;
        self.query(sql, values).await.map_err(failed)
    }

    async fn query(&self, sql: String, values: Vec<SqlValue>) -> Result<Answer, DatabaseError> {
        self.databases.run(&self.source, Query { sql: sql.into(), values }).await
    }

    /// Makes the table where it is missing.
    async fn prepare(&self) -> Result<(), StoreError> {
        let columns = match self.databases.dialect(&self.source).map_err(failed)? {
            Dialect::Sqlite => {
                "indexId INTEGER PRIMARY KEY AUTOINCREMENT, msg_id VARCHAR(200) NOT NULL, message BLOB NOT NULL"
            }
            Dialect::Postgres => "indexId BIGSERIAL PRIMARY KEY, msg_id VARCHAR(200) NOT NULL, message BYTEA NOT NULL",
            // MySQL's `BLOB` ends at 64 KB.
            Dialect::Mysql => {
                "indexId BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, msg_id VARCHAR(200) NOT NULL, message LONGBLOB NOT NULL"
            }
        };
        let sequence = if self.has_sequence_numbers { ", seq_id BIGINT NOT NULL" } else { "" };
        let mut definitions = vec![format!("CREATE TABLE IF NOT EXISTS {} ({columns}{sequence})", self.table)];
        if self.has_sequence_numbers {
            definitions.push(ordered::LAST_PROCESSED.to_owned());
        }
        for definition in definitions {
            match self.query(definition, Vec::new()).await {
                // An account that may use the table and not make one: a table that is missing shows at its first use.
                Err(error) if error.kind == DatabaseErrorKind::Refused => {}
                outcome => drop(outcome.map_err(failed)?),
            }
        }
        Ok(())
    }

    pub(super) async fn put(&self, record: Record) -> Result<(), StoreError> {
        let (id, message) = (SqlValue::Text(record.id), SqlValue::Bytes(record.bytes));
        if !self.has_sequence_numbers {
            let sql = format!("INSERT INTO {} (msg_id, message) VALUES (?, ?)", self.table);
            return self.run(sql, vec![id, message]).await.map(drop);
        }
        let Some(sequence) = record.sequence else {
            let message = "the message has no sequence number; a resequencing store takes it from the `store` mediator";
            return Err(StoreError { message: message.to_owned(), is_unreachable: false });
        };
        let sql = format!("INSERT INTO {} (msg_id, seq_id, message) VALUES (?, ?, ?)", self.table);
        self.run(sql, vec![id, SqlValue::Integer(sequence), message]).await.map(drop)
    }

    async fn reserve(self: Arc<Table>) -> Result<Option<Reservation>, StoreError> {
        loop {
            let reserved: Vec<i64> = self.reserved().iter().copied().collect();
            let Some((index, record)) = self.first(&reserved).await? else { return Ok(None) };
            // Another consumer may have reserved it while the query ran.
            if self.reserved().insert(index) {
                let hold = Hold { table: self.clone(), index };
                return Ok(Some(Reservation { record, token: index as u64, hold: Some(Box::new(hold)) }));
            }
        }
    }

    /// The first record that is none of these.
    async fn first(&self, reserved: &[i64]) -> Result<Option<(i64, Record)>, StoreError> {
        let places = vec!["?"; reserved.len()].join(", ");
        let condition = if reserved.is_empty() { String::new() } else { format!("WHERE indexId NOT IN ({places})") };
        let sql = format!("SELECT indexId, msg_id, message FROM {} {condition} ORDER BY indexId LIMIT 1", self.table);
        self.record(self.run(sql, reserved.iter().map(|index| SqlValue::Integer(*index)).collect()).await?)
    }

    pub(super) async fn count(&self) -> Result<Option<u64>, StoreError> {
        let answer = self.run(format!("SELECT COUNT(*) FROM {}", self.table), Vec::new()).await?;
        Ok(answer.row.and_then(|row| row.get("1").ok().flatten().and_then(|text| text.parse().ok())))
    }

    /// The first records in the order of their arrival.
    pub(super) async fn browse(&self, most: usize) -> Result<Vec<Record>, StoreError> {
        let (mut records, mut last) = (Vec::new(), i64::MIN);
        while records.len() < most
            && let Some((index, record)) = self.after(last).await?
        {
            records.push(record);
            last = index;
        }
        Ok(records)
    }

    async fn after(&self, index: i64) -> Result<Option<(i64, Record)>, StoreError> {
        let sql =
            format!("SELECT indexId, msg_id, message FROM {} WHERE indexId > ? ORDER BY indexId LIMIT 1", self.table);
        self.record(self.run(sql, vec![SqlValue::Integer(index)]).await?)
    }

    pub(super) fn record(&self, answer: Answer) -> Result<Option<(i64, Record)>, StoreError> {
        let Some(row) = answer.row else { return Ok(None) };
        let wrong = || StoreError {
            message: format!("the table `{}` does not have the columns of a message store", self.table),
            is_unreachable: false,
        };
        let text = |column: &str| row.get(column).ok().flatten().cloned().ok_or_else(wrong);
        let index = text("indexId")?.parse().map_err(|_| wrong())?;
        let bytes = from_hex(&text("message")?).ok_or_else(wrong)?;
        Ok(Some((index, Record { id: text("msg_id")?, priority: None, sequence: None, bytes: bytes.into() })))
    }
}

pub(super) fn failed(error: DatabaseError) -> StoreError {
    let is_unreachable = error.kind != DatabaseErrorKind::Refused;
    StoreError { message: error.message, is_unreachable }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    text.as_bytes().chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// Releases a record whose consumer is gone.
pub(super) struct Hold {
    pub(super) table: Arc<Table>,
    pub(super) index: i64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.table.reserved().remove(&self.index);
    }
}

/// The store as a core has it.
pub(super) struct Handle(pub(super) Arc<Table>);

impl MessageStore for Handle {
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>> {
        let table = self.0.clone();
        Box::pin(async move { table.put(record).await })
    }

    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>> {
        Box::pin(self.0.clone().reserve())
    }

    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let table = self.0.clone();
        Box::pin(async move {
            let sql = format!("DELETE FROM {} WHERE indexId = ?", table.table);
            table.run(sql, vec![SqlValue::Integer(token as i64)]).await.map(drop)
        })
    }

    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        self.0.reserved().remove(&(token as i64));
        Box::pin(std::future::ready(Ok(())))
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        let table = self.0.clone();
        Box::pin(async move { table.count().await })
    }

    fn browse(&self, most: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let table = self.0.clone();
        Box::pin(async move { table.browse(most).await })
    }
}
