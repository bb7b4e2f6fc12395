//! Rows of PostgreSQL in batches: as the server sends them, or through a cursor when other queries run between them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use penstock_engine::database::{
    BATCH_BYTES_MAX, BATCH_ROWS_MAX, Batch, CallPlace, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows,
    SqlValue, Yields,
};
use penstock_engine::ports::LocalFuture;
use tokio_postgres::{Client, RowStream, Statement};

use super::value::{self, AsText};
use super::{Guard, PostgresConnection, State, refused};
use crate::connection::ReadRows;
use crate::procedure::Call;
use crate::statement::{is_selection, too_few, too_many, with_returning};

impl PostgresConnection {
    pub(crate) async fn rows(&mut self, query: RowQuery) -> Result<Box<dyn Rows>, DatabaseError> {
        let RowQuery { query, is_interleaved, yields, .. } = query;
        let (query, names) = match &yields {
            Yields::Call(places) => call(&query, places)?,
            _ => (query, None),
        };
        let mut guard = self.guard();
        let outcome = self.open(query, is_interleaved, &yields, names).await;
        guard.cancel = None;
        if outcome.is_err() && self.state == State::Open {
            self.state = State::Failed;
        }
        outcome
    }

    async fn open(
        &mut self,
        query: Query,
        is_interleaved: bool,
        yields: &Yields,
        names: Option<Columns>,
    ) -> Result<Box<dyn Rows>, DatabaseError> {
        let parts = self.texts.parts(&query.sql);
        match parts.iter().map(|part| part.places).sum::<usize>() {
            places if places > query.values.len() => return Err(too_few()),
            places if places < query.values.len() => return Err(too_many()),
            _ => {}
        }
        let Some((last, before)) = parts.split_last() else {
            return Err(DatabaseError::new(DatabaseErrorKind::Refused, "the statement is empty"));
        };
        let mut values = query.values.iter();
        let mut changed = 0;
        for part in before {
            let values: Vec<AsText> = values.by_ref().take(part.places).map(AsText::new).collect();
            changed += self.run_part(part, &values).await?.1;
        }
        let values: Vec<AsText> = values.map(AsText::new).collect();
        if is_interleaved && is_selection(&last.text) {
            return self.cursor(&last.text, &values).await;
        }
        let text = match yields {
            Yields::Keys(columns) => with_returning(&last.text, columns, "*"),
            _ => last.text.clone(),
        };
        let statement = self.prepared(&text).await.map_err(|error| refused(&error))?;
        let stream = match self.client.query_raw(&statement, &values).await {
            Ok(stream) => stream,
            Err(error) => {
                self.statements.remove(&text);
                return Err(refused(&error));
            }
        };
        let mut rows = StreamedRows {
            columns: names.unwrap_or_else(|| columns(&statement)),
            stream: Some(Box::pin(stream)),
            changed,
            guard: self.guard(),
        };
        if !is_interleaved {
            return Ok(Box::new(rows));
        }
        // What cannot have a cursor is read before other queries run.
        let mut batches = Vec::new();
        while let Some(batch) = rows.fetch().await? {
            batches.push(batch);
        }
        Ok(Box::new(ReadRows::new(batches)))
    }

    async fn cursor(&mut self, text: &str, values: &[AsText]) -> Result<Box<dyn Rows>, DatabaseError> {
        if self.state == State::Idle {
            self.begin(None).await?;
        }
        self.cursors += 1;
        let name = format!("penstock_{}", self.cursors);
        let declare = format!("DECLARE {name} NO SCROLL CURSOR FOR {text}");
        let statement = self.client.prepare(&declare).await.map_err(|error| refused(&error))?;
        let declared = self.client.query_raw(&statement, values).await;
        let mut declared = std::pin::pin!(declared.map_err(|error| refused(&error))?);
        while declared.try_next().await.map_err(|error| refused(&error))?.is_some() {}
        let fetch = format!("FETCH {BATCH_ROWS_MAX} FROM {name}");
        let fetch = self.client.prepare(&fetch).await.map_err(|error| refused(&error))?;
        Ok(Box::new(CursorRows { client: self.client.clone(), fetch, is_done: false }))
    }

