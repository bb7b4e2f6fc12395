//! The migration report and the comparison of two servers.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};

use base64::Engine as _;
use serde_json::Value;
use support::{Folder, Server, penstock};

const SYNAPSE: &str = "mi/repository/deployment/server/synapse-configs/default";

/// The ports of a Micro Integrator: HTTP, HTTPS, management.
const PORTS: [u16; 3] = [8280, 8243, 9154];

/// Artifacts of each kind in the home.
const OF_EACH_KIND: usize = 60;

/// A home with artifacts of all kinds: of each kind some are exact, some differ and some have an error.
fn home(folder: &Folder) {
    let write = |file: String, text: String| {
        folder.write(&file, text.replacen('>', " xmlns=\"http://ws.apache.org/ns/synapse\">", 1))
    };
    for number in 0..OF_EACH_KIND {
        // The element of no mediator is an error, the header of WS-Addressing a difference.
        let (bad, header) = match number % 6 {
            0 => ("<nothing/>", ""),
            1 => ("", "<enableAddressing/>"),
            _ => ("", ""),
        };
        let text = "<payloadFactory media-type='text'><format>yes</format><args/></payloadFactory><respond/>";
        for (kind, artifact) in [
            (
                "api",
                format!(
                    "<api name='A{number}' context='/a{number}'><resource methods='GET'><inSequence>{bad}{text}</inSequence>\
                     </resource></api>"
                ),
            ),
            (
                "proxy-services",
                format!(
                    "<proxy name='P{number}' transports='http'><target><inSequence>{bad}{text}</inSequence></target>{header}\
                     </proxy>"
                ),
            ),
            ("sequences", format!("<sequence name='S{number}'><log/>{bad}</sequence>")),
            (
                "endpoints",
                format!(
                    "<endpoint name='E{number}'><address uri='http://localhost:1/{number}'>{bad}</address></endpoint>"
                ),
            ),
            ("local-entries", format!("<localEntry key='L{number}'>text</localEntry>")),
            (
                "templates",
                format!("<template name='T{number}'><parameter name='p'/><sequence><log/>{bad}</sequence></template>"),
            ),
            ("message-stores", format!("<messageStore name='M{number}'></messageStore>")),
            (
                "tasks",
                format!(
                    "<task name='K{number}' class='{}'><trigger interval='3600'/><property name='injectTo' value='sequence'/>\
                     <property name='sequenceName' value='S2'/><property name='message' value='x'/></task>",
                    if bad.is_empty() {
                        "org.apache.synapse.startup.tasks.MessageInjector"
                    } else {
                        "org.example.Task"
                    }
                ),
            ),
            (
                "message-processors",
                format!(
                    "<messageProcessor name='R{number}' messageStore='M{number}' \
                     class='org.apache.synapse.message.processor.impl.sampler.SamplingProcessor'>\
                     <parameter name='interval'>60000</parameter><parameter name='sequence'>S2</parameter>{bad}</messageProcessor>"
                ),
            ),
            (
                "inbound-endpoints",
                format!(
                    "<inboundEndpoint name='I{number}' protocol='{}' sequence='S2' onError='S2' suspend='true'><parameters>\
                     <parameter name='inbound.http.port'>0</parameter></parameters></inboundEndpoint>",
                    if bad.is_empty() { "http" } else { "carrier-pigeon" }
                ),
            ),
        ] {
            write(format!("{SYNAPSE}/{kind}/{kind}-{number}.xml"), artifact);
        }
    }
    folder.write(
        "mi/conf/deployment.toml",
        format!(
            "[server]\noffset = {}\nhostname = \"localhost\"\n[[internal_apis.users]]\nuser.name = \"admin\"\n\
             user.password = \"secret\"\nuser.is_admin = true\n[carbon_health_check]\nenable = true\n",
            support::ports::offset(&PORTS)
        ),
    );
}

