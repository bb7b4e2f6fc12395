//! `penstock test` over suites as users have them.
//!
//! The suites in `../shared` come without half of their artifacts, and some call public services that are gone. What
//! is missing has stand-ins in the folder `stand-ins`, written for this test.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a panic is the report, and what is left out is said"
)]

mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use support::{Folder, penstock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Mock services in the place of public services that are gone.
const MOCKS: [&str; 5] =
    ["NumberAdditionEP", "NumberDivisionEP", "CalculatorAddEP", "CalculatorDivideEP", "CityLookupEP"];

#[test]
fn every_suite_of_the_corpus_passes() {
    let root = root();
    let corpus = root.join("../shared/corpus/mi/unit-test");
    if !corpus.is_dir() {
        println!("skipped: {} is not there", corpus.display());
        return;
    }
    let stand_ins = root.join("crates/server/tests/stand-ins");
    let folder = Folder::new("suites");
    // A backend that takes connections and never answers; it is held until the test ends.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/delay", silent.local_addr().unwrap().port());
    let endpoint = format!(
        "<endpoint xmlns='http://ws.apache.org/ns/synapse' name='DelayHttpEP'><http method='get' uri-template='{url}'>\
         <timeout><duration>200</duration><responseAction>fault</responseAction></timeout></http></endpoint>"
    );
    folder.write("endpoints/DelayHttpEP.xml", endpoint);
    let mocks: Vec<String> =
        MOCKS.iter().map(|name| stand_ins.join(format!("mocks/{name}.xml")).display().to_string()).collect();
    let (corpus, stand_ins) = (corpus.display().to_string(), stand_ins.display().to_string());
    let mut arguments = vec!["test", &corpus, "--report", "report.xml", "--artifacts", &stand_ins, "--artifacts", "."];
    for mock in &mocks {
        arguments.extend(["--mock", mock]);
    }
    let done = penstock(&folder.0, &arguments);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.ends_with("of 16 suites\n") && done.stdout.contains(", 16 of 16"), "{}", done.stdout);
    let report = std::fs::read_to_string(folder.0.join("report.xml")).unwrap();
    assert_eq!(report.matches("<testsuite ").count(), 16);
}
