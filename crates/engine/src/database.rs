//! Databases as a flow sees them: what `dblookup`, `dbreport` and `transaction` ask for, and the port that answers.
//!
//! A flow names a [`DataSource`]; which database that is, a transport knows. Answers are futures: nothing here waits.

mod rows;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::ports::LocalFuture;

pub use rows::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, Batch, CallPlace, RowQuery, Rows, Yields};

/// A database as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSource {
    /// Where it is.
    pub location: Location,
    /// What an artifact says about a name. The server's configuration comes first.
    pub definition: Option<Arc<DataSource>>,
    /// The credentials.
    pub user: Option<Arc<str>>,
    /// The password.
    pub password: Option<Secret>,
    /// How its connections are kept.
    pub pool: PoolSettings,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// A data source that is defined elsewhere: `jdbc/OrdersDB`.
    Name(Arc<str>),
    /// An address: `jdbc:postgresql://host/orders`.
    Url(Arc<str>),
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<Arc<str>>) -> Secret {
        Secret(text.into())
    }

    /// The text, to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// How connections to a database are kept. What is not said is the implementation's to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// `maxactive`: connections at once.
    pub connections_max: Option<usize>,
    /// `maxidle`: connections that are kept for later.
    pub idle_max: Option<usize>,
    /// `maxwait`: how long a message waits for a connection that others use.
    pub wait: Option<Duration>,
    /// `isolation` of transactions.
    pub isolation: Option<Isolation>,
}

/// How transactions see each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// `Connection.TRANSACTION_READ_UNCOMMITTED`.
    ReadUncommitted,
    /// `Connection.TRANSACTION_READ_COMMITTED`.
    ReadCommitted,
    /// `Connection.TRANSACTION_REPEATABLE_READ`.
    RepeatableRead,
    /// `Connection.TRANSACTION_SERIALIZABLE`.
    Serializable,
}

impl fmt::Display for DataSource {
    /// The name, or the address without what is secret in it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Location::Name(name) => out.write_str(name),
            Location::Url(url) => out.write_str(&without_secrets(url)),
        }
    }
}

/// An address that may be shown: passwords between `:` and `@`, and in parameters, are left out.
pub fn without_secrets(url: &str) -> String {
    let (address, parameters) = match url.find(['?', ';']) {
        Some(at) => url.split_at(at),
        None => (url, ""),
    };
    let mut out = match (address.find("//"), address.rfind('@')) {
        (Some(slashes), Some(at)) if at > slashes => {
            let user = &address[slashes + 2..at];
            let user = user.split_once(':').map_or(user.to_owned(), |(name, _)| format!("{name}:***"));
            format!("{}{user}{}", &address[..slashes + 2], &address[at..])
        }
        _ => address.to_owned(),
    };
    for parameter in parameters.split_inclusive(['?', ';', '&']) {
        match parameter.split_once('=') {
            Some((name, value)) if name.to_ascii_lowercase().contains("password") => {
                let end = value.chars().last().filter(|last| matches!(last, '?' | ';' | '&'));
                out.push_str(&format!("{name}=***"));
                out.extend(end);
            }
            _ => out.push_str(parameter),
        }
    }
    out
}

/// A value bound to a place in a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// Nothing.
    Null,
    /// `CHAR`, `VARCHAR`, `LONGVARCHAR`.
    Text(Arc<str>),
    /// `TINYINT`, `SMALLINT`, `INTEGER`, `BIGINT`.
    Integer(i64),
    /// `REAL`, `FLOAT`, `DOUBLE`.
    Double(f64),
    /// `NUMERIC`, `DECIMAL`: a number with all its digits.
    Decimal(Arc<str>),
    /// `BIT`.
    Boolean(bool),
    /// `BLOB`, `BYTEA`. In a row they are hexadecimal digits.
    Bytes(bytes::Bytes),
    /// `DATE`, `TIME`, `TIMESTAMP`: as ISO 8601 writes them with a space in the middle.
    Temporal(Arc<str>),
}

/// A statement with its values.
#[derive(Debug, Clone)]
pub struct Query {
    /// The text with a `?` for each value; several statements may stand in it, divided by `;`.
    pub sql: Arc<str>,
    /// The values in order.
    pub values: Vec<SqlValue>,
}

/// What came of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The first row, when there is one.
    pub row: Option<Row>,
    /// Rows that were changed.
    pub changed: u64,
}

/// A row, its values written as Java writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Names and values in order; `None` is null.
    pub columns: Vec<(Arc<str>, Option<Arc<str>>)>,
}

