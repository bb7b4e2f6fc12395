//! `penstock test` over published suites. Some lack artifacts or call public services that no longer exist; the folder
//! `stand-ins` has replacements.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use support::{Folder, penstock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Mock services that replace public services.
const MOCKS: [&str; 5] =
    ["NumberAdditionEP", "NumberDivisionEP", "CalculatorAddEP", "CalculatorDivideEP", "CityLookupEP"];

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_suites_pass() {
    let root = root();
    let corpus = root.join("../shared/corpus/mi/unit-test");
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
