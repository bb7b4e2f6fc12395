//! The tables and views of a database, as its own catalog describes them.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::database::{DataSource, DatabaseError, Dialect, Query, RowQuery, SqlValue, Transaction, Yields};

/// A table or view.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: Arc<str>,
    /// Its columns in order.
    pub columns: Vec<Column>,
    /// The database it is in.
    pub dialect: Dialect,
    /// The links to other tables by foreign keys, in both directions; read by [`super::links::add`].
    pub links: Vec<super::links::Link>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: Arc<str>,
    /// Its type, as the database calls it.
    pub kind: Arc<str>,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// Its place in the primary key from 1; 0 when it is not part of it.
    pub key_position: i64,
    /// The database it is in.
    pub dialect: Dialect,
}

/// A name as the database quotes it.
pub(super) fn quoted(name: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Sqlite | Dialect::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
        Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
    }
}

impl Table {
    /// Its name in a statement.
    pub fn quoted(&self) -> String {
        quoted(&self.name, self.dialect)
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| *column.name == *name)
    }

    /// The columns of the primary key in order.
    pub fn key(&self) -> Vec<&Column> {
        let mut key: Vec<&Column> = self.columns.iter().filter(|column| column.key_position > 0).collect();
        key.sort_by_key(|column| column.key_position);
        key
    }
}

impl Column {
    /// Its name in a statement.
    pub fn quoted(&self) -> String {
        quoted(&self.name, self.dialect)
    }

    /// Its type in the entity data model.
    pub fn edm_type(&self) -> &'static str {
        let kind = self.kind.to_ascii_uppercase();
        let starts = |names: &[&str]| names.iter().any(|name| kind.starts_with(name));
        match () {
            () if starts(&["BIGINT", "INT8"]) => "Edm.Int64",
            // MySQL's `BOOLEAN`.
            () if starts(&["TINYINT(1)"]) => "Edm.Boolean",
            () if starts(&["SMALLINT", "TINYINT", "INT2"]) => "Edm.Int16",
            () if starts(&["INT", "SERIAL"]) => "Edm.Int32",
            () if starts(&["DOUBLE", "FLOAT", "REAL"]) => "Edm.Double",
            () if starts(&["DECIMAL", "NUMERIC"]) => "Edm.Decimal",
            () if starts(&["BOOL", "BIT"]) => "Edm.Boolean",
            () if starts(&["TIMESTAMP", "DATETIME"]) => "Edm.DateTimeOffset",
            () if starts(&["DATE"]) => "Edm.Date",
            () if starts(&["TIME"]) => "Edm.TimeOfDay",
            () if starts(&["BLOB", "BYTEA", "BINARY", "VARBINARY", "LONGBLOB", "MEDIUMBLOB", "TINYBLOB"]) => {
                "Edm.Binary"
            }
            () => "Edm.String",
        }
    }
}

const SQLITE: &str = "SELECT m.name, p.name, p.type, p.\"notnull\", p.pk FROM sqlite_master m JOIN pragma_table_info(m.name) p \
                      WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid";

const POSTGRES: &str = "SELECT c.table_name, c.column_name, c.data_type, (c.is_nullable = 'NO')::int, \
                        COALESCE((SELECT k.ordinal_position FROM information_schema.table_constraints t \
                        JOIN information_schema.key_column_usage k ON k.constraint_name = t.constraint_name \
                        AND k.table_schema = t.table_schema AND k.table_name = t.table_name \
                        WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_schema = c.table_schema \
                        AND t.table_name = c.table_name AND k.column_name = c.column_name), 0)::int \
                        FROM information_schema.columns c WHERE c.table_schema = current_schema() \
                        ORDER BY c.table_name, c.ordinal_position";

const MYSQL: &str = "SELECT c.table_name, c.column_name, c.column_type, c.is_nullable = 'NO', COALESCE(k.ordinal_position, 0) \
                     FROM information_schema.columns c LEFT JOIN information_schema.key_column_usage k \
                     ON k.constraint_name = 'PRIMARY' AND k.table_schema = c.table_schema AND k.table_name = c.table_name \
                     AND k.column_name = c.column_name WHERE c.table_schema = database() \
                     ORDER BY c.table_name, c.ordinal_position";

/// Reads the tables.
pub async fn tables(
    session: &Rc<dyn Transaction>,
    source: &Arc<DataSource>,
    dialect: Dialect,
) -> Result<Vec<Table>, DatabaseError> {
    let sql = match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
    };
    let mut tables: Vec<Table> = Vec::new();
    for row in rows(session, source, sql.to_owned(), Vec::new()).await? {
        let [table, name, kind, not_null, key] = row.as_slice() else { continue };
        let text = |value: &SqlValue| match value {
            SqlValue::Text(text) => text.clone(),
            _ => "".into(),
        };
        let number = |value: &SqlValue| if let SqlValue::Integer(number) = value { *number } else { 0 };
        let column = Column {
            name: text(name),
            kind: text(kind),
            is_nullable: number(not_null) == 0 && number(key) == 0,
            key_position: number(key),
            dialect,
        };
        match tables.last_mut().filter(|last| last.name == text(table)) {
            Some(last) => last.columns.push(column),
            None => tables.push(Table { name: text(table), columns: vec![column], dialect, links: Vec::new() }),
        }
    }
    Ok(tables)
}

/// All rows of a statement.
pub async fn rows(
    session: &Rc<dyn Transaction>,
    source: &Arc<DataSource>,
    sql: String,
    values: Vec<SqlValue>,
) -> Result<Vec<Vec<SqlValue>>, DatabaseError> {
    let query = Query { sql: sql.into(), values };
    let query = RowQuery { query, is_interleaved: false, yields: Yields::Rows, timeout: None };
    let mut cursor = session.rows(source, query).await?;
    let mut all = Vec::new();
    while let Some(batch) = cursor.next().await? {
        all.extend(batch.rows);
    }
    Ok(all)
}
