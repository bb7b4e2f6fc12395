//! Tokens and keys that WSO2's products issued are verified with their certificates.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "in a test a panic is the report, and so is what it says")]

use std::path::Path;

use penstock_gateway::security::{Issuer, Jws, PublicKey, TrustedKey};
use penstock_testkit::gateway::{Backend, Setup, TestGateway, secured_api};
use serde_json::Value;

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_tokens_are_verified() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/gateway/jwt/jwt-fixtures");
    let text = std::fs::read(folder.join("tokens.json")).unwrap();
    let tokens: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let keys =
        ["mg.pem", "wso2carbon.pem"].map(|name| PublicKey::parse(&std::fs::read(folder.join(name)).unwrap()).unwrap());
    let trusted: Vec<TrustedKey> = keys.iter().map(|key| TrustedKey { kid: None, key: key.clone() }).collect();
    let backend = Backend::echo();
    let (mut understood, mut held) = (0, 0);
    for entry in &tokens {
        let (name, token) = (entry["name"].as_str().unwrap(), entry["token"].as_str().unwrap());
        if entry["header"]["alg"].is_null() {
            assert!(Jws::parse(token).is_err(), "{name} names no algorithm");
            continue;
        }
        let jws = match Jws::parse(token) {
            Ok(jws) => jws,
            Err(why) => {
                assert!(name.starts_with("INVALID"), "{name}: {why:?}");
                continue;
            }
        };
        assert_eq!(&Value::Object(jws.claims.clone()), &entry["claims"], "{name}");
        understood += 1;
        let holds = keys.iter().any(|key| key.verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature));
        let is_key = jws.claims.get("token_type").is_some_and(|kind| kind == "apiKey");
        let subscribed = &entry["claims"]["subscribedAPIs"][0];
        let mut api = secured_api("/api", &backend.url(), &["GET /x"]);
        api.security.api_key = true;
        if let Some(name) = subscribed["name"].as_str() {
            api.name = name.into();
            api.version = subscribed["version"].as_str().unwrap().into();
        }
        let issuer = entry["claims"]["iss"].as_str().unwrap();
        let known = |called: &str| Issuer {
            name: called.into(),
            issuer: issuer.into(),
            keys: trusted.clone(),
            ..Issuer::default()
        };
        let gateway = TestGateway::start(Setup::of([api]).configured(|config| {
            config.security.issuers =
                vec![known("Resident Key Manager"), known("APIM APIkey"), known("APIM Publisher")];
        }));
        let mut client = gateway.client();
        let bearer = format!("Bearer {token}");
        let header = match jws.claims.get("token_type").and_then(Value::as_str) {
            Some("apiKey") => ("apikey", token),
            Some("InternalKey") => ("Internal-Key", token),
            _ => ("Authorization", bearer.as_str()),
        };
        let status = client.get("/api/x", &[header]).status;
        let ended = jws.claims.get("exp").is_some() || !is_key;
        let sandbox = entry["claims"]["keytype"] == "SANDBOX";
        let expected = if holds && !ended && !sandbox { 204 } else { 401 };
        assert_eq!(status, expected, "{name}: signature {holds}\n{}", gateway.log());
        held += usize::from(holds);
    }
    assert!(understood >= 7 && held >= 3, "{understood} understood, {held} signatures held");
}
