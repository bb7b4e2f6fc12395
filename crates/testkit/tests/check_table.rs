//! Artifacts of the corpus that do not compile, with a table of the reasons.

#![allow(clippy::print_stdout, reason = "the test prints a table")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use penstock_compile::{CompileOptions, Input, InputKind, Severity, compile};
use penstock_testkit::REGISTRY;
use penstock_xml::{Document, ParseOptions};

/// Artifacts that do not compile, one a line. `UPDATE=1` rewrites it.
const KNOWN_FAILURES: &str = "../../tests/known-failures/compile.txt";

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
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_artifacts_compile() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = here.join("../../../shared/corpus/mi");
    let mut total = 0;
    let mut failures = Vec::new();
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
            if let Some(error) = done.diagnostics.iter().find(|note| note.severity == Severity::Error) {
                let line = format!("{name}:{}: {}", error.at.line, error.message);
                reasons.entry(reason(&error.message)).or_default().push(line);
                failures.push(name);
            }
        }
    }
    let mut table: Vec<_> = reasons.into_iter().collect();
    table.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
    println!("{} of {total} well-formed artifacts compile", total - failures.len());
    for (reason, lines) in &table {
        println!("{:5}  {reason}", lines.len());
        for line in lines.iter().take(3) {
            println!("         {line}");
        }
    }
    let known = here.join(KNOWN_FAILURES);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&known, failures.join("\n") + "\n").unwrap();
    }
    let known = fs::read_to_string(&known).unwrap();
    let known: Vec<&str> = known.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(failures, known, "UPDATE=1 rewrites {KNOWN_FAILURES}");
}
