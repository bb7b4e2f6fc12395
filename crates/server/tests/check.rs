//! `penstock check` and the exit statuses of the command line.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a panic is the report, and what is left out is said"
)]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use support::{Folder, api, penstock};

#[test]
fn what_is_good_is_counted() {
    let folder = Folder::new("check-good");
    folder.write("a.xml", api("one"));
    let done = penstock(&folder.0, &["check", "a.xml"]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, "1 artifact, 1 good: 0 errors, 0 warnings\n"),
        "{}",
        done.stderr
    );
}

#[test]
fn every_mistake_is_said_with_its_place() {
    let folder = Folder::new("check-bad");
    folder.write("b/broken.xml", "<api name='B'\n  context='/b'><resource>");
    folder.write(
        "b/unknown.xml",
        "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'>\n  <respnd/>\n  <sequence key='nowhere'/>\n</sequence>",
    );
    let done = penstock(&folder.0, &["check", "b"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(done.status, 1, "{}", done.stdout);
    assert!(lines[0].starts_with("b/broken.xml:2:") && lines[0].contains(": error: "), "{}", done.stdout);
    assert_eq!(lines[1], "b/unknown.xml:2:3: error: unknown mediator <respnd>, did you mean <respond>?");
    assert!(
        lines[2].starts_with("b/unknown.xml:3:") && lines[2].contains("warning: unknown sequence `nowhere`"),
        "{}",
        done.stdout
    );
    assert_eq!(lines[3], "2 artifacts, 0 good: 2 errors, 1 warning");
}

#[test]
fn mistakes_of_a_data_service_are_reported_with_its_operations() {
    let folder = Folder::new("check-data-service");
    folder.write(
        "Stock.dbs",
        "<data name='Stock'>\n  <query id='all' useConfig='nowhere'><sql>SELECT 1</sql></query>\n  \
         <resource method='GET' path='all'><call-query href='all'/></resource>\n</data>",
    );
    let done = penstock(&folder.0, &["check", "Stock.dbs"]);
    let first = done.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("Stock.dbs:2:") && first.contains("error: "), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.status, 1);
}

#[test]
fn a_folder_without_artifacts_is_an_error() {
    let folder = Folder::new("check-empty");
    folder.write("empty/README.md", "nothing");
    let done = penstock(&folder.0, &["check", "empty"]);
    let expected = "error: no artifact was found under these paths\n0 artifacts, 0 good: 0 errors, 0 warnings\n";
    assert_eq!((done.status, done.stdout.as_str()), (1, expected));
}

#[test]
fn a_mistyped_data_mapper_is_not_taken_for_its_source() {
    let folder = Folder::new("check-formats");
    folder.write("repo/src/main/wso2mi/resources/registry/gov/datamapper/Map.ts", "x");
    let sequence = "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'>\n\
         <xslt key='gov:datamapper/Map.dmc'/>\n</sequence>";
    folder.write("repo/src/main/wso2mi/artifacts/sequences/s.xml", sequence);
    let done = penstock(&folder.0, &["check", "repo"]);
    assert!(
        done.stdout.contains("unknown local entry or registry resource `gov:datamapper/Map.dmc`\n"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_warning_is_no_error_unless_strict() {
    let folder = Folder::new("check-strict");
    folder.write(
        "s.xml",
        "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'><sequence key='nowhere'/></sequence>",
    );
    assert_eq!(penstock(&folder.0, &["check", "s.xml"]).status, 0);
    assert_eq!(penstock(&folder.0, &["check", "--strict", "s.xml"]).status, 1);
}

#[test]
fn statuses_say_whose_fault_it_is() {
    let folder = Folder::new("status");
    folder.write("wrong.toml", "nonsense = 1");
    for (arguments, status, said) in [
        (&["check", "missing.car"][..], 3, "`missing.car` does not exist"),
        (&["run", "missing.car"], 3, "`missing.car` does not exist"),
        (&["run", "--config", "none.toml"], 3, "`none.toml` does not exist"),
        (&["run", "--config", "wrong.toml"], 1, "wrong.toml:1:1: error: unknown key `nonsense`"),
        (&["check"], 2, "<PATH>"),
        (&["run", "--offset", "-1"], 2, "--offset"),
        (&["nonsense"], 2, "nonsense"),
        (&["xpath", "//["], 1, "error: "),
        (&["xpath", "1", "o.xml", "-v", "x"], 2, "NAME=VALUE"),
        (&["xslt", "s.xsl", "--param-expr", "p"], 2, "NAME=VALUE"),
        (&["xsd", "missing.xsd"], 3, "`missing.xsd` does not exist"),
        (&["xpath", "1", "missing.xml"], 3, "`missing.xml` does not exist"),
    ] {
        let done = penstock(&folder.0, arguments);
        assert_eq!(done.status, status, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(penstock(&folder.0, &["--version"]).stdout, format!("penstock {}\n", env!("CARGO_PKG_VERSION")));
    assert!(penstock(&folder.0, &["--help"]).stdout.contains("penstock example"));
}

#[test]
fn xpath_prints_one_item_a_line() {
    let folder = Folder::new("xpath");
    folder.write("count.xpath", "count(\n  //@id\n)");
    folder.write("inner/o.xml", "<o id='3'/>");
    folder.write("o.xml", "<o:orders xmlns:o='urn:o'><o:order id='1'>bolt</o:order><o:order id='2'/></o:orders>");
    for (arguments, expected) in [
        (&["xpath", "count(//o:order)", "o.xml", "-n", "o=urn:o"][..], "2\n"),
        (&["xpath", "//o:order[1]/text()", "o.xml", "-n", "o=urn:o"], "bolt\n"),
        (&["xpath", "//@id", "o.xml"], "id=\"1\"\nid=\"2\"\n"),
        (&["xpath", "concat($who, '!')", "o.xml", "-v", "who=you"], "you!\n"),
        (&["xpath", "$ids[2]", "o.xml", "--variable-expr", "ids=//@id"], "id=\"2\"\n"),
        (&["xpath", "-f", "count.xpath", "o.xml"], "2\n"),
        (&["xpath", "count(doc('o.xml')//@id) + count(doc('o.xml') | doc('./o.xml'))", "o.xml"], "3\n"),
        (&["xpath", "count(doc('o.xml')//@id)", "o.xml", "--base-uri", "inner/x.xml"], "1\n"),
    ] {
        let done = penstock(&folder.0, arguments);
        assert_eq!((done.status, done.stdout.as_str()), (0, expected), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn xsd_prints_one_violation_a_line() {
    let folder = Folder::new("xsd");
    let schema =
        |content: &str| format!("<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>{content}</xs:schema>");
    folder
        .write("order.xsd", schema("<xs:include schemaLocation='types/size.xsd'/><xs:element name='n' type='size'/>"));
    folder
        .write("types/size.xsd", schema("<xs:simpleType name='size'><xs:restriction base='xs:int'/></xs:simpleType>"));
    folder.write("extra.xsd", schema("<xs:element name='extra'/>"));
    folder.write("wrong.xsd", schema("<xs:element name='n' type='nothing'/>"));
    folder.write("good.xml", "<n>7</n>");
    folder.write("bad.xml", "<n>seven</n>");
    folder.write("extra.xml", "<extra/>");
    folder.write("open.xml", "<n>");
    for (arguments, status, expected) in [
        (&["xsd", "order.xsd"][..], 0, ""),
        (&["xsd", "order.xsd", "good.xml"], 0, "good.xml: valid\n"),
        (&["xsd", "order.xsd", "-s", "extra.xsd", "extra.xml"], 0, "extra.xml: valid\n"),
        (&["xsd", "order.xsd", "good.xml", "bad.xml"], 1, "bad.xml:1:1: cvc-datatype-valid.1.2.1: 'seven'"),
        (&["xsd", "order.xsd", "open.xml"], 1, "open.xml:1:4: "),
        (&["xsd", "wrong.xsd", "good.xml"], 1, "error: wrong.xsd:1:"),
    ] {
        let done = penstock(&folder.0, arguments);
        assert_eq!(done.status, status, "{arguments:?}: {}{}", done.stdout, done.stderr);
        let printed = done.stdout + &done.stderr;
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn xslt_prints_the_result() {
    let folder = Folder::new("xslt");
    folder.write(
        "s.xsl",
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:param name='p'/>\
         <xsl:output method='text'/><xsl:template match='/'><xsl:value-of select='concat(/a, $p)'/></xsl:template></xsl:stylesheet>",
    );
    folder.write("a.xml", "<a>one</a>");
    let done = penstock(&folder.0, &["xslt", "s.xsl", "a.xml", "-p", "p=two"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "onetwo"), "{}", done.stderr);
    folder.write(
        "t.xsl",
        "<xsl:stylesheet version='2.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:param name='day'/>\
         <xsl:output method='text'/><xsl:template name='go'><xsl:value-of select='day-from-date($day) + 1'/></xsl:template>\
         <xsl:template match='a' mode='m'>mode</xsl:template></xsl:stylesheet>",
    );
    for (arguments, expected) in [
        (&["xslt", "t.xsl", "--initial-template", "go", "--param-expr", "day=xs:date('2026-01-30')"][..], "31"),
        (&["xslt", "t.xsl", "a.xml", "--initial-mode", "m"], "mode"),
    ] {
        let done = penstock(&folder.0, arguments);
        assert_eq!((done.status, done.stdout.as_str()), (0, expected), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(penstock(&folder.0, &["xslt", "none.xsl", "a.xml"]).status, 3);
    assert_eq!(penstock(&folder.0, &["xslt", "a.xml", "a.xml", "-p", "p"]).status, 2);
}

/// A path in the folder of published artifacts beside the checkout.
fn shared(name: &str) -> String {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name).display().to_string()
}

/// A PEM file with the certificate and key of a service, from the vectors of `wssecurity`.
fn service_pem() -> String {
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wssecurity/tests/vectors");
    let block = |file: &str, label: &str| {
        let text = STANDARD.encode(std::fs::read(vectors.join(file)).unwrap());
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    block("service.der", "CERTIFICATE") + &block("service.key.der", "PRIVATE KEY")
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_application_needs_only_a_keystore() {
    let archive = shared("scenarios/perftest.car");
    let folder = Folder::new("published");
    folder.write("service.pem", service_pem());
    folder.write("penstock.toml", "[security]\nkeystore = 'service.pem'\n");
    let done = penstock(&folder.0, &["check", &archive]);
    let last = done.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("27 artifacts, 27 good: 0 errors, "), "{}", done.stdout);
    let without = penstock(std::path::Path::new("."), &["check", &archive]);
    let last = without.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("27 artifacts, 26 good: 1 error, "), "{}", without.stdout);
    assert!(without.stdout.contains("the security policy needs a private key"), "{}", without.stdout);
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_diagnostics_have_places() {
    let corpus = shared("corpus/mi");
    let done = penstock(std::path::Path::new("."), &["check", &corpus]);
    assert_eq!((done.status, done.stderr.as_str()), (1, ""));
    let mut lines: Vec<&str> = done.stdout.lines().collect();
    let last = lines.pop().unwrap_or_default();
    assert!(lines.len() > 100 && last.contains(" artifacts, "), "{last}");
    for line in lines {
        let place = line.strip_prefix(&corpus).unwrap_or_else(|| panic!("no file: {line}"));
        let mut parts = place.splitn(4, ':');
        let (_file, at, column, rest) = (parts.next(), parts.next(), parts.next(), parts.next());
        let number =
            |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok()).is_some_and(|number| number > 0);
        assert!(number(at) && number(column), "no place: {line}");
        assert!(
            rest.is_some_and(|rest| rest.starts_with(" error: ") || rest.starts_with(" warning: ")),
            "no level: {line}"
        );
    }
}
