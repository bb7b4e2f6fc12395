//! Reads the files given and says which are well-formed: `path: ok, N nodes` or `path:line:column: message`.
//! With `--write` the document is written again instead.

use std::io::Write;

use penstock_xml::{Document, ParseOptions, WriteOptions, to_vec};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut write = false;
    for path in std::env::args().skip(1) {
        if path == "--write" {
            write = true;
            continue;
        }
        let bytes = std::fs::read(&path)?;
        match Document::parse(bytes, &ParseOptions::default()) {
            Ok(document) if write => out.write_all(&to_vec(&document, Document::ROOT, &WriteOptions::default()))?,
            Ok(document) => writeln!(out, "{path}: ok, {} nodes", document.node_count())?,
            Err(error) => writeln!(out, "{path}:{error}")?,
        }
    }
    Ok(())
}
