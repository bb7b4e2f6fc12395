//! Data services: lines of CSV files, and requests of OData.

use penstock_dataservices::fuzzing;

/// Pieces of rows, paths, expressions and batches.
pub const DICTIONARY: &[&str] = &[
    "\"",
    "\"\"",
    ",",
    ";",
    "\r\n",
    "T(1)",
    "T('a''b')",
    "T(a=1,b='x')",
    "/$ref",
    "/$value",
    "/$count",
    "$batch",
    " eq ",
    " and ",
    " or not (",
    "contains(NAME,'",
    "year(A)",
    " add ",
    " div ",
    "null",
    " desc,",
    "U($filter=",
    ";$expand=U(",
    "--b\r\n",
    "--b--",
    "--c\r\n",
    "--c--",
    "Content-Type: application/http\r\n\r\n",
    "Content-Type: multipart/mixed; boundary=c\r\n\r\n",
    "GET T HTTP/1.1\r\n\r\n",
    "POST T HTTP/1.1\r\n\r\n{}",
];

/// The text is a CSV file, a path, an expression and a batch in turn.
pub fn sources(data: &[u8]) {
    fuzzing::batch(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    for separator in [',', ';', '\t'] {
        let rows = fuzzing::delimited_rows(text, separator);
        // Written in quotes, the rows are read the same.
        let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(&separator.to_string()) + "\n";
        let written: String = rows.iter().map(line).collect();
        assert_eq!(fuzzing::delimited_rows(&written, separator), rows);
    }
    fuzzing::odata(text);
}
