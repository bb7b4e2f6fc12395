//! Key managers: the resident one, and those of other products whose tokens the gateway accepts.

use serde_json::{Map, Value, json};

use crate::host::ExternalIssuer;
use crate::http::Response;
use crate::identity::shown;
use crate::oauth::token::GRANT_TYPES;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::publisher::archive;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};
use crate::{Control, connector};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/key-managers", list),
    ("POST", "/key-managers", create),
    ("POST", "/key-managers/discover", discover),
    ("GET", "/key-managers/{keyManagerId}/api-usages", api_usages),
    ("GET", "/key-managers/{keyManagerId}/app-usages", application_usages),
    ("GET", "/key-managers/{keyManagerId}", get),
    ("PUT", "/key-managers/{keyManagerId}", update),
    ("DELETE", "/key-managers/{keyManagerId}", delete),
];

/// The name of the key manager of this server.
pub(crate) const RESIDENT: &str = "Resident Key Manager";

const RESIDENT_ID: &str = "resident";

/// What a response has in place of a secret, and what a request has that keeps it.
const MASK: &str = "*****";

/// The types, and the properties that their connectors need.
const TYPES: &[(&str, &[&str])] = &[
    ("WSO2-IS", &["Username", "Password"]),
    ("KeyCloak", &["client_id", "client_secret"]),
    ("Okta", &["client_id", "client_secret", "apiKey"]),
    ("Auth0", &["client_id", "client_secret", "audience"]),
    ("PingFederate", &["client_registration_username", "client_registration_password"]),
    ("ForgeRock", &["client_id", "client_secret"]),
    ("AzureAD", &["ms_app_client_id", "ms_app_client_secret"]),
    ("custom", &[]),
    ("other", &[]),
];

const MEMBERS: Members = &[
    ("id", Is::Text),
    ("name", Is::Short(100)),
    ("displayName", Is::Short(100)),
    ("type", Is::Short(45)),
    ("description", Is::Short(256)),
    ("wellKnownEndpoint", Is::Text),
    ("introspectionEndpoint", Is::Text),
    ("clientRegistrationEndpoint", Is::Text),
    ("tokenEndpoint", Is::Text),
    ("displayTokenEndpoint", Is::Text),
    ("revokeEndpoint", Is::Text),
    ("displayRevokeEndpoint", Is::Text),
    ("userInfoEndpoint", Is::Text),
    ("authorizeEndpoint", Is::Text),
    ("endpoints", Is::List),
    ("certificates", Is::Map),
    ("issuer", Is::Text),
    ("alias", Is::Text),
    ("scopeManagementEndpoint", Is::Text),
    ("availableGrantTypes", Is::Texts),
    ("enableTokenGeneration", Is::Flag),
    ("enableTokenEncryption", Is::Flag),
    ("enableTokenHashing", Is::Flag),
    ("enableMapOAuthConsumerApps", Is::Flag),
    ("enableOAuthAppCreation", Is::Flag),
    ("enableProvisionedAppValidation", Is::Flag),
    ("enableSelfValidationJWT", Is::Flag),
    ("claimMapping", Is::List),
    ("consumerKeyClaim", Is::Text),
    ("scopesClaim", Is::Text),
    ("tokenValidation", Is::List),
    ("enabled", Is::Flag),
    ("global", Is::Flag),
    ("additionalProperties", Is::Map),
    ("permissions", Is::Map),
    ("tokenType", Is::OneOf(&["EXCHANGED", "DIRECT", "BOTH"])),
    ("allowedOrganizations", Is::Texts),
];

/// The forms of the types, as the portal draws them.
pub(crate) fn forms() -> Vec<Value> {
    let field = |name: &&str| {
        json!({
            "name": name, "label": name.replace('_', " "), "type": "input", "required": true, "mask": is_secret(name),
            "multiple": false, "tooltip": "", "default": "", "values": [],
        })
    };
    let form = |(name, needed): &(&str, &[&str])| {
        json!({
            "type": name, "displayName": name, "defaultConsumerKeyClaim": "azp", "defaultScopesClaim": "scope",
            "authConfigurations": [], "configurations": needed.iter().map(field).collect::<Vec<_>>(),
            "endpointConfigurations": [], "configurationConstraints": [],
        })
    };
    TYPES.iter().map(form).collect()
}

