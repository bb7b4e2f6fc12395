//! Rows of SQLite in batches. The thread of the connection keeps the statement open between them and runs other queries of
//! the session meanwhile; queries that are open at once end in the reverse order of their beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use penstock_engine::database::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, Batch, DatabaseError, DatabaseErrorKind, RowQuery, Rows, SqlValue, Yields,
};
use penstock_engine::ports::LocalFuture;
use rusqlite::InterruptHandle;
use rusqlite::types::ValueRef;
use tokio::sync::oneshot;

use super::{Guard, Job, State, Work, bind, gone, refused};
use crate::statement::{too_many, with_returning};

/// A batch, and whether more follow.
#[derive(Default)]
pub(crate) struct Fetched {
    batch: Batch,
    has_more: bool,
}

/// The rows of a running query.
pub(crate) struct SqliteRows {
    number: u64,
    jobs: Sender<Work>,
    interrupt: Arc<InterruptHandle>,
    first: Option<Batch>,
    has_more: bool,
}

impl SqliteRows {
    pub(super) async fn open(
        jobs: Sender<Work>,
        interrupt: Arc<InterruptHandle>,
        query: RowQuery,
    ) -> Result<SqliteRows, DatabaseError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if matches!(query.yields, Yields::Call(_)) {
            return Err(DatabaseError::new(DatabaseErrorKind::Refused, "SQLite has no stored procedures"));
        }
        let (reply, outcome) = oneshot::channel();
        let job: Job = Box::new(move |state, queue| run(state, queue, number, &query, reply));
        jobs.send(Work::Job(job)).map_err(|_| gone())?;
        let mut guard = Guard(Some(&interrupt));
        let outcome = outcome.await;
        guard.0 = None;
        drop(guard);
        let Fetched { batch, has_more } = outcome.map_err(|_| gone())??;
        Ok(SqliteRows { number, jobs, interrupt, first: Some(batch), has_more })
    }

    async fn fetch(&mut self) -> Result<Option<Batch>, DatabaseError> {
        if let Some(batch) = self.first.take() {
            return Ok(Some(batch));
        }
        if !self.has_more {
            return Ok(None);
        }
        let (reply, outcome) = oneshot::channel();
        self.jobs.send(Work::Fetch(self.number, reply)).map_err(|_| gone())?;
        let mut guard = Guard(Some(&self.interrupt));
        let outcome = outcome.await;
        guard.0 = None;
        // After an error the thread has closed the statement.
        self.has_more = false;
        let Fetched { batch, has_more } = outcome.map_err(|_| gone())??;
        self.has_more = has_more;
        Ok(Some(batch))
    }
}

impl Rows for SqliteRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(self.fetch())
    }
}

impl Drop for SqliteRows {
    fn drop(&mut self) {
        if self.has_more {
            // Without the thread there is nothing to close.
            let _ = self.jobs.send(Work::Close(self.number));
        }
    }
}

type Reply = oneshot::Sender<Result<Fetched, DatabaseError>>;

/// Runs a query and stays until its last row is read or the rest is not needed.
fn run(state: &State, queue: &Receiver<Work>, number: u64, query: &RowQuery, reply: Reply) {
    let mut reply = Some(reply);
    if let Err(error) = serve(state, queue, number, query, &mut reply)
        && let Some(reply) = reply
    {
        drop(reply.send(Err(error)));
    }
}

