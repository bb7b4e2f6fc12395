//! Who may call what, and how often.

use penstock_catalog::PlanLevel;
use penstock_gateway::parse_plan;
use penstock_gateway::security::Issuer;

use super::*;

fn scoped() -> Value {
    tool("guarded", "GET", "/guarded", json!({ "properties": {} }), json!({ "scopes": ["zoo:read", "zoo:all"] }))
}

#[test]
fn a_client_without_a_valid_token_gets_the_metadata_address() {
    let backend = telling();
    let inputs = direct(&backend.url(), json!({}), json!([getting(), scoped()]));
    let setup = Setup { inputs, ..Setup::of([]) }.configured(|config| {
        let issuer = |name: &str| Issuer { name: name.into(), issuer: name.into(), ..Issuer::default() };
        config.security.issuers = vec![issuer("https://idp.example/oauth2"), issuer("internal")];
    });
    let gateway = TestGateway::start(setup);
    let mut talk = Talk::with(&gateway, json!({}));
    let metadata = format!("http://localhost:{}/pets/1.0.0/.well-known/oauth-protected-resource", gateway.http);
    let host = format!("localhost:{}", gateway.http);
    let mut send = |bearer: &str, method: &str| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "name": "getPet" } });
        let mut fields = vec![("Host", host.as_str())];
        if !bearer.is_empty() {
            fields.push(("Authorization", bearer));
        }
        talk.client.request("POST", PATH, &fields, message.to_string().as_bytes())
    };
    for bearer in ["", "Bearer x", "Bearer a.b.c"] {
        for method in ["tools/list", "tools/call"] {
            let reply = send(bearer, method);
            assert_eq!(reply.status, 401, "{method} {bearer}");
            let challenge = reply.header("www-authenticate").unwrap();
            assert!(challenge.starts_with(&format!("Bearer resource_metadata=\"{metadata}\"")), "{challenge}");
            assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        }
    }
    // Agents fetch a token after the 401 of their first message. `ping` needs no token, but an invalid token is refused.
    assert_eq!((send("", "initialize").status, send("", "resources/list").status), (401, 200));
    assert_eq!((send("", "ping").status, send("Bearer a.b.c", "ping").status), (200, 401));
    let reply = gateway.client().get("/pets/1.0.0/.well-known/oauth-protected-resource", &[("Host", &host)]);
    let expected = json!({
        "resource": format!("http://{host}{PATH}"), "authorization_servers": ["https://idp.example/oauth2"],
        "scopes_supported": ["zoo:all", "zoo:read"], "bearer_methods_supported": ["header"],
    });
    assert_eq!((reply.status, reply.json()), (200, expected));
    assert!(backend.received().is_empty());
    let forwarded =
        [("Host", host.as_str()), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "agents.example, x")];
    let reply = gateway.client().get("/pets/1.0.0/.well-known/oauth-protected-resource", &forwarded);
    assert_eq!(reply.json()["resource"], format!("http://{host}{PATH}"), "the host is that of the request");
}

#[test]
fn a_proxy_that_is_trusted_says_where_clients_find_the_server() {
    let backend = telling();
    let inputs = direct(&backend.url(), json!({}), json!([getting()]));
    let setup = Setup { inputs, ..Setup::of([]) }.configured(|config| config.trusts_forwarded = true);
    let gateway = TestGateway::start(setup);
    let own = format!("http://localhost{PATH}");
    for (proto, host, resource) in [
        ("https", "agents.example:8443, proxy.inside", "https://agents.example:8443/pets/1.0.0/mcp"),
        ("HTTP, https", "agents.example", "http://agents.example/pets/1.0.0/mcp"),
        ("ftp", "a\"b/c", &own),
        ("", "", &own),
    ] {
        let fields = [("X-Forwarded-Proto", proto), ("X-Forwarded-Host", host)];
        let reply = gateway.client().get("/pets/1.0.0/.well-known/oauth-protected-resource", &fields);
        assert_eq!(reply.json()["resource"], *resource, "{proto} {host}");
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let refused = gateway.client().request("POST", PATH, &fields, message);
        let metadata = resource.replace("/mcp", "/.well-known/oauth-protected-resource");
        assert!(refused.header("www-authenticate").unwrap().contains(&format!("\"{metadata}\"")), "{proto} {host}");
    }
}

#[test]
fn a_plan_of_the_server_counts_every_message() {
    let backend = telling();
    let inputs = direct(&backend.url(), json!({ "throttlingPolicy": "Four" }), json!([getting()]));
    let plans = vec![parse_plan(PlanLevel::Api, "Four", "4/1h").unwrap()];
    let gateway =
        TestGateway::start(Setup { inputs, ..Setup::of([]) }.configured(|config| config.limits.plans = plans));
    let mut talk = Talk::with(&gateway, json!({}));
    // With its notification.
    talk.initialize();
    assert_eq!(talk.tools(), ["getPet"]);
    let message = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "name": "getPet" } });
    assert_eq!(talk.send(&message("ping")).status, 200);
    for method in ["initialize", "ping", "tools/list", "tools/call", "prompts/list"] {
        assert_eq!(talk.send(&message(method)).status, 429, "{method}");
    }
    assert!(backend.received().is_empty());
}

