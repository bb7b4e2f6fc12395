//! What the compiler says, and where.

use bytes::Bytes;
use penstock_compile::{
    ArtifactKind, ArtifactName, Compilation, CompileOptions, Compiler, Element, Input, InputKind, MediatorKind,
    NameKind, Registry, compile, withdraw_nothing,
};
use penstock_engine::{Exchange, Fault, Flow, Mediator};

struct Nothing;

impl Mediator for Nothing {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Next)
    }
}

/// A mediator with one attribute that is an expression and one that names a sequence.
fn probe(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    if let Some(key) = el.attribute("key") {
        cx.sequence_ref(key, el.attribute_place("key"));
    }
    if el.attribute("expression").is_some() {
        cx.expression(el, "expression")?;
    }
    Some(Box::new(Nothing))
}

const BEACON: NameKind = NameKind("beacon");

fn declare_beacon(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    cx.declare(BEACON, name, el.place());
}

fn build_beacon(cx: &mut Compiler<'_>, _name: &str, el: &Element<'_>) {
    assert_ne!(el.attribute("colour"), Some("mauve"), "no such light");
    if let Some(other) = el.attribute("next").filter(|other| !cx.is_declared(BEACON, other)) {
        cx.unknown(BEACON, other, el.attribute_place("next"));
    }
    el.finish(cx);
}

const REGISTRY: Registry = Registry {
    mediators: &[&[MediatorKind { name: "probe", compile: probe }]],
    artifacts: &[&[ArtifactKind {
        element: "beacon",
        name: ArtifactName::Attribute("name"),
        declare: declare_beacon,
        build: build_beacon,
        withdraw: withdraw_nothing,
    }]],
    transports: &[],
    handlers: &[],
    connectors: &[],
    security: |_, _, _| None,
    known: &["store"],
    unsupported: &[],
};

fn run(files: &[(&str, &str)], strict: bool) -> Compilation {
    let inputs: Vec<Input> = files
        .iter()
        .map(|(file, text)| Input {
            file: (*file).into(),
            bytes: Bytes::from((*text).to_owned()),
            kind: InputKind::Artifact,
        })
        .collect();
    compile(&inputs, &REGISTRY, &CompileOptions { strict, ..CompileOptions::default() })
}

/// The text with the namespace declared on its root.
fn in_synapse(text: &str) -> String {
    text.replacen(' ', " xmlns='http://ws.apache.org/ns/synapse' ", 1)
}

fn check(text: &str, expected: &[&str]) {
    let said: Vec<String> = run(&[("a.xml", text)], false).diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "{text}");
}

#[test]
fn a_panic_costs_the_artifact_that_causes_it() {
    let files =
        [("a.xml", in_synapse("<beacon name='a' colour='mauve'/>")), ("b.xml", in_synapse("<beacon name='b'/>"))];
    let compilation = run(&files.each_ref().map(|(file, text)| (*file, text.as_str())), false);
    let said: Vec<String> = compilation.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("a.xml:1:1: error: a defect in Penstock prevents the compilation: "), "{said:?}");
    assert!(said[0].contains("no such light"), "{said:?}");
    let good: Vec<bool> = compilation.artifacts.iter().map(|artifact| artifact.good).collect();
    assert_eq!(good, [false, true]);
}

#[test]
fn every_mistake_is_said_at_once_with_its_place() {
    check(
        "<sequence xmlns='http://ws.apache.org/ns/synapse' name='s'>\n  <prbe/>\n  <probe colour='red'/>\n  <store/>\n  <probe expression='//a['/>\n</sequence>",
        &[
            "a.xml:2:3: error: unknown mediator <prbe>, did you mean <probe>?",
            "a.xml:3:10: warning: <probe> does not know the attribute `colour`",
            "a.xml:4:3: error: mediator <store> is not supported yet",
            "a.xml:5:26: error: the expression `//a[` is not valid XPath: expected an expression, the expression ends here",
        ],
    );
}

#[test]
fn malformed_xml_is_reported_with_its_place() {
    let said = run(&[("a.xml", "<sequence name='s'>\n <probe></sequence>")], false).diagnostics;
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].at.line, said[0].at.file.as_ref()), (2, "a.xml"));
    assert!(said[0].message.starts_with("not well-formed XML: "), "{}", said[0].message);
}

#[test]
fn a_name_that_nothing_defines_is_a_warning_with_a_suggestion_and_an_error_when_strict() {
    let files = [
        ("a.xml", &*in_synapse("<sequence name='orders'/>")),
        ("b.xml", &in_synapse("<sequence name='b'>\n<probe key='ordres'/></sequence>")),
    ];
    let text = "unknown sequence `ordres`, did you mean `orders`?";
    assert_eq!(run(&files, false).diagnostics[0].to_string(), format!("b.xml:2:8: warning: {text}"));
    assert!(run(&files, true).has_errors());
}

#[test]
fn artifacts_with_errors_are_left_out_and_the_others_served() {
    let compilation = run(
        &[
            ("good.xml", "<proxy name='Good'><target><inSequence><probe/></inSequence></target></proxy>"),
            ("bad.xml", "<proxy name='Bad'><target><inSequence><nope/></inSequence></target></proxy>"),
            ("api.xml", "<api name='A' context='nope'><resource/></api>"),
        ],
        false,
    );
    let served: Vec<&str> = compilation.program.routes.proxies().map(|proxy| &*proxy.name).collect();
    assert_eq!(served, ["Good"]);
    let good: Vec<(&str, bool)> =
        compilation.artifacts.iter().map(|status| (status.name.as_str(), status.good)).collect();
    assert_eq!(good, [("Good", true), ("Bad", false), ("A", false)]);
}

