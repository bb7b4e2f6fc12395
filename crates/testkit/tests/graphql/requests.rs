//! Where a request carries its query, and what reaches the backend.

use super::*;

#[test]
fn queries_are_sent_on_as_they_came() {
    let backend = backend();
    let gateway = start(&backend);
    let mut client = gateway.client();
    let body = "{ \"query\" :\"{ hello }\", \"extensions\":{\"a\":1.0}, \"variables\":null }";
    let reply =
        client.request("POST", "/books/1.0.0", &[("Content-Type", "application/json; charset=utf-8")], body.as_bytes());
    assert_eq!((reply.status, reply.text()), (200, "{\"data\":{\"hello\":\"world\"}}".to_owned()));
    let received = backend.last();
    assert_eq!((&*received.method, &*received.target, received.body), ("POST", "/graphql", body.as_bytes().to_vec()));
    let reply =
        client.request("POST", "/books/1.0.0/?trace=1", &[("Content-Type", "application/graphql")], b"{ hello } # a");
    assert_eq!(
        (reply.status, &*backend.last().target, backend.last().body),
        (200, "/graphql?trace=1", b"{ hello } # a".to_vec())
    );
    let reply = client
        .get("/books/1.0.0?query=query%20A%7Bhello%7D%20query+B%7Bstock%7D&operationName=A&variables=%7B%7D", &[]);
    assert_eq!((reply.status, &*backend.last().method), (200, "GET"));
    assert_eq!(
        backend.last().target,
        "/graphql?query=query%20A%7Bhello%7D%20query+B%7Bstock%7D&operationName=A&variables=%7B%7D"
    );
    // One address, nothing below it.
    assert_eq!(client.request("POST", "/books/1.0.0/other", &[], b"{\"query\":\"{ hello }\"}").status, 404);
    assert_eq!(client.request("PUT", "/books/1.0.0", &[], b"{\"query\":\"{ hello }\"}").status, 405);
    let options = client.request("OPTIONS", "/books/1.0.0", &[], b"");
    assert_eq!((options.status, options.header("Allow")), (204, Some("OPTIONS, POST, GET")));
}

