//! The same flows on each kind of database. Tests with a server are ignored: `tools/with-postgresql` and `tools/with-mariadb`
//! start one and set its address.

use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_engine::database::{
    Answer, Batch, CallPlace, DataSource, DatabaseError, DatabaseErrorKind, Databases, Location, PoolSettings, Query,
    RowQuery, SqlValue, Yields,
};

use super::*;

/// The address of a server that tests may write to.
fn server(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set; tools/with-… starts a server and sets it"))
}

fn postgresql() -> String {
    server("PENSTOCK_TEST_POSTGRESQL")
}

fn mariadb() -> String {
    server("PENSTOCK_TEST_MARIADB")
}

/// Makes a test of each function for each kind of database.
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod sqlite {
            $(#[test] fn $name() { super::$name("jdbc:sqlite::memory:") })*
        }
        mod on_postgresql {
            $(#[test] #[ignore = "needs PostgreSQL: tools/with-postgresql"] fn $name() { super::$name(&super::postgresql()) })*
        }
        mod on_mariadb {
            $(#[test] #[ignore = "needs MariaDB: tools/with-mariadb"] fn $name() { super::$name(&super::mariadb()) })*
        }
    };
}

fn source(url: &str, pool: PoolSettings) -> Arc<DataSource> {
    Arc::new(DataSource { location: Location::Url(url.into()), definition: None, user: None, password: None, pool })
}

fn sql() -> Sql {
    Sql::without_tls(Mapping::default())
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn query(sql: &str, values: &[SqlValue]) -> Query {
    Query { sql: sql.into(), values: values.to_vec() }
}

fn text(text: &str) -> SqlValue {
    SqlValue::Text(text.into())
}

/// The first row as `name=value name=value`.
fn shown(answer: Result<Answer, DatabaseError>) -> String {
    let Some(row) = answer.unwrap().row else { return "-".to_owned() };
    let columns = row
        .columns
        .iter()
        .map(|(name, value)| format!("{}={}", name.to_lowercase(), value.as_deref().unwrap_or("null")));
    columns.collect::<Vec<_>>().join(" ")
}

fn fresh(sql: &Sql, source: &Arc<DataSource>, table: &str) {
    let text = format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int primary key, name varchar(20), price double precision)"
    );
    wait(sql.run(source, query(&text, &[]))).unwrap();
}

fn values_are_bound_and_read(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    fresh(&sql, &source, "bound");
    let run = |text: &str, values: &[SqlValue]| wait(sql.run(&source, query(text, values)));
    let row = [SqlValue::Integer(7), text("it's; -- ?"), SqlValue::Double(12.0)];
    assert_eq!(run("INSERT INTO bound (id, name, price) VALUES (?, ?, ?);", &row).unwrap().changed, 1);
    assert_eq!(
        shown(run("SELECT id, name, price FROM bound WHERE name = ?", &[text("it's; -- ?")])),
        "id=7 name=it's; -- ? price=12.0",
        "{url}"
    );
    assert_eq!(shown(run("SELECT * FROM bound WHERE name = ?", &[text("' OR '1'='1")])), "-");
    assert_eq!(shown(run("SELECT id FROM bound WHERE price > ?", &[SqlValue::Decimal("11.5".into())])), "id=7");
    assert_eq!(run("UPDATE bound SET name = ?", &[SqlValue::Null]).unwrap().changed, 1);
    assert_eq!(shown(run("SELECT name FROM bound", &[])), "name=null");
}

fn several_statements_of_one_text_share_its_values_in_order(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    fresh(&sql, &source, "several");
    let run = |text: &str, values: &[SqlValue]| wait(sql.run(&source, query(text, values)));
    let two = "INSERT INTO several (id) VALUES (?); INSERT INTO several (id) VALUES (?);";
    assert_eq!(run(two, &[SqlValue::Integer(1), SqlValue::Integer(2)]).unwrap().changed, 2);
    assert_eq!(shown(run("SELECT count(*) AS n FROM several", &[])), "n=2");
    for (text, values, expected) in
        [(two, vec![SqlValue::Integer(8)], "more places"), ("SELECT 1", vec![SqlValue::Integer(8)], "more parameters")]
    {
        let error = run(text, &values).unwrap_err();
        assert!(error.message.contains(expected), "{url}: {error}");
    }
}