fn serve(
    state: &State,
    queue: &Receiver<Work>,
    number: u64,
    query: &RowQuery,
    reply: &mut Option<Reply>,
) -> Result<(), DatabaseError> {
    let parts = state.texts.borrow_mut().parts(&query.query.sql);
    let mut values = query.query.values.iter();
    let mut changed = 0;
    let (last, before) = match parts.split_last() {
        Some(found) => found,
        None => return Err(DatabaseError::new(DatabaseErrorKind::Refused, "the statement is empty")),
    };
    for part in before {
        let mut statement = state.connection.prepare_cached(&part.text).map_err(refused)?;
        bind(&mut statement, part.places, &mut values)?;
        changed += super::execute(&mut statement).map_err(refused)?.1;
    }
    let text = match &query.yields {
        Yields::Keys(columns) => with_returning(&last.text, columns, "rowid AS GENERATED_KEY"),
        _ => last.text.clone(),
    };
    let mut statement = state.connection.prepare_cached(&text).map_err(refused)?;
    bind(&mut statement, last.places, &mut values)?;
    if values.next().is_some() {
        return Err(too_many());
    }
    if statement.column_count() == 0 {
        changed += statement.raw_execute().map_err(refused)? as u64;
        send(reply, Fetched { batch: Batch { changed, ..Batch::default() }, has_more: false });
        return Ok(());
    }
    let mut rows = statement.raw_query();
    let mut columns = Columns::default();
    let fetched = fetch(&mut rows, &mut columns, changed)?;
    let mut has_more = fetched.has_more;
    send(reply, fetched);
    while has_more {
        match queue.recv() {
            Ok(Work::Job(job)) => job(state, queue),
            Ok(Work::Fetch(wanted, next)) if wanted == number => {
                *reply = Some(next);
                let fetched = fetch(&mut rows, &mut columns, 0)?;
                has_more = fetched.has_more;
                send(reply, fetched);
            }
            Ok(Work::Close(closed)) if closed == number => return Ok(()),
            Ok(Work::Fetch(_, other)) => drop(other.send(Ok(Fetched::default()))),
            Ok(Work::Close(_)) => {}
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

fn send(reply: &mut Option<Reply>, fetched: Fetched) {
    if let Some(reply) = reply.take() {
        drop(reply.send(Ok(fetched)));
    }
}

/// What is known of the columns, read with the first row.
#[derive(Default)]
struct Columns {
    names: Arc<[Arc<str>]>,
    kinds: Vec<Declared>,
}

/// What the declaration of a column says beyond the class of its values.
#[derive(Clone, Copy)]
enum Declared {
    Plain,
    Boolean,
    Temporal,
}

fn declared(kind: Option<&str>) -> Declared {
    let kind = kind.unwrap_or_default().to_ascii_uppercase();
    match kind.as_str() {
        kind if kind.starts_with("BOOL") => Declared::Boolean,
        kind if kind.starts_with("DATE") || kind.starts_with("TIME") => Declared::Temporal,
        _ => Declared::Plain,
    }
}

fn fetch(rows: &mut rusqlite::Rows<'_>, columns: &mut Columns, changed: u64) -> Result<Fetched, DatabaseError> {
    let mut batch = Batch { changed, ..Batch::default() };
    let mut bytes = 0;
    while batch.rows.len() < BATCH_ROWS_MAX && bytes < BATCH_BYTES_MAX {
        let Some(row) = rows.next().map_err(refused)? else {
            batch.columns = columns.names.clone();
            return Ok(Fetched { batch, has_more: false });
        };
        if columns.kinds.is_empty() {
            let found = row.as_ref().columns();
            columns.names = found.iter().map(|column| Arc::from(column.name())).collect();
            columns.kinds = found.iter().map(|column| declared(column.decl_type())).collect();
        }
        let mut values = Vec::with_capacity(columns.kinds.len());
        for (index, kind) in columns.kinds.iter().enumerate() {
            let value = value(row.get_ref(index).map_err(refused)?, *kind);
            bytes += value.size();
            values.push(value);
        }
        batch.rows.push(values);
    }
    batch.columns = columns.names.clone();
    Ok(Fetched { batch, has_more: true })
}

fn value(value: ValueRef<'_>, kind: Declared) -> SqlValue {
    match (value, kind) {
        (ValueRef::Null, _) => SqlValue::Null,
        (ValueRef::Integer(number), Declared::Boolean) => SqlValue::Boolean(number != 0),
        (ValueRef::Integer(number), _) => SqlValue::Integer(number),
        (ValueRef::Real(number), _) => SqlValue::Double(number),
        (ValueRef::Text(text), Declared::Temporal) => SqlValue::Temporal(String::from_utf8_lossy(text).into()),
        (ValueRef::Text(text), _) => SqlValue::Text(String::from_utf8_lossy(text).into()),
        (ValueRef::Blob(bytes), _) => SqlValue::Bytes(bytes::Bytes::copy_from_slice(bytes)),
    }
}
