//! The command line tools of Micro Integrator, unchanged, against a running server. A recorder stands between them and
//! the server, so that what a tool sends is compared with what was recorded before.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use support::{Folder, Server};

const WHERE: &str = "the folder `shared` with the tools and their recorded calls is not beside the checkout";

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}

/// Passes requests on to a port and notes each as a line.
fn record(server: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = calls.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let tls = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut client = rustls::StreamOwned::new(tls, socket.unwrap());
            let Some((head, body)) = read(&mut client) else { continue };
            noted.lock().unwrap().push(line(&head, &body));
            let mut backend = support::tls::connect(server, "localhost");
            let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
            backend.write_all(head.as_bytes()).unwrap();
            backend.write_all(&body).unwrap();
            let mut answer = Vec::new();
            // The end without a TLS alert is an end as well.
            let _ = backend.read_to_end(&mut answer);
            let _ = client.write_all(&answer);
            client.conn.send_close_notify();
            let _ = client.flush();
        }
    });
    (port, calls)
}

/// The head of a request and its body; `None` when the client closes first.
fn read(client: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let mut part = [0; 4096];
        let count = client.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length: usize = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        let mut part = vec![0; length - body.len()];
        let count = client.read(&mut part).unwrap();
        body.extend_from_slice(&part[..count]);
    }
    Some((head, body))
}

fn field(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// A call in the form of the recorded ones.
fn line(head: &str, body: &[u8]) -> String {
    let (method, rest) = head.split_once(' ').unwrap();
    let target = rest.split(' ').next().unwrap();
    let named = |name| field(head, name).unwrap_or_else(|| "None".to_owned());
    let authorization = named("authorization");
    let authorization = if authorization.starts_with("Bearer ") { "Bearer TOK".to_owned() } else { authorization };
    let (accept, content_type) = (named("accept"), named("content-type"));
    let body = String::from_utf8_lossy(body);
    format!("{method} {target} | auth={authorization} accept={accept} ct={content_type} | {body}")
}

/// The commands of a record, each with the calls that it made.
fn recorded(text: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("## ") {
            Some(command) => commands.push((command.to_owned(), Vec::new())),
            None => {
                if let Some((_, calls)) = commands.last_mut() {
                    calls.push(line.to_owned());
                }
            }
        }
    }
    commands
}

struct Tool {
    program: PathBuf,
    before: &'static [&'static str],
    home: PathBuf,
}

impl Tool {
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(&self.program)
            .args(self.before)
            .args(arguments)
            .env("HOME", &self.home)
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    /// Runs commands that all tools have, then these, each with a part of what it prints.
    fn prints(&self, more: &[(&str, &str)]) {
        let common = [
            ("get apis", "http://localhost:"),
            ("get proxy-services", "/services/X?wsdl"),
            ("get endpoints X", "Type - Address Endpoint"),
            ("get sequences X", "LogMediator"),
            ("get users", "admin"),
            ("deactivate endpoint X", "X is switched Off"),
        ];
        for (command, expected) in common.iter().chain(more) {
            let arguments: Vec<&str> = command.split(' ').chain(["-e", "dev", "-k"]).collect();
            let (_, text) = self.run(&arguments);
            assert!(text.contains(expected), "{command}: {text}");
        }
    }
}

fn serve(folder: &Folder) -> (Server, u16, Arc<Mutex<Vec<String>>>) {
    let synapse = |text: &str| text.replacen('>', " xmlns='http://ws.apache.org/ns/synapse'>", 1);
    folder.write("artifacts/a.xml", support::api("x"));
    folder.write("artifacts/e.xml", synapse("<endpoint name='X'><address uri='http://localhost:1'/></endpoint>"));
    folder.write(
        "artifacts/p.xml",
        synapse("<proxy name='X'><target><inSequence><respond/></inSequence></target></proxy>"),
    );
    folder.write("artifacts/s.xml", synapse("<sequence name='X'><log/></sequence>"));
    let toml = "[management]\nport = 0\n[management.users.admin]\npassword = 'admin'\nadmin = true\n";
    let server = Server::start(folder, &["run", "artifacts"], toml);
    let (port, calls) = record(server.port_after("manage   https://localhost:"));
    (server, port, calls)
}

#[test]
#[ignore = "needs the folder `shared` beside the checkout; .ci/run has it"]
fn corpus_mi_sends_what_was_recorded_and_understands_the_responses() {
    let shared = shared();
    let record = std::fs::read_to_string(shared.join("corpus/mi-services/mi-cli-calls.txt")).expect(WHERE);
    let folder = Folder::new("management-mi");
    let (_server, port, calls) = serve(&folder);
    let tool = Tool { program: shared.join("tools/bin/mi"), before: &[], home: folder.0.clone() };
    std::fs::create_dir_all(folder.0.join(".wso2mi")).unwrap();
    let (added, text) = tool.run(&["add", "env", "dev", &format!("https://localhost:{port}")]);
    assert!(added, "{text}");
    let mut compared = 0;
    for (command, expected) in recorded(&record) {
        calls.lock().unwrap().clear();
        let arguments: Vec<&str> = command.split(' ').chain(["-k"]).collect();
        let (_, text) = tool.run(&arguments);
        assert_eq!(*calls.lock().unwrap(), expected, "mi {command}: {text}");
        assert!(!text.contains("Unexpected error") && !text.contains("cannot unmarshal"), "mi {command}: {text}");
        compared += expected.len();
    }
    assert!(compared > 50, "only {compared} calls were recorded");
    tool.run(&["login", "dev", "-u", "admin", "-p", "admin", "-k"]);
    tool.prints(&[("deactivate proxy-service X", "stopped successfully")]);
}

#[test]
#[ignore = "needs the folder `shared` beside the checkout; .ci/run has it"]
fn corpus_apictl_mi_understands_the_responses() {
    let folder = Folder::new("management-apictl");
    let (_server, port, _calls) = serve(&folder);
    let program = shared().join("tools/bin/apictl");
    assert!(program.is_file(), "{WHERE}");
    let home = folder.0.clone();
    let environment = Tool { program: program.clone(), before: &[], home: home.clone() };
    let (added, text) = environment.run(&["add", "env", "dev", "--mi", &format!("https://localhost:{port}")]);
    assert!(added, "{text}");
    let tool = Tool { program, before: &["mi"], home };
    let (_, text) = tool.run(&["login", "dev", "-u", "admin", "-p", "admin", "-k"]);
    assert!(text.contains("Logged into"), "{text}");
    tool.prints(&[
        ("get composite-apps", "No"),
        ("get log-levels rootLogger", "INFO"),
        ("activate endpoint X", "X is switched On"),
    ]);
}
