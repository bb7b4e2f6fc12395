//! SQLite: a thread for each connection, because it blocks.

mod rows;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use penstock_engine::database::{Answer, DatabaseError, DatabaseErrorKind, Query, Row, RowQuery, SqlValue};
use penstock_message::double_to_text;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, InterruptHandle, Statement};
use tokio::sync::oneshot;

use super::statement::{Places, Texts, too_few, too_many};
use super::written::hex;
use rows::{Fetched, SqliteRows};

/// How long a statement waits for a lock: that of another process, or of readers who stand in the way of a commit. Writers
/// of this process wait for their turn before they take a connection.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Where a database lies.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A file of the user's.
    File(PathBuf),
    /// A file that lasts as long as this process.
    StandIn(PathBuf),
}

/// A folder for the files of this process, made when the first is needed and removed at the end.
#[derive(Default)]
pub(crate) struct Folder {
    path: Mutex<Option<PathBuf>>,
}

impl Folder {
    /// The file of a label.
    pub(crate) fn file(&self, label: &str) -> Result<PathBuf, DatabaseError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &*path {
            Some(folder) => folder.clone(),
            None => {
                use std::os::unix::fs::DirBuilderExt;
                let name = format!("penstock-sql-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
                let folder = std::env::temp_dir().join(name);
                // An existing folder belongs to another process, or to one that was killed.
                let _ = std::fs::remove_dir_all(&folder);
                std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| {
                    DatabaseError::new(
                        DatabaseErrorKind::Unreachable,
                        format!("the folder `{}` for databases cannot be made: {error}", folder.display()),
                    )
                })?;
                path.insert(folder).clone()
            }
        };
        let name: String = label
            .bytes()
            .map(|byte| if byte.is_ascii_alphanumeric() { (byte as char).to_string() } else { format!("_{byte:02x}") })
            .collect();
        // File systems end names at 255 bytes.
        Ok(folder.join(format!("{}.sqlite", &name[name.len().saturating_sub(200)..])))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(folder) = self.path.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // A failure to remove is ignored: the system cleans temporary files.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Something to run on the thread, which may take further work from its queue.
pub(crate) type Job = Box<dyn FnOnce(&State, &Receiver<Work>) + Send>;

/// A job of a thread.
pub(crate) enum Work {
    /// Something to run.
    Job(Job),
    /// More rows of the query with this number.
    Fetch(u64, oneshot::Sender<Result<Fetched, DatabaseError>>),
    /// The rest of the rows is not needed.
    Close(u64),
}

/// A connection, as those who await it hold it.
pub(crate) struct SqliteConnection {
    jobs: Sender<Work>,
    interrupt: Arc<InterruptHandle>,
}

/// What the thread holds.
pub(crate) struct State {
    connection: Connection,
    texts: RefCell<Texts>,
}

/// Interrupts the connection, when its future is dropped.
pub(crate) struct Guard<'c>(Option<&'c InterruptHandle>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(interrupt) = self.0 {
            interrupt.interrupt();
        }
    }
}

impl SqliteConnection {
    pub(crate) async fn open(place: Place) -> Result<SqliteConnection, DatabaseError> {
        let (jobs, queue) = channel::<Work>();
        let (opened, outcome) = oneshot::channel();
        let run = move || {
            let connection = match open(&place) {
                Ok(connection) => connection,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok(Arc::new(connection.get_interrupt_handle()))).is_err() {
                return;
            }
            let state = State { connection, texts: RefCell::new(Texts::new(Places::QuestionMarks)) };
            while let Ok(work) = queue.recv() {
                match work {
                    Work::Job(job) => job(&state, &queue),
                    Work::Fetch(_, reply) => drop(reply.send(Ok(Fetched::default()))),
                    Work::Close(_) => {}
                }
            }
        };
        std::thread::Builder::new().name("sqlite".to_owned()).spawn(run).map_err(|error| {
            DatabaseError::new(DatabaseErrorKind::Unreachable, format!("no thread for SQLite: {error}"))
        })?;
        let interrupt = outcome.await.map_err(|_| gone())??;
        Ok(SqliteConnection { jobs, interrupt })
    }

