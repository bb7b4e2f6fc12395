//! A connection to any of the databases.

use std::time::Duration;

use penstock_engine::database::{Answer, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows};

use super::mapping::Resolved;
use super::postgres::{self, PostgresConnection};
use super::sqlite::{self, SqliteConnection};

/// How connections are made.
pub(super) enum Connector {
    Sqlite(sqlite::Place),
    Postgres(postgres::Connector),
}

impl Connector {
    pub(super) async fn connect(&self, to: &Resolved) -> Result<Connection, DatabaseError> {
        Ok(match self {
            Connector::Sqlite(place) => Connection::Sqlite(SqliteConnection::open(place.clone()).await?),
            Connector::Postgres(connector) => Connection::Postgres(Box::new(connector.connect(to).await?)),
        })
    }
}

/// A connection. Dropping a future before its end drops the connection too, because its state is unknown.
pub(super) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(Box<PostgresConnection>),
}

impl Connection {
    pub(super) async fn run(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.run(query).await,
            Connection::Postgres(connection) => connection.run(query).await,
        }
    }

    pub(super) async fn rows(&mut self, query: RowQuery) -> Result<Box<dyn Rows>, DatabaseError> {
        Ok(match self {
            Connection::Sqlite(connection) => Box::new(connection.rows(query).await?),
            Connection::Postgres(connection) => connection.rows(query).await?,
        })
    }

    pub(super) async fn begin(&mut self, to: &Resolved) -> Result<(), DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.begin().await,
            Connection::Postgres(connection) => connection.begin(to.isolation).await,
        }
    }

    pub(super) async fn end(&mut self, keep: bool) -> Result<(), DatabaseError> {
        match self {
            Connection::Sqlite(connection) => connection.end(keep).await,
            Connection::Postgres(connection) => connection.end(keep).await,
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_usable(),
            Connection::Postgres(connection) => connection.is_usable(),
        }
    }
}

/// Waits for a query, as long as one may take.
pub(super) async fn bounded<T>(
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