#[test]
fn scopes_decide_over_tools() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting(), scoped()])));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "guarded" } });
    for (scope, status) in [("zoo:read", 200), ("x zoo:all", 200), ("zoo", 403), ("", 403)] {
        let mut talk = Talk::with(&gateway, json!({ "scope": scope }));
        let reply = talk.send(&call);
        assert_eq!(reply.status, status, "{scope}: {}", reply.text());
        if status == 403 {
            assert_eq!(reply.json()["code"], "900910");
            let challenge = reply.header("www-authenticate").unwrap();
            assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
            assert!(challenge.ends_with("scope=\"zoo:read zoo:all\""), "{challenge}");
        }
        // The others are none of its business.
        assert_eq!(talk.tools(), ["getPet", "guarded"]);
        assert_eq!(told(&talk.call("getPet", json!({ "id": "1" })))["target"], "/pet/1");
    }
}

#[test]
fn a_subscription_is_counted_over_all_tools() {
    let backend = telling();
    let inputs = direct(&backend.url(), json!({}), json!([getting(), scoped()]));
    let plans = vec![parse_plan(PlanLevel::Subscription, "Ten", "10/1h").unwrap()];
    let gateway =
        TestGateway::start(Setup { inputs, ..Setup::of([]) }.configured(|config| config.limits.plans = plans));
    let subscribed = |tier: &str| {
        json!({
            "sub": "ann", "scope": "zoo:read", "application": { "uuid": "app", "name": "app", "tier": "Unlimited" },
            "subscribedAPIs": [{ "name": "Pets", "version": "1.0.0", "subscriptionTier": tier }],
        })
    };
    let mut talk = Talk::with(&gateway, subscribed("Ten"));
    talk.initialize();
    for _ in 0..3 {
        assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
    }
    let call = |name: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name, "arguments": { "id": "1" } } })
    };
    let names = ["getPet", "guarded"];
    let statuses: Vec<u16> = (0..11).map(|number| talk.send(&call(names[number % 2])).status).collect();
    // `initialize` was the first of ten, `ping` is free.
    assert_eq!(statuses, [[200; 9].as_slice(), &[429, 429]].concat());
    let refused = talk.send(&call("getPet"));
    assert_eq!((refused.json()["code"].clone(), refused.header("retry-after").is_some()), (json!("900803"), true));
    assert_eq!(backend.received().len(), 9);
    // Another application has its own.
    let mut other = Talk::with(
        &gateway,
        json!({ "application": { "uuid": "other", "name": "other" },
        "subscribedAPIs": [{ "name": "Pets", "version": "1.0.0", "subscriptionTier": "Ten" }] }),
    );
    assert_eq!(other.tools().len(), 2);
}

#[test]
fn a_tool_that_is_taken_away_is_gone_with_the_next_deployment() {
    let backend = telling();
    let mut gateway = served(direct(&backend.url(), json!({}), json!([getting(), scoped()])));
    let mut talk = Talk::with(&gateway, json!({ "scope": "zoo:read" }));
    talk.initialize();
    assert_eq!(talk.tools(), ["getPet", "guarded"]);
    assert_eq!(gateway.deploy(&direct(&backend.url(), json!({}), json!([getting()])), &[]), Vec::<String>::new());
    assert_eq!(talk.tools(), ["getPet"]);
    let error = talk.ask("tools/call", json!({ "name": "guarded" }))["error"].clone();
    assert_eq!((&error["code"], &error["data"]), (&json!(-32602), &json!("The requested tool does not exist")));
    assert_eq!(told(&talk.call("getPet", json!({ "id": "1" })))["target"], "/pet/1");
}

#[test]
fn a_tool_with_its_own_plan_and_one_that_asks_for_nothing() {
    let backend = telling();
    let open = tool(
        "open",
        "GET",
        "/open",
        json!({ "properties": {} }),
        json!({ "authType": "None", "throttlingPolicy": "Two" }),
    );
    let inputs = direct(&backend.url(), json!({}), json!([getting(), open]));
    let plans = vec![parse_plan(PlanLevel::Api, "Two", "2/1h").unwrap()];
    let gateway =
        TestGateway::start(Setup { inputs, ..Setup::of([]) }.configured(|config| config.limits.plans = plans));
    let mut client = gateway.client();
    let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"}}"#;
    let statuses: Vec<u16> = (0..3).map(|_| client.request("POST", PATH, &[], message).status).collect();
    assert_eq!(statuses, [200, 200, 429]);
    let mut talk = Talk::with(&gateway, json!({}));
    assert_eq!(told(&talk.call("getPet", json!({ "id": "1" })))["target"], "/pet/1");
}
