//! PostgreSQL over sockets. Connections live on a runtime of their own, so that any core may use them.

mod rows;
mod tls;
mod value;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::TryStreamExt;
use penstock_engine::database::{Answer, DatabaseError, DatabaseErrorKind, Isolation, Query, Row};
use tokio::runtime::Handle;
use tokio_postgres::{Client, Statement};

use self::tls::MakeTls;
use self::value::AsText;
use super::background::ServerConnector;
use super::mapping::Resolved;
use super::statement::{Places, StatementPart, Texts, too_few, too_many};
use super::url;

/// Prepared statements a connection keeps: each takes memory in the server. Configurations rarely have dozens.
const STATEMENTS_MAX: usize = 256;

impl ServerConnector {
    pub(crate) async fn connect_postgres(&self, to: &Resolved) -> Result<PostgresConnection, DatabaseError> {
        let password = to.password.as_ref().map(|password| password.0.as_str());
        let (config, verification) = url::postgres(&to.url, to.user.as_deref(), password)
            .map_err(|why| DatabaseError::new(DatabaseErrorKind::Undefined, why))?;
        let tls = MakeTls::new(&self.tls, verification)?;
        let handle = self.background.handle()?;
        let spawn = handle.clone();
        let connecting = handle.spawn({
            let tls = tls.clone();
            async move {
                let (client, connection) = config.connect(tls).await?;
                // The end of a connection is reported to its user.
                spawn.spawn(async move { drop(connection.await) });
                Ok::<Client, tokio_postgres::Error>(client)
            }
        });
        match connecting.await {
            Ok(Ok(client)) => Ok(PostgresConnection {
                client: Arc::new(client),
                tls,
                handle,
                texts: Texts::new(Places::Numbered),
                statements: HashMap::new(),
                state: State::Idle,
                cursors: 0,
            }),
            Ok(Err(error)) => Err(DatabaseError::new(
                DatabaseErrorKind::Unreachable,
                format!("connecting to the database failed: {}", explain(&error)),
            )),
            Err(_) => {
                Err(DatabaseError::new(DatabaseErrorKind::Unreachable, "connecting to the database was given up"))
            }
        }
    }
}

/// Where a connection is with its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    /// A statement failed in it: PostgreSQL does nothing more until it is rolled back.
    Failed,
}

/// A connection.
pub(crate) struct PostgresConnection {
    client: Arc<Client>,
    tls: MakeTls,
    handle: Handle,
    texts: Texts,
    statements: HashMap<String, Statement>,
    state: State,
    /// Cursors that were declared, which gives each a name of its own.
    cursors: u64,
}

/// Cancels the query, when its future is dropped.
struct Guard {
    cancel: Option<(tokio_postgres::CancelToken, MakeTls, Handle)>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((token, tls, handle)) = self.cancel.take() {
            // The connection is dropped in any case; an unheard request to stop costs the server the rest of its work.
            handle.spawn(async move { drop(token.cancel_query(tls).await) });
        }
    }
}

impl PostgresConnection {
    pub(crate) async fn run(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        let mut guard = self.guard();
        let outcome = self.run_parts(query).await;
        guard.cancel = None;
        if outcome.is_err() && self.state == State::Open {
            self.state = State::Failed;
        }
        outcome
    }

    fn guard(&self) -> Guard {
        Guard { cancel: Some((self.client.cancel_token(), self.tls.clone(), self.handle.clone())) }
    }

    async fn run_parts(&mut self, query: &Query) -> Result<Answer, DatabaseError> {
        let parts = self.texts.parts(&query.sql);
        if parts.iter().map(|part| part.places).sum::<usize>() > query.values.len() {
            return Err(too_few());
        }
        let mut values = query.values.iter();
        let mut answer = Answer::default();
        for part in parts.iter() {
            let values: Vec<AsText> = values.by_ref().take(part.places).map(AsText::new).collect();
            let (row, changed) = self.run_part(part, &values).await?;
            answer.changed += changed;
            answer.row = answer.row.or(row);
        }
        if values.next().is_some() {
            return Err(too_many());
        }
        Ok(answer)
    }

    async fn run_part(&mut self, part: &StatementPart, values: &[AsText]) -> Result<(Option<Row>, u64), DatabaseError> {
        match self.execute(part, values).await {
            // A table changed since the statement was prepared. The server reports it before executing.
            Err(error) if is_stale(&error) && self.state == State::Idle => {
                self.statements.remove(&part.text);
                self.execute(part, values).await.map_err(|error| refused(&error))
            }
            Err(error) => {
                self.statements.remove(&part.text);
                Err(refused(&error))
            }
            Ok(outcome) => Ok(outcome),
        }
    }

    /// Runs a statement to its first row, or to its end.
    async fn execute(
        &mut self,
        part: &StatementPart,
        values: &[AsText],
    ) -> Result<(Option<Row>, u64), tokio_postgres::Error> {
        let statement = self.prepared(&part.text).await?;
        let rows = self.client.query_raw(&statement, values).await?;
        let mut rows = std::pin::pin!(rows);
        match rows.try_next().await? {
            Some(row) => Ok((Some(value::row(&row)), 0)),
            None => Ok((None, rows.rows_affected().unwrap_or_default())),
        }
    }

    pub(crate) async fn begin(&mut self, isolation: Option<Isolation>) -> Result<(), DatabaseError> {
        let begin = match isolation {
            None => "BEGIN",
            Some(Isolation::ReadUncommitted) => "BEGIN ISOLATION LEVEL READ UNCOMMITTED",
            Some(Isolation::ReadCommitted) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Some(Isolation::RepeatableRead) => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Some(Isolation::Serializable) => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        };
        self.client.batch_execute(begin).await.map_err(|error| refused(&error))?;
        self.state = State::Open;
        Ok(())
    }

    pub(crate) async fn end(&mut self, keep: bool) -> Result<(), DatabaseError> {
        // PostgreSQL answers COMMIT after a failure with a rollback and no error.
        if self.state == State::Idle {
            return Ok(());
        }
        let failed = self.state == State::Failed;
        let command = if keep && !failed { "COMMIT" } else { "ROLLBACK" };
        self.client.batch_execute(command).await.map_err(|error| refused(&error))?;
        self.state = State::Idle;
        if keep && failed {
            let text = "a statement of the transaction failed before; it was rolled back";
            return Err(DatabaseError::new(DatabaseErrorKind::Refused, text));
        }
        Ok(())
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && self.state == State::Idle
    }
}

/// `cached plan must not change result type`, and a statement the server forgot.
fn is_stale(error: &tokio_postgres::Error) -> bool {
    use tokio_postgres::error::SqlState;
    error
        .code()
        .is_some_and(|code| *code == SqlState::FEATURE_NOT_SUPPORTED || *code == SqlState::INVALID_SQL_STATEMENT_NAME)
}

fn refused(error: &tokio_postgres::Error) -> DatabaseError {
    let kind = match error.as_db_error() {
        _ if error.is_closed() => DatabaseErrorKind::Unreachable,
        Some(_) => DatabaseErrorKind::Refused,
        None => DatabaseErrorKind::Unreachable,
    };
    DatabaseError::new(kind, explain(error))
}

/// What a person reads: the server's words with its code, or what went wrong on the way. The detail the server gives is left
/// out, since it quotes values.
fn explain(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", said.message(), said.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let why = next.to_string();
        if !text.contains(&why) {
            text.push_str(": ");
            text.push_str(&why);
        }
        cause = next.source();
    }
    text
}