#[test]
fn what_can_be_understood_in_two_ways_is_refused() {
    let backend = backend();
    let gateway = in_style_of_api_manager(&backend);
    let mut client = gateway.client();
    let json: &[(&str, &str)] = &[("Content-Type", "application/json")];
    let twice = "A query, an operation name or variables are given twice";
    let structure = "Invalid GraphQL query body structure";
    let media = "Invalid content type. Make sure the content type is application/json or application/graphql";
    let packed: &[(&str, &str)] = &[("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let form: &[(&str, &str)] = &[("Content-Type", "application/x-www-form-urlencoded")];
    let both = &[json, form].concat();
    let good = r#"{"query":"{ hello }"}"#;
    // As a form it asks for the stock.
    let two_faced = r#"{"query":"{ hello }","a":"&query={stock}&b="}"#;
    for (path, headers, body, description) in [
        ("", json, r#"{"query":"{ hello }","query":"{ stock }"}"#, twice),
        ("", json, r#"{"query":"{ hello }","QUERY":"{ stock }"}"#, twice),
        ("?query=%7Bstock%7D", json, good, twice),
        ("?oper%61tionName=A", json, good, twice),
        ("", json, r#"[{"query":"{ hello }"}]"#, structure),
        ("", json, "{ hello }", structure),
        ("", json, r#"{"query":7}"#, structure),
        ("", json, r#"{"extensions":{"persistedQuery":{"version":1}}}"#, "Query cannot be empty"),
        ("", json, "", "Query cannot be empty"),
        ("", packed, good, "Bodies with a Content-Encoding are not read"),
        ("", form, good, media),
        ("", both, two_faced, media),
    ] {
        let reply = client.request("POST", &format!("/books/1.0.0{path}"), headers, body.as_bytes());
        refused(&reply, 422, "900422", description);
        assert_eq!(reply.json()["message"], "INVALID QUERY");
    }
    let by_get = |client: &mut Client, query: &str| client.get(&format!("/books/1.0.0{query}"), &[]);
    refused(&by_get(&mut client, ""), 422, "900422", "Query cannot be empty");
    refused(&by_get(&mut client, "?query=%7Bhello%7D&query=%7Bstock%7D"), 422, "900422", twice);
    let with_body = client.request("GET", "/books/1.0.0?query=%7Bhello%7D", json, good.as_bytes());
    refused(&with_body, 422, "900422", twice);
    let changing = "?query=mutation%7BremoveBook(id:1)%7D";
    refused(&by_get(&mut client, changing), 422, "900422", "Mutations are sent with POST");
    assert_eq!(backend.received().len(), 0);
}

#[test]
fn invalid_queries_have_the_errors_of_either_product() {
    let backend = backend();
    let (connect, manager) = (start(&backend), in_style_of_api_manager(&backend));
    let undefined = "Field 'nope' in type 'Query' is undefined";
    let reply = ask(&mut connect.client(), "{ nope }");
    assert_eq!(
        (reply.status, reply.text()),
        (
            400,
            format!(
                "{{\"error_message\":\"INVALID QUERY\",\"code\":\"900422\",\"error_description\":\"{undefined}\"}}"
            )
        )
    );
    let reply = ask(&mut manager.client(), "{ nope }");
    assert_eq!(
        (reply.status, reply.text()),
        (422, format!("{{\"code\":\"900422\",\"message\":\"INVALID QUERY\",\"description\":\"{undefined}\"}}"))
    );
    let xml: &[(&str, &str)] = &[("Accept", "application/xml")];
    let reply = manager.client().request("POST", "/books/1.0.0", xml, b"{\"query\":\"{ hello\"}");
    let fault = "<ams:fault xmlns:ams=\"http://wso2.org/apimanager/security\"><ams:code>900422</ams:code>";
    assert!(reply.status == 422 && reply.text().starts_with(fault), "{}", reply.text());
    let syntax = "Invalid syntax: a name is expected, not the end at line 1 column 8";
    refused(&ask(&mut manager.client(), "{ hello"), 422, "900422", syntax);
    let compatible = TestGateway::start(setup(&backend, "").configured(|config| config.compat = true));
    refused(&ask(&mut compatible.client(), "{ hello"), 400, "900422", "Invalid syntax");
    refused(&ask(&mut compatible.client(), "{ nope }"), 400, "900422", "Payload is invalid");
}

#[test]
fn subscriptions_and_what_is_not_listed_are_refused_by_name() {
    let backend = backend();
    let (connect, manager) = (start(&backend), in_style_of_api_manager(&backend));
    let text = "Subscriptions are available over WebSocket";
    refused(&ask(&mut connect.client(), "subscription { bookAdded { id } }"), 400, "900422", text);
    let handshake = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Protocol", "graphql-transport-ws"),
    ];
    refused(&connect.client().get("/books/1.0.0", &handshake), 400, "900422", "The API has no subscriptions");
    refused(&ask(&mut connect.client(), "{ hello unlisted }"), 404, "404", "The requested resource is not available.");
    let unlisted = ask(&mut manager.client(), "{ unlisted }");
    assert_eq!((unlisted.status, &unlisted.json()["code"]), (403, &"900906".into()));
    assert_eq!(backend.received().len(), 0);
}

#[test]
fn backends_answer_questions_about_the_schema_unless_that_is_off() {
    let backend = backend();
    let gateway = start(&backend);
    let question = "query IntrospectionQuery { __schema { queryType { name } types { ...T } } } \
                    fragment T on __Type { kind name fields(includeDeprecated: true) { name } }";
    let mut client = gateway.client();
    // Introspection requires the credentials of the API.
    assert_eq!(ask(&mut client, question).status, 401);
    let token = gateway.bearer(&json!({}));
    assert_eq!(ask_with(&mut client, &json!({"query": question}), &token).status, 200);
    assert_eq!(ask(&mut client, "{ __typename hello }").status, 200);
    let closed = TestGateway::start(setup(&backend, "").configured(|config| config.graphql.introspection = false));
    let reply = ask_with(&mut closed.client(), &json!({"query": question}), &closed.bearer(&json!({})));
    refused(&reply, 400, "900422", "Questions about the schema are not answered");
    assert_eq!(ask(&mut closed.client(), "{ __typename hello }").status, 200);
}

#[test]
fn hostile_queries_are_refused_quickly_and_others_are_served() {
    let backend = backend();
    let gateway = start(&backend);
    let mut client = gateway.client();
    let doubled = |n: usize| format!("fragment F{n} on Query {{ ...F{0} ...F{0} }} ", n + 1);
    let bomb: String = (0..60).map(doubled).collect();
    let aliases: String = (0..100_000).map(|n| format!("a{n}:hello ")).collect();
    let hostile = [
        (format!("{{ books{} }}", "{similar".repeat(60_000)), "900820"),
        (format!("{{ hello(a: {}", "[".repeat(500_000)), "900820"),
        (format!("{{ {aliases} }}"), "900422"),
        ("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }".to_owned(), "900422"),
        (format!("{{ hello {}}}", "\u{feff}".repeat(350_000)), "900422"),
        (format!("{{ {} }}", "x".repeat(1_000_000)), "900422"),
        (format!("{{ ...F0 }} {bomb} fragment F60 on Query {{ nope }}"), "900422"),
    ];
    for (query, code) in &hostile {
        let reply = ask(&mut client, query);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some(*code)), "{}", &query[..40]);
        assert!(reply.text().len() < 1_000, "{}", reply.text().len());
    }
    assert_eq!(backend.received().len(), 0);
    // Large and harmless.
    assert_eq!(ask(&mut client, &format!("{{ hello {}}}", " ".repeat(1_000_000))).status, 200);
    assert_eq!(ask(&mut client, &format!("{{ ...F0 }} {bomb} fragment F60 on Query {{ hello }}")).status, 200);
}
