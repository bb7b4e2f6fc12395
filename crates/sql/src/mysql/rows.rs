//! Rows of MySQL in batches, the keys that an INSERT generated, and the results of stored procedures.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{Either, select};
use mysql_async::prelude::Queryable;
use mysql_async::{BinaryProtocol, Error, QueryResult};
use penstock_engine::database::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, Batch, CallPlace, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows,
    SqlValue, Yields,
};
use penstock_engine::ports::LocalFuture;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{Killer, MysqlConnection, execute, groups, params, refused, value};
use crate::connection::ReadRows;
use crate::procedure::Call;

/// Rows that are read before another statement of the session runs, since the protocol has no second statement beside a
/// running one. JDBC keeps all rows of any query in memory.
const INTERLEAVED_BYTES_MAX: usize = 64 << 20;

/// The column of generated keys, as JDBC names it.
const GENERATED_KEY: &str = "GENERATED_KEY";

/// What is read from the result of the last statement.
enum Reading {
    Rows,
    /// The keys that it generated, in a column of this name.
    Keys(Arc<str>),
    /// The first result set, or the values of parameters with these names.
    Call(Vec<Arc<str>>),
}

type Names = Arc<[Arc<str>]>;

impl MysqlConnection {
    pub(crate) async fn rows(&mut self, query: RowQuery) -> Result<Box<dyn Rows>, DatabaseError> {
        let RowQuery { query, is_interleaved, yields, .. } = query;
        let (query, reading) = match yields {
            Yields::Rows => (query, Reading::Rows),
            Yields::Keys(columns) => {
                (query, Reading::Keys(columns.into_iter().next().unwrap_or_else(|| GENERATED_KEY.into())))
            }
            Yields::Call(places) => call(&query, &places)?,
        };
        let parts = self.texts.parts(&query.sql);
        let mut groups = groups(&parts, &query.values)?;
        let conn = self.conn()?;
        // One batch is under way while another is read.
        let (sender, receiver) = channel(1);
        let killer = self.killer.clone();
        self.killer.handle.spawn(async move {
            let mut conn = conn.lock().await;
            let feed = Feed { sender: &sender, killer: &killer };
            let outcome = async {
                let Some((last, before)) = parts.split_last() else { return Ok(()) };
                let mut changed = 0;
                for part in before {
                    changed += execute(&mut conn, part, groups.next().unwrap_or_default()).await?.1;
                }
                let values = params(groups.next().unwrap_or_default());
                let result = conn.exec_iter(last.text.as_str(), values).await?;
                feed.send_all(result, reading, changed).await
            };
            if let Err(error) = outcome.await {
                let _ = sender.send(Err(error)).await;
            }
            if sender.is_closed() {
                // A kill that came after its statement ends this one.
                let _ = conn.ping().await;
            }
        });
        let mut rows = StreamedRows { first: None, receiver, is_broken: self.is_broken.clone() };
        rows.first = match rows.receive().await {
            Ok(first) => first,
            Err(error) => return Err(self.failed(&error)),
        };
        if !is_interleaved {
            return Ok(Box::new(rows));
        }
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = rows.next().await? {
            bytes += batch.rows.iter().flatten().map(SqlValue::size).sum::<usize>();
            if bytes > INTERLEAVED_BYTES_MAX {
                let text = "the rows of a query with nested queries exceed 64 MB, which MySQL has to send at once";
                return Err(DatabaseError::new(DatabaseErrorKind::Refused, text));
            }
            batches.push(batch);
        }
        Ok(Box::new(ReadRows::new(batches)))
    }
}

/// A call as MySQL writes it, and what its result is.
fn call(query: &Query, places: &[CallPlace]) -> Result<(Query, Reading), DatabaseError> {
    let Some(call) = Call::parse(&query.sql) else {
        let text = format!("`{}` is not a call of a stored procedure", query.sql);
        return Err(DatabaseError::new(DatabaseErrorKind::Refused, text));
    };
    if call.has_result {
        let name = match places.first() {
            Some(CallPlace::Out(name) | CallPlace::InOut(name)) => name.replace('`', "``"),
            _ => "result".to_owned(),
        };
        let sql = format!("SELECT {}({}) AS `{name}`", call.name, call.arguments);
        return Ok((Query { sql: sql.into(), values: query.values.clone() }, Reading::Rows));
    }
    let mut given = query.values.iter().cloned();
    let values = places.iter().map(|place| match place {
        CallPlace::Out(_) => SqlValue::Null,
        CallPlace::In | CallPlace::InOut(_) => given.next().unwrap_or(SqlValue::Null),
    });
    let values = values.collect();
    let written = places.iter().filter_map(|place| match place {
        CallPlace::In => None,
        CallPlace::Out(name) | CallPlace::InOut(name) => Some(name.clone()),
    });
    let sql = format!("CALL {}({})", call.name, call.arguments);
    Ok((Query { sql: sql.into(), values }, Reading::Call(written.collect())))
}

/// The way of batches to their reader.
struct Feed<'f> {
    sender: &'f Sender<Result<Batch, Error>>,
    killer: &'f Killer,
}

type Binary<'r> = QueryResult<'r, 'static, BinaryProtocol>;

