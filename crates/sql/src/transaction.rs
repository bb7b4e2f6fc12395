//! A transaction over the databases a message writes to.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::database::{
    Answer, DataSource, DatabaseError, DatabaseErrorKind, Query, RowQuery, Rows, Transaction,
};
use penstock_engine::ports::LocalFuture;

use super::Shared;
use super::mapping::Resolved;
use super::pool::{Lease, Pool, Purpose};
use super::statement::may_write;

/// A transaction. The databases commit one after another: when a later one fails, the earlier ones stay committed, and the
/// error reports it. Dropped leases close their connections, and the databases roll back.
pub(crate) struct SqlTransaction {
    shared: Arc<Shared>,
    manner: Manner,
    state: Rc<RefCell<State>>,
}

/// What a failure undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// All queries.
    Transaction,
    /// The query that failed.
    EachByItself,
}

#[derive(Default)]
struct State {
    /// A lease is absent while its query runs.
    members: Vec<(Resolved, Option<Lease>)>,
}

impl SqlTransaction {
    pub(crate) fn new(shared: Arc<Shared>, manner: Manner) -> SqlTransaction {
        SqlTransaction { shared, manner, state: Rc::default() }
    }
}

/// The connection of a member, which is begun when the database is first used.
async fn member(
    state: &RefCell<State>,
    pool: &Arc<Pool>,
    manner: Manner,
    query: &Query,
) -> Result<(usize, Lease), DatabaseError> {
    let known = state.borrow().members.iter().position(|(to, _)| to.is_same_database(pool.to()));
    if let Some(index) = known {
        let lease = state.borrow_mut().members[index].1.take();
        return Ok((index, lease.ok_or_else(lost)?));
    }
    let lease = match manner {
        Manner::Transaction => {
            let mut lease = pool.lease(Purpose::Transaction).await?;
            lease.begin().await?;
            lease
        }
        Manner::EachByItself => pool.lease(Purpose::Query(query)).await?,
    };
    let mut state = state.borrow_mut();
    state.members.push((pool.to().clone(), None));
    Ok((state.members.len() - 1, lease))
}

impl Transaction for SqlTransaction {
    fn run(&self, source: &Arc<DataSource>, query: Query) -> LocalFuture<'static, Result<Answer, DatabaseError>> {
        let pool = self.shared.pool(source);
        let state = self.state.clone();
        let manner = self.manner;
        Box::pin(async move {
            let (index, mut lease) = member(&state, &pool?, manner, &query).await?;
            let outcome = lease.run(&query).await;
            state.borrow_mut().members[index].1 = Some(lease);
            outcome
        })
    }

    fn rows(
        &self,
        source: &Arc<DataSource>,
        query: RowQuery,
    ) -> LocalFuture<'static, Result<Box<dyn Rows>, DatabaseError>> {
        let pool = self.shared.pool(source);
        let state = self.state.clone();
        let manner = self.manner;
        Box::pin(async move {
            let (index, mut lease) = member(&state, &pool?, manner, &query.query).await?;
            let outcome = lease.rows(query).await;
            state.borrow_mut().members[index].1 = Some(lease);
            outcome
        })
    }

    fn includes(&self, source: &DataSource) -> bool {
        self.member(source).is_some()
    }

    fn obstacle(&self, source: &DataSource, query: &Query) -> Option<DatabaseError> {
        let (asked, member) = self.member(source)?;
        let why = if asked.target.has_single_writer() && may_write(&query.sql) {
            "the transaction of this message writes to the SQLite database, which takes one writer at a time; \
             `useTransaction=\"true\"` makes the statement part of it"
        } else if asked == member && asked.connections_max == 1 {
            "the transaction of this message has the only connection of the pool"
        } else {
            return None;
        };
        Some(DatabaseError::new(DatabaseErrorKind::Busy, why))
    }

    fn commit(&self) -> LocalFuture<'static, Result<(), DatabaseError>> {
        self.end(true)
    }

    fn rollback(&self) -> LocalFuture<'static, Result<(), DatabaseError>> {
        self.end(false)
    }
}

impl SqlTransaction {
    /// The database that a data source leads to, and as what it takes part.
    fn member(&self, source: &DataSource) -> Option<(Resolved, Resolved)> {
        let asked = self.shared.mapping.resolve(source).resolved.ok()?;
        let state = self.state.borrow();
        let (member, _) = state.members.iter().find(|(to, _)| to.is_same_database(&asked))?;
        Some((asked, member.clone()))
    }

    fn end(&self, keep: bool) -> LocalFuture<'static, Result<(), DatabaseError>> {
        let state = self.state.clone();
        let manner = self.manner;
        Box::pin(async move {
            let members = std::mem::take(&mut state.borrow_mut().members);
            let mut committed = 0;
            let mut failure: Option<DatabaseError> = None;
            for (_, lease) in members {
                let outcome = match lease {
                    // After a failure the rest is rolled back.
                    Some(mut lease) => {
                        let keep = keep && failure.is_none();
                        let outcome = match manner {
                            Manner::Transaction => lease.end(keep).await,
                            Manner::EachByItself => lease.end_reading(keep).await,
                        };
                        if outcome.is_ok() {
                            lease.give_back();
                        }
                        outcome
                    }
                    None => Err(lost()),
                };
                match outcome {
                    Ok(()) if failure.is_none() => committed += 1,
                    Ok(()) => {}
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            match failure {
                None => Ok(()),
                Some(error) if keep && committed > 0 => Err(DatabaseError {
                    message: format!("{}; {committed} other databases had committed already", error.message),
                    ..error
                }),
                Some(error) => Err(error),
            }
        })
    }
}

fn lost() -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Unreachable, "a connection that took part in the transaction was given up")
}
