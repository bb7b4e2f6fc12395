//! MySQL and MariaDB over sockets. An operation runs as a task on the runtime of database connections, because the socket
//! belongs to it; the core awaits its outcome.

mod address;
mod rows;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{Conn, DriverError, Error, Opts, OptsBuilder, Params, QueryResult, SslOpts};
use penstock_engine::database::{Answer, DatabaseError, DatabaseErrorKind, Isolation, Query, Row, SqlValue};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::background::ServerConnector;
use super::mapping::Resolved;
use super::statement::{Places, StatementPart, Texts, too_few, too_many};
use super::tls::Verification;
use address::Encryption;
pub(crate) use address::MysqlAddress;

/// Prepared statements a connection keeps. A server has about 16,000 for all its connections.
const STATEMENTS_MAX: usize = 128;

/// The server rolled back the transaction to end a deadlock.
const ER_LOCK_DEADLOCK: u16 = 1213;

/// The statement cannot be prepared, such as the definition of a procedure.
const ER_UNSUPPORTED_PS: u16 = 1295;

impl ServerConnector {
    pub(crate) async fn connect_mysql(&self, to: &Resolved) -> Result<MysqlConnection, DatabaseError> {
        let password = to.password.as_ref().map(|password| password.0.as_str());
        let address = MysqlAddress::parse(&to.url, to.user.as_deref(), password)
            .map_err(|why| DatabaseError::new(DatabaseErrorKind::Undefined, why))?;
        let handle = self.background.handle()?;
        let attempts = self.mysql_attempts(address);
        let connected = handle.spawn(connect(attempts)).await.map_err(|_| given_up())?;
        let (conn, opts) = connected.map_err(|error| {
            let text = format!("connecting to the database failed: {}", explain(&error));
            DatabaseError::new(DatabaseErrorKind::Unreachable, text)
        })?;
        let id = conn.id();
        Ok(MysqlConnection {
            conn: Some(Arc::new(Mutex::new(conn))),
            killer: Killer { opts, id, handle },
            is_broken: Arc::default(),
            texts: Texts::new(Places::QuestionMarks),
            state: State::Idle,
        })
    }

    /// How to connect: with TLS, without, or with it first.
    fn mysql_attempts(&self, address: MysqlAddress) -> Vec<Opts> {
        let encryption = address.encryption;
        let plain = OptsBuilder::default()
            .ip_or_hostname(address.host)
            .tcp_port(address.port)
            .prefer_socket(false)
            .socket(address.socket)
            .user(address.user)
            .pass(address.password)
            .db_name(address.database)
            .stmt_cache_size(STATEMENTS_MAX)
            // JDBC counts the rows that a statement found, not those that it changed.
            .client_found_rows(true);
        let encrypted = |verification| {
            let ssl = SslOpts::default();
            let ssl = match verification {
                Verification::None => {
                    ssl.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true)
                }
                Verification::Certificate => {
                    let roots = self.tls.roots().into_iter().map(|root| root.to_vec().into());
                    ssl.with_disable_built_in_roots(true).with_root_certs(roots.collect())
                }
            };
            Opts::from(plain.clone().ssl_opts(ssl))
        };
        match encryption {
            Encryption::Never => vec![plain.into()],
            Encryption::Offered => vec![encrypted(Verification::None), plain.into()],
            Encryption::Always(verification) => vec![encrypted(verification)],
        }
    }
}

