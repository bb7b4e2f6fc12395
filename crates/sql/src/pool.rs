//! The connections to one database, shared by all cores.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use penstock_engine::database::{Answer, Batch, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows};
use penstock_engine::ports::LocalFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection::{Connection, Connector, bounded};
use super::mapping::Resolved;
use super::statement::may_write;

/// An idle connection older than this is not trusted: firewalls between here and a database forget quiet ones.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// How long a message waits for its turn to write to a database that takes one writer at a time.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// The holder of its one permit may write to a database with a single writer.
pub(crate) type Turn = Arc<Semaphore>;

/// The request for a connection.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'q> {
    Query(&'q Query),
    Transaction,
}

impl Purpose<'_> {
    fn may_write(self) -> bool {
        match self {
            Purpose::Query(query) => may_write(&query.sql),
            Purpose::Transaction => true,
        }
    }
}

/// The pool of one database.
pub(crate) struct Pool {
    to: Resolved,
    connector: Connector,
    /// Absent where writers do not wait for each other.
    turn: Option<Turn>,
    /// All connections but one, when there are several: a message with a transaction may wait for another that only reads.
    transactions: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<(Instant, Connection)>>,
}

impl Pool {
    pub(crate) fn new(to: Resolved, connector: Connector, turn: Option<Turn>) -> Pool {
        let permits = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let (transactions, permits) = (permits(to.connections_max.saturating_sub(1)), permits(to.connections_max));
        Pool { to, connector, turn, transactions, permits, idle: Mutex::default() }
    }

    pub(crate) fn to(&self) -> &Resolved {
        &self.to
    }

    /// A connection, waiting while all are in use.
    pub(crate) async fn lease(self: &Arc<Pool>, purpose: Purpose<'_>) -> Result<Lease, DatabaseError> {
        // Before the connection: who waits to write must not take the connections of those who read, for whom the one
        // that writes may be waiting.
        let turn = match &self.turn {
            Some(turn) if purpose.may_write() => Some(within(TURN_WAIT, turn).await.ok_or_else(|| {
                let text =
                    "the turn to write to the SQLite database, which takes one writer at a time, did not come within";
                busy(format!("{text} {} s", TURN_WAIT.as_secs()))
            })?),
            _ => None,
        };
        let (all, limit) = (self.to.connections_max, self.to.wait_max);
        let in_use = |text: String| busy(format!("{text} were in use for {} s", limit.as_secs_f64()));
        let transaction = match purpose {
            Purpose::Transaction => Some(within(limit, &self.transactions).await.ok_or_else(|| {
                in_use(format!(
                    "the connections to the database that transactions may have, {} of {all},",
                    all.saturating_sub(1).max(1)
                ))
            })?),
            Purpose::Query(_) => None,
        };
        let permit = within(limit, &self.permits)
            .await
            .ok_or_else(|| in_use(format!("all {all} connections to the database")))?;
        let connection = match self.idle_connection().await {
            Some(connection) => connection,
            None => {
                let limit = self.to.connect_timeout;
                match tokio::time::timeout(limit, self.connector.connect(&self.to)).await {
                    Ok(connected) => connected?,
                    Err(_) => {
                        let text = format!("connecting to the database took longer than {} s", limit.as_secs_f64());
                        return Err(DatabaseError::new(DatabaseErrorKind::Unreachable, text));
                    }
                }
            }
        };
        Ok(Lease { pool: self.clone(), connection: Some(connection), _permits: [Some(permit), transaction, turn] })
    }

    async fn idle_connection(&self) -> Option<Connection> {
        while let Some(mut connection) = self.last_used() {
            let alive = tokio::time::timeout(self.to.connect_timeout, connection.is_alive());
            if alive.await == Ok(true) {
                return Some(connection);
            }
        }
        None
    }

    fn last_used(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, connection)| since.elapsed() < IDLE_MAX && connection.is_usable());
        idle.pop().map(|(_, connection)| connection)
    }
}

async fn within(limit: Duration, permits: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    tokio::time::timeout(limit, permits.clone().acquire_owned()).await.ok()?.ok()
}

fn busy(text: String) -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Busy, text)
}

/// A connection that one message uses. Dropped it is closed; [`Lease::give_back`] keeps it for the next.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    /// Absent while a query runs: if its future is dropped, the connection is too.
    connection: Option<Connection>,
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl Lease {
    pub(crate) async fn run(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        let mut connection = self.take()?;
        let outcome = bounded(self.pool.to.query_timeout, connection.run(query)).await;
        self.put(connection, &outcome);
        outcome
    }

    /// Runs a query whose rows are read in batches, each within the time of a query.
    pub(crate) async fn rows(&mut self, query: RowQuery) -> Result<Box<dyn Rows>, DatabaseError> {
        let limit = query.timeout.unwrap_or(self.pool.to.query_timeout);
        let mut connection = self.take()?;
        let outcome = bounded(limit, connection.rows(query)).await;
        self.put(connection, &outcome);
        Ok(Box::new(BoundedRows { rows: outcome?, limit }))
    }

    pub(crate) async fn begin(&mut self) -> Result<(), DatabaseError> {
        let mut connection = self.take()?;
        let outcome = bounded(self.pool.to.query_timeout, connection.begin(&self.pool.to)).await;
        self.put(connection, &outcome);
        outcome
    }

    pub(crate) async fn end(&mut self, keep: bool) -> Result<(), DatabaseError> {
        let mut connection = self.take()?;
        let outcome = bounded(self.pool.to.query_timeout, connection.end(keep)).await;
        self.put(connection, &outcome);
        outcome
    }

    /// Ends what a database needed around queries that are not in a transaction.
    pub(crate) async fn end_reading(&mut self, keep: bool) -> Result<(), DatabaseError> {
        match &self.connection {
            Some(Connection::Postgres(_)) => self.end(keep).await,
            Some(Connection::Sqlite(_) | Connection::Mysql(_)) => Ok(()),
            None => self.take().map(drop),
        }
    }

    fn take(&mut self) -> Result<Connection, DatabaseError> {
        self.connection.take().ok_or_else(|| {
            DatabaseError::new(DatabaseErrorKind::Unreachable, "the connection to the database was given up")
        })
    }

    fn put<T>(&mut self, connection: Connection, outcome: &Result<T, DatabaseError>) {
        let given_up = matches!(outcome, Err(error) if error.kind == DatabaseErrorKind::TimedOut);
        if !given_up {
            self.connection = Some(connection);
        }
    }

    /// Keeps the connection for the next message.
    pub(crate) fn give_back(mut self) {
        let Some(connection) = self.connection.take().filter(Connection::is_usable) else { return };
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.pool.to.idle_max {
            idle.push((Instant::now(), connection));
        }
    }
}

/// Rows of which each batch has to come within a time.
struct BoundedRows {
    rows: Box<dyn Rows>,
    limit: Duration,
}

impl Rows for BoundedRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(bounded(self.limit, self.rows.next()))
    }
}
