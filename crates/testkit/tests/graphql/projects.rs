//! Diagnostics of a project.

use super::*;

fn diagnostics(descriptor: &str, schema: Option<&str>, complexity: Option<&str>) -> Vec<String> {
    let mut files = vec![("api.yaml", descriptor)];
    files.extend(schema.map(|schema| ("Definitions/schema.graphql", schema)));
    files.extend(complexity.map(|complexity| ("Definitions/graphql-complexity.yaml", complexity)));
    TestGateway::try_start(Setup::project(&files)).0.diagnostics.clone()
}

#[test]
fn mistakes_have_their_place() {
    let backend = backend();
    let descriptor = descriptor(&backend, "");
    assert_eq!(
        diagnostics(&descriptor, Some("type Query {\n  hello: Strin\n}\n"), None),
        ["project/Definitions/schema.graphql:2:10: error: unknown type `Strin`, did you mean `String`?"]
    );
    assert_eq!(
        diagnostics(&descriptor, Some("type Query {\n  hello String\n}\n"), None),
        ["project/Definitions/schema.graphql:2:9: error: `:` is expected, not `String`"]
    );
    assert_eq!(
        diagnostics(&descriptor, None, None),
        ["project/api.yaml:4:3: error: a GraphQL API needs its schema, `Definitions/schema.graphql`"]
    );
    let complexity = "data:\n  list:\n    - {type: Boo, field: id, complexityValue: 2}\n    \
                      - {type: Book, field: nam, complexityValue: 2}\n    - {type: Book, field: id}\n";
    assert_eq!(
        diagnostics(&descriptor, Some(SCHEMA), Some(complexity))
            .into_iter()
            .filter(|line| line.contains("complexity"))
            .collect::<Vec<_>>(),
        [
            "project/Definitions/graphql-complexity.yaml:3:7: error: the schema has no type `Boo` with fields; \
             the complexity is ignored; `Books:1.0.0` is not served, unless `security.serve_unprotected` in \
             penstock.toml lists it",
            "project/Definitions/graphql-complexity.yaml:4:7: error: the type `Book` has no field `nam`; \
             the complexity is ignored; `Books:1.0.0` is not served, unless `security.serve_unprotected` in \
             penstock.toml lists it",
            "project/Definitions/graphql-complexity.yaml:5:7: error: a complexity needs `type`, `field` and \
             `complexityValue`",
        ]
    );
}

#[test]
fn operations_are_held_against_the_schema() {
    let backend = backend();
    let wrong = "\n    - { target: boook, verb: QUERY }\n    - { target: bookAdded, verb: SUBSCRIPTION }";
    let said = diagnostics(&descriptor(&backend, wrong), Some(SCHEMA), None);
    for expected in [
        "warning: the schema has no query `boook`, did you mean `book`?",
        "warning: not served, since `operations` does not list them: `unlisted`",
    ] {
        assert!(said.iter().any(|line| line.ends_with(expected)), "{expected}: {said:#?}");
    }
    let unknown = diagnostics(&descriptor(&backend, "\n    - { target: x, verb: GET }"), Some(SCHEMA), None);
    assert!(unknown.iter().any(|line| line.contains("error: unknown method `GET`")), "{unknown:#?}");
    assert_eq!(
        diagnostics(&descriptor(&backend, "").replace("type: GRAPHQL", "type: GRAFQL"), Some(SCHEMA), None)[0]
            .split("error: ")
            .last(),
        Some("unknown type of API `GRAFQL`, did you mean `GRAPHQL`?")
    );
}

#[test]
fn without_operations_the_schema_says_what_is_served() {
    let backend = backend();
    let descriptor = descriptor(&backend, "");
    let (head, _) = descriptor.split_once("  operations:").unwrap();
    let gateway = TestGateway::start(Setup::project(&[("api.yaml", head), ("Definitions/schema.graphql", SCHEMA)]));
    assert_eq!(ask(&mut gateway.client(), "{ hello }").status, 401);
    let token = gateway.bearer(&json!({}));
    assert_eq!(ask_with(&mut gateway.client(), &json!({"query": "{ hello unlisted }"}), &token).status, 200);
}

#[test]
fn policies_of_the_api_run_and_the_default_version_is_served() {
    let backend = backend();
    let policies = "\n  isDefaultVersion: true\n  apiPolicies:\n    request:\n      - policyName: addHeader\n        \
                    policyVersion: v1\n        parameters: { headerName: X-From, headerValue: gateway }";
    let gateway = TestGateway::start(setup(&backend, policies));
    let reply = gateway.client().request("POST", "/books", &[], b"{\"query\":\"{ hello }\"}");
    assert_eq!(reply.status, 200, "{}", reply.text());
    let received = backend.last();
    assert_eq!(received.target, "/graphql");
    assert!(
        received.headers.iter().any(|(name, value)| name == "X-From" && value == "gateway"),
        "{:?}",
        received.headers
    );
}

#[test]
fn the_example_is_served() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/managed/Reviews-1.0.0");
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    let backend = backend();
    let descriptor = read("api.yaml").replace("http://localhost:8688", &backend.url());
    let (schema, costs) = (read("Definitions/schema.graphql"), read("Definitions/graphql-complexity.yaml"));
    let gateway = TestGateway::start(Setup::project(&[
        ("api.yaml", &descriptor),
        ("Definitions/schema.graphql", &schema),
        ("Definitions/graphql-complexity.yaml", &costs),
    ]));
    assert_eq!(gateway.diagnostics, Vec::<String>::new());
    let body = b"{\"query\": \"{ latest(first: 3) { text } }\"}";
    let reply = gateway.client().request("POST", "/reviews/1.0.0", &[("Content-Type", "application/json")], body);
    assert_eq!(reply.status, 200);
}
