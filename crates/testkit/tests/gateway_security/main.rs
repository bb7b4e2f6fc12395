//! Who is let in: tokens, keys, passwords and certificates over real sockets and real TLS.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod answers;
mod certificates;
mod discovery;
mod issuers;
mod keys;
mod rights;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use penstock_catalog::{
    Api, Application, ClientCertificate, Cluster, Lifecycle, Operation, Requirement, SecurityMode, Subscription,
    SubscriptionState,
};
use penstock_gateway::ErrorStyle;
use penstock_gateway::security::{
    AccessList, BackendJwt, Claims, Encoding, Issuer, PublicKey, Secret, Signer, TrustedKey, User, issue,
};
use penstock_testkit::gateway::{Answer, Backend, Client, ClientIdentity, Reply, Setup, TestGateway, api, secured_api};
use serde_json::{Value, json};

/// The body of Choreo Connect for a client without a valid credential.
const INVALID: &str = "{\"error_message\":\"Invalid Credentials\",\"code\":\"900901\",\
    \"error_description\":\"Make sure you have provided the correct security credentials\"}";

fn operation(api: &mut Api, index: usize) -> &mut Operation {
    Arc::make_mut(&mut api.operations[index])
}

fn pets(backend: &Backend) -> Api {
    secured_api("/pets", &backend.url(), &["GET /pet/{id}", "POST /pet"])
}

/// Asks for a pet with this `Authorization`.
fn ask(client: &mut Client, authorization: &str) -> Reply {
    client.get("/pets/pet/2", &[("Authorization", authorization)])
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.json()["code"].as_str()), (status, Some(code)), "{}", reply.text());
}

/// A token with claims, signed by a key, with `iat`, `exp` and `jti` unless they are among them.
fn signed(signer: &Signer, claims: &Value) -> String {
    let mut all = Claims::lasting(600);
    for (name, value) in claims.as_object().unwrap() {
        all.set(name, value.clone());
    }
    issue(signer, &all, Encoding::Base64Url).unwrap()
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn signer() -> Signer {
    Signer::generate().unwrap().0
}

fn issuer(name: &str, signer: &Signer) -> Issuer {
    let keys = vec![TrustedKey { kid: None, key: signer.public().clone() }];
    Issuer { name: name.into(), issuer: format!("https://{name}").into(), keys, ..Issuer::default() }
}
