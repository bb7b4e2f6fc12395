//! The page about MCP servers: its example is served, and says what the page says.

use std::path::Path;

use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// The files of a project of the examples, with the backend of this test.
fn example(name: &str, url: &str) -> Vec<Input> {
    let folder = Path::new(ROOT).join("examples/managed").join(name);
    let text = |inside: &str| {
        let text = std::fs::read_to_string(folder.join(inside)).ok()?;
        Some((inside.to_owned(), text.replace("http://localhost:8688", url)))
    };
    let files: Vec<_> =
        ["api.yaml", "Definitions/swagger.yaml", "mcp_server.yaml"].iter().filter_map(|file| text(file)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(inside, text)| (inside.as_str(), text.as_str())).collect();
    project(name, &files)
}

#[test]
fn the_page_is_current() {
    let backend = Backend::echo();
    let mut inputs = example("Library-1.0.0", &backend.url());
    inputs.extend(example("LibraryTools-1.0.0", &backend.url()));
    assert!(inputs.len() >= 3, "the examples are where they are");
    let gateway = served(inputs);
    let bearer = gateway.bearer(&json!({ "scope": "librarian" }));
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/gateway/mcp.md")).unwrap();
    let blocks: Vec<Value> = page
        .split("```json\n")
        .skip(1)
        .map(|part| serde_json::from_str(part.split("```").next().unwrap()).unwrap())
        .collect();
    let path = "/library-tools/1.0.0/mcp";
    let mut client = gateway.client();
    assert_eq!(blocks.len(), 6);
    for pair in blocks.chunks(2) {
        let reply = client.request("POST", path, &[("Authorization", &bearer)], pair[0].to_string().as_bytes());
        assert_eq!((reply.status, reply.json()), (200, pair[1].clone()));
    }
    let call = blocks[4].to_string();
    let other = gateway.bearer(&json!({ "scope": "reader" }));
    assert_eq!(client.request("POST", path, &[("Authorization", &other)], call.as_bytes()).status, 403);
    assert_eq!(client.request("POST", path, &[], call.as_bytes()).status, 401);
    assert_eq!(backend.received().len(), 1);
}
