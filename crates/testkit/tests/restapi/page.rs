//! The page about these APIs: its example is served, and answers what the page says.

use penstock_testkit::gateway::Backend;
use serde_json::json;

use crate::start;

const PAGE: &str = include_str!("../../../../docs/gateway/restapi.md");

/// The blocks of a language.
fn blocks(language: &'static str) -> impl Iterator<Item = &'static str> {
    PAGE.split("```").skip(1).step_by(2).filter_map(move |block| block.strip_prefix(language))
}

#[test]
fn the_page_is_current() {
    let backend = Backend::echo();
    let text = blocks("yaml").next().unwrap().replace("http://localhost:8688", &backend.url());
    let gateway = start(&text);
    let mut asked = 0;
    for (block, claims) in blocks("console").zip([json!({}), json!({"scope": "order"})]) {
        let token = gateway.token(&claims);
        for call in block.split("$ curl ").skip(1) {
            let (command, expected) = call.split_once('\n').unwrap();
            let after = |option: &str, end: char| {
                let (_, rest) = command.split_once(option)?;
                Some(rest[1..].split(end).next().unwrap_or_default().replace("$TOKEN", &token))
            };
            let body = after("-d ", '\'').unwrap_or_default();
            let method = command.split_once("-X ").map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
            let method = method.unwrap_or(if body.is_empty() { "GET" } else { "POST" });
            let (_, path) = command.split_once("localhost:8280").unwrap();
            let path = path.split(' ').next().unwrap();
            let field = after("-H ", '"').unwrap_or_default();
            let fields: Vec<(&str, &str)> = field.split_once(": ").into_iter().collect();
            let reply = gateway.client().request(method, path, &fields, body.as_bytes());
            let (head, shown) = expected.split_once("\n\n").unwrap_or((expected, ""));
            let mut lines = head.trim().lines();
            assert!(lines.next().unwrap().contains(&format!(" {} ", reply.status)), "{command}: {}", reply.status);
            for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
                assert_eq!(reply.header(name), Some(value), "{command}: {name}");
            }
            if !shown.trim().is_empty() {
                assert_eq!(reply.text(), shown.trim(), "{command}");
            }
            asked += 1;
        }
    }
    assert_eq!(asked, 6);
}
