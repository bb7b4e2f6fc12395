//! Credentials and scopes of all operations of a query.

use super::*;

#[test]
fn credentials_are_required_when_one_of_the_operations_requires_them() {
    let backend = backend();
    let gateway = start(&backend);
    let mut client = gateway.client();
    assert_eq!(ask(&mut client, "{ hello }").status, 200);
    // What is open looks at no credentials, as with other APIs.
    assert_eq!(ask_with(&mut client, &json!({"query": "{ hello stock }"}), "Bearer a.b.c").status, 200);
    for query in [
        "{ book(id: 1) { title } }",
        "{ hello book(id: 1) { title } }",
        "{ a: hello ...F } fragment F on Query { ... { book(id: 1) { id } } }",
        "query A { hello book(id: 1) @skip(if: true) { id } }",
    ] {
        let reply = ask(&mut client, query);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("900901")), "{query}");
        assert!(reply.header("WWW-Authenticate").is_some());
        assert_eq!(ask_with(&mut client, &json!({"query": query}), &gateway.bearer(&json!({}))).status, 200, "{query}");
    }
    assert!(backend.last().headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("authorization")));
}

#[test]
fn a_scope_of_each_operation_is_needed() {
    let backend = backend();
    let gateway = start(&backend);
    let mut client = gateway.client();
    let mut status = |query: &str, scopes: &str| {
        ask_with(&mut client, &json!({"query": query}), &gateway.bearer(&json!({"scope": scopes}))).status
    };
    let add = "mutation { addBook(title: \"x\") { id } }";
    let both = "mutation { addBook(title: \"x\") { id } removeBook(id: 1) }";
    for (query, scopes, expected) in [
        ("{ books { id } }", "read", 200),
        ("{ books { id } }", "other admin", 200),
        ("{ books { id } }", "write", 403),
        ("{ hello book(id: 1) { id } ...F } fragment F on Query { b: books { id } }", "write", 403),
        (add, "write", 200),
        (add, "read", 403),
        (both, "write", 403),
        (both, "write admin", 200),
        // A field inside another one that is called like an operation is none.
        ("{ book(id: 1) { author { books { id } } } }", "", 200),
    ] {
        assert_eq!(status(query, scopes), expected, "{query} with {scopes}");
    }
    let reply = ask_with(&mut gateway.client(), &json!({"query": both}), &gateway.bearer(&json!({"scope": "write"})));
    let text = "User is NOT authorized to access the Resource: removeBook. Scope validation failed.";
    refused(&reply, 403, "900910", text);
}

#[test]
fn the_operation_that_is_meant_decides() {
    let backend = backend();
    let gateway = start(&backend);
    let mut client = gateway.client();
    let two = "query A { hello } mutation B { removeBook(id: 1) }";
    assert_eq!(ask_with(&mut client, &json!({"query": two, "operationName": "A"}), "").status, 200);
    assert_eq!(ask_with(&mut client, &json!({"query": two, "operationName": "B"}), "").status, 401);
    let unnamed = ask_with(&mut client, &json!({"query": two}), "");
    refused(&unnamed, 400, "900422", "The name of one of the operations must be sent");
}

#[test]
fn a_prototype_asks_for_nothing_and_keys_of_subscriptions_count() {
    let backend = backend();
    let open = TestGateway::start(setup(&backend, "\n  lifeCycleStatus: PROTOTYPED"));
    assert_eq!(ask(&mut open.client(), "mutation { removeBook(id: 1) }").status, 200);
    let keys = TestGateway::start(setup(&backend, "\n  securityScheme: [api_key]\n  apiKeyHeader: x-key"));
    let mut client = keys.client();
    assert_eq!(ask(&mut client, "{ hello }").status, 200);
    let token = keys.bearer(&json!({}));
    assert_eq!(ask_with(&mut client, &json!({"query": "{ book(id: 1) { id } }"}), &token).status, 401);
    let blocked = TestGateway::start(setup(&backend, "\n  lifeCycleStatus: BLOCKED"));
    assert_eq!(ask(&mut blocked.client(), "{ hello }").json()["code"], "700700");
}