fn listed(port: u16, path: &str) -> BTreeSet<String> {
    let credentials = base64::engine::general_purpose::STANDARD.encode("admin:secret");
    let mut stream = support::tls::connect(port, "localhost");
    let head = format!(
        "GET /management{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Basic {credentials}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // The end without a TLS alert is an end as well.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["list"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_served_is_what_the_report_says() {
    let folder = Folder::new("migration-home");
    home(&folder);
    let done = penstock(&folder.0, &["check", "mi", "--report", "json"]);
    assert_eq!(done.status, 1, "{}", done.stderr);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let artifacts = report["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 10 * OF_EACH_KIND, "{}", report["counts"]);
    let counted = |verdict: &str| artifacts.iter().filter(|artifact| artifact["verdict"] == verdict).count();
    for (count, verdict) in [("exact", "exact"), ("differs", "differs"), ("notSupported", "not supported")] {
        assert_eq!(report["counts"][count], counted(verdict));
        assert!(counted(verdict) > 0, "{verdict}");
    }
    for artifact in artifacts.iter().filter(|artifact| artifact["verdict"] != "exact") {
        assert!(!artifact["reasons"].as_array().unwrap().is_empty(), "{artifact}");
    }
    let key = |name: &str| {
        let keys = report["keys"].as_array().unwrap();
        keys.iter().find(|key| key["name"] == name).unwrap_or_else(|| panic!("{name} in {keys:?}"))["verdict"].clone()
    };
    assert_eq!((key("server.offset"), key("carbon_health_check.enable")), ("exact".into(), "not supported".into()));
    let server = Server::start_plain(&folder, &["run", "mi"]);
    let port = server.port_after("manage   https://localhost:");
    for (kind, path) in [
        ("api", "/apis"),
        ("proxy", "/proxy-services"),
        ("sequence", "/sequences"),
        ("endpoint", "/endpoints"),
        ("localEntry", "/local-entries"),
        ("template", "/templates"),
        ("messageStore", "/message-stores"),
        ("task", "/tasks"),
        ("messageProcessor", "/message-processors"),
        ("inboundEndpoint", "/inbound-endpoints"),
    ] {
        let of_kind: Vec<&Value> = artifacts.iter().filter(|artifact| artifact["kind"] == kind).collect();
        assert_eq!(of_kind.len(), OF_EACH_KIND, "{kind}");
        let expected: BTreeSet<String> = of_kind
            .iter()
            .filter(|artifact| artifact["verdict"] != "not supported")
            .map(|artifact| artifact["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(listed(port, path), expected, "{kind}");
        for artifact in of_kind {
            let (name, is_served) = (artifact["name"].as_str().unwrap(), artifact["verdict"] != "not supported");
            let reply = match kind {
                "api" => server.get(&format!("/{}", name.to_lowercase())),
                "proxy" => server.post(&format!("/services/{name}"), "text/plain", "x"),
                _ => continue,
            };
            assert_eq!(reply.status == 200 && reply.body == "yes", is_served, "{artifact}: {reply:?}");
        }
    }
}

#[test]
fn the_report_has_three_layouts_and_an_exit_status() {
    let folder = Folder::new("migration-layouts");
    folder.write("good/a.xml", support::api("x"));
    folder.write(
        "differs/p.xml",
        "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P&lt;x&gt;'><target><inSequence><respond/></inSequence></target>\
         <enableAddressing/></proxy>",
    );
    let status = |arguments: &[&str]| penstock(&folder.0, arguments).status;
    assert_eq!(status(&["check", "good", "--report", "text"]), 0);
    assert_eq!(status(&["check", "differs", "--report", "text"]), 0);
    assert_eq!(status(&["check", "differs", "--report", "text", "--strict"]), 1);
    let html = penstock(&folder.0, &["check", "good", "differs", "--report", "html"]).stdout;
    assert!(html.starts_with("<!doctype html>") && html.contains("P&lt;x&gt;") && !html.contains("P<x>"), "{html}");
    let text = penstock(&folder.0, &["check", "good", "differs", "--report", "text"]).stdout;
    assert!(text.contains("differs        proxy P<x>") && text.contains("2 artifacts: 1 exact, 1 differs"), "{text}");
}

#[test]
fn two_servers_are_compared() {
    let folders = [Folder::new("compare-one"), Folder::new("compare-two")];
    let servers = [0, 1].map(|index: usize| {
        let text = ["one", "two"][index];
        folders[index].write("artifacts/a.xml", support::api(text));
        let same = support::api("same").replace("name='A'", "name='B'").replace("context='/a'", "context='/b'");
        folders[index].write("artifacts/b.xml", same);
        Server::start(&folders[index], &["run", "artifacts"], "")
    });
    let folder = &folders[0];
    folder.write(
        "same.jsonl",
        "{\"path\": \"/b\"}\n{\"path\": \"/nothing\", \"method\": \"POST\", \"body\": {}}\n".repeat(50),
    );
    folder.write("all.jsonl", "{\"path\": \"/b\"}\n{\"path\": \"/a\"}\n");
    let urls = servers.each_ref().map(|server| format!("http://localhost:{}", server.http));
    let compare = |rest: &[&str]| {
        let arguments: Vec<&str> =
            ["compare", "--with", &urls[0], "--to", &urls[1]].iter().chain(rest).copied().collect();
        penstock(&folder.0, &arguments)
    };
    let done = compare(&["same.jsonl"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "100 requests, 0 with differences\n"), "{}", done.stderr);
    let done = compare(&["all.jsonl", "--json"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((done.status, &report["requests"]), (1, &2.into()));
    assert_eq!(report["different"][0]["differences"][0], "body $.text: `one` and `two`");
    assert_eq!(compare(&["all.jsonl", "--mask", "json:$.text"]).status, 0);
    assert_eq!(compare(&["all.jsonl", "--mask", "text"]).status, 2);
    drop(servers);
    let done = compare(&["same.jsonl"]);
    assert_eq!(done.status, 1, "servers that are both away are not alike: {}", done.stdout);
}