fn a_refused_statement_says_why_and_leaves_the_connection_usable(url: &str) {
    let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
    let (sql, source) = (sql(), source(url, pool));
    fresh(&sql, &source, "refused");
    let run = |text: &str| wait(sql.run(&source, query(text, &[])));
    run("INSERT INTO refused (id) VALUES (1)").unwrap();
    let error = run("INSERT INTO refused (id) VALUES (1)").unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::Refused);
    let message = error.message.to_lowercase();
    assert!(message.contains("unique") || message.contains("duplicate"), "{url}: {error}");
    assert!(run("SELECT * FROM nowhere").is_err());
    assert_eq!(shown(run("SELECT id FROM refused")), "id=1");
}

fn a_statement_prepared_before_the_table_changed_is_prepared_again(url: &str) {
    let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
    let (sql, source) = (sql(), source(url, pool));
    fresh(&sql, &source, "changed");
    let run = |text: &str| wait(sql.run(&source, query(text, &[])));
    run("INSERT INTO changed (id) VALUES (1)").unwrap();
    assert_eq!(shown(run("SELECT * FROM changed")), "id=1 name=null price=null");
    run("DROP TABLE changed; CREATE TABLE changed (word varchar(9)); INSERT INTO changed VALUES ('x')").unwrap();
    assert_eq!(shown(run("SELECT * FROM changed")), "word=x", "{url}");
}

fn a_transaction_keeps_or_takes_back(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    fresh(&sql, &source, "kept");
    let insert = |id| query("INSERT INTO kept (id) VALUES (?)", &[SqlValue::Integer(id)]);
    let count = || shown(wait(sql.run(&source, query("SELECT count(*) AS n FROM kept", &[]))));

    let transaction = sql.begin();
    assert!(!transaction.includes(&source));
    wait(transaction.run(&source, insert(1))).unwrap();
    assert!(transaction.includes(&source));
    assert_eq!(count(), "n=0", "{url}: others see nothing before the end");
    wait(transaction.commit()).unwrap();
    assert_eq!(count(), "n=1");

    let transaction = sql.begin();
    wait(transaction.run(&source, insert(2))).unwrap();
    wait(transaction.rollback()).unwrap();
    assert_eq!(count(), "n=1");

    let transaction = sql.begin();
    wait(transaction.run(&source, insert(3))).unwrap();
    drop(transaction);
    assert_eq!(count(), "n=1", "{url}: an open transaction is rolled back");
    // The connection was closed, not kept in its transaction.
    wait(sql.run(&source, insert(4))).unwrap();

    let transaction = sql.begin();
    wait(transaction.run(&source, insert(5))).unwrap();
    assert!(wait(transaction.run(&source, insert(5))).is_err());
    wait(transaction.rollback()).unwrap();
    assert_eq!(count(), "n=2");
}

fn one_database_takes_part_once_however_its_pools_are_kept(url: &str) {
    let sql = sql();
    let pool = |connections_max| PoolSettings { connections_max, ..PoolSettings::default() };
    let (one, two) = (source(url, pool(Some(2))), source(url, pool(Some(3))));
    fresh(&sql, &one, "spelled");
    let started = Instant::now();
    let transaction = sql.begin();
    wait(transaction.run(&one, query("INSERT INTO spelled (id) VALUES (1)", &[]))).unwrap();
    assert!(transaction.includes(&two));
    wait(transaction.run(&two, query("INSERT INTO spelled (id) VALUES (2)", &[]))).unwrap();
    let seen = wait(transaction.run(&two, query("SELECT count(*) AS n FROM spelled", &[])));
    assert_eq!(shown(seen), "n=2", "{url}");
    wait(transaction.rollback()).unwrap();
    assert_eq!(shown(wait(sql.run(&one, query("SELECT count(*) AS n FROM spelled", &[])))), "n=0", "{url}");
    assert!(started.elapsed() < Duration::from_secs(4), "it waited for itself");
}

