//! WS-Security of a proxy service: what reaches the backend, and what the client gets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use penstock_compile::{Compilation, CompileOptions, Input, InputKind, MessageKeys, compile};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wssecurity/tests/vectors");

fn proxy(policy: &str, attributes: &str) -> Vec<Input> {
    let text = format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'><localEntry key='rules'>{policy}</localEntry>\
         <proxy name='vault'><target><inSequence><respond/></inSequence></target><policy {attributes}/><enableSec/></proxy>\
         <proxy name='open'><target><inSequence><respond/></inSequence></target></proxy></definitions>"
    );
    vec![Input { file: "vault.xml".into(), bytes: text.into_bytes().into(), kind: InputKind::Artifact }]
}

fn compiled(policy: &str, attributes: &str, options: &CompileOptions) -> (Vec<(String, bool)>, String) {
    let Compilation { diagnostics, artifacts, .. } =
        compile(&proxy(policy, attributes), &penstock_mediators::REGISTRY, options);
    let proxies = artifacts.into_iter().filter(|artifact| artifact.kind == "proxy");
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    (proxies.map(|artifact| (artifact.name, artifact.good)).collect(), lines.join("\n"))
}

fn served(vault: bool) -> Vec<(String, bool)> {
    vec![("vault".to_owned(), vault), ("open".to_owned(), true)]
}

fn keys() -> CompileOptions {
    let file = |name: &str| std::fs::read(format!("{VECTORS}/{name}")).unwrap();
    let keys = MessageKeys {
        certificate: file("service.der"),
        key: file("service.key.der"),
        trusted: vec![file("client.der")],
    };
    CompileOptions { message_keys: Some(Ok(Arc::new(keys))), ..CompileOptions::default() }
}

const X509: &str = "<wsp:Policy xmlns:wsp='http://schemas.xmlsoap.org/ws/2004/09/policy' \
                    xmlns:sp='http://schemas.xmlsoap.org/ws/2005/07/securitypolicy'><sp:SymmetricBinding><wsp:Policy>\
                    <sp:ProtectionToken><wsp:Policy><sp:X509Token/></wsp:Policy></sp:ProtectionToken><sp:AlgorithmSuite>\
                    <wsp:Policy><sp:Basic256/></wsp:Policy></sp:AlgorithmSuite></wsp:Policy></sp:SymmetricBinding>\
                    <sp:EncryptedParts><sp:Body/></sp:EncryptedParts></wsp:Policy>";

#[test]
fn a_policy_that_cannot_be_enforced_closes_its_service_and_no_other() {
    let saml = X509.replace("<sp:X509Token/>", "<sp:SamlToken/>");
    let word =
        "<wsp:Policy xmlns:wsp='http://schemas.xmlsoap.org/ws/2004/09/policy'><!-- UsernameToken --></wsp:Policy>";
    for (policy, attributes, expected) in [
        (X509, "key='rules'", "needs a private key"),
        (X509, "key='other'", "the security policy `other` is not found"),
        (X509, "key='rules' type='in'", "a security policy for one direction"),
        (X509, "", "has no `key`"),
        ("no policy", "key='rules'", "not well-formed XML"),
        ("<a/>", "key='rules'", "is not a <wsp:Policy>"),
        (word, "key='rules'", "neither a binding nor a UsernameToken"),
        (&saml, "key='rules'", "the assertion `SamlToken` is not supported"),
    ] {
        let (proxies, lines) = compiled(policy, attributes, &CompileOptions::default());
        assert!(lines.contains("error: ") && lines.contains(expected), "{expected}\n{lines}");
        assert_eq!(proxies, served(false), "{expected}");
        let listed = CompileOptions { serve_unprotected: vec!["vault".into()], ..CompileOptions::default() };
        let (proxies, lines) = compiled(policy, attributes, &listed);
        assert!(!lines.contains("error: ") && lines.contains("`vault` is served without it"), "{lines}");
        assert_eq!(proxies, served(true), "{expected}");
    }
}

#[test]
fn a_policy_with_keys_is_served() {
    assert_eq!(compiled(X509, "key='rules'", &keys()), (served(true), String::new()));
}

#[test]
fn a_keystore_that_cannot_be_read_closes_the_service() {
    let options =
        CompileOptions { message_keys: Some(Err("`k.jks`: no such file".to_owned())), ..CompileOptions::default() };
    let (proxies, lines) = compiled(X509, "key='rules'", &options);
    assert!(lines.contains("cannot be used: `k.jks`: no such file"), "{lines}");
    assert_eq!(proxies, served(false));
}
