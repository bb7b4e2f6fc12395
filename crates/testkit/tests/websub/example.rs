//! The page about WebSub: its example runs, and says what the page says.

use std::path::Path;

use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// The arguments of a command of the page, without quotes and line ends.
fn arguments(command: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for character in command.replace("\\\n", " ").trim().chars() {
        match quote {
            Some(end) if character == end => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if character.is_whitespace() => all.push(String::new()),
            _ => all.last_mut().unwrap().push(character),
        }
    }
    all.retain(|one| !one.is_empty());
    all
}

/// Does what a command of curl does.
fn run(client: &mut Client, command: &str) -> Reply {
    let arguments = arguments(command);
    let mut headers: Vec<(&str, &str)> = Vec::new();
    let (mut target, mut data) = ("", Vec::new());
    for pair in arguments.windows(2) {
        match pair[0].as_str() {
            "-X" => assert_eq!(pair[1], "POST"),
            "-H" => headers.push(pair[1].split_once(": ").unwrap()),
            "-d" => data.push(pair[1].as_str()),
            _ => {}
        }
        if let Some(rest) = pair[1].strip_prefix("http://localhost:8280") {
            target = rest;
        }
    }
    if !headers.iter().any(|(name, _)| *name == "Content-Type") {
        headers.push(("Content-Type", "application/x-www-form-urlencoded"));
    }
    client.request("POST", target, &headers, data.join("&").as_bytes())
}

#[test]
fn the_page_is_current() {
    let read = |file: &str| std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let descriptor = read("examples/managed/LibraryNews-1.0.0/api.yaml");
    let inputs = project("LibraryNews-1.0.0", &[("api.yaml", &descriptor)]);
    let gateway = TestGateway::start(Setup { inputs, ..Setup::of([]) });
    let other = subscriber();
    let page = read("docs/gateway/websub.md");
    let blocks: Vec<&str> = page.split("```\n").skip(1).step_by(2).collect();
    let mut client = gateway.client();
    let bearer = gateway.bearer(&json!({}));
    let subscribe = blocks[1].replace("Bearer $TOKEN", &bearer).replace("http://localhost:9000", &other.url());
    assert_eq!(run(&mut client, &subscribe.replace("arrivals", "closures")).status, 403);
    assert_eq!(run(&mut client, &subscribe).status, 202);
    assert_eq!(run(&mut client, &blocks[2].replace("sha256=b", "sha256=c")).status, 401);
    assert_eq!(run(&mut client, blocks[2]).status, 202);
    until("it arrives", || other.received().len() == 1);
    let got = other.last();
    let (head, body) = blocks[3].split_once("\n\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some(format!("{} {} HTTP/1.1", got.method, got.target).as_str()));
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        // The client of these tests says another port.
        let got = got.header(name).map(|got| got.replace("//localhost/", "//localhost:8280/"));
        assert_eq!(got.as_deref(), Some(value), "{name}");
    }
    assert_eq!(got.text(), body.trim());
}
