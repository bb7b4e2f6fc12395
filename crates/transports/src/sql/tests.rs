//! The same flows on every database there is: SQLite always, PostgreSQL when `PENSTOCK_TEST_POSTGRESQL` holds its address.

use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_engine::database::{
    Answer, DataSource, DatabaseError, DatabaseErrorKind, Databases, Location, PoolSettings, Query, SqlValue,
};

use super::*;
use crate::http::tls::ClientTrust;

/// Where the tests find a PostgreSQL they may write to; `tools/with-postgresql` starts one and sets it.
const POSTGRESQL: &str = "PENSTOCK_TEST_POSTGRESQL";

/// The addresses to test with.
fn databases() -> Vec<String> {
    let mut found = vec!["jdbc:sqlite::memory:".to_owned()];
    match std::env::var(POSTGRESQL) {
        Ok(url) => found.push(url),
        Err(_) => {
            say("PostgreSQL is missing: the tests of databases run on SQLite only; tools/with-postgresql starts one")
        }
    }
    found
}

fn say(text: &str) {
    eprintln!("{text}");
}

fn source(url: &str, pool: PoolSettings) -> Arc<DataSource> {
    Arc::new(DataSource { location: Location::Url(url.into()), definition: None, user: None, password: None, pool })
}

fn sql() -> Sql {
    Sql::new(Mapping::default(), Arc::new(TlsClient::new(ClientTrust::default())))
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

#[test]
fn values_are_bound_and_read() {
    for url in databases() {
        let (sql, source) = (sql(), source(&url, PoolSettings::default()));
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
}

#[test]
fn several_statements_of_one_text_share_its_values_in_order() {
    for url in databases() {
        let (sql, source) = (sql(), source(&url, PoolSettings::default()));
        fresh(&sql, &source, "several");
        let run = |text: &str, values: &[SqlValue]| wait(sql.run(&source, query(text, values)));
        let two = "INSERT INTO several (id) VALUES (?); INSERT INTO several (id) VALUES (?);";
        assert_eq!(run(two, &[SqlValue::Integer(1), SqlValue::Integer(2)]).unwrap().changed, 2);
        assert_eq!(shown(run("SELECT count(*) AS n FROM several", &[])), "n=2");
        for (text, values, expected) in [
            (two, vec![SqlValue::Integer(8)], "more places"),
            ("SELECT 1", vec![SqlValue::Integer(8)], "more parameters"),
        ] {
            let error = run(text, &values).unwrap_err();
            assert!(error.message.contains(expected), "{url}: {error}");
        }
    }
}

#[test]
fn a_refused_statement_says_why_and_leaves_the_connection_usable() {
    for url in databases() {
        let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
        let (sql, source) = (sql(), source(&url, pool));
        fresh(&sql, &source, "refused");
        let run = |text: &str| wait(sql.run(&source, query(text, &[])));
        run("INSERT INTO refused (id) VALUES (1)").unwrap();
        let error = run("INSERT INTO refused (id) VALUES (1)").unwrap_err();
        assert_eq!(error.kind, DatabaseErrorKind::Refused);
        assert!(error.message.to_lowercase().contains("unique"), "{url}: {error}");
        assert!(run("SELECT * FROM nowhere").is_err());
        assert_eq!(shown(run("SELECT id FROM refused")), "id=1");
    }
}

#[test]
fn a_statement_prepared_before_the_table_changed_is_prepared_again() {
    for url in databases() {
        let pool = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
        let (sql, source) = (sql(), source(&url, pool));
        fresh(&sql, &source, "changed");
        let run = |text: &str| wait(sql.run(&source, query(text, &[])));
        run("INSERT INTO changed (id) VALUES (1)").unwrap();
        assert_eq!(shown(run("SELECT * FROM changed")), "id=1 name=null price=null");
        run("DROP TABLE changed; CREATE TABLE changed (word varchar(9)); INSERT INTO changed VALUES ('x')").unwrap();
        assert_eq!(shown(run("SELECT * FROM changed")), "word=x", "{url}");
    }
}

#[test]
fn a_transaction_keeps_or_takes_back() {
    for url in databases() {
        let (sql, source) = (sql(), source(&url, PoolSettings::default()));
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
        assert_eq!(count(), "n=1", "{url}: a transaction nobody ended is rolled back");
        // The connection was closed, not kept in its transaction.
        wait(sql.run(&source, insert(4))).unwrap();

        let transaction = sql.begin();
        wait(transaction.run(&source, insert(5))).unwrap();
        assert!(wait(transaction.run(&source, insert(5))).is_err());
        wait(transaction.rollback()).unwrap();
        assert_eq!(count(), "n=2");
    }
}

#[test]
fn one_database_takes_part_once_however_its_pools_are_kept() {
    for url in databases() {
        let sql = sql();
        let pool = |connections_max| PoolSettings { connections_max, ..PoolSettings::default() };
        let (one, two) = (source(&url, pool(Some(2))), source(&url, pool(Some(3))));
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
}

#[test]
fn a_statement_that_waits_for_its_own_transaction_is_a_fault() {
    for url in databases() {
        let sql = sql();
        let alone = PoolSettings { connections_max: Some(1), ..PoolSettings::default() };
        let (alone, source) = (source(&url, alone), source(&url, PoolSettings::default()));
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
}

/// Each message has a transaction open while another of its requests, to this same process, reads the database.
#[test]
fn who_waits_to_write_takes_no_connection_from_those_who_read() {
    for url in databases() {
        let (sql, source) = (sql(), source(&url, PoolSettings::default()));
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
}

#[test]
fn a_pool_has_a_limit() {
    for url in databases() {
        let pool =
            PoolSettings { connections_max: Some(1), wait: Some(Duration::from_millis(30)), ..PoolSettings::default() };
        let (sql, source) = (sql(), source(&url, pool));
        fresh(&sql, &source, "busy");
        let transaction = sql.begin();
        wait(transaction.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
        let error = wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap_err();
        assert_eq!(error.kind, DatabaseErrorKind::Busy);
        assert_eq!(error.message, "all 1 connections to the database were in use for 0.03 s");
        wait(transaction.rollback()).unwrap();
        wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
    }
}

#[test]
fn a_query_that_takes_too_long_is_given_up() {
    let entry = |url: String| DatabaseEntry {
        name: "jdbc/Slow".into(),
        url,
        query_timeout: Some(Duration::from_millis(80)),
        connections_max: Some(1),
        ..DatabaseEntry::default()
    };
    for url in databases() {
        let slow = if url.contains("sqlite") {
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t"
        } else {
            "SELECT pg_sleep(30)"
        };
        let mapping = Mapping { entries: vec![entry(url.clone())] };
        let sql = Sql::new(mapping, Arc::new(TlsClient::new(ClientTrust::default())));
        let source = Arc::new(DataSource {
            location: Location::Name("jdbc/Slow".into()),
            definition: None,
            user: None,
            password: None,
            pool: PoolSettings::default(),
        });
        let started = Instant::now();
        let error = wait(sql.run(&source, query(slow, &[]))).unwrap_err();
        assert_eq!(error.kind, DatabaseErrorKind::TimedOut, "{url}: {error}");
        assert!(started.elapsed() < Duration::from_secs(10), "it was not given up");
        wait(sql.run(&source, query("SELECT 1 AS x", &[]))).unwrap();
    }
}

#[test]
fn a_database_that_is_away_is_an_error_and_not_a_wait() {
    let sql = sql();
    // Nobody listens on port 9 of this machine, and no name is resolved.
    for url in ["jdbc:postgresql://127.0.0.1:9/orders?user=x&password=secret", "jdbc:sqlite:/nowhere/at/all.db"] {
        let error = wait(sql.run(&source(url, PoolSettings::default()), query("SELECT 1", &[]))).unwrap_err();
        assert_eq!(error.kind, DatabaseErrorKind::Unreachable);
        assert!(!error.message.contains("secret"), "{error}");
    }
    let error = wait(sql.run(&source("jdbc:db2://h/d", PoolSettings::default()), query("SELECT 1", &[]))).unwrap_err();
    assert_eq!(error.kind, DatabaseErrorKind::Undefined);
}

#[test]
fn types_of_postgresql_are_written_as_java_writes_them() {
    let Some(url) = databases().into_iter().find(|url| !url.contains("sqlite")) else { return };
    let (sql, source) = (sql(), source(&url, PoolSettings::default()));
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
