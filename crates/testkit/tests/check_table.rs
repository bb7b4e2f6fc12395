//! What part of the corpus compiles: a table by reason. It runs where the folder `shared` lies beside the checkout.

#![allow(clippy::print_stdout, reason = "the table is what this test is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use penstock_compile::{CompileOptions, Input, InputKind, Severity, compile};
use penstock_testkit::REGISTRY;
use penstock_xml::{Document, ParseOptions};

/// At least this many of a hundred well-formed artifacts compile.
const PERCENT_MIN: usize = 95;

/// Mediators that are about to be there; what only they keep from compiling counts as compiling.
const COMING: [&str; 1] = ["datamapper"];

const FOLDERS: [&str; 6] = ["api", "proxy", "sequence", "endpoint", "template", "local-entry"];

/// Why an artifact does not compile, without the names in it.
fn reason(message: &str) -> String {
    let mut out = String::new();
    for (index, part) in message.split('`').enumerate() {
        out.push_str(if index % 2 == 0 { part } else { "`…`" });
    }
    out
}

#[test]
fn nearly_everything_compiles() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi");
    if !corpus.is_dir() {
        println!("skipped: {} is not there", corpus.display());
        return;
    }
    let (mut total, mut good, mut coming) = (0, 0, 0);
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in FOLDERS {
        let mut files: Vec<_> = fs::read_dir(corpus.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let bytes = fs::read(&file).unwrap();
            if Document::parse(bytes.clone(), &ParseOptions::default()).is_err() {
                continue;
            }
            let name = format!("{folder}/{}", file.file_name().unwrap().to_string_lossy());
            let input = Input { file: name.as_str().into(), bytes: bytes.into(), kind: InputKind::Artifact };
            let done = compile(&[input], &REGISTRY, &CompileOptions::default());
            total += 1;
            match done.diagnostics.iter().find(|note| note.severity == Severity::Error) {
                None => good += 1,
                Some(error)
                    if COMING.iter().any(|name| error.message == format!("mediator <{name}> is not supported yet")) =>
                {
                    coming += 1;
                }
                Some(error) => {
                    let line = format!("{name}:{}: {}", error.at.line, error.message);
                    reasons.entry(reason(&error.message)).or_default().push(line);
                }
            }
        }
    }
    let mut table: Vec<_> = reasons.into_iter().collect();
    table.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    println!(
        "{good} of {total} well-formed artifacts compile, {coming} more wait for mediators that are about to be there"
    );
    for (reason, lines) in &table {
        println!("{:5}  {reason}", lines.len());
        for line in lines.iter().take(3) {
            println!("         {line}");
        }
    }
    assert!((good + coming) * 100 >= total * PERCENT_MIN, "{good} of {total} compile, {PERCENT_MIN} % must");
}
