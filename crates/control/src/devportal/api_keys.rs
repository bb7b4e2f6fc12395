//! API keys: opaque, of an application or of one API. Only the SHA-256 of a key is kept, as the id of its object.

use serde_json::{Map, Value, json};

use super::{apis, applications};
use crate::Control;
use crate::clock::{now, now_ms};
use crate::http::Response;
use crate::identity::shown;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/applications/{applicationId}/api-keys/{keyType}/generate", generate),
    ("POST", "/applications/{applicationId}/api-keys/{keyType}/regenerate", regenerate),
    ("GET", "/applications/{applicationId}/api-keys/{keyType}", list),
    ("POST", "/applications/{applicationId}/api-keys/{keyType}/revoke", revoke),
    ("GET", "/applications/{applicationId}/api-keys/{keyType}/subscriptions", unassociated),
    ("POST", "/applications/{applicationId}/api-keys/{keyType}/associate", associate),
    ("POST", "/applications/{applicationId}/api-keys/{keyType}/dissociate", dissociate),
    ("GET", "/applications/{applicationId}/api-keys/{keyType}/associations", associations),
    ("POST", "/apis/{apiId}/api-keys/generate", generate),
    ("POST", "/apis/{apiId}/api-keys/regenerate", regenerate),
    ("GET", "/apis/{apiId}/api-keys", list),
    ("POST", "/apis/{apiId}/api-keys/revoke", revoke),
    ("POST", "/apis/{apiId}/api-keys/associate", associate),
    ("POST", "/apis/{apiId}/api-keys/dissociate", dissociate),
];

/// Keys of one application or of one API of a user.
const KEYS_MAX: usize = 1000;

/// How long the gateway must know that a key was revoked, in seconds. It remembers keys for less than that, and the store
/// does not have the key any more.
const REVOKED_S: u64 = 600;

const NEW: Members = &[
    ("keyName", Is::Short(100)),
    ("keyType", Is::OneOf(&["PRODUCTION", "SANDBOX"])),
    ("validityPeriod", Is::Number),
    ("additionalProperties", Is::Map),
];

const NAMED: Members =
    &[("keyUUID", Is::Text), ("apikey", Is::Text), ("applicationUUID", Is::Text), ("apiUUID", Is::Text)];

/// What keys belong to: the object that a path names.
struct Owner {
    application: Option<Object>,
    api: Option<Object>,
}

