//! Tokens from the command line, and a gateway that takes them.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::time::{Duration, Instant};

use support::{Connection, Folder, Server, penstock};

const DEFINITION: &str = "openapi: 3.0.1\ninfo: {title: pets, version: 1.0.0}\nx-wso2-basePath: /pets\n\
    x-wso2-production-endpoints: {urls: ['http://127.0.0.1:9']}\nsecurity: [{default: []}]\n\
    components: {securitySchemes: {default: {type: oauth2, flows: {}}}}\n\
    paths: {/pet: {get: {responses: {'200': {description: ok}}}}}\n";

/// Printed once, when it is generated.
const KEY_MADE: &str = "the gateway's key was generated: `penstock-state/gateway-key.pem`\n";

fn gateway_port(server: &Server) -> u16 {
    let log = server.log();
    let (_, rest) = log.split_once("  APIs     http://localhost:").unwrap_or_else(|| panic!("no port in\n{log}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn a_token_of_the_command_line_opens_an_api_until_it_is_revoked() {
    let folder = Folder::new("token");
    folder.write("pets.yaml", DEFINITION);
    folder.write("revoked.txt", "# none\n");
    let toml = "gateway.http_port = 0\ngateway.https_port = 0\ngateway.revoked = 'revoked.txt'";
    let server = Server::start(&folder, &["run", "pets.yaml"], toml);
    let made = penstock(&folder.0, &["token", "--config", "penstock.toml", "--claim", "jti=one"]);
    assert_eq!((made.status, made.stderr.as_str()), (0, KEY_MADE));
    let bearer = format!("Bearer {}", made.stdout.trim());
    let mut client = Connection::open(gateway_port(&server));
    let mut ask = |bearer: &str| client.request("GET", "/pets/pet", &[("Authorization", bearer)], b"").status;
    // The backend is unreachable, which accepted requests notice.
    assert_eq!((ask(&bearer), ask("Bearer a.b.c")), (503, 401));
    folder.write("revoked.txt", "one\n");
    let end = Instant::now() + Duration::from_secs(20);
    while ask(&bearer) != 401 {
        assert!(Instant::now() < end, "the token still counts:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!server.log().contains(made.stdout.trim()));
}

#[test]
fn many_tokens_go_to_a_file_and_mistakes_are_said() {
    let folder = Folder::new("tokens");
    let made = penstock(&folder.0, &["token", "--count", "50", "--scope", "a", "--output", "tokens.csv"]);
    assert_eq!((made.status, made.stdout.as_str(), made.stderr.as_str()), (0, "", KEY_MADE));
    assert_eq!(penstock(&folder.0, &["token"]).stderr, "");
    let text = std::fs::read_to_string(folder.0.join("tokens.csv")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.split('.').count() == 3), "{text}");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 50);
    let wrong = penstock(&folder.0, &["token", "--claim", "x"]);
    assert_eq!((wrong.status, wrong.stderr.as_str()), (2, "error: `--claim x` must be `NAME=VALUE`\n"));
    let wrong = penstock(&folder.0, &["token", "--key", "nowhere.pem"]);
    assert_eq!(wrong.status, 3);
}

/// Fenced blocks of the page of a kind.
fn blocks(kind: &str) -> Vec<String> {
    let page = include_str!("../../../docs/gateway/security.md");
    let fence = format!("```{kind}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_page_shows_configuration_that_is_understood() {
    let folder = Folder::new("security-page");
    folder.write("pets.yaml", DEFINITION);
    let blocks = blocks("toml");
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let text = block.replace("$env{", "$").replace('}', "");
        folder.write("page.toml", &text);
        let checked = penstock(&folder.0, &["check", "pets.yaml", "--config", "page.toml"]);
        assert_eq!(checked.status, 0, "block {index}: {}{}\n{text}", checked.stdout, checked.stderr);
    }
}

#[test]
fn the_page_shows_commands_that_run() {
    let folder = Folder::new("security-commands");
    for line in blocks("console").iter().flat_map(|block| block.lines()) {
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let said = if folder.0.join("penstock-state").exists() { "" } else { KEY_MADE };
        let ran = penstock(&folder.0, &words);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, said), "{line}");
    }
    assert!(folder.0.join("tokens.csv").is_file());
}
