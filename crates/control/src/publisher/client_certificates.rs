//! Certificates of the clients of one API, by key type and business plan, for mutual TLS.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::archive;
use super::certificates::{content_of, download, field, listed, missing, renamed, uploaded};
use super::import::Project;
use super::{api, yaml};
use crate::certificate::{self, Described};
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/client-certificates", list),
    ("POST", "/apis/{apiId}/client-certificates", create),
    ("GET", "/apis/{apiId}/client-certificates/{alias}", get),
    ("PUT", "/apis/{apiId}/client-certificates/{alias}", update),
    ("DELETE", "/apis/{apiId}/client-certificates/{alias}", delete),
    ("GET", "/apis/{apiId}/client-certificates/{alias}/content", content),
    ("GET", "/apis/{apiId}/client-certs/{keyType}", list),
    ("POST", "/apis/{apiId}/client-certs/{keyType}", create),
    ("GET", "/apis/{apiId}/client-certs/{keyType}/{alias}", get),
    ("PUT", "/apis/{apiId}/client-certs/{keyType}/{alias}", update),
    ("DELETE", "/apis/{apiId}/client-certs/{keyType}/{alias}", delete),
    ("GET", "/apis/{apiId}/client-certs/{keyType}/{alias}/content", content),
];

/// Key types, and the folders of a project.
const KEY_TYPES: [&str; 2] = ["PRODUCTION", "SANDBOX"];

/// The key type of a path; the older paths mean production.
fn key_type<'c>(call: &'c Call<'_>) -> Result<&'c str, Problem> {
    match call.parameter("keyType") {
        "" => Ok(KEY_TYPES[0]),
        known if KEY_TYPES.contains(&known) => Ok(known),
        other => Err(Problem::bad_request(format!("'{other}' is not a key type; PRODUCTION and SANDBOX are"))),
    }
}

fn body(certificate: &Object) -> Value {
    json!({
        "alias": certificate.name, "apiId": certificate.parent, "tier": certificate.text("tier"),
        "keyType": certificate.text("keyType"),
    })
}

/// The certificates of an API; a revision has those of the API that it is a copy of.
fn all(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    let of = api.text("revisionedApiId");
    let parent = if of.is_empty() { api.id.as_str() } else { of };
    tx.list(&Filter::new(Kind::ClientCertificate, &api.organization).parent(parent))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let key_type = key_type(call)?;
    let wanted = call.query.get("alias");
    let found = call.control.store.read(|tx| all(tx, &api::of_call(tx, call)?))?;
    let shown = found
        .iter()
        .filter(|known| known.text("keyType") == key_type && wanted.is_none_or(|alias| known.name == alias))
        .map(body)
        .collect();
    let path = format!("/apis/{}/client-certs/{key_type}", call.id());
    Ok(Response::json(200, &renamed(Page::of(&call.query).cut(&path, shown))))
}

fn key(api: &str, key_type: &str, alias: &str) -> String {
    format!("{api}:{key_type}:{alias}")
}

fn check_tier(tx: &Transaction<'_>, organization: &str, tier: &str) -> Result<(), Problem> {
    match crate::admin::throttling::exists(tx, organization, "subscription", tier)? {
        true => Ok(()),
        false => {
            Err(Problem::rejected(900_305, "The tier name is invalid.", format!("The tier name is invalid: {tier}")))
        }
    }
}

fn add(
    tx: &Transaction<'_>,
    api: &Object,
    key_type: &str,
    alias: &str,
    tier: &str,
    content: &Bytes,
) -> Result<Object, Problem> {
    Described::parse_valid(content)?;
    check_tier(tx, &api.organization, tier)?;
    let mut document = Map::new();
    document.insert("tier".into(), tier.into());
    document.insert("keyType".into(), key_type.into());
    let added = Object::new(Kind::ClientCertificate, &api.organization, alias, document).of(&api.id);
    let added = added.keyed(key(&api.id, key_type, alias));
    if tx.insert(&added)?.is_none() {
        let text = format!("Error while adding the certificate. The alias '{alias}' already exists.");
        return Err(Problem::conflict(409, "Conflict", text));
    }
    let file = File::new(certificate::FILE, "application/x-pem-file", content.clone());
    tx.put_file(&api.organization, &added.id, &file)?;
    Ok(added)
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let key_type = key_type(call)?;
    let parts = archive::parts(call)?;
    let alias = field(&parts, "alias").ok_or_else(|| missing("alias"))?;
    let tier = field(&parts, "tier").ok_or_else(|| missing("tier"))?;
    let content = uploaded(&parts).ok_or_else(|| missing("certificate"))?;
    let added = call.control.change_served(|tx| {
        let api = api::of_call(tx, call)?;
        let added = add(tx, &api, key_type, &alias, &tier, &content)?;
        tx.audit(&api.organization, &call.caller.shown(), "create", Kind::ClientCertificate, &added.id)?;
        Ok(added)
    })?;
    let location = format!("/apis/{}/client-certs/{key_type}/{alias}", call.id());
    Ok(Response::json(201, &body(&added)).with("Location", location))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let api = api::of_call(tx, call)?;
    let alias = call.parameter("alias");
    let found = tx.find(Kind::ClientCertificate, &api.organization, &key(&api.id, key_type(call)?, alias))?;
    found.ok_or_else(|| {
        Problem::new(404, 404, "Not Found", format!("Certificate for the alias '{alias}' could not be found"))
    })
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let content = call.control.store.read(|tx| content_of(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &Described::parse(&content)?.body()))
}