    /// Runs something on the thread.
    async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&State) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (done, outcome) = oneshot::channel();
        let job: Job = Box::new(move |state, _| drop(done.send(work(state))));
        self.jobs.send(Work::Job(job)).map_err(|_| gone())?;
        let mut guard = Guard(Some(&self.interrupt));
        let outcome = outcome.await;
        guard.0 = None;
        outcome.map_err(|_| gone())?
    }

    pub(crate) async fn run(&self, query: &Query) -> Result<Answer, DatabaseError> {
        let query = query.clone();
        self.on_thread(move |state| run(state, &query)).await
    }

    pub(crate) async fn rows(&self, query: RowQuery) -> Result<SqliteRows, DatabaseError> {
        SqliteRows::open(self.jobs.clone(), self.interrupt.clone(), query).await
    }

    pub(crate) async fn begin(&self) -> Result<(), DatabaseError> {
        // Immediate: two transactions that read first and then both write could only fail.
        self.on_thread(|state| state.connection.execute_batch("BEGIN IMMEDIATE").map_err(refused)).await
    }

    pub(crate) async fn end(&self, keep: bool) -> Result<(), DatabaseError> {
        self.on_thread(move |state| {
            if !keep && state.connection.is_autocommit() {
                // Some errors have rolled back already.
                return Ok(());
            }
            state.connection.execute_batch(if keep { "COMMIT" } else { "ROLLBACK" }).map_err(refused)
        })
        .await
    }

    /// The thread ends with its channel, so it is there.
    pub(crate) fn is_usable(&self) -> bool {
        true
    }
}

fn open(place: &Place) -> Result<Connection, DatabaseError> {
    let (path, is_stand_in) = match place {
        Place::File(path) => (path, false),
        Place::StandIn(path) => (path, true),
    };
    let prepare = || {
        let connection = Connection::open(path)?;
        connection.busy_timeout(LOCK_WAIT)?;
        if is_stand_in {
            // Readers and a writer do not wait for each other; nothing has to survive the machine.
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")?;
        }
        Ok(connection)
    };
    prepare().map_err(|error: rusqlite::Error| {
        let text = format!("the SQLite database `{}` cannot be opened: {error}", path.display());
        DatabaseError::new(DatabaseErrorKind::Unreachable, text)
    })
}

fn bind<'v>(
    statement: &mut Statement<'_>,
    places: usize,
    values: &mut impl Iterator<Item = &'v SqlValue>,
) -> Result<(), DatabaseError> {
    for index in 1..=places {
        let value = values.next().ok_or_else(too_few)?;
        statement.raw_bind_parameter(index, bound(value)).map_err(refused)?;
    }
    Ok(())
}

fn run(state: &State, query: &Query) -> Result<Answer, DatabaseError> {
    let parts = state.texts.borrow_mut().parts(&query.sql);
    let mut values = query.values.iter();
    let mut answer = Answer::default();
    for part in parts.iter() {
        let mut statement = state.connection.prepare_cached(&part.text).map_err(refused)?;
        bind(&mut statement, part.places, &mut values)?;
        let (row, changed) = execute(&mut statement).map_err(refused)?;
        answer.changed += changed;
        answer.row = answer.row.or(row);
    }
    if values.next().is_some() {
        return Err(too_many());
    }
    Ok(answer)
}

/// Runs a statement to its first row, or to its end.
fn execute(statement: &mut Statement<'_>) -> rusqlite::Result<(Option<Row>, u64)> {
    if statement.column_count() == 0 {
        return Ok((None, statement.raw_execute()? as u64));
    }
    let mut rows = statement.raw_query();
    let Some(row) = rows.next()? else { return Ok((None, 0)) };
    // Read only now: the first step prepares a statement again whose table has changed.
    let columns = row.as_ref().columns();
    let mut found = Row::default();
    for (index, column) in columns.iter().enumerate() {
        let is_boolean = column.decl_type().is_some_and(|kind| kind.to_ascii_uppercase().starts_with("BOOL"));
        found.columns.push((column.name().into(), written(row.get_ref(index)?, is_boolean)));
    }
    Ok((Some(found), 0))
}

/// A value as Java writes what JDBC makes of it.
fn written(value: ValueRef<'_>, is_boolean: bool) -> Option<Arc<str>> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) if is_boolean => (if number == 0 { "false" } else { "true" }).into(),
        ValueRef::Integer(number) => number.to_string().into(),
        ValueRef::Real(number) => double_to_text(number).into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => hex(bytes).into(),
    })
}

fn bound(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Text(text) | SqlValue::Temporal(text) => Value::Text(text.to_string()),
        SqlValue::Bytes(bytes) => Value::Blob(bytes.to_vec()),
        SqlValue::Integer(number) => Value::Integer(*number),
        SqlValue::Double(number) => Value::Real(*number),
        SqlValue::Boolean(flag) => Value::Integer(i64::from(*flag)),
        // SQLite has no decimals; what a column of numbers would make of the text is made here, for expressions too.
        SqlValue::Decimal(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::Integer(number),
            (_, Ok(number)) => Value::Real(number),
            _ => Value::Text(text.to_string()),
        },
    }
}

fn refused(error: rusqlite::Error) -> DatabaseError {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => DatabaseErrorKind::Busy,
        _ => DatabaseErrorKind::Refused,
    };
    DatabaseError::new(kind, error.to_string())
}

fn gone() -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Unreachable, "the thread of the SQLite database ended")
}
