//! SQL databases behind the port of the engine ([`penstock_engine::database`]): SQLite in this process; PostgreSQL, MySQL and
//! MariaDB over sockets. Pools, statements, transactions, addresses and dialects.
//!
//! This crate is independent of artifacts, mediators and HTTP: a caller gives a data source, statements and values.
//!
//! [`Sql`] is one for the whole process, so that a pool's limit is the limit; any core may use it. SQLite blocks, so each of
//! its connections has a thread; connections to servers live on a runtime of their own. A core only ever awaits. Values are
//! bound, never written into statements.
//!
//! Start reading at [`Sql`], then `mapping.rs` (which database a data source is), `pool.rs`, and `connection.rs` (what each
//! kind of database does).

mod background;
mod connection;
mod lease;
mod mapping;
mod mysql;
mod pool;
mod postgres;
mod procedure;
mod sqlite;
mod statement;
mod tls;
mod transaction;
mod url;
mod written;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::database::{Answer, DataSource, DatabaseError, Databases, Dialect, Query, Transaction};
use penstock_engine::ports::LocalFuture;
use tokio::sync::Semaphore;

pub use lease::SqlLeases;
pub use mapping::{DatabaseEntry, Mapping, Remark};
pub use tls::{ServerTls, Verification};

use background::{Background, ServerConnector};
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
    servers: ServerConnector,
    /// Where databases that stand in for others lie.
    folder: Folder,
}

impl Sql {
    /// The databases that the configuration maps data sources to, and the TLS configuration for their servers.
    pub fn new(mapping: Mapping, tls: Arc<dyn ServerTls>) -> Sql {
        Sql {
            shared: Arc::new(Shared {
                mapping,
                pools: Mutex::default(),
                turns: Mutex::default(),
                servers: ServerConnector { tls, background: Background::default() },
                folder: Folder::default(),
            }),
        }
    }

    /// Databases whose servers need no TLS.
    pub fn without_tls(mapping: Mapping) -> Sql {
        Sql::new(mapping, Arc::new(tls::NoTls))
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
        if !target.has_single_writer() {
            return None;
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Some(turns.entry(target.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone())
    }

    fn connector(&self, resolved: &Resolved) -> Result<connection::Connector, DatabaseError> {
        Ok(match &resolved.target {
            Target::Sqlite(path) => connection::Connector::Sqlite(sqlite::Place::File(path.clone())),
            Target::StandIn(label) => connection::Connector::Sqlite(sqlite::Place::StandIn(self.folder.file(label)?)),
            Target::Postgres => connection::Connector::Postgres(self.servers.clone()),
            Target::Mysql => connection::Connector::Mysql(self.servers.clone()),
        })
    }
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
            Target::Mysql => Dialect::Mysql,
            Target::Sqlite(_) | Target::StandIn(_) => Dialect::Sqlite,
        })
    }
}