#[test]
fn order_of_files_does_not_matter() {
    let files = [
        ("1.xml", "<sequence xmlns='http://ws.apache.org/ns/synapse' name='first'><probe key='second'/></sequence>"),
        (
            "2.xml",
            "<definitions xmlns='http://ws.apache.org/ns/synapse'><sequence name='second'><probe key='first'/></sequence><endpoint name='e'><address uri='http://h'/></endpoint></definitions>",
        ),
    ];
    assert_eq!(run(&files, true).diagnostics, []);
}

#[test]
fn a_local_entry_keeps_the_namespaces_it_uses_and_not_the_configurations() {
    let entry = |inner: &str| {
        let text =
            format!("<localEntry xmlns='http://ws.apache.org/ns/synapse' xmlns:u='urn:u' key='e'>{inner}</localEntry>");
        let compilation = run(&[("e.xml", &text)], false);
        compilation.program.resources.get("e").unwrap().text().into_owned()
    };
    assert!(!entry("<x:a xmlns:x='urn:x'><b xmlns=''/></x:a>").contains("ws.apache.org"));
    assert!(entry("<a/>").contains("<a xmlns=\"http://ws.apache.org/ns/synapse\""));
}

#[test]
fn a_registered_artifact_kind_is_named_declared_and_built_like_the_others() {
    let text = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <beacon name="first" next="second"/>
  <beacon name="second" next="frist"/>
  <beacon/>
  <beacon name="first" color="red"/>
</definitions>"#;
    let done = run(&[("a.xml", text)], true);
    let lines: Vec<String> = done.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "a.xml:3:25: error: unknown beacon `frist`, did you mean `first`?",
            "a.xml:4:3: error: <beacon> needs the attribute `name`",
            "a.xml:5:3: warning: beacon `first` is defined twice; the one at a.xml:2:3 is used",
            "a.xml:5:24: warning: <beacon> does not know the attribute `color`",
        ]
    );
    let good: Vec<(&str, bool)> = done.artifacts.iter().map(|one| (one.name.as_str(), one.good)).collect();
    assert_eq!(good, [("a.xml", false), ("first", true), ("second", false), ("first", true)]);
}

#[test]
fn the_second_api_of_a_context_is_an_error() {
    let api = |attributes: &str| in_synapse(&format!("<api {attributes}><resource methods='GET'/></api>"));
    let done = run(
        &[
            ("a.xml", &api("name='A' context='/orders'")),
            ("b.xml", &api("name='B' context='/orders/'")),
            ("host.xml", &api("name='C' context='/orders' hostname='example.org'")),
            ("one.xml", &api("name='V' context='/v' version='1'")),
            ("two.xml", &api("name='V' context='/v' version='2'")),
        ],
        false,
    );
    let lines: Vec<String> = done.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["b.xml:1:55: error: the context `/orders` is already registered by the API `A` at a.xml:1:1"]);
    assert_eq!(done.program.routes.apis().len(), 4);
}

#[test]
fn mistyped_methods_elements_and_namespaces_are_reported() {
    check(
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'>\n\
         <resource methods='GTE POST'>\n<inSeqence/></resource>\n<resorce/></api>",
        &[
            "a.xml:2:11: error: unknown HTTP method `GTE`, did you mean `GET`?",
            "a.xml:3:1: warning: <resource> does not know the element <inSeqence>, did you mean <inSequence>?",
            "a.xml:4:1: warning: <api> does not know the element <resorce>, did you mean <resource>?",
        ],
    );
    check(
        "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P'><target>\n<faultSequnce/></target></proxy>",
        &["a.xml:2:1: warning: <target> does not know the element <faultSequnce>, did you mean <faultSequence>?"],
    );
    let needed = "Micro Integrator needs `http://ws.apache.org/ns/synapse`";
    check("<sequence name='s'/>", &[&format!("a.xml:1:1: warning: <sequence> has no namespace; {needed}")]);
    check(
        "<sequence xmlns='urn:other' name='s'/>",
        &[&format!("a.xml:1:1: warning: <sequence> has the namespace `urn:other`; {needed}")],
    );
}

#[test]
fn an_address_that_is_no_url_is_a_warning() {
    let endpoint = |inner: &str| in_synapse(&format!("<endpoint name='e'>\n{inner}</endpoint>"));
    check(
        &endpoint("<address uri='localhost:9000'/>"),
        &[
            "a.xml:2:10: warning: the address `localhost:9000` is not a URL: it does not begin with a scheme such as `http://`",
        ],
    );
    check(
        &endpoint("<http uri-template='htp://localhost/{uri.var.x}'/>"),
        &[
            "a.xml:2:7: warning: the address `htp://localhost/{uri.var.x}` is not a URL: unknown scheme `htp`, did you mean `http`?",
        ],
    );
    check(&endpoint("<http uri-template='{uri.var.base}/x'/>"), &[]);
}

#[test]
fn a_proxy_service_whose_protection_is_missing_is_not_served() {
    let text = in_synapse("<proxy name='P'><target/>\n<enableSec/></proxy>");
    let done = run(&[("a.xml", &text)], false);
    assert!(done.diagnostics[0].to_string().starts_with("a.xml:2:1: error: <enableSec> has no <policy>"));
    assert_eq!((done.program.routes.proxies().count(), done.artifacts[0].good), (0, false));
}