/// Replaces the certificate, the plan, or both.
fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let (tier, content) = (field(&parts, "tier"), uploaded(&parts));
    if let Some(content) = &content {
        Described::parse_valid(content)?;
    }
    let updated = call.control.change_served(|tx| {
        let mut known = of_call(tx, call)?;
        if let Some(tier) = &tier {
            check_tier(tx, call.organization(), tier)?;
            known.set("tier", tier.as_str());
        }
        if let Some(content) = content {
            let file = File::new(certificate::FILE, "application/x-pem-file", content);
            tx.put_file(&known.organization, &known.id, &file)?;
        }
        tx.update(&mut known)?;
        Ok(known)
    })?;
    Ok(Response::json(200, &body(&updated)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let known = of_call(tx, call)?;
        tx.delete(&known)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::ClientCertificate, &known.id)
    })?;
    Ok(Response::empty(200))
}

fn content(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.read(|tx| {
        let known = of_call(tx, call)?;
        let content = content_of(tx, &known)?;
        Ok(download(&known, content))
    })
}

/// The certificates of the clients of an API, as files of a project.
pub(super) fn files(tx: &Transaction<'_>, api: &Object) -> Result<Vec<(String, Bytes)>, Problem> {
    let all = all(tx, api)?;
    let mut files = Vec::new();
    for key_type in KEY_TYPES {
        let mut list = Vec::new();
        for known in all.iter().filter(|known| known.text("keyType") == key_type) {
            let name = certificate::file_name(known);
            list.push(json!({
                "alias": known.name, "tierName": known.text("tier"), "keyType": key_type, "certificate": name,
                "apiIdentifier": {"providerName": api.owner, "apiName": api.name, "version": api.text("version")},
            }));
            files.push((format!("Client-certificates/{key_type}/{name}"), content_of(tx, known)?));
        }
        if !list.is_empty() {
            let content = json!({"type": "client_certificates", "version": "v4.7.0", "data": list});
            let path = format!("Client-certificates/{key_type}/client_certificates.yaml");
            files.push((path, yaml::write(&content).into()));
        }
    }
    Ok(files)
}

/// Adds a certificate unless the API has one of its alias.
pub(super) fn put(
    tx: &Transaction<'_>,
    api: &Object,
    key_type: &str,
    alias: &str,
    tier: &str,
    content: &Bytes,
) -> Result<(), Problem> {
    let key_type = if KEY_TYPES.contains(&key_type) { key_type } else { KEY_TYPES[0] };
    if tx.find(Kind::ClientCertificate, &api.organization, &key(&api.id, key_type, alias))?.is_none() {
        add(tx, api, key_type, alias, tier, content)?;
    }
    Ok(())
}

/// Adds the certificates of an imported project that the API does not have yet.
pub(super) fn import_files(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    api: &Object,
    project: &Project,
) -> Result<(), Problem> {
    // Projects of versions before 4.3 have one folder for both key types.
    let folders = [
        ("Client-certificates", KEY_TYPES[0]),
        ("Client-certificates/PRODUCTION", KEY_TYPES[0]),
        ("Client-certificates/SANDBOX", KEY_TYPES[1]),
    ];
    for (folder, key_type) in folders {
        for (entry, content) in listed(call, project, folder, "client_certificates")? {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let alias = text("alias");
            let key_type = if text("keyType").is_empty() { key_type } else { text("keyType") };
            put(tx, api, key_type, alias, text("tierName"), &content)?;
        }
    }
    Ok(())
}