impl Feed<'_> {
    async fn send_all(&self, mut result: Binary<'_>, reading: Reading, changed: u64) -> Result<(), Error> {
        match reading {
            Reading::Rows => self.send_set(&mut result, changed).await?,
            Reading::Keys(column) => self.send(keys(&result, column, changed)).await,
            Reading::Call(names) if names.is_empty() => {
                skip_to_columns(&mut result).await?;
                self.send_set(&mut result, changed).await?;
            }
            Reading::Call(names) => {
                for batch in with_parameters(&mut result, &names).await? {
                    self.send(batch).await;
                }
            }
        }
        result.drop_result().await
    }

    /// Sends the rows of the result set in batches, an empty one included, until its end or until they have no reader.
    async fn send_set(&self, result: &mut Binary<'_>, before: u64) -> Result<(), Error> {
        let columns = names(result);
        let changed = before + if columns.is_empty() { result.affected_rows() } else { 0 };
        let mut batch = Batch { columns: columns.clone(), changed, ..Batch::default() };
        let mut bytes = 0;
        while let Some(row) = self.next_row(result).await? {
            let values = value::values(row);
            bytes += values.iter().map(SqlValue::size).sum::<usize>();
            batch.rows.push(values);
            if batch.rows.len() >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX {
                let full = std::mem::replace(&mut batch, Batch { columns: columns.clone(), ..Batch::default() });
                bytes = 0;
                self.send(full).await;
            }
        }
        self.send(batch).await;
        Ok(())
    }

    /// The next row. The server is stopped when the reader is gone.
    async fn next_row(&self, result: &mut Binary<'_>) -> Result<Option<mysql_async::Row>, Error> {
        let next = pin!(result.next());
        match select(next, pin!(self.sender.closed())).await {
            Either::Left((row, _)) => row,
            Either::Right(((), next)) => {
                self.killer.kill().await;
                next.await?;
                Ok(None)
            }
        }
    }

    async fn send(&self, batch: Batch) {
        // Without a reader the next row ends the statement.
        let _ = self.sender.send(Ok(batch)).await;
    }
}

fn names(result: &Binary<'_>) -> Names {
    result.columns_ref().iter().map(|column| Arc::from(column.name_str())).collect()
}

/// The keys of the rows of an INSERT: the first, and those that follow it.
fn keys(result: &Binary<'_>, column: Arc<str>, before: u64) -> Batch {
    let changed = result.affected_rows();
    let first = result.last_insert_id().filter(|first| *first > 0);
    let keys = first.map(|first| first..first.saturating_add(changed.max(1))).into_iter().flatten();
    let rows = keys.map(|key| vec![SqlValue::Integer(key as i64)]).take(BATCH_ROWS_MAX).collect();
    Batch { columns: Arc::from([column]), rows, changed: before + changed }
}

/// Passes over results without columns.
async fn skip_to_columns(result: &mut Binary<'_>) -> Result<(), Error> {
    while result.columns_ref().is_empty() && !result.is_empty() {
        result.next().await?;
    }
    Ok(())
}

/// The rows of the first result set, each with the values of the parameters; or those values alone. The server sends them
/// last, so the rows are kept until then.
async fn with_parameters(result: &mut Binary<'_>, parameters: &[Arc<str>]) -> Result<Vec<Batch>, Error> {
    let mut sets: Vec<(Names, Vec<Vec<SqlValue>>)> = Vec::new();
    let mut bytes = 0;
    while !result.is_empty() {
        let columns = names(result);
        let mut rows = Vec::new();
        while let Some(row) = result.next().await? {
            let values = value::values(row);
            // Beyond the limit, and in sets that are not read, rows are passed over.
            bytes += values.iter().map(SqlValue::size).sum::<usize>();
            if bytes > INTERLEAVED_BYTES_MAX {
                let text = "the result of a stored procedure with output parameters exceeds 64 MB";
                return Err(Error::Other(text.into()));
            }
            rows.push(values);
        }
        if !columns.is_empty() {
            sets.push((columns, rows));
        }
    }
    let Some((_, values)) = sets.pop() else { return Ok(vec![Batch::default()]) };
    let values = values.into_iter().next().unwrap_or_default();
    let Some((columns, rows)) = sets.into_iter().next() else {
        return Ok(vec![Batch { columns: parameters.into(), rows: vec![values], changed: 0 }]);
    };
    let columns: Names = columns.iter().chain(parameters).cloned().collect();
    let rows = rows.into_iter().map(|row| row.into_iter().chain(values.iter().cloned()).collect()).collect();
    Ok(vec![Batch { columns, rows, changed: 0 }])
}

/// Rows as the server sends them.
struct StreamedRows {
    first: Option<Batch>,
    receiver: Receiver<Result<Batch, Error>>,
    is_broken: Arc<AtomicBool>,
}

impl StreamedRows {
    async fn receive(&mut self) -> Result<Option<Batch>, Error> {
        self.receiver.recv().await.transpose()
    }
}

impl Rows for StreamedRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(async move {
            if let Some(first) = self.first.take() {
                return Ok(Some(first));
            }
            self.receive().await.map_err(|error| {
                if error.is_fatal() {
                    self.is_broken.store(true, Ordering::Relaxed);
                }
                refused(&error)
            })
        })
    }
}