fn a_statement_that_waits_for_its_own_transaction_is_a_fault(url: &str) {
    let sql = sql();
    let alone = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
    let (alone, source) = (source(url, alone), source(url, PoolSettings::default()));
    fresh(&sql, &source, "told");
    let (read, write) = (query("SELECT 1 AS x", &[]), query("INSERT INTO told (id) VALUES (2)", &[]));
    let mut transactions = penstock_engine::database::Transactions::default();
    let begun = sql.begin();
    transactions.active = Some(begun.clone());
    assert_eq!(transactions.obstacle(&source, &write), None, "nothing is held yet");
    wait(begun.run(&source, query("INSERT INTO told (id) VALUES (1)", &[]))).unwrap();
    transactions.suspended = transactions.active.take();
    assert_eq!(transactions.obstacle(&source, &read), None);
    let told = transactions.obstacle(&source, &write).map(|error| error.message);
    // PostgreSQL locks rows.
    assert_eq!(told.is_some(), url.contains("sqlite"), "{told:?}");
    wait(begun.commit()).unwrap();
    assert_eq!(transactions.obstacle(&source, &write), None);
    wait(begun.run(&alone, read.clone())).unwrap();
    let told = transactions.obstacle(&alone, &read).unwrap().message;
    assert_eq!(told, "the transaction of this message has the only connection of the pool");
    wait(begun.rollback()).unwrap();
}

/// Each message has a transaction open while another of its requests, to this same process, reads the database.
fn who_waits_to_write_takes_no_connection_from_those_who_read(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    fresh(&sql, &source, "crowd");
    let message = async |id| {
        let transaction = sql.begin();
        transaction.run(&source, query("INSERT INTO crowd (id) VALUES (?)", &[SqlValue::Integer(id)])).await?;
        sql.run(&source, query("SELECT count(*) AS n FROM crowd", &[])).await?;
        transaction.commit().await
    };
    let outcomes = wait(futures_util::future::join_all((0..29).map(message)));
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

fn a_pool_has_a_limit(url: &str) {
    let pool =
        PoolSettings { connections_max: Some(1), wait: Some(Duration::from_millis(30)), ..PoolSettings::default() };
    let (sql, source) = (sql(), source(url, pool));
    fresh(&sql, &source, "busy");
    let transaction = sql.begin();
    wait(transaction.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
    let error = wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::Busy);
    assert_eq!(error.message, "all 1 connections to the database were in use for 0.03 s");
    wait(transaction.rollback()).unwrap();
    wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
}

fn a_query_that_takes_too_long_is_given_up(url: &str) {
    let entry = DatabaseEntry {
        name: "jdbc/Slow".into(),
        url: url.to_owned(),
        query_timeout: Some(Duration::from_millis(80)),
        connections_max: Some(1),
        ..DatabaseEntry::default()
    };
    let slow = match url {
        url if url.contains("sqlite") => {
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
        }
        url if url.contains("mariadb") => "SELECT SLEEP(30)",
        _ => "SELECT pg_sleep(30)",
    };
    let sql = Sql::without_tls(Mapping { entries: vec![entry] });
    let location = Location::Name("jdbc/Slow".into());
    let pool = PoolSettings::default();
    let source = Arc::new(DataSource { location, definition: None, user: None, password: None, pool });
    let error = wait(sql.run(&source, query(slow, &[]))).unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::TimedOut, "{url}: {error}");
    wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
}

#[test]
fn a_database_that_is_away_is_an_error_and_not_a_wait() {
    let sql = sql();
    // No server listens on port 9 of this machine, and no name is resolved.
    for url in [
        "jdbc:postgresql://127.0.0.1:9/orders?user=x&password=secret",
        "jdbc:mysql://127.0.0.1:9/orders?user=x&password=secret",
        "jdbc:sqlite:/nowhere/at/all.db",
    ] {
        let error = wait(sql.run(&source(url, PoolSettings::default()), query("SELECT 1", &[]))).unwrap_err();
        assert_eq!(error.kind, DatabaseErrorKind::Unreachable);
        assert!(!error.message.contains("secret"), "{error}");
    }
    let error = wait(sql.run(&source("jdbc:db2://h/d", PoolSettings::default()), query("SELECT 1", &[]))).unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::Undefined);
}

