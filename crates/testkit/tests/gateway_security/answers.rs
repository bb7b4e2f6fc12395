//! Responses to callers, and backend tokens.

use super::*;

#[test]
fn api_manager_tells_missing_credentials_from_wrong_ones() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(
        Setup::of([pets(&backend)]).configured(|config| config.error_style = ErrorStyle::ApiManager),
    );
    let mut client = gateway.client();
    let basic = format!("Basic {}", STANDARD.encode("a:b"));
    for headers in [&[][..], &[("Authorization", basic.as_str())]] {
        refused(&client.get("/pets/pet/1", headers), 401, "900902");
    }
    let reply = ask(&mut client, "Bearer a.b.c");
    refused(&reply, 401, "900901");
    assert_eq!(reply.json()["message"], "Invalid Credentials");
    assert_eq!(reply.header("www-authenticate").map(|value| value.contains(", Bearer realm=")), Some(true));
    let opaque = ask(&mut client, "Bearer 1234-5678");
    assert_eq!(
        opaque.text(),
        "{\"code\":\"900901\",\"message\":\"Invalid Credentials\",\"description\":\"Access failure for API: /pets, version: \
         1.0.0 status: (900901) - Invalid Credentials. Make sure you have provided the correct security credentials\"}"
    );
    let xml = client.get("/pets/pet/1", &[("Accept", "application/xml"), ("Authorization", "Bearer x")]);
    assert_eq!(xml.header("content-type"), Some("application/xml"));
    assert_eq!(
        xml.text(),
        "<ams:fault xmlns:ams=\"http://wso2.org/apimanager/security\"><ams:code>900901</ams:code><ams:message>Invalid \
         Credentials</ams:message><ams:description>Access failure for API: /pets, version: 1.0.0 status: (900901) - \
         Invalid Credentials. Make sure you have provided the correct security credentials</ams:description></ams:fault>"
    );
}

