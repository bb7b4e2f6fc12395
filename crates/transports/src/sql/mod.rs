//! Databases: SQLite in this process and PostgreSQL over sockets, behind the port of the engine.
//!
//! [`Sql`] is one for the whole process, so that a pool's limit is the limit; any core may ask it. SQLite blocks, so
//! each of its connections has a thread; connections to PostgreSQL live on a runtime of their own. A core only ever
//! awaits. Values are bound, never written into statements.
//!
//! Start reading at [`Sql`], then `mapping.rs` (which database a data source is) and `pool.rs`.

mod connection;
mod mapping;
mod pool;
mod postgres;
mod procedure;
mod sqlite;
mod statement;
mod transaction;
mod url;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::database::{Answer, DataSource, DatabaseError, Databases, Dialect, Query, Transaction};
use penstock_engine::ports::LocalFuture;
use tokio::sync::Semaphore;

pub use mapping::{DatabaseEntry, Mapping, Remark};

use crate::http::tls::TlsClient;
use mapping::{Resolved, Target};
use pool::{Pool, Purpose, Turn};
use sqlite::Folder;
use transaction::{Manner, SqlTransaction};

/// All databases of the process.
pub struct Sql {
    shared: Arc<Shared>,
}

struct Shared {
    mapping: Mapping,
    pools: Mutex<HashMap<Resolved, Arc<Pool>>>,
    /// Of databases that take one writer at a time, whichever of their pools it uses.
    turns: Mutex<HashMap<Target, Turn>>,
    postgres: postgres::Connector,
    /// Where databases that stand in for others lie.
    folder: Folder,
}

impl Sql {
    /// With what the configuration says of databases, and whom TLS trusts.
    pub fn new(mapping: Mapping, tls: Arc<TlsClient>) -> Sql {
        let postgres = postgres::Connector::new(tls);
        Sql {
            shared: Arc::new(Shared {
                mapping,
                pools: Mutex::default(),
                turns: Mutex::default(),
                postgres,
                folder: Folder::default(),
            }),
        }
    }
}

impl Shared {
    /// The pool of a data source, made on first use.
    fn pool(self: &Arc<Shared>, source: &DataSource) -> Result<Arc<Pool>, DatabaseError> {
        let resolved = self.mapping.resolve(source).resolved?;
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&resolved) {
            return Ok(pool.clone());
        }
        let pool = Arc::new(Pool::new(resolved.clone(), self.connector(&resolved)?, self.turn(&resolved.target)));
        pools.insert(resolved, pool.clone());
        Ok(pool)
    }

    fn turn(&self, target: &Target) -> Option<Turn> {
        if *target == Target::Postgres {
            return None;
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Some(turns.entry(target.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone())
    }

    fn connector(&self, resolved: &Resolved) -> Result<connection::Connector, DatabaseError> {
        Ok(match &resolved.target {
            Target::Sqlite(path) => connection::Connector::Sqlite(sqlite::Place::File(path.clone())),
            Target::StandIn(label) => connection::Connector::Sqlite(sqlite::Place::StandIn(self.folder.file(label)?)),
            Target::Postgres => connection::Connector::Postgres(self.postgres.clone()),
        })
    }
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl Databases for Sql {
    fn run(&self, source: &Arc<DataSource>, query: Query) -> LocalFuture<'static, Result<Answer, DatabaseError>> {
        let pool = self.shared.pool(source);
        Box::pin(async move {
            let mut lease = pool?.lease(Purpose::Query(&query)).await?;
            let answer = lease.run(&query).await;
            lease.give_back();
            answer
        })
    }

    fn begin(&self) -> Rc<dyn Transaction> {
        Rc::new(SqlTransaction::new(self.shared.clone(), Manner::Transaction))
    }

    fn session(&self) -> Rc<dyn Transaction> {
        Rc::new(SqlTransaction::new(self.shared.clone(), Manner::EachByItself))
    }

    fn dialect(&self, source: &DataSource) -> Result<Dialect, DatabaseError> {
        let resolved = self.shared.mapping.resolve(source).resolved?;
        Ok(match resolved.target {
            Target::Postgres => Dialect::Postgres,
            Target::Sqlite(_) | Target::StandIn(_) => Dialect::Sqlite,
        })
    }
}