#[test]
#[ignore = "needs PostgreSQL: tools/with-postgresql"]
fn types_of_postgresql_are_written_as_java_writes_them() {
    let (sql, source) = (sql(), source(&postgresql(), PoolSettings::default()));
    for (expression, expected) in [
        ("12.50::numeric(6,2)", "12.50"),
        ("-0.0025::numeric", "-0.0025"),
        ("123456789012345678901234567890::numeric", "123456789012345678901234567890"),
        ("1.0::float8", "1.0"),
        ("1.1::float4", "1.1"),
        ("true", "true"),
        ("date '1999-12-31'", "1999-12-31"),
        ("time '10:20:30'", "10:20:30"),
        ("timestamp '2024-02-29 10:20:30'", "2024-02-29 10:20:30.0"),
        ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        ("'{\"a\": 1}'::jsonb", "{\"a\": 1}"),
        ("9007199254740993", "9007199254740993"),
    ] {
        let answer = wait(sql.run(&source, query(&format!("SELECT {expression} AS x"), &[])));
        assert_eq!(shown(answer), format!("x={expected}"), "{expression}");
    }
}

/// The values of all rows: `1 a|2 b`.
fn all(sql: &Sql, source: &Arc<DataSource>, query: Query, yields: Yields) -> (Vec<String>, String) {
    let query = RowQuery { query, is_interleaved: false, yields, timeout: None };
    wait(async {
        let session = sql.session();
        let mut rows = session.rows(source, query).await.unwrap();
        let (mut names, mut lines) = (Vec::new(), Vec::new());
        while let Some(batch) = rows.next().await.unwrap() {
            names = batch.columns.iter().map(|name| name.to_lowercase()).collect();
            lines.extend(lines_of(&batch));
        }
        session.commit().await.unwrap();
        (names, lines.join("|"))
    })
}

fn lines_of(batch: &Batch) -> Vec<String> {
    let value = |value: &SqlValue| match value {
        SqlValue::Null => "null".to_owned(),
        SqlValue::Text(text) | SqlValue::Decimal(text) | SqlValue::Temporal(text) => text.to_string(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Double(number) => format!("{number:?}"),
        SqlValue::Boolean(flag) => flag.to_string(),
        SqlValue::Bytes(bytes) => format!("{bytes:?}"),
    };
    batch.rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join(" ")).collect()
}

/// A table with the numbers from 1.
fn numbers(sql: &Sql, source: &Arc<DataSource>, table: &str, count: usize) {
    let values: Vec<String> = (1..=count).map(|number| format!("({number})")).collect();
    let text = format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int primary key); INSERT INTO {table} VALUES {}",
        values.join(", ")
    );
    wait(sql.run(source, query(&text, &[]))).unwrap();
}

fn rows_are_read_in_batches(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    numbers(&sql, &source, "batches", 1000);
    let (names, rows) = all(&sql, &source, query("SELECT id AS n FROM batches ORDER BY id", &[]), Yields::Rows);
    assert_eq!(names, ["n"]);
    assert!(rows.starts_with("1|2|3|") && rows.ends_with("|999|1000"), "{url}: {rows}");
}

fn rows_that_are_not_read_do_not_hold_the_connection(url: &str) {
    let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
    let (sql, source) = (sql(), source(url, pool));
    numbers(&sql, &source, "unread", 1000);
    let text = query("SELECT a.id, b.id, c.id FROM unread a, unread b, unread c", &[]);
    let query_of_many = RowQuery { query: text, is_interleaved: false, yields: Yields::Rows, timeout: None };
    wait(async {
        let transaction = sql.begin();
        let mut rows = transaction.rows(&source, query_of_many).await.unwrap();
        assert_eq!(rows.next().await.unwrap().unwrap().rows.len(), 256);
        drop(rows);
        let after = transaction.run(&source, query("SELECT count(*) AS n FROM unread", &[])).await;
        // PostgreSQL ends the transaction of a statement that is canceled.
        if !url.contains("postgres") {
            assert_eq!(shown(after), "n=1000");
        }
        transaction.rollback().await.unwrap();
    });
    assert_eq!(shown(wait(sql.run(&source, query("SELECT 1 AS x", &[])))), "x=1");
}

