//! Leases in a table of a database, by the clock of that database.

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::database::{
    Answer, DataSource, DatabaseError, DatabaseErrorKind, Databases, Dialect, Query, SqlValue,
};
use penstock_engine::lease::{Lease, LeaseError, Leases};
use penstock_engine::ports::LocalFuture;
use tokio::sync::OnceCell;

/// The leases of the nodes that share a database.
pub struct SqlLeases {
    table: Arc<LeaseTable>,
}

struct LeaseTable {
    databases: Arc<dyn Databases>,
    source: Arc<DataSource>,
    /// This process: another one of the same node is another holder.
    holder: Arc<str>,
    is_prepared: OnceCell<()>,
}

impl SqlLeases {
    /// Leases in a database. `holder` names this process and no other.
    pub fn new(databases: Arc<dyn Databases>, source: Arc<DataSource>, holder: Arc<str>) -> SqlLeases {
        SqlLeases { table: Arc::new(LeaseTable { databases, source, holder, is_prepared: OnceCell::new() }) }
    }
}

impl LeaseTable {
    async fn run(&self, sql: String, values: Vec<SqlValue>) -> Result<Answer, DatabaseError> {
        self.databases.run(&self.source, Query { sql: sql.into(), values }).await
    }

    async fn prepare(&self) -> Result<(), DatabaseError> {
        let sql = "CREATE TABLE IF NOT EXISTS penstock_lease (name VARCHAR(250) NOT NULL PRIMARY KEY, \
                   holder VARCHAR(250) NOT NULL, fencing_token BIGINT NOT NULL, expires BIGINT NOT NULL)";
        match self.run(sql.to_owned(), Vec::new()).await {
            // Another node makes it at this moment, or the account may only use it.
            Err(error) if error.kind == DatabaseErrorKind::Refused => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// The time of the database in milliseconds.
    fn now(&self) -> Result<&'static str, DatabaseError> {
        Ok(match self.databases.dialect(&self.source)? {
            Dialect::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
            Dialect::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
            Dialect::Mysql => "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
        })
    }

    async fn acquire(&self, name: Arc<str>, time: Duration) -> Result<Option<Lease>, DatabaseError> {
        self.is_prepared.get_or_try_init(|| self.prepare()).await?;
        let now = self.now()?;
        let (text, holder) = (|| SqlValue::Text(name.clone()), || SqlValue::Text(self.holder.clone()));
        let time = || SqlValue::Integer(i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2));
        // MySQL assigns in this order, and the first assignment needs the former holder.
        let sql = format!(
            "UPDATE penstock_lease SET fencing_token = CASE WHEN holder = ? AND expires >= {now} THEN fencing_token \
             ELSE fencing_token + 1 END, holder = ?, expires = {now} + ? WHERE name = ? AND (holder = ? OR expires < {now})"
        );
        if self.run(sql, vec![holder(), holder(), time(), text(), holder()]).await?.changed == 0 {
            let sql = "SELECT holder FROM penstock_lease WHERE name = ?".to_owned();
            if self.run(sql, vec![text()]).await?.row.is_some() {
                return Ok(None);
            }
            let sql = format!(
                "INSERT INTO penstock_lease (name, holder, fencing_token, expires) VALUES (?, ?, 1, {now} + ?)"
            );
            match self.run(sql, vec![text(), holder(), time()]).await {
                // Another node was first, or the account may not write: the token below shows it.
                Err(error) if error.kind == DatabaseErrorKind::Refused => {}
                outcome => drop(outcome?),
            }
        }
        let sql = "SELECT fencing_token FROM penstock_lease WHERE name = ? AND holder = ?".to_owned();
        let Some(row) = self.run(sql, vec![text(), holder()]).await?.row else { return Ok(None) };
        let token = row.get("1").ok().flatten().and_then(|text| text.parse().ok());
        Ok(token.map(|fencing_token| Lease { name, fencing_token }))
    }

    async fn release(&self, lease: Lease) -> Result<(), DatabaseError> {
        let sql =
            "UPDATE penstock_lease SET expires = 0 WHERE name = ? AND holder = ? AND fencing_token = ?".to_owned();
        let token = SqlValue::Integer(i64::try_from(lease.fencing_token).unwrap_or(i64::MAX));
        self.run(sql, vec![SqlValue::Text(lease.name), SqlValue::Text(self.holder.clone()), token]).await.map(drop)
    }
}

fn unavailable(error: DatabaseError) -> LeaseError {
    LeaseError(error.message)
}

impl Leases for SqlLeases {
    fn acquire(&self, name: &str, time: Duration) -> LocalFuture<'static, Result<Option<Lease>, LeaseError>> {
        let (table, name) = (self.table.clone(), Arc::from(name));
        Box::pin(async move { table.acquire(name, time).await.map_err(unavailable) })
    }

    fn release(&self, lease: &Lease) -> LocalFuture<'static, Result<(), LeaseError>> {
        let (table, lease) = (self.table.clone(), lease.clone());
        Box::pin(async move { table.release(lease).await.map_err(unavailable) })
    }
}