/// Connects by the first way that the server offers.
async fn connect(attempts: Vec<Opts>) -> Result<(Conn, Opts), Error> {
    let mut refused = Error::Driver(DriverError::ConnectionClosed);
    for opts in attempts {
        match Conn::new(opts.clone()).await {
            Ok(conn) => return Ok((conn, opts)),
            Err(error @ Error::Driver(DriverError::NoClientSslFlagFromServer)) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Where a connection is with its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    /// The server rolled it back by itself.
    RolledBack,
}

/// A connection.
pub(crate) struct MysqlConnection {
    /// Present until it is dropped. Locked while a task uses it.
    conn: Option<Arc<Mutex<Conn>>>,
    killer: Killer,
    is_broken: Arc<AtomicBool>,
    texts: Texts,
    state: State,
}

impl Drop for MysqlConnection {
    fn drop(&mut self) {
        // The client says goodbye to the server on the runtime that has the socket.
        let conn = self.conn.take();
        self.killer.handle.spawn(async move { drop(conn) });
    }
}

/// Ends the running statement of a connection, by another connection, as the protocol wants it.
#[derive(Clone)]
struct Killer {
    opts: Opts,
    id: u32,
    handle: Handle,
}

impl Killer {
    async fn kill(&self) {
        if let Ok(mut conn) = Conn::new(self.opts.clone()).await {
            // A statement that has ended meanwhile needs no kill.
            let _ = conn.query_drop(format!("KILL QUERY {}", self.id)).await;
            let _ = conn.disconnect().await;
        }
    }
}

/// Kills the statement when its future is dropped.
struct Guard(Option<Killer>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(killer) = self.0.take() {
            killer.handle.clone().spawn(async move { killer.kill().await });
        }
    }
}

impl MysqlConnection {
    pub(crate) async fn run(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        let parts = self.texts.parts(&query.sql);
        let mut groups = groups(&parts, &query.values)?;
        let conn = self.conn()?;
        self.work(async move {
            let mut conn = conn.lock().await;
            let mut answer = Answer::default();
            for part in parts.iter() {
                let (row, changed) = execute(&mut conn, part, groups.next().unwrap_or_default()).await?;
                answer.changed += changed;
                answer.row = answer.row.or(row);
            }
            Ok(answer)
        })
        .await
    }

    pub(crate) async fn begin(&mut self, isolation: Option<Isolation>) -> Result<(), DatabaseError> {
        let level = isolation.map(|isolation| match isolation {
            Isolation::ReadUncommitted => "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            Isolation::ReadCommitted => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            Isolation::RepeatableRead => "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            Isolation::Serializable => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        });
        let conn = self.conn()?;
        self.work(async move {
            let mut conn = conn.lock().await;
            if let Some(level) = level {
                conn.query_drop(level).await?;
            }
            conn.query_drop("START TRANSACTION").await
        })
        .await?;
        self.state = State::Open;
        Ok(())
    }

    pub(crate) async fn end(&mut self, keep: bool) -> Result<(), DatabaseError> {
        let before = std::mem::replace(&mut self.state, State::Idle);
        if before == State::Idle {
            return Ok(());
        }
        let command = if keep && before == State::Open { "COMMIT" } else { "ROLLBACK" };
        let conn = self.conn()?;
        self.work(async move { conn.lock().await.query_drop(command).await }).await?;
        if keep && before == State::RolledBack {
            let text = "the server rolled back the transaction to end a deadlock";
            return Err(DatabaseError::new(DatabaseErrorKind::Refused, text));
        }
        Ok(())
    }

    pub(crate) fn is_usable(&self) -> bool {
        let is_free = self.conn.as_ref().is_some_and(|conn| conn.try_lock().is_ok());
        is_free && self.state == State::Idle && !self.is_broken.load(Ordering::Relaxed)
    }

    pub(crate) async fn is_alive(&mut self) -> bool {
        let Ok(conn) = self.conn() else { return false };
        self.work(async move { conn.lock().await.ping().await }).await.is_ok()
    }

    fn conn(&self) -> Result<Arc<Mutex<Conn>>, DatabaseError> {
        self.conn.clone().filter(|_| !self.is_broken.load(Ordering::Relaxed)).ok_or_else(given_up)
    }

    /// Runs a task on the runtime of the connection.
    async fn work<T: Send + 'static>(
        &mut self,
        task: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let mut guard = Guard(Some(self.killer.clone()));
        let outcome = self.killer.handle.spawn(task).await;
        guard.0 = None;
        match outcome {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => {
                self.is_broken.store(true, Ordering::Relaxed);
                Err(given_up())
            }
        }
    }

    /// Notes what an error means for the connection.
    fn failed(&mut self, error: &Error) -> DatabaseError {
        match error {
            Error::Server(server) if server.code == ER_LOCK_DEADLOCK && self.state == State::Open => {
                self.state = State::RolledBack;
            }
            Error::Server(_) => {}
            _ => self.is_broken.store(true, Ordering::Relaxed),
        }
        refused(error)
    }
}

/// The values of each part of a text.
fn groups(
    parts: &[StatementPart],
    values: &[SqlValue],
) -> Result<std::vec::IntoIter<Vec<mysql_async::Value>>, DatabaseError> {
    match parts.iter().map(|part| part.places).sum::<usize>() {
        places if places > values.len() => return Err(too_few()),
        places if places < values.len() => return Err(too_many()),
        _ => {}
    }
    let mut values = values.iter();
    let groups: Vec<_> =
        parts.iter().map(|part| values.by_ref().take(part.places).map(value::bound).collect()).collect();
    Ok(groups.into_iter())
}

/// Runs a statement to its first row, or to its end.
async fn execute(
    conn: &mut Conn,
    part: &StatementPart,
    values: Vec<mysql_async::Value>,
) -> Result<(Option<Row>, u64), Error> {
    match conn.exec_iter(part.text.as_str(), params(values)).await {
        Err(Error::Server(error)) if error.code == ER_UNSUPPORTED_PS && part.places == 0 => {
            first(conn.query_iter(part.text.as_str()).await?).await
        }
        result => first(result?).await,
    }
}

fn params(values: Vec<mysql_async::Value>) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

async fn first<P: Protocol>(mut result: QueryResult<'_, 'static, P>) -> Result<(Option<Row>, u64), Error> {
    let selects = !result.columns_ref().is_empty();
    let changed = if selects { 0 } else { result.affected_rows() };
    let row = result.next().await?.map(value::row);
    result.drop_result().await?;
    Ok((row, changed))
}

fn given_up() -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Unreachable, "the connection to the database was given up")
}

fn refused(error: &Error) -> DatabaseError {
    let kind = match error {
        Error::Server(_) | Error::Driver(DriverError::StmtParamsMismatch { .. } | DriverError::MixedParams) => {
            DatabaseErrorKind::Refused
        }
        _ => DatabaseErrorKind::Unreachable,
    };
    DatabaseError::new(kind, explain(error))
}

/// The message of the server with its code, or the cause on the way.
fn explain(error: &Error) -> String {
    match error {
        Error::Server(server) => format!("{} (error {}, SQLSTATE {})", server.message, server.code, server.state),
        Error::Driver(error) => error.to_string(),
        Error::Io(error) => error.to_string(),
        Error::Other(error) => error.to_string(),
        // The text of an address can hold a password.
        Error::Url(_) => "the address is not one of MySQL".to_owned(),
    }
}