fn queries_run_between_the_rows_of_another(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    numbers(&sql, &source, "outer_rows", 600);
    let text = query("SELECT id FROM outer_rows ORDER BY id", &[]);
    let outer = RowQuery { query: text, is_interleaved: true, yields: Yields::Rows, timeout: None };
    wait(async {
        let session = sql.session();
        let (mut rows, mut found) = (session.rows(&source, outer).await.unwrap(), 0);
        while let Some(batch) = rows.next().await.unwrap() {
            found += batch.rows.len();
            let inner = session.run(&source, query("SELECT max(id) AS n FROM outer_rows", &[])).await;
            assert_eq!(shown(inner), "n=600", "{url}");
        }
        assert_eq!(found, 600);
        session.commit().await.unwrap();
    });
}

fn keys_of_inserted_rows_are_returned(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    let key = match url {
        url if url.contains("sqlite") => "INTEGER PRIMARY KEY AUTOINCREMENT",
        url if url.contains("mariadb") => "INT PRIMARY KEY AUTO_INCREMENT",
        _ => "SERIAL PRIMARY KEY",
    };
    let table = format!("DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (id {key}, name varchar(9))");
    wait(sql.run(&source, query(&table, &[]))).unwrap();
    let insert = query("INSERT INTO keyed (name) VALUES (?), (?)", &[text("a"), text("b")]);
    let (names, rows) = all(&sql, &source, insert, Yields::Keys(vec!["id".into()]));
    assert_eq!((names.concat().as_str(), rows.as_str()), ("id", "1|2"), "{url}");
    assert_eq!(shown(wait(sql.run(&source, query("SELECT max(id) AS n FROM keyed", &[])))), "n=2");
}

