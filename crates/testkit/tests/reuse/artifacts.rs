//! Artifacts whose files and whose references did not change are taken from the program before, and nothing else is.

use std::collections::BTreeMap;
use std::sync::Arc;

use penstock_compile::{CompileOptions, Input, InputKind};
use penstock_testkit::pages::Flow;

/// Files by their names, with the text of each of their versions. An empty text is a file that is not there.
const FILES: &[(&str, &[&str])] = &[
    (
        "api.xml",
        &[
            "<api name='a' context='/a'><resource methods='GET' uri-template='/flow'><inSequence>\
             <sequence key='shared'/><call-template target='stamp'/><respond/></inSequence></resource>\
             <resource methods='GET' uri-template='/fail'><inSequence><throwError type='X' errorMessage='no'/>\
             </inSequence><faultSequence><sequence key='handler'/><respond/></faultSequence></resource></api>",
            "<api name='a' context='/b'><resource methods='GET' uri-template='/flow'><inSequence>\
             <sequence key='shared'/><respond/></inSequence></resource></api>",
        ],
    ),
    (
        "other.xml",
        &[
            "<api name='o' context='/o'><resource methods='GET' uri-template='/send'><inSequence>\
             <call><endpoint key='backend'/></call><respond/></inSequence></resource>\
             <resource methods='GET' uri-template='/made'><inSequence>\
             <call><endpoint template='to' name='x'><parameter name='port' value='9'/></endpoint></call><respond/>\
             </inSequence></resource>\
             <resource methods='GET' uri-template='/connection'><inSequence>\
             <http.get configKey='CONNECTION'><relativePath>/r</relativePath></http.get><respond/>\
             </inSequence></resource></api>",
            "<api name='o' context='/b'><resource methods='GET' uri-template='/flow'><inSequence>\
             <payloadFactory media-type='json'><format>{\"from\":\"other\"}</format></payloadFactory><respond/>\
             </inSequence></resource></api>",
            "",
        ],
    ),
    (
        "proxy.xml",
        &[
            "<proxy name='p' transports='http'><target><inSequence>\
             <payloadFactory media-type='xml'><format key='format'/><args/></payloadFactory>\
             <xslt key='sheet'/><respond/></inSequence></target></proxy>",
            "<proxy name='p' transports='http'><target inSequence='shared' outSequence='handler'/></proxy>",
            "",
        ],
    ),
    (
        "computed.xml",
        &["<proxy name='c' transports='http'><target><inSequence><property name='which' value='sheet'/>\
             <payloadFactory media-type='xml'><format><x/></format><args/></payloadFactory>\
             <xslt key='{$ctx:which}'/><respond/></inSequence></target></proxy>"],
    ),
    (
        "shared.xml",
        &[
            "<sequence name='shared'><property name='v' value='one'/><payloadFactory media-type='json'>\
             <format>{\"v\":\"one\"}</format></payloadFactory></sequence>",
            "<sequence name='shared'><payloadFactory media-type='json'><format>{\"v\":\"two\"}</format>\
             </payloadFactory></sequence>",
            "<sequence name='renamed'><log/></sequence>",
            "<sequence name='shared'><sequence key='inner'/></sequence>",
        ],
    ),
    (
        "second.xml",
        &[
            "",
            "<sequence name='shared'><payloadFactory media-type='json'><format>{\"v\":\"second\"}</format>\
             </payloadFactory></sequence>",
            "<sequence name='inner'><payloadFactory media-type='json'><format>{\"v\":\"inner\"}</format>\
             </payloadFactory></sequence>",
        ],
    ),
    (
        "handler.xml",
        &[
            "<sequence name='handler'><payloadFactory media-type='json'><format>{\"handled\":1}</format>\
             </payloadFactory></sequence>",
            "<sequence name='handler' onError='shared'><log/></sequence>",
            "",
        ],
    ),
    (
        "stamp.xml",
        &[
            "<template name='stamp'><parameter name='by' defaultValue='first'/><sequence>\
             <header name='X-By' scope='transport' expression='$func:by'/></sequence></template>",
            "<template name='stamp'><parameter name='by' defaultValue='second'/><sequence>\
             <header name='X-By' scope='transport' expression='$func:by'/></sequence></template>",
            "<template name='stamp'><parameter name='by' defaultValue='first'/><sequence>\
             <header name='X-By' scope='transport' value='fixed'/></sequence></template>",
        ],
    ),
    (
        "backend.xml",
        &[
            "<endpoint name='backend'><address uri='http://one/x'/></endpoint>",
            "<endpoint name='backend'><http method='GET' uri-template='http://two/y'/></endpoint>",
            "",
        ],
    ),
    (
        "to.xml",
        &[
            "<template name='to'><endpoint><address uri='http://made:$port/1'/></endpoint></template>",
            "<template name='to'><endpoint><address uri='http://made:$port/2'/></endpoint></template>",
        ],
    ),
    (
        "connection.xml",
        &[
            "<localEntry key='CONNECTION'><http.init><baseUrl>http://first</baseUrl></http.init></localEntry>",
            "<localEntry key='CONNECTION'><http.init><baseUrl>http://second</baseUrl></http.init></localEntry>",
        ],
    ),
    (
        "format.xml",
        &[
            "<localEntry key='format'><doc>1</doc></localEntry>",
            "<localEntry key='format'><doc>2</doc></localEntry>",
            "",
        ],
    ),
    (
        "sheet.xml",
        &[
            "<localEntry key='sheet'><xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
             <xsl:template match='/'><out><xsl:value-of select='.'/></out></xsl:template></xsl:stylesheet></localEntry>",
            "<localEntry key='sheet'><xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
             <xsl:template match='/'><changed/></xsl:template></xsl:stylesheet></localEntry>",
        ],
    ),
];

