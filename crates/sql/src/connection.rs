//! A connection to any of the databases.

use std::time::Duration;

use penstock_engine::database::{Answer, Batch, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows};
use penstock_engine::ports::LocalFuture;

use super::background::ServerConnector;
use super::mapping::Resolved;
use super::mysql::MysqlConnection;
use super::postgres::PostgresConnection;
use super::sqlite::{self, SqliteConnection};

/// How connections are made.
pub(crate) enum Connector {
    Sqlite(sqlite::Place),
    Postgres(ServerConnector),
    Mysql(ServerConnector),
}

impl Connector {
    pub(crate) async fn connect(&self, to: &Resolved) -> Result<Connection, DatabaseError> {
        Ok(match self {
            Connector::Sqlite(place) => Connection::Sqlite(SqliteConnection::open(place.clone()).await?),
            Connector::Postgres(connector) => Connection::Postgres(Box::new(connector.connect_postgres(to).await?)),
            Connector::Mysql(connector) => Connection::Mysql(Box::new(connector.connect_mysql(to).await?)),
        })
    }
}

/// A connection. Dropping a future before its end drops the connection too, because its state is unknown.
pub(crate) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(Box<PostgresConnection>),
    Mysql(Box<MysqlConnection>),
}

impl Connection {
    pub(crate) async fn run(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.run(query).await,
            Connection::Postgres(connection) => connection.run(query).await,
            Connection::Mysql(connection) => connection.run(query).await,
        }
    }

    pub(crate) async fn rows(&mut self, query: RowQuery) -> Result<Box<dyn Rows>, DatabaseError> {
        Ok(match self {
            Connection::Sqlite(connection) => Box::new(connection.rows(query).await?),
            Connection::Postgres(connection) => connection.rows(query).await?,
            Connection::Mysql(connection) => connection.rows(query).await?,
        })
    }

    pub(crate) async fn begin(&mut self, to: &Resolved) -> Result<(), DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.begin().await,
            Connection::Postgres(connection) => connection.begin(to.isolation).await,
            Connection::Mysql(connection) => connection.begin(to.isolation).await,
        }
    }

    pub(crate) async fn end(&mut self, keep: bool) -> Result<(), DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.end(keep).await,
            Connection::Postgres(connection) => connection.end(keep).await,
            Connection::Mysql(connection) => connection.end(keep).await,
        }
    }

    /// Whether a connection that was idle still leads to its database. SQLite needs no connection, and the client of
    /// PostgreSQL sees the end of one at once.
    pub(crate) async fn is_alive(&mut self) -> bool {
        match self {
            Connection::Sqlite(_) | Connection::Postgres(_) => self.is_usable(),
            Connection::Mysql(connection) => connection.is_alive().await,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_usable(),
            Connection::Postgres(connection) => connection.is_usable(),
            Connection::Mysql(connection) => connection.is_usable(),
        }
    }
}

/// Rows that were all read.
pub(crate) struct ReadRows(std::vec::IntoIter<Batch>);

impl ReadRows {
    pub(crate) fn new(batches: Vec<Batch>) -> ReadRows {
        ReadRows(batches.into_iter())
    }
}

impl Rows for ReadRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(std::future::ready(Ok(self.0.next())))
    }
}

/// Waits for a query, as long as one may take.
pub(crate) async fn bounded<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(DatabaseError::new(
            DatabaseErrorKind::TimedOut,
            format!("the database did not respond within {} s", limit.as_secs_f64()),
        )),
    }
}