impl Owner {
    fn of(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Owner, Problem> {
        Ok(match call.parameter("applicationId") {
            "" => Owner { application: None, api: Some(apis::by_id(tx, call, call.id())?) },
            _ => Owner { application: Some(applications::of_call(tx, call)?), api: None },
        })
    }

    /// Its keys: those of an API are each user's own.
    fn keys(&self, tx: &Transaction<'_>, call: &Call<'_>) -> Result<Vec<Object>, Problem> {
        let filter = Filter::new(Kind::ApiKey, call.organization());
        match (&self.application, &self.api) {
            (Some(application), _) => {
                let mut keys = tx.list(&filter.parent(&application.id))?;
                keys.retain(|key| key.text("keyType") == call.parameter("keyType"));
                Ok(keys)
            }
            (None, Some(api)) => tx.list(&filter.target(&api.id).owner(&call.caller.name)),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The key of a body: by its id, or by the key itself.
    fn key(&self, tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<Object, Problem> {
        let (id, secret) = (text(given, "keyUUID"), text(given, "apikey"));
        let hash = random::sha256(secret.as_bytes());
        let is_it = |key: &&Object| key_id(key) == id || (!secret.is_empty() && key.id == hash);
        let keys = self.keys(tx, call)?;
        keys.iter().find(is_it).cloned().ok_or_else(|| Problem::not_found("API Key", id))
    }
}

/// What clients call a key. The id of the object is the hash of the key.
fn key_id(key: &Object) -> &str {
    key.unique_key.as_deref().unwrap_or_default()
}

/// The id of what a key is issued as: another one after each change, so that the gateway forgets what it knew.
fn token_id(key: &Object) -> String {
    format!("{}.{}", key_id(key), key.version)
}

fn seconds(key: &Object) -> i64 {
    key.document.get("validityPeriod").and_then(Value::as_i64).unwrap_or(-1)
}

/// When a key ends, in seconds since 1970; `None` for one without an end.
fn ends(key: &Object) -> Option<u64> {
    key.document.get("ends").and_then(Value::as_u64)
}

fn info(key: &Object) -> Value {
    json!({
        "keyUUID": key_id(key), "keyName": key.name, "issuedOn": key.created_ms, "validityPeriod": seconds(key),
        "lastUsed": null,
    })
}

fn check_key_type(call: &Call<'_>) -> Result<(), Problem> {
    match call.parameter("keyType") {
        // Keys of APIs have the type in the body.
        "" | "PRODUCTION" | "SANDBOX" => Ok(()),
        _ => Err(Problem::bad_request("Invalid keyType. KeyType should be either PRODUCTION or SANDBOX")),
    }
}

/// Addresses or pages: a text with commas, or a list.
fn list_of(given: &Map<String, Value>, name: &str) -> String {
    match given.get("additionalProperties").and_then(|more| more.get(name)) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => String::new(),
    }
}

fn generate(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let given = schema::body(call.request, NEW, &[])?;
    let key_type = match call.parameter("keyType") {
        "" => Some(text(&given, "keyType")).filter(|given| !given.is_empty()).unwrap_or("PRODUCTION"),
        of_path => of_path,
    };
    let permitted_ip = list_of(&given, "permittedIP");
    let ranges = permitted_ip.split(',').map(str::trim).filter(|range| !range.is_empty());
    if let Some(wrong) = ranges.into_iter().find(|range| penstock_catalog::IpRange::parse(range).is_none()) {
        let why = format!("`{wrong}` is neither an address nor a range of addresses");
        return Err(Problem::invalid("additionalProperties.permittedIP", why));
    }
    let validity = given.get("validityPeriod").and_then(Value::as_i64).unwrap_or(-1);
    if validity == 0 || validity < -1 {
        return Err(Problem::invalid("validityPeriod", "the validity period is a number of seconds, or -1 for no end"));
    }
    let mut document = Map::new();
    document.insert("keyType".into(), key_type.into());
    document.insert("validityPeriod".into(), validity.into());
    if let Ok(lasts_s) = u64::try_from(validity) {
        document.insert("ends".into(), now().saturating_add(lasts_s).into());
    }
    document.insert("permittedIP".into(), permitted_ip.into());
    document.insert("permittedReferer".into(), list_of(&given, "permittedReferer").into());
    let secret = random::secret();
    let key = call.control.store.change(|tx| {
        let owner = Owner::of(tx, call)?;
        if owner.keys(tx, call)?.len() >= KEYS_MAX {
            return Err(Problem::bad_request(format!("There are at most {KEYS_MAX} API keys")));
        }
        let name = Some(text(&given, "keyName").trim()).filter(|name| !name.is_empty()).unwrap_or("API key");
        let mut key = Object::new(Kind::ApiKey, call.organization(), name, document).owned(&call.caller.name);
        key.unique_key = Some(std::mem::replace(&mut key.id, random::sha256(secret.as_bytes())));
        key.parent = owner.application.map(|application| application.id).unwrap_or_default();
        key.target = owner.api.map(|api| api.id).unwrap_or_default();
        tx.insert(&key)?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::ApiKey, key_id(&key))?;
        Ok(key)
    })?;
    Ok(Response::json(200, &shown_once(&key, &secret)))
}

/// The response that has the key itself.
fn shown_once(key: &Object, secret: &str) -> Value {
    json!({"keyName": key.name, "keyUUID": key_id(key), "apikey": secret, "validityPeriod": seconds(key)})
}

/// A new secret for a key; the one before is revoked.
fn regenerate(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let given = schema::body(call.request, NAMED, &["keyUUID"])?;
    let secret = random::secret();
    let (before, key) = call.control.store.change(|tx| {
        let before = Owner::of(tx, call)?.key(tx, call, &given)?;
        let mut key = before.clone();
        key.id = random::sha256(secret.as_bytes());
        // So that the gateway does not take it for the one before.
        key.version += 1;
        key.created_ms = now_ms();
        if let Ok(lasts_s) = u64::try_from(seconds(&key)) {
            key.set("ends", now().saturating_add(lasts_s));
        }
        tx.delete(&before)?;
        tx.insert(&key)?;
        tx.audit(call.organization(), &call.caller.shown(), "regenerate", Kind::ApiKey, key_id(&key))?;
        Ok((before, key))
    })?;
    forget(call.control, &before);
    Ok(Response::json(200, &shown_once(&key, &secret)))
}

/// Has the gateway look a key up again.
fn forget(control: &Control, key: &Object) {
    control.host.revoke(&token_id(key), now() + REVOKED_S);
}

/// The name of the application or API that a key refers to; empty for none.
fn name_of(tx: &Transaction<'_>, kind: Kind, organization: &str, id: &str) -> Result<String, Problem> {
    match id {
        "" => Ok(String::new()),
        id => Ok(tx.get(kind, organization, id)?.map(|found| found.name).unwrap_or_default()),
    }
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let list = call.control.store.read(|tx| {
        let owner = Owner::of(tx, call)?;
        let mut list = Vec::new();
        for key in owner.keys(tx, call)? {
            let mut entry = info(&key);
            match owner.api {
                Some(_) => {
                    let name = name_of(tx, Kind::Application, call.organization(), &key.parent)?;
                    entry["associatedApp"] = name.into();
                }
                // Keys of APIs are in the list of associations.
                None if !key.target.is_empty() => continue,
                None => {}
            }
            list.push(entry);
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// Revokes a key. One in the form of a JWT, which API Manager issued up to 4.6, is revoked by its id.
fn revoke(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let given = schema::body(call.request, NAMED, &[])?;
    let secret = text(&given, "apikey");
    if secret.is_empty() && text(&given, "keyUUID").is_empty() {
        return Err(Problem::bad_request("`apikey` or `keyUUID` is needed"));
    }
    if secret.contains('.') {
        return revoke_jwt(call, secret);
    }
    let key = call.control.store.change(|tx| {
        let key = Owner::of(tx, call)?.key(tx, call, &given)?;
        tx.delete(&key)?;
        tx.audit(call.organization(), &call.caller.shown(), "revoke", Kind::ApiKey, key_id(&key))?;
        Ok(key)
    })?;
    forget(call.control, &key);
    Ok(Response::empty(200))
}

fn revoke_jwt(call: &Call<'_>, token: &str) -> Result<Response, Problem> {
    let application = call.control.store.read(|tx| Owner::of(tx, call))?.application;
    let invalid = || Problem::bad_request("Validation failed for the given token");
    let claims = call.control.keys.verified(token).ok_or_else(invalid)?;
    let of_application = claims["application"]["uuid"].as_str().unwrap_or_default();
    let id = claims["jti"].as_str().ok_or_else(invalid)?;
    if application.is_none_or(|application| application.id != of_application) {
        return Err(invalid());
    }
    let ends = claims["exp"].as_u64().unwrap_or(u64::MAX);
    call.control.store.change(|tx| tx.revoke(call.organization(), id, ends))?;
    call.control.host.revoke(id, ends);
    Ok(Response::empty(200))
}

/// Keys of the caller for APIs that the application subscribed to, and that are not associated yet.
fn unassociated(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let list = call.control.store.read(|tx| {
        let application = applications::of_call(tx, call)?;
        let subscriptions = tx.list(&Filter::new(Kind::Subscription, call.organization()).parent(&application.id))?;
        let mut list = Vec::new();
        for subscription in subscriptions {
            let filter = Filter::new(Kind::ApiKey, call.organization()).target(&subscription.target);
            for key in tx.list(&filter.owner(&call.caller.name).parent(""))? {
                if key.text("keyType") == call.parameter("keyType") {
                    let api = name_of(tx, Kind::Api, call.organization(), &key.target)?;
                    list.push(json!({
                        "keyName": key.name, "keyUUID": key_id(&key), "apiName": api, "apiUUID": key.target,
                    }));
                }
            }
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// Associates a key of an API with an application that subscribed to it: the key calls with its plan.
fn associate(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let given = schema::body(call.request, NAMED, &["keyUUID"])?;
    let of_path = call.parameter("applicationId");
    let (application, api) = match of_path {
        "" => (text(&given, "applicationUUID"), call.id()),
        of_path => (of_path, text(&given, "apiUUID")),
    };
    let (before, body) = call.control.store.change(|tx| {
        let application = applications::by_id(tx, call, application)?;
        let api = apis::by_id(tx, call, api)?;
        let owner = Owner { application: None, api: Some(api.clone()) };
        let before = owner.key(tx, call, &given)?;
        if !before.parent.is_empty() && before.parent != application.id {
            return Err(Problem::conflict(409, "Conflict", "The API key is associated with another application"));
        }
        let filter = Filter::new(Kind::Subscription, call.organization()).parent(&application.id).target(&api.id);
        if tx.count(&filter)? == 0 {
            let text = format!("The application {} has no subscription to the API {}", application.name, api.name);
            return Err(Problem::bad_request(text));
        }
        let mut key = before.clone();
        key.parent.clone_from(&application.id);
        tx.update(&mut key)?;
        tx.audit(call.organization(), &call.caller.shown(), "associate", Kind::ApiKey, key_id(&key))?;
        let body = json!({"keyName": key.name, "apiName": api.name, "applicationName": application.name});
        Ok((before, body))
    })?;
    forget(call.control, &before);
    Ok(Response::json(200, &body))
}

fn dissociate(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let given = schema::body(call.request, NAMED, &["keyUUID"])?;
    let before = call.control.store.change(|tx| {
        let before = Owner::of(tx, call)?.key(tx, call, &given)?;
        if before.target.is_empty() {
            return Err(Problem::bad_request("The API key is the application's own"));
        }
        let mut key = before.clone();
        key.parent.clear();
        tx.update(&mut key)?;
        tx.audit(call.organization(), &call.caller.shown(), "dissociate", Kind::ApiKey, key_id(&key))?;
        Ok(before)
    })?;
    forget(call.control, &before);
    Ok(Response::empty(200))
}

/// Keys of APIs that are associated with the application.
fn associations(call: &Call<'_>) -> Result<Response, Problem> {
    check_key_type(call)?;
    let list = call.control.store.read(|tx| {
        let owner = Owner::of(tx, call)?;
        let mut list = Vec::new();
        for key in owner.keys(tx, call)?.iter().filter(|key| !key.target.is_empty()) {
            let mut entry = info(key);
            entry["apiName"] = name_of(tx, Kind::Api, call.organization(), &key.target)?.into();
            entry["apiUUID"] = key.target.as_str().into();
            list.push(entry);
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// The claims that a key stands for at the gateway; `None` for one that is not valid now. A key of an API is valid once it is
/// associated with an application.
pub(crate) fn claims(
    tx: &Transaction<'_>,
    control: &Control,
    secret: &str,
) -> Result<Option<Map<String, Value>>, Problem> {
    let hash = random::sha256(secret.as_bytes());
    let Some(key) = tx.get_of_any_organization(Kind::ApiKey, &hash)? else { return Ok(None) };
    if ends(&key).is_some_and(|ends| ends <= now()) {
        return Ok(None);
    }
    let organization = key.organization.as_str();
    let Some(application) = tx.get(Kind::Application, organization, &key.parent)? else { return Ok(None) };
    let mut claims = json!({
        "iss": control.issuer(), "jti": token_id(&key), "sub": shown(&key.owner, organization),
        "token_type": "apiKey", "keytype": key.text("keyType"), "iat": key.created_ms / 1000,
        "application": {
            "uuid": application.id, "name": application.name, "owner": application.owner,
            "tier": application.text("throttlingPolicy"),
        },
        "permittedIP": key.text("permittedIP"), "permittedReferer": key.text("permittedReferer"),
    });
    if let Some(ends) = ends(&key) {
        claims["exp"] = ends.into();
    }
    if !key.target.is_empty() {
        let Some(api) = tx.get(Kind::Api, organization, &key.target)? else { return Ok(None) };
        let context = crate::publisher::revisions::versioned_context(&api);
        claims["subscribedAPIs"] = json!([{"name": api.name, "version": api.text("version"), "context": context}]);
    }
    Ok(claims.as_object().cloned())
}

/// Removes the keys of an application: its own with the application, those of APIs lose the association.
pub(super) fn remove_of(tx: &Transaction<'_>, application: &Object) -> Result<(), Problem> {
    for mut key in tx.list(&Filter::new(Kind::ApiKey, &application.organization).parent(&application.id))? {
        if key.target.is_empty() {
            tx.delete(&key)?;
        } else {
            key.parent.clear();
            tx.update(&mut key)?;
        }
    }
    Ok(())
}

/// A key as the list of an administrator has it.
pub(crate) fn for_administrator(tx: &Transaction<'_>, key: &Object) -> Result<Value, Problem> {
    let mut entry = info(key);
    entry["apiName"] = name_of(tx, Kind::Api, &key.organization, &key.target)?.into();
    entry["applicationName"] = name_of(tx, Kind::Application, &key.organization, &key.parent)?.into();
    entry["keyType"] = key.text("keyType").into();
    entry["user"] = shown(&key.owner, &key.organization).into();
    Ok(entry)
}

/// Revokes a key of any user of an organization.
pub(crate) fn revoke_by_id(call: &Call<'_>, id: &str) -> Result<(), Problem> {
    let key = call.control.store.change(|tx| {
        let found = tx.find(Kind::ApiKey, call.organization(), id)?;
        let key = found.ok_or_else(|| Problem::not_found("API Key", id))?;
        tx.delete(&key)?;
        tx.audit(call.organization(), &call.caller.shown(), "revoke", Kind::ApiKey, id)?;
        Ok(key)
    })?;
    forget(call.control, &key);
    Ok(())
}