fn resident(control: &Control) -> Value {
    let base = control.base_url();
    json!({
        "id": RESIDENT_ID, "name": RESIDENT, "type": "default", "displayName": RESIDENT,
        "description": "The key manager of this server", "enabled": true, "availableGrantTypes": GRANT_TYPES,
        "tokenEndpoint": format!("{base}/oauth2/token"), "revokeEndpoint": format!("{base}/oauth2/revoke"),
        "userInfoEndpoint": format!("{base}/oauth2/userinfo"), "authorizeEndpoint": format!("{base}/oauth2/authorize"),
        "enableTokenGeneration": true, "enableTokenEncryption": false, "enableTokenHashing": false,
        "enableOAuthAppCreation": true, "enableMapOAuthConsumerApps": true, "applicationConfiguration": [],
        "alias": null, "additionalProperties": {}, "tokenType": "DIRECT",
    })
}

fn is_secret(property: &str) -> bool {
    let name = property.to_ascii_lowercase();
    ["password", "secret", "apikey", "api_key", "token"].iter().any(|part| name.contains(part))
}

fn properties(document: &Map<String, Value>) -> Map<String, Value> {
    document.get("additionalProperties").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn body(manager: &Object) -> Value {
    let mut document = manager.document.clone();
    let mut shown = properties(&document);
    for (name, value) in &mut shown {
        if is_secret(name) && value.is_string() {
            *value = MASK.into();
        }
    }
    document.insert("additionalProperties".into(), shown.into());
    document.insert("id".into(), manager.id.as_str().into());
    document.insert("name".into(), manager.name.as_str().into());
    for (name, default) in [("enabled", true), ("enableTokenGeneration", false), ("enableMapOAuthConsumerApps", false)]
    {
        document.entry(name).or_insert(default.into());
    }
    document.entry("tokenType").or_insert("DIRECT".into());
    document.into()
}

fn is_enabled(manager: &Object) -> bool {
    manager.document.get("enabled").and_then(Value::as_bool).unwrap_or(true)
}

fn summary(manager: &Object) -> Value {
    json!({
        "id": manager.id, "name": manager.name, "type": manager.text("type"), "description": manager.text("description"),
        "enabled": is_enabled(manager), "isGlobal": false, "isUsed": false,
        "tokenType": manager.document.get("tokenType").and_then(Value::as_str).unwrap_or("DIRECT"),
    })
}

fn all(call: &Call<'_>) -> Result<Vec<Object>, Problem> {
    call.control.store.read(|tx| tx.list(&Filter::new(Kind::KeyManager, call.organization())))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let entry = json!({
        "id": RESIDENT_ID, "name": RESIDENT, "type": "default", "description": "The key manager of this server",
        "enabled": true, "isGlobal": false, "isUsed": true, "tokenType": "DIRECT",
    });
    let list: Vec<Value> = std::iter::once(entry).chain(all(call)?.iter().map(summary)).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// The enabled ones, for publishers and developers, without what connects this server to them.
pub(crate) fn list_for_portals(call: &Call<'_>) -> Result<Response, Problem> {
    let mut list = vec![resident(call.control)];
    for manager in all(call)?.iter().filter(|manager| is_enabled(manager)) {
        let mut shown = body(manager);
        shown["additionalProperties"] = json!({});
        shown["applicationConfiguration"] = json!([]);
        list.push(shown);
    }
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// Checks a body. `before` has the secrets that the body masks.
fn checked(call: &Call<'_>, before: Option<&Object>) -> Result<Map<String, Value>, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["name", "type"])?;
    let kind = text(&given, "type").to_owned();
    let Some((_, needed)) = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&kind)) else {
        let text = format!("The key manager type {kind} is not configured");
        return Err(Problem::rejected(901_400, "Key Manager Type not configured", text));
    };
    let mut own = properties(&given);
    let known = before.map(|before| properties(&before.document)).unwrap_or_default();
    for (name, value) in &mut own {
        if let (true, Some(kept)) = (value.as_str() == Some(MASK), known.get(name)) {
            *value = kept.clone();
        }
    }
    let is_missing = |name: &&&str| own.get(**name).is_none_or(|value| value.is_null() || value.as_str() == Some(""));
    if let Some(missing) = needed.iter().find(is_missing) {
        let text = format!("Missing required configuration: {missing}");
        return Err(Problem::rejected(901_401, "Required Key Manager configuration missing", text));
    }
    given.insert("additionalProperties".into(), own.into());
    given.remove("id");
    Ok(given)
}

fn taken(name: &str) -> Problem {
    let text = format!("Key Manager Already Exists with the name {name}");
    Problem::conflict(901_402, "Key Manager Already Exists", text)
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = checked(call, None)?;
    let name = text(&given, "name").trim().to_owned();
    if name.is_empty() {
        return Err(Problem::rejected(901_404, "Key Manager name cannot be empty", "Key Manager name cannot be empty"));
    }
    if name.eq_ignore_ascii_case(RESIDENT) {
        return Err(taken(&name));
    }
    let manager = Object::new(Kind::KeyManager, call.organization(), &name, given).keyed(name.to_lowercase());
    call.control.change_served(|tx| {
        tx.insert(&manager)?.ok_or_else(|| taken(&name))?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::KeyManager, &manager.id)
    })?;
    Ok(Response::json(201, &body(&manager)).with("Location", format!("/key-managers/{}", manager.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = tx.get(Kind::KeyManager, call.organization(), call.id())?;
    found.ok_or_else(|| Problem::new(404, 901_411, "Key Manager not Found", "Key Manager not found"))
}

/// A registered key manager by its name.
pub(crate) fn named(tx: &Transaction<'_>, organization: &str, name: &str) -> Result<Option<Object>, Problem> {
    let found = tx.find(Kind::KeyManager, organization, &name.to_lowercase())?;
    Ok(found.filter(is_enabled))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    if call.id() == RESIDENT_ID {
        return Ok(Response::json(200, &resident(call.control)));
    }
    let manager = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(&manager)))
}

/// Reads the discovery document of a key manager.
fn discover(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let field = |name: &str| crate::publisher::certificates::field(&parts, name);
    let url = field("url").ok_or_else(|| Problem::bad_request("The part `url` is missing"))?;
    let body = match connector::discover(call.control, &url) {
        Ok(mut found) => {
            found["type"] = field("type").into();
            json!({"valid": true, "value": found})
        }
        Err(why) => {
            call.control.host.report_error(&format!("the discovery document {url}: {why}"));
            json!({"valid": false, "value": null})
        }
    };
    Ok(Response::json(200, &body))
}

/// The name of the key manager of a path.
fn name_of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<String, Problem> {
    match call.id() {
        RESIDENT_ID => Ok(RESIDENT.to_owned()),
        _ => Ok(of_call(tx, call)?.name),
    }
}

/// APIs that name a key manager.
fn api_usages(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, apis) = call
        .control
        .store
        .read(|tx| Ok((name_of_call(tx, call)?, tx.list(&Filter::new(Kind::Api, call.organization()))?)))?;
    let used = apis.iter().filter(|api| api.texts("keyManagers").contains(&name.as_str()));
    let entry = |api: &Object| {
        json!({
            "id": api.id, "name": api.name, "type": api.text("type"), "context": api.text("context"),
            "version": api.text("version"), "provider": shown(&api.owner, &api.organization), "status": api.state,
            "keyManagerEntry": name,
        })
    };
    let list: Vec<Value> = used.map(entry).collect();
    let page = Page::of(&call.query);
    let total = list.len();
    let list: Vec<Value> = list.into_iter().skip(page.offset).take(page.limit).collect();
    Ok(Response::json(200, &json!({"apiCount": total, "apis": list})))
}

