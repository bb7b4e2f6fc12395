//! The parsers of foreign bytes, for the fuzz targets.

use penstock_engine::database::Dialect;

/// The rows of a CSV file.
pub fn delimited_rows(text: &str, separator: char) -> Vec<Vec<String>> {
    penstock_message::delimited::rows(text, separator).collect()
}

/// Reads a text as a path, a filter, an order and an expansion of OData.
///
/// # Panics
/// When the SQL of an expression does not have a place for each of its values.
pub fn odata(text: &str) {
    crate::odata::path::Target::parse(text).ok();
    crate::odata::expand::parse(text).ok();
    for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
        let column = |name: &str| crate::odata::catalog::Column {
            name: name.into(),
            kind: "TEXT".into(),
            is_nullable: true,
            key_position: 0,
            dialect,
        };
        let columns = vec![column("NAME"), column("A")];
        let table = crate::odata::catalog::Table { name: "T".into(), columns, dialect, links: Vec::new() };
        let filter = crate::odata::filter::filter(text, &table, dialect);
        let order = crate::odata::filter::order(text, &table, dialect);
        for fragment in [filter, order].into_iter().flatten() {
            assert_eq!(fragment.sql.matches('?').count(), fragment.values.len(), "{}", fragment.sql);
        }
    }
}

/// Reads a body of `$batch`.
pub fn batch(body: &[u8]) {
    let header = |name: &str| (name == "Content-Type").then(|| "multipart/mixed; boundary=b".to_owned());
    crate::odata::batch::Batch::parse(body, &header, &"/odata/S/c".into()).ok();
}
