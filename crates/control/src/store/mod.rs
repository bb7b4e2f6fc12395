//! What the control plane keeps: versioned objects, their files, tokens and the audit log, in SQLite.
//!
//! One connection writes, so a change sees nothing but its own transaction; others read at the same time (write-ahead log).
//! Every row has its organization. An object is a JSON document beside the columns that are searched; which columns and
//! documents there are is in `schema.rs`, and all statements are in this folder.
//!
//! Start reading at [`Store::change`] and [`Transaction`].

pub(crate) mod backup;
mod files;
mod object;
mod schema;
mod search;
mod tickets;
mod tokens;
mod touched;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::problem::Problem;
pub(crate) use files::File;
pub(crate) use object::{Kind, LISTED_STATES, Object, Order};
pub(crate) use search::{Filter, Term};
pub(crate) use tickets::{Presented, Ticket, TicketKind};
pub(crate) use tokens::RefreshToken;
pub(crate) use touched::Touched;

const DATABASE_FILE: &str = "control.sqlite";

/// How long a statement waits for a lock of another process, such as a backup.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Connections for reading that are kept open: as many as requests are answered at once.
const READERS_MAX: usize = 8;

/// Statements that a connection keeps compiled.
const STATEMENTS_MAX: usize = 128;

/// The database.
pub(crate) struct Store {
    file: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    /// What committed changes touched that is not published yet.
    unpublished: Mutex<Touched>,
}

impl Store {
    /// Opens the database of a folder, and brings its schema up to date.
    pub(crate) fn open(folder: &Path) -> Result<Store, String> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = folder.join(DATABASE_FILE);
        let failed = |error: String| format!("`{}`: {error}", file.display());
        // Only its owner may read what is in it: SQLite gives its other files the rights of this one.
        let created = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
        created.map_err(|error| failed(error.to_string()))?;
        let mut writer = connect(&file).map_err(|error| failed(error.to_string()))?;
        writer.pragma_update(None, "journal_mode", "WAL").map_err(|error| failed(error.to_string()))?;
        // A change that was acknowledged survives a failure of power.
        writer.pragma_update(None, "synchronous", "FULL").map_err(|error| failed(error.to_string()))?;
        schema::migrate(&mut writer).map_err(|error| failed(error.to_string()))?;
        Ok(Store { file, writer: Mutex::new(writer), readers: Mutex::default(), unpublished: Mutex::default() })
    }

    /// Runs queries on a consistent state.
    pub(crate) fn read<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut connection = match lock(&self.readers).pop() {
            Some(connection) => connection,
            None => connect(&self.file)?,
        };
        let result = (|| {
            let inner = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            run(&Transaction { inner, touched: RefCell::default() })
        })();
        let mut readers = lock(&self.readers);
        if readers.len() < READERS_MAX {
            readers.push(connection);
        }
        result
    }

    /// Changes something: all of it, or nothing when `run` fails.
    pub(crate) fn change<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        self.change_and_publish(run, |_, _| Ok(())).map(|(result, ())| result)
    }

    /// Changes something that others know. `prepare` takes from what was touched, now and since the last time, what it
    /// publishes; when it fails, nothing is changed.
    pub(crate) fn change_and_publish<T, P>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>,
        prepare: impl FnOnce(&Transaction<'_>, &mut Touched) -> Result<P, Problem>,
    ) -> Result<(T, P), Problem> {
        let mut writer = lock(&self.writer);
        let inner = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let transaction = Transaction { inner, touched: RefCell::default() };
        let result = run(&transaction)?;
        let mut touched = lock(&self.unpublished).clone();
        touched.merge(transaction.touched.take());
        let prepared = prepare(&transaction, &mut touched)?;
        transaction.inner.commit()?;
        *lock(&self.unpublished) = touched;
        Ok((result, prepared))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Statements that belong together.
pub(crate) struct Transaction<'c> {
    inner: rusqlite::Transaction<'c>,
    touched: RefCell<Touched>,
}

impl Transaction<'_> {
    /// Notes who did what.
    pub(crate) fn audit(
        &self,
        organization: &str,
        user: &str,
        action: &str,
        kind: Kind,
        id: &str,
    ) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO audit (time_ms, organization, user, action, kind, object) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        statement.execute((crate::clock::now_ms(), organization, user, action, kind.name(), id))?;
        Ok(())
    }
}

/// A folder for the store, for tests of this crate.
#[cfg(test)]
pub(crate) fn scratch(name: &str) -> Scratch {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("penstock-control-{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    Scratch(folder)
}

/// A folder that is removed at the end.
#[cfg(test)]
pub(crate) struct Scratch(pub(crate) PathBuf);

#[cfg(test)]
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