#[test]
fn soap_clients_get_faults_of_their_version() {
    let backend = Backend::start(|request| Answer::new(200, "text/xml", request.body.clone()));
    let mut soap = secured_api("/soap", &backend.url(), &["POST /"]);
    soap.security.api_key = true;
    let gateway = TestGateway::start(Setup::of([soap]).configured(|config| config.soap_errors = true));
    let mut client = gateway.client();
    let soap11 = [("Content-Type", "text/xml; charset=utf-8"), ("SOAPAction", "\"\""), ("apikey", "wrong")];
    let reply = client.request("POST", "/soap", &soap11, b"<a/>");
    assert_eq!((reply.status, reply.header("content-type")), (401, Some("text/xml")));
    let text = reply.text();
    for part in [
        "http://schemas.xmlsoap.org/soap/envelope/",
        "<faultcode>Server</faultcode><faultstring>Invalid Credentials</faultstring>",
        "<detail>900901:Make sure you have provided the correct security credentials</detail>",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let soap12 = [("Content-Type", "application/soap+xml; action=\"x\"")];
    let reply = client.request("POST", "/nowhere", &soap12, b"<a/>");
    assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/soap+xml")));
    assert!(reply.text().contains("<env:Value>env:Receiver</env:Value>"), "{}", reply.text());
    assert!(reply.text().contains("404:The requested resource is not available."), "{}", reply.text());
    assert_eq!(client.request("POST", "/nowhere", &[("Content-Type", "text/xml")], b"<a/>").json()["code"], "404");
    let bearer = gateway.bearer(&json!({}));
    let good = [("Content-Type", "text/xml"), ("SOAPAction", "\"\""), ("Authorization", &*bearer)];
    assert_eq!(client.request("POST", "/soap", &good, b"<a/>").text(), "<a/>");
}

#[test]
fn backends_get_a_verifiable_token_about_the_caller() {
    let backend = Backend::echo();
    let setup = Setup::of([pets(&backend)]).configured(|config| {
        config.security.backend_jwt = Some(BackendJwt { encoding: Encoding::Base64Url, ..BackendJwt::default() });
        config.security.jwks_rate = (5, Duration::from_secs(60));
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    let mut told = |bearer: &str| {
        assert_eq!(ask(&mut client, bearer).status, 204);
        backend.last().header("X-JWT-Assertion").unwrap().to_owned()
    };
    let one = gateway.bearer(&json!({"sub": "anna", "color": "red", "keytype": "PRODUCTION"}));
    let first = told(&one);
    assert_eq!(told(&one), first, "the same caller, the same claims");
    assert_ne!(told(&gateway.bearer(&json!({"sub": "anna"}))), first);

    let payload = first.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    assert_eq!(claims["iss"], "wso2.org/products/am");
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    for (name, value) in [
        ("http://wso2.org/claims/keytype", "PRODUCTION"),
        ("http://wso2.org/claims/enduser", "anna"),
        ("http://wso2.org/claims/apiname", "pets"),
        ("http://wso2.org/claims/apicontext", "/pets"),
        ("http://wso2.org/claims/version", "1.0.0"),
        ("http://wso2.org/claims/usertype", "Application_User"),
        ("http://wso2.org/claims/enduserTenantId", "0"),
        ("keytype", "PRODUCTION"),
        ("sub", "anna"),
        ("color", "red"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    let mut client = gateway.client();
    let keys = client.get("/.wellknown/jwks", &[]).json();
    let key = &keys["keys"][0];
    assert_eq!((&key["use"], &key["alg"]), (&json!("sig"), &json!("ES256")));
    let (text, signature) = first.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let algorithm = gateway.state().security.signer().algorithm();
    assert!(PublicKey::from_jwk(key).unwrap().verifies(algorithm, text.as_bytes(), &signature));
    let statuses: Vec<u16> = (0..10).map(|_| client.get("/.wellknown/jwks", &[]).status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn the_system_host_gives_tokens_to_those_it_knows() {
    let backend = Backend::echo();
    let mut scoped = pets(&backend);
    operation(&mut scoped, 0).scopes = vec!["read:pets".into()];
    let setup = Setup::of([scoped]).configured(|config| {
        config.security.test_key_users = vec![User { name: "dev".into(), password: Secret::new("pw") }];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    assert_eq!(client.get("/health", &[]).text(), "{\"status\": \"healthy\"}");
    assert_eq!(client.get("/ready", &[]).text(), "{\"status\": \"ready\"}");
    assert_eq!(client.get("/health", &[("Host", "api.example.com")]).status, 404);
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let mut token = |user: &str, form: &str| {
        let headers = [("Authorization", &*basic(user)), ("Content-Type", "application/x-www-form-urlencoded")];
        client.request("POST", "/testkey", &headers, form.as_bytes())
    };
    let refusal = token("dev:wrong", "");
    let wrong = "Wrong username or password. Please provide valid credentials.";
    assert_eq!((refusal.status, refusal.header("content-type"), &*refusal.text()), (401, Some("text/plain"), wrong));
    assert!(refusal.header("www-authenticate").is_some());
    let (plain, scoped) = (token("dev:pw", "").text(), token("dev:pw", "scope=read%3Apets+x").text());
    assert_eq!(ask(&mut client, &format!("Bearer {plain}")).status, 403);
    assert_eq!(ask(&mut client, &format!("Bearer {scoped}")).status, 204);
    assert_eq!(client.get("/testkey", &[]).status, 405);
    let refusal = client.request("POST", "/testkey", &[], b"");
    assert!(refusal.status == 401 && refusal.text().starts_with("User is NOT authorized"), "{}", refusal.text());
}

#[test]
fn explanations_are_for_those_who_have_the_key() {
    let backend = Backend::echo();
    let key = "an explanation key";
    let setup = Setup::of([pets(&backend)]).configured(|config| config.security.explain_key = Some(Secret::new(key)));
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let name = "x-penstock-explain";
    let bearer = gateway.bearer(&json!({"sub": "anna@example.com"}));
    for headers in [&[][..], &[(name, "another key here")], &[(name, "")]] {
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        let reply = client.get("/pets/pet/2", &all);
        assert_eq!((reply.status, reply.header(name)), (204, None));
        assert_eq!(backend.last().header(name), None);
    }
    let explained = |reply: &Reply| -> Value { serde_json::from_str(reply.header(name).unwrap()).unwrap() };
    let reply = client.get("/pets/pet/2", &[("Authorization", &bearer), (name, key)]);
    let told = explained(&reply);
    assert_eq!(told["route"], "GET /pets/pet/{id} of pets:1.0.0");
    let steps: Vec<&str> = told["steps"].as_array().unwrap().iter().map(|step| step[0].as_str().unwrap()).collect();
    for step in ["authenticate", "subscription", "upstream"] {
        assert!(steps.contains(&step), "{step} is not in {steps:?}");
    }
    assert!(told["total_us"].as_f64().unwrap() > 0.0);
    let text = told.to_string();
    assert!(!text.contains("anna") && !text.contains(&bearer[..20]) && !text.contains(key), "{text}");

    let told = explained(&client.get("/pets/pet/2", &[("Authorization", "Bearer a.b.c"), (name, key)]));
    assert_eq!(told["refused"], "900901: the header of the token cannot be decoded");
    let told = explained(&client.get("/nowhere", &[(name, key)]));
    assert_eq!((&told["route"], &told["refused"]), (&json!("none"), &json!("404: Not Found")));
}

#[test]
fn what_does_not_hold_is_refused_in_the_synapse_message() {
    let backend = Backend::echo();
    let (known, stranger) = (signer(), signer());
    let mut keyed = secured_api("/keyed", &backend.url(), &["GET /x"]);
    keyed.security.api_key = true;
    let setup = Setup::of([pets(&backend), keyed]).configured(|config| {
        let idp = Issuer { validate_subscription: true, ..issuer("idp", &known) };
        config.security.issuers = vec![idp, Issuer { keys_for_any_api: true, ..issuer("APIM APIkey", &known) }];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let said = |reply: &Reply| {
        let body = reply.json();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (reply.status, text("code"), text("error_message"), text("error_description"))
    };
    let end = "Make sure you have provided the correct security credentials";
    let told = |status: u16, code: &str, message: &str, description: String| {
        (status, code.to_owned(), message.to_owned(), description)
    };
    let token = |signer: &Signer, more: Value| {
        let mut claims = json!({"iss": "https://idp"});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("Bearer {}", signed(signer, &claims))
    };
    let invalid = |why: &str| told(401, "900901", "Invalid Credentials", format!("{why}{end}"));
    for wrong in [
        token(&stranger, json!({})),
        token(&known, json!({"exp": now() - 60})),
        token(&known, json!({"iss": "https://elsewhere"})),
    ] {
        assert_eq!(said(&ask(&mut client, &wrong)), invalid("Invalid Credentials. "));
    }
    let revoked = token(&known, json!({"jti": "gone"}));
    let gone = penstock_gateway::security::RevokedToken { id: "gone".into(), expires: None };
    gateway.state().security.revocations.revoke(gone).unwrap();
    assert_eq!(said(&ask(&mut client, &revoked)), invalid("Invalid JWT token. "));
    assert_eq!(said(&ask(&mut client, "Bearer one.two")), invalid(""));

    let forbidden = |description: &str| told(403, "900908", "Resource forbidden ", description.to_owned());
    let not_subscribed = "User is NOT authorized to access the Resource. API Subscription validation failed.";
    let reply = ask(&mut client, &token(&known, json!({})));
    assert_eq!(said(&reply), forbidden(not_subscribed));
    assert!(reply.header("www-authenticate").is_some());
    let of_others = token(&known, json!({"subscribedAPIs": [{"name": "other", "version": "1.0.0"}]}));
    assert_eq!(said(&ask(&mut client, &of_others)), forbidden("Resource forbidden "));

    let key = |signer: &Signer, more: Value| token(signer, more)["Bearer ".len()..].to_owned();
    let mut with_key = |key: &str| client.get("/keyed/x", &[("apikey", key)]);
    assert_eq!(with_key(&key(&known, json!({"token_type": "apiKey"}))).status, 204, "its signer asks for no APIs");
    let wrong = with_key(&key(&stranger, json!({"token_type": "apiKey"})));
    assert_eq!(said(&wrong), invalid("API key authentication failed.. "));
    let elsewhere = with_key(&key(&known, json!({"token_type": "apiKey", "permittedIP": "203.0.113.1"})));
    assert_eq!(said(&elsewhere), forbidden("Resource forbidden "));
}

#[test]
fn credentials_reach_the_backend_of_open_operations_only() {
    let backend = Backend::echo();
    let mut apis = [pets(&backend), secured_api("/open", &backend.url(), &["GET /x"])];
    apis[0].security.api_key = true;
    apis[1].security.api_key = true;
    operation(&mut apis[1], 0).secured = false;
    for (style, forward, kept) in [
        (ErrorStyle::ChoreoConnect, false, [false, true]),
        (ErrorStyle::ChoreoConnect, true, [true, true]),
        (ErrorStyle::ApiManager, false, [false, true]),
    ] {
        let setup = Setup::of(apis.clone()).configured(|config| {
            config.error_style = style;
            config.security.forward_credentials = forward;
        });
        let gateway = TestGateway::start(setup);
        let mut client = gateway.client();
        let bearer = gateway.bearer(&json!({}));
        let sent = [("Authorization", bearer.as_str()), ("apikey", "k"), ("X-Other", "o")];
        for (path, kept) in ["/pets/pet/1?apikey=q&a=b", "/open/x?apikey=q&a=b"].iter().zip(kept) {
            assert_eq!(client.get(path, &sent).status, 204);
            let got = backend.last();
            assert_eq!(got.header("authorization").is_some(), kept, "{path}");
            let strips = style == ErrorStyle::ChoreoConnect && !kept;
            assert_eq!((got.header("apikey").is_none(), got.target.contains("apikey")), (strips, !strips), "{path}");
            assert!(got.header("x-other").is_some() && got.target.ends_with("a=b"), "{}", got.target);
        }
    }
}