impl Row {
    /// The value of a column by its number from 1, or by its name in any case. `Err` when there is no such column.
    pub fn get(&self, column: &str) -> Result<Option<&Arc<str>>, String> {
        let found = match column.trim().parse::<usize>() {
            Ok(number) => number.checked_sub(1).and_then(|index| self.columns.get(index)),
            Err(_) => self.columns.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)),
        };
        match found {
            Some((_, value)) => Ok(value.as_ref()),
            None => {
                let names: Vec<&str> = self.columns.iter().map(|(name, _)| &**name).collect();
                Err(format!("the result has no column `{column}`, it has `{}`", names.join("`, `")))
            }
        }
    }
}

/// Why a database operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseError {
    /// What kind of failure.
    pub kind: DatabaseErrorKind,
    /// What happened, without secrets.
    pub message: String,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseErrorKind {
    /// The configuration leads to no database.
    Undefined,
    /// It cannot be reached, or the connection broke.
    Unreachable,
    /// All connections are in use.
    Busy,
    /// It took too long.
    TimedOut,
    /// It refused the statement.
    Refused,
}

impl DatabaseError {
    /// A failure with its text.
    pub fn new(kind: DatabaseErrorKind, message: impl Into<String>) -> DatabaseError {
        DatabaseError { kind, message: message.into() }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// The databases there are. One for the whole process.
pub trait Databases: Send + Sync {
    /// Runs a query on a connection of its own; what it changes is committed.
    fn run(&self, source: &Arc<DataSource>, query: Query) -> LocalFuture<'static, Result<Answer, DatabaseError>>;

    /// Begins a transaction. Databases join it with their first statement.
    fn begin(&self) -> Rc<dyn Transaction>;

    /// Begins a session without a transaction: what each query changes is committed by itself.
    fn session(&self) -> Rc<dyn Transaction>;

    /// Which SQL a database understands.
    fn dialect(&self, source: &DataSource) -> Result<Dialect, DatabaseError>;
}

/// The kinds of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

/// A transaction over the databases that take part in it. Dropped before its end it is rolled back.
pub trait Transaction {
    /// Runs a query within it.
    fn run(&self, source: &Arc<DataSource>, query: Query) -> LocalFuture<'static, Result<Answer, DatabaseError>>;

    /// Runs a query within it whose rows are read in batches.
    fn rows(
        &self,
        source: &Arc<DataSource>,
        query: RowQuery,
    ) -> LocalFuture<'static, Result<Box<dyn Rows>, DatabaseError>>;

    /// Whether that database takes part already.
    fn includes(&self, source: &DataSource) -> bool;

    /// Why a query beside it could only wait for its end, which its message would then never reach.
    fn obstacle(&self, source: &DataSource, query: &Query) -> Option<DatabaseError>;

    /// Keeps what was changed.
    fn commit(&self) -> LocalFuture<'static, Result<(), DatabaseError>>;

    /// Takes back what was changed.
    fn rollback(&self) -> LocalFuture<'static, Result<(), DatabaseError>>;
}

/// The transactions of a message.
#[derive(Clone, Default)]
pub struct Transactions {
    /// The one that statements run in.
    pub active: Option<Rc<dyn Transaction>>,
    /// The one that was set aside.
    pub suspended: Option<Rc<dyn Transaction>>,
}

impl Transactions {
    /// Whether there is one, active or set aside.
    pub fn any(&self) -> bool {
        self.active.is_some() || self.suspended.is_some()
    }

    /// Why a query outside of them can not run before they end.
    pub fn obstacle(&self, source: &DataSource, query: &Query) -> Option<DatabaseError> {
        [&self.active, &self.suspended]
            .into_iter()
            .flatten()
            .find_map(|transaction| transaction.obstacle(source, query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (url, expected) in [
            ("jdbc:postgresql://h:5432/d", "jdbc:postgresql://h:5432/d"),
            ("postgres://anna:s:e@c@h/d", "postgres://anna:***@h/d"),
            ("jdbc:postgresql://h/d?user=a&password=b&ssl=true", "jdbc:postgresql://h/d?user=a&password=***&ssl=true"),
            ("jdbc:sqlserver://h;trustStorePassword=x", "jdbc:sqlserver://h;trustStorePassword=***"),
            ("jdbc:h2:./x;AUTO_SERVER=TRUE", "jdbc:h2:./x;AUTO_SERVER=TRUE"),
        ] {
            assert_eq!(without_secrets(url), expected);
        }
        assert_eq!(format!("{:?}", Secret::new("x")), "***");
    }

    #[test]
    fn columns_are_found_by_number_and_by_name() {
        let row = Row { columns: vec![("ID".into(), Some("7".into())), ("name".into(), None)] };
        assert_eq!(row.get("1").unwrap().map(|value| &**value), Some("7"));
        assert_eq!(row.get("id").unwrap().map(|value| &**value), Some("7"));
        assert_eq!(row.get("NAME"), Ok(None));
        for absent in ["0", "3", "price"] {
            assert_eq!(row.get(absent), Err(format!("the result has no column `{absent}`, it has `ID`, `name`")));
        }
    }
}