/// Applications that have keys of a key manager.
fn application_usages(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let name = name_of_call(tx, call)?;
        let mut list: Vec<Value> = Vec::new();
        for mapping in tx.list(&Filter::new(Kind::KeyMapping, call.organization()))? {
            let of = Some(mapping.text("keyManager")).filter(|name| !name.is_empty()).unwrap_or(RESIDENT);
            if of != name || list.iter().any(|known| known["uuid"] == mapping.parent.as_str()) {
                continue;
            }
            if let Some(application) = tx.get(Kind::Application, call.organization(), &mapping.parent)? {
                list.push(json!({
                    "name": application.name, "uuid": application.id, "owner": application.owner,
                    "organization": application.organization, "organizationId": application.organization,
                }));
            }
        }
        Ok(list)
    })?;
    let page = Page::of(&call.query);
    let total = list.len();
    let list: Vec<Value> = list.into_iter().skip(page.offset).take(page.limit).collect();
    Ok(Response::json(200, &json!({"applicationCount": total, "applications": list})))
}

fn restricted(text: &str) -> Problem {
    Problem::rejected(901_412, "Key Manager Update restricted", text)
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    if call.id() == RESIDENT_ID {
        return Err(restricted("The key manager of this server cannot be changed"));
    }
    let manager = call.control.change_served(|tx| {
        let mut manager = of_call(tx, call)?;
        let given = checked(call, Some(&manager))?;
        if text(&given, "type") != manager.text("type") || text(&given, "name") != manager.name {
            return Err(restricted("Name and type of a key manager cannot be changed"));
        }
        manager.document = given;
        tx.update(&mut manager)?;
        tx.audit(call.organization(), &call.caller.shown(), "update", Kind::KeyManager, &manager.id)?;
        Ok(manager)
    })?;
    Ok(Response::json(200, &body(&manager)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    if call.id() == RESIDENT_ID {
        return Err(restricted("The key manager of this server cannot be removed"));
    }
    call.control.change_served(|tx| {
        let manager = of_call(tx, call)?;
        if tx.count(&Filter::new(Kind::Client, call.organization()).parent(&manager.id))? > 0 {
            let text = "Error while deleting the Key Manager. Applications have keys of it";
            return Err(Problem::new(412, 902_015, "Key Manager Delete error", text));
        }
        tx.delete(&manager)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::KeyManager, &manager.id)
    })?;
    Ok(Response::empty(200))
}

/// A key manager as the gateway gets it; `None` for one that is disabled or says not how tokens are verified.
pub(crate) fn issuer(manager: &Object) -> Option<ExternalIssuer> {
    let member = |name: &str| Some(manager.text(name)).filter(|text| !text.is_empty()).map(str::to_owned);
    let certificates = manager.document.get("certificates").and_then(Value::as_object);
    let certificate = |kind: &str| {
        let found = certificates.filter(|found| text(found, "type").eq_ignore_ascii_case(kind))?;
        Some(text(found, "value").trim().to_owned()).filter(|value| !value.is_empty())
    };
    let jwks_url = certificate("JWKS").filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let pem = certificate("PEM");
    if !is_enabled(manager) || (jwks_url.is_none() && pem.is_none()) {
        return None;
    }
    let mapping = manager.document.get("claimMapping").and_then(Value::as_array).into_iter().flatten();
    let mapping = mapping
        .filter_map(Value::as_object)
        .map(|entry| (text(entry, "remoteClaim").to_owned(), text(entry, "localClaim").to_owned()));
    Some(ExternalIssuer {
        name: manager.name.clone(),
        issuer: member("issuer")?,
        jwks_url,
        pem,
        consumer_key_claim: member("consumerKeyClaim").unwrap_or_else(|| "azp".to_owned()),
        scopes_claim: member("scopesClaim").unwrap_or_else(|| "scope".to_owned()),
        claim_mapping: mapping.filter(|(theirs, ours)| !theirs.is_empty() && !ours.is_empty()).collect(),
    })
}