fn bytes_and_dates_keep_their_values(url: &str) {
    let (sql, source) = (sql(), source(url, PoolSettings::default()));
    let bytes = if url.contains("postgres") { "BYTEA" } else { "BLOB" };
    let table = format!(
        "DROP TABLE IF EXISTS kept_values; CREATE TABLE kept_values (b {bytes}, d DATE, t TIMESTAMP, n DECIMAL(20, 4))"
    );
    wait(sql.run(&source, query(&table, &[]))).unwrap();
    let all_bytes: Vec<u8> = (0..=255).collect();
    let values = [
        SqlValue::Bytes(all_bytes.clone().into()),
        SqlValue::Temporal("1999-12-31".into()),
        SqlValue::Temporal("2024-02-29 10:20:30.0".into()),
        SqlValue::Decimal("123456789.5000".into()),
    ];
    wait(sql.run(&source, query("INSERT INTO kept_values VALUES (?, ?, ?, ?)", &values))).unwrap();
    let (_, rows) = all(&sql, &source, query("SELECT b, d, t, n FROM kept_values", &[]), Yields::Rows);
    // SQLite has no decimals.
    let number = if url.contains("sqlite") { "123456789.5" } else { "123456789.5000" };
    let bytes = format!("{:?}", bytes::Bytes::from(all_bytes));
    assert_eq!(rows, format!("{bytes} 1999-12-31 2024-02-29 10:20:30.0 {number}"), "{url}");
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn types_of_mariadb_are_written_as_java_writes_them() {
    let (sql, source) = (sql(), source(&mariadb(), PoolSettings::default()));
    let columns = [
        ("DECIMAL(6,2)", "12.50", "12.50"),
        ("DECIMAL(40,4)", "-123456789012345678901234567890.0025", "-123456789012345678901234567890.0025"),
        ("DOUBLE", "1", "1.0"),
        ("FLOAT", "1.1", "1.1"),
        ("BOOLEAN", "TRUE", "true"),
        ("TINYINT", "-7", "-7"),
        ("BIT(1)", "b'0'", "false"),
        ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
        ("DATE", "'1999-12-31'", "1999-12-31"),
        ("TIME", "'-30:20:10'", "-30:20:10"),
        ("TIME(3)", "'10:20:30.250'", "10:20:30.25"),
        ("DATETIME", "'2024-02-29 10:20:30'", "2024-02-29 10:20:30.0"),
        ("DATETIME(6)", "'2024-02-29 10:20:30.000250'", "2024-02-29 10:20:30.00025"),
        ("YEAR", "2024", "2024"),
        ("ENUM('a', 'b')", "'b'", "b"),
        ("JSON", "'{\"a\": 1}'", "{\"a\": 1}"),
        ("TEXT CHARACTER SET utf8mb4", "'größer 🙂'", "größer 🙂"),
        ("VARBINARY(4)", "x'00ff'", "00ff"),
    ];
    for (index, (kind, literal, expected)) in columns.into_iter().enumerate() {
        let table = format!("types_{index}");
        let make = format!("CREATE OR REPLACE TABLE {table} (x {kind}); INSERT INTO {table} VALUES ({literal})");
        wait(sql.run(&source, query(&make, &[]))).unwrap();
        let found = wait(sql.run(&source, query(&format!("SELECT x FROM {table}"), &[])));
        assert_eq!(shown(found), format!("x={expected}"), "{kind}");
    }
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn procedures_of_mariadb_return_rows_and_parameters() {
    let (sql, source) = (sql(), source(&mariadb(), PoolSettings::default()));
    for definition in [
        "CREATE OR REPLACE PROCEDURE two_rows(IN a INT) BEGIN SELECT a AS n UNION SELECT a + 1; SELECT 9 AS other; END",
        "CREATE OR REPLACE PROCEDURE doubled(IN a INT, INOUT b INT, OUT c DECIMAL(6,2)) SET b = b * a, c = a / 4",
        "CREATE OR REPLACE PROCEDURE both_kinds(IN a INT, OUT b VARCHAR(9)) BEGIN SELECT a AS n; SET b = 'x'; END",
        "CREATE OR REPLACE FUNCTION total(a INT, b INT) RETURNS INT DETERMINISTIC RETURN a + b",
    ] {
        // A definition has semicolons, which divide texts; the client of the server knows where it ends.
        define(definition);
    }
    let integer = SqlValue::Integer;
    let (out, inout) = (|name: &str| CallPlace::Out(name.into()), |name: &str| CallPlace::InOut(name.into()));
    for (call, values, places, columns, rows) in [
        ("call two_rows(?)", vec![integer(4)], vec![CallPlace::In], "n", "4|5"),
        (
            "{call doubled(?, ?, ?)}",
            vec![integer(3), integer(5)],
            vec![CallPlace::In, inout("twice"), out("part")],
            "twice part",
            "15 0.75",
        ),
        ("call both_kinds(?, ?)", vec![integer(2)], vec![CallPlace::In, out("word")], "n word", "2 x"),
        (
            "{? = call total(?, ?)}",
            vec![integer(2), integer(3)],
            vec![out("sum"), CallPlace::In, CallPlace::In],
            "sum",
            "5",
        ),
    ] {
        let (names, found) = all(&sql, &source, query(call, &values), Yields::Call(places));
        assert_eq!((names.join(" ").as_str(), found.as_str()), (columns, rows), "{call}");
    }
}

/// Runs a statement with semicolons in it by MariaDB's own client.
fn define(statement: &str) {
    let url = mysql::MysqlAddress::parse(&mariadb(), None, None).unwrap();
    let options = ["--no-defaults", "--protocol=tcp", "--delimiter=//"].map(str::to_owned);
    let port = format!("--port={}", url.port);
    let credentials = format!("--user={}", url.user.unwrap());
    let password = format!("--password={}", url.password.unwrap());
    let mut command = std::process::Command::new("mariadb");
    command.args(options).args([port, credentials, password, format!("--host={}", url.host)]);
    let output = command.args(["--execute", statement]).arg(url.database.unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs PostgreSQL: tools/with-postgresql"]
fn procedures_of_postgresql_return_rows_and_parameters() {
    let (sql, source) = (sql(), source(&postgresql(), PoolSettings::default()));
    for definition in [
        "CREATE OR REPLACE FUNCTION two_rows(a INT) RETURNS TABLE(n INT) LANGUAGE sql AS $$ VALUES (a), (a + 1) $$",
        "CREATE OR REPLACE PROCEDURE doubled(a INT, INOUT b INT) LANGUAGE plpgsql AS $$ BEGIN b := b * a; END $$",
        "CREATE OR REPLACE FUNCTION total(a INT, b INT) RETURNS INT LANGUAGE sql AS $$ SELECT a + b $$",
    ] {
        wait(sql.run(&source, query(definition, &[]))).unwrap();
    }
    let integer = SqlValue::Integer;
    for (call, values, places, columns, rows) in [
        ("{call two_rows(?)}", vec![integer(4)], vec![CallPlace::In], "n", "4|5"),
        (
            "call doubled(?, ?)",
            vec![integer(3), integer(5)],
            vec![CallPlace::In, CallPlace::InOut("twice".into())],
            "twice",
            "15",
        ),
        (
            "{? = call total(?, ?)}",
            vec![integer(2), integer(3)],
            vec![CallPlace::Out("sum".into()), CallPlace::In, CallPlace::In],
            "sum",
            "5",
        ),
    ] {
        let (names, found) = all(&sql, &source, query(call, &values), Yields::Call(places));
        assert_eq!((names.join(" ").as_str(), found.as_str()), (columns, rows), "{call}");
    }
}

/// Another connection ends the one that is idle in the pool.
#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn a_broken_connection_to_mariadb_is_replaced() {
    let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
    let (sql, source, other) = (sql(), source(&mariadb(), pool), source(&mariadb(), PoolSettings::default()));
    let id = || shown(wait(sql.run(&source, query("SELECT CONNECTION_ID() AS id", &[]))));
    let first = id();
    assert_eq!(id(), first, "the connection is kept");
    let kill = format!("KILL {}", first.trim_start_matches("id="));
    wait(sql.run(&other, query(&kill, &[]))).unwrap();
    assert_ne!(id(), first);
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn connections_to_mariadb_are_encrypted_on_demand() {
    let cipher = |mode: &str| {
        let source = source(&format!("{}&sslMode={mode}", mariadb()), PoolSettings::default());
        wait(sql().run(&source, query("SHOW STATUS LIKE 'Ssl_cipher'", &[])))
    };
    assert_eq!(shown(cipher("disable")), "variable_name=Ssl_cipher value=");
    for mode in ["trust", "PREFERRED"] {
        assert!(shown(cipher(mode)).starts_with("variable_name=Ssl_cipher value=TLS_"), "{mode}");
    }
    // The certificate signs itself, and no authority is configured.
    let error = cipher("verify-full").unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::Unreachable, "{error}");
}

fn a_lease_has_one_holder_at_a_time(url: &str) {
    use penstock_engine::lease::Leases;
    let (databases, source) = (Arc::new(sql()), source(url, PoolSettings::default()));
    let node = |name: &str| SqlLeases::new(databases.clone(), source.clone(), name.into());
    let (one, two, long) = (node("one"), node("two"), Duration::from_secs(600));
    // Tests of earlier runs may have used the table.
    let name = penstock_engine::clock::uuid();
    let acquire = |node: &SqlLeases, time| wait(node.acquire(&name, time)).unwrap();
    let token = |node: &SqlLeases, time| acquire(node, time).map(|lease| lease.fencing_token);
    let first = acquire(&one, long).unwrap();
    assert_eq!((first.fencing_token, token(&two, long)), (1, None), "{url}");
    assert_eq!(token(&one, long), Some(1), "{url}: extended");
    wait(two.release(&first)).unwrap();
    assert_eq!(token(&two, long), None, "{url}: only its holder gives it back");
    wait(one.release(&first)).unwrap();
    assert_eq!((token(&two, long), token(&one, long)), (Some(2), None), "{url}");
    // A lease that ended goes to the next node that wants it.
    assert_eq!(token(&two, Duration::from_millis(1)), Some(2));
    let next = loop {
        if let Some(token) = token(&one, long) {
            break token;
        }
    };
    assert_eq!((next, token(&two, long)), (3, None), "{url}");
}

on_each_database! {
    a_lease_has_one_holder_at_a_time
    values_are_bound_and_read
    several_statements_of_one_text_share_its_values_in_order
    a_refused_statement_says_why_and_leaves_the_connection_usable
    a_statement_prepared_before_the_table_changed_is_prepared_again
    a_transaction_keeps_or_takes_back
    one_database_takes_part_once_however_its_pools_are_kept
    a_statement_that_waits_for_its_own_transaction_is_a_fault
    who_waits_to_write_takes_no_connection_from_those_who_read
    a_pool_has_a_limit
    a_query_that_takes_too_long_is_given_up
    rows_are_read_in_batches
    rows_that_are_not_read_do_not_hold_the_connection
    queries_run_between_the_rows_of_another
    keys_of_inserted_rows_are_returned
    bytes_and_dates_keep_their_values
}
