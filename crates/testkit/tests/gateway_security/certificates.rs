//! Certificates of clients, over TLS and passed on by a proxy.

use super::*;

#[test]
fn client_certificates_are_requested_and_checked() {
    let backend = Backend::echo();
    let (app, stranger) = (ClientIdentity::new("app"), ClientIdentity::new("stranger"));
    let listed = |mode: SecurityMode, application: SecurityMode, base: &str| {
        let mut api = secured_api(base, &backend.url(), &["GET /x"]);
        api.security.mutual_tls = mode;
        api.security.application = application;
        api.client_certificates = vec![ClientCertificate {
            alias: "app".into(),
            certificate: app.pem.as_bytes().into(),
            tier: Some("Gold".into()),
            sandbox: None,
        }];
        api
    };
    let setup = Setup::of([
        listed(SecurityMode::Mandatory, SecurityMode::Off, "/only"),
        listed(SecurityMode::Mandatory, SecurityMode::Mandatory, "/both"),
        listed(SecurityMode::Optional, SecurityMode::Optional, "/either"),
        pets(&backend),
    ]);
    let gateway = TestGateway::start(setup);
    let bearer = gateway.bearer(&json!({}));
    let with_token = [("Authorization", bearer.as_str())];
    let mut known = gateway.certified_client(&app);
    let mut unknown = gateway.certified_client(&stranger);
    let mut none = gateway.tls_client();
    for (path, headers, statuses) in [
        ("/only/x", &[][..], [204, 401, 401]),
        ("/only/x", &with_token, [204, 401, 401]),
        ("/both/x", &[], [401, 401, 401]),
        ("/both/x", &with_token, [204, 401, 401]),
        ("/either/x", &[], [204, 401, 401]),
        ("/either/x", &with_token, [204, 204, 204]),
        ("/pets/pet/1", &with_token, [204, 204, 204]),
        ("/pets/pet/1", &[], [401, 401, 401]),
    ] {
        let got = [&mut known, &mut unknown, &mut none].map(|client| client.get(path, headers).status);
        assert_eq!(got, statuses, "{path} {headers:?}");
    }
    // A certificate in a header field is ignored unless the configuration trusts the proxy before the gateway.
    let encoded = app.pem.replace('\n', "%0A").replace(' ', "%20");
    assert_eq!(none.get("/only/x", &[("X-WSO2-CLIENT-CERTIFICATE", &encoded)]).status, 401);
}

#[test]
fn a_certificate_may_be_passed_on_in_a_header_field_when_it_is_configured() {
    let backend = Backend::echo();
    let app = ClientIdentity::new("app");
    let mut only = secured_api("/only", &backend.url(), &["GET /x"]);
    only.security.mutual_tls = SecurityMode::Mandatory;
    only.security.application = SecurityMode::Off;
    let certificate = app.pem.as_bytes().into();
    only.client_certificates = vec![ClientCertificate { alias: "app".into(), certificate, tier: None, sandbox: None }];
    let name = "X-WSO2-CLIENT-CERTIFICATE";
    let gateway = TestGateway::start(
        Setup::of([only]).configured(|config| config.security.certificate_header = Some(name.into())),
    );
    let mut client = gateway.client();
    let one_line: String = app.pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let encoded = app.pem.replace('\n', "%0A").replace(' ', "%20");
    for value in [&one_line, &encoded] {
        assert_eq!(client.get("/only/x", &[(name, value)]).status, 204);
        assert_eq!(backend.last().header(name), None);
    }
    for value in [ClientIdentity::new("app").pem.replace('\n', "%0A"), "nonsense".to_owned(), "%".to_owned()] {
        refused(&client.get("/only/x", &[(name, &value)]), 401, "900901");
    }
}

/// The field that carries a certificate is taken out before keys are fetched; what it proved still counts afterwards.
#[test]
fn a_certificate_that_was_passed_on_counts_while_keys_are_fetched() {
    let backend = Backend::echo();
    let app = ClientIdentity::new("app");
    let name = "X-WSO2-CLIENT-CERTIFICATE";
    let encoded = app.pem.replace('\n', "%0A").replace(' ', "%20");
    let both = |base: &str| {
        let mut api = secured_api(base, &backend.url(), &["GET /x"]);
        api.security.mutual_tls = SecurityMode::Mandatory;
        api.security.application = SecurityMode::Mandatory;
        let certificate = app.pem.as_bytes().into();
        api.client_certificates =
            vec![ClientCertificate { alias: "app".into(), certificate, tier: None, sandbox: None }];
        api
    };
    let signer = Arc::new(signer());
    let published = signer.clone();
    let keys = Backend::start_tls(move |_| Answer::json(&published.jwks()).after(Duration::from_millis(100)), None);
    let setup = Setup::of([both("/both")])
        .configured(|config| {
            config.security.certificate_header = Some(name.into());
            config.security.issuers = vec![issuers::jwks_issuer("idp", &keys.url())];
        })
        .trusting(&keys);
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    let bearer = format!("Bearer {}", signed(&signer, &json!({"iss": "https://idp"})));
    assert_eq!(keys.received().len(), 0, "nothing was fetched yet");
    let reply = client.get("/both/x", &[("Authorization", &bearer), (name, &encoded)]);
    assert_eq!((reply.status, keys.received().len()), (204, 1), "{}", reply.text());
    assert_eq!(backend.last().header(name), None);
    refused(&client.get("/both/x", &[("Authorization", &bearer)]), 401, "900901");
}