    pub(super) async fn prepared(&mut self, text: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text).await?;
        if self.statements.len() >= super::STATEMENTS_MAX {
            self.statements.clear();
        }
        self.statements.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// The names of columns.
type Columns = Arc<[Arc<str>]>;

fn columns(statement: &Statement) -> Columns {
    statement.columns().iter().map(|column| Arc::from(column.name())).collect()
}

/// A call as PostgreSQL writes it, and the names of the columns when the call gives them. As in the driver for Java, a call
/// in braces is one of a function, and one without of a procedure.
fn call(query: &Query, places: &[CallPlace]) -> Result<(Query, Option<Columns>), DatabaseError> {
    let Some(call) = Call::parse(&query.sql) else {
        let text = format!("`{}` is not a call of a stored procedure", query.sql);
        return Err(DatabaseError::new(DatabaseErrorKind::Refused, text));
    };
    let written = places.iter().filter_map(|place| match place {
        CallPlace::In => None,
        CallPlace::Out(name) | CallPlace::InOut(name) => Some(name.clone()),
    });
    let names: Vec<Arc<str>> = written.collect();
    let names = (!names.is_empty()).then(|| names.into());
    let mut values = query.values.clone();
    let sql = if call.is_escaped || call.has_result {
        // Places that are only written are results of a function and not among its arguments.
        let places = &places[usize::from(call.has_result).min(places.len())..];
        let mut places = places.iter();
        let arguments = call.arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
        let kept: Vec<&str> = arguments
            .filter(|argument| *argument != "?" || !matches!(places.next(), Some(CallPlace::Out(_))))
            .collect();
        format!("SELECT * FROM {}({}) AS result", call.name, kept.join(", "))
    } else {
        let mut all = Vec::new();
        let mut given = values.into_iter();
        for place in places {
            all.push(match place {
                CallPlace::Out(_) => SqlValue::Null,
                CallPlace::In | CallPlace::InOut(_) => given.next().unwrap_or(SqlValue::Null),
            });
        }
        values = all;
        format!("CALL {}({})", call.name, call.arguments)
    };
    Ok((Query { sql: sql.into(), values }, names))
}

/// Rows as the server sends them.
struct StreamedRows {
    columns: Arc<[Arc<str>]>,
    /// Absent after the last row.
    stream: Option<Pin<Box<RowStream>>>,
    changed: u64,
    /// Stops the server when the rows are dropped before the last.
    guard: Guard,
}

impl StreamedRows {
    async fn fetch(&mut self) -> Result<Option<Batch>, DatabaseError> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut batch = Batch { columns: self.columns.clone(), ..Batch::default() };
        let mut bytes = 0;
        while batch.rows.len() < BATCH_ROWS_MAX && bytes < BATCH_BYTES_MAX {
            match stream.try_next().await {
                Ok(Some(row)) => {
                    let values = value::values(&row);
                    bytes += values.iter().map(SqlValue::size).sum::<usize>();
                    batch.rows.push(values);
                }
                Ok(None) => {
                    batch.changed = self.changed;
                    if self.columns.is_empty() {
                        batch.changed += stream.rows_affected().unwrap_or_default();
                    }
                    self.stream = None;
                    self.guard.cancel = None;
                    break;
                }
                Err(error) => {
                    self.stream = None;
                    self.guard.cancel = None;
                    return Err(refused(&error));
                }
            }
        }
        Ok(Some(batch))
    }
}

impl Rows for StreamedRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(self.fetch())
    }
}

/// Rows of a cursor.
struct CursorRows {
    client: Arc<Client>,
    fetch: Statement,
    is_done: bool,
}

impl Rows for CursorRows {
    fn next(&mut self) -> LocalFuture<'_, Result<Option<Batch>, DatabaseError>> {
        Box::pin(async move {
            if self.is_done {
                return Ok(None);
            }
            let rows = self.client.query(&self.fetch, &[]).await.map_err(|error| refused(&error))?;
            self.is_done = rows.len() < BATCH_ROWS_MAX;
            let rows = rows.iter().map(value::values).collect();
            Ok(Some(Batch { columns: columns(&self.fetch), rows, changed: 0 }))
        })
    }
}