const REQUESTS: &[&str] = &[
    "GET /a/flow",
    "GET /a/fail",
    "GET /b/flow",
    "GET /o/send",
    "GET /o/made",
    "GET /o/connection",
    "GET /services/p",
    "GET /services/c",
];

/// The versions of the files, by their places in [`FILES`].
type Tree = Vec<usize>;

fn inputs(tree: &Tree) -> Vec<Input> {
    let mut inputs = Vec::new();
    for ((file, versions), version) in FILES.iter().zip(tree) {
        let text = versions[*version].replacen(' ', " xmlns='http://ws.apache.org/ns/synapse' ", 1);
        if !text.is_empty() {
            inputs.push(Input { file: (*file).into(), bytes: text.into(), kind: InputKind::Artifact });
        }
    }
    inputs
}

/// Everything that shows of a configuration.
fn behaviour(flow: &mut Flow) -> String {
    let mut shown = flow.diagnostics();
    for request in REQUESTS {
        let answers = vec!["200 OK\nContent-Type: application/json\n\n{}".to_owned()];
        let outcome = flow.ask(request, answers).unwrap();
        let received: Vec<String> = outcome.received.iter().map(|message| message.shown("")).collect();
        shown.push_str(&format!(
            "\n{request}: {} {received:?} {:?}",
            outcome.response.shown("x\nX-By: y"),
            outcome.log
        ));
    }
    shown
}

/// The units of a program by the file of their artifacts.
fn units(flow: &Flow) -> BTreeMap<String, Arc<penstock_engine::Unit>> {
    let program = flow.program();
    let place = |unit: &penstock_engine::Unit| {
        let step = unit.sequences.iter().find_map(|sequence| sequence.steps.first()).map(|step| step.at.file.clone());
        step.or_else(|| Some(unit.endpoints.first()?.at.file.clone())).map(|file| file.to_string())
    };
    program.units.iter().flatten().filter_map(|unit| Some((place(unit)?, unit.clone()))).collect()
}

fn shared(before: &Flow, after: &Flow) -> Vec<String> {
    let before = units(before);
    let is_shared = |(file, unit): &(String, Arc<penstock_engine::Unit>)| {
        before.get(file).is_some_and(|known| Arc::ptr_eq(known, unit))
    };
    units(after).into_iter().filter(is_shared).map(|(file, _)| file).collect()
}

fn incremental() -> CompileOptions {
    CompileOptions { compiled: Some(Arc::default()), ..CompileOptions::default() }
}

#[test]
fn only_artifacts_that_a_change_concerns_are_compiled_again() {
    let options = incremental();
    let start = vec![0; FILES.len()];
    let with = |file: &str, version: usize| {
        let mut tree = start.clone();
        tree[FILES.iter().position(|(name, _)| *name == file).unwrap()] = version;
        tree
    };
    let mut before = Flow::compile(&inputs(&start), &options);
    let all = units(&before).into_keys().collect::<Vec<_>>();
    let mut check = |tree: &Tree, compiled: &[&str]| {
        let after = Flow::compile(&inputs(tree), &options);
        let expected: Vec<_> = all.iter().filter(|file| !compiled.contains(&file.as_str())).cloned().collect();
        assert_eq!(shared(&before, &after), expected, "after {compiled:?}");
        before = after;
    };
    // Connections are compiled by every program, as their local entries are read by every program.
    check(&start, &["connection.xml"]);
    // What enters a sequence or calls an endpoint finds it by the number of its unit.
    check(&with("shared.xml", 1), &["connection.xml", "shared.xml"]);
    check(&start, &["connection.xml", "shared.xml"]);
    check(&with("backend.xml", 1), &["connection.xml", "backend.xml"]);
    check(&start, &["connection.xml", "backend.xml"]);
    // Parameters of a template belong to its callers.
    check(&with("stamp.xml", 1), &["connection.xml", "stamp.xml", "api.xml"]);
    check(&with("stamp.xml", 2), &["connection.xml", "stamp.xml", "api.xml"]);
    check(&start, &["connection.xml", "stamp.xml"]);
    check(&with("to.xml", 1), &["connection.xml", "other.xml"]);
    check(&start, &["connection.xml", "other.xml"]);
    // Which stylesheet `computed.xml` keeps is known to messages only.
    check(&with("connection.xml", 1), &["connection.xml", "other.xml", "computed.xml"]);
    check(&start, &["connection.xml", "other.xml", "computed.xml"]);
    check(&with("format.xml", 1), &["connection.xml", "proxy.xml", "computed.xml"]);
    check(&start, &["connection.xml", "proxy.xml", "computed.xml"]);
    check(&with("sheet.xml", 1), &["connection.xml", "proxy.xml", "computed.xml"]);
}

#[test]
fn every_change_has_the_effect_of_a_start_with_the_same_files() {
    let options = incremental();
    let mut tree = vec![0; FILES.len()];
    let mut random = 7_u64;
    for step in 0..150 {
        let kept = behaviour(&mut Flow::compile(&inputs(&tree), &options));
        let fresh = behaviour(&mut Flow::compile(&inputs(&tree), &CompileOptions::default()));
        assert_eq!(kept, fresh, "step {step}: {tree:?}");
        for _ in 0..=step % 3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let file = (random >> 33) as usize % FILES.len();
            tree[file] = (random >> 48) as usize % FILES[file].1.len();
        }
    }
}

#[test]
fn another_option_compiles_everything_again() {
    let mut options = incremental();
    let inputs = inputs(&vec![0; FILES.len()]);
    let first = Flow::compile(&inputs, &options);
    options.configurables.insert("name".into(), "value".into());
    let second = Flow::compile(&inputs, &options);
    assert_eq!(shared(&first, &second), Vec::<String>::new());
}
