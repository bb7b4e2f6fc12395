//! Keys of applications: OAuth2 clients with their secrets, and tokens for trying out.

use serde_json::{Map, Value, json};

use super::{applications, external_keys};
use crate::admin::key_managers;
use crate::http::Response;
use crate::identity::tokens::{self, Subject};
use crate::identity::{clients, shown, users};
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Transaction};
use crate::workflow;
use crate::{Control, connector};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/applications/{applicationId}/generate-keys", generate),
    ("POST", "/applications/{applicationId}/map-keys", map),
    ("GET", "/applications/{applicationId}/keys", list),
    ("GET", "/applications/{applicationId}/keys/{keyType}", get_by_type),
    ("PUT", "/applications/{applicationId}/keys/{keyType}", update),
    ("GET", "/applications/{applicationId}/oauth-keys", list),
    ("GET", "/applications/{applicationId}/oauth-keys/{keyMappingId}", get),
    ("PUT", "/applications/{applicationId}/oauth-keys/{keyMappingId}", update),
    ("DELETE", "/applications/{applicationId}/oauth-keys/{keyMappingId}", delete),
    ("POST", "/applications/{applicationId}/oauth-keys/{keyMappingId}/clean-up", delete),
    ("POST", "/applications/{applicationId}/oauth-keys/{keyMappingId}/regenerate-secret", regenerate),
    ("POST", "/applications/{applicationId}/oauth-keys/{keyMappingId}/generate-secret", add_secret),
    ("GET", "/applications/{applicationId}/oauth-keys/{keyMappingId}/secrets", list_secrets),
    ("POST", "/applications/{applicationId}/oauth-keys/{keyMappingId}/revoke-secret", revoke_secret),
    ("POST", "/applications/{applicationId}/oauth-keys/{keyMappingId}/generate-token", token),
    ("POST", "/applications/{applicationId}/keys/{keyType}/generate-token", token),
    ("POST", "/applications/{applicationId}/keys/{keyType}/regenerate-secret", regenerate),
    ("POST", "/applications/{applicationId}/keys/{keyType}/clean-up", delete),
];

/// The key manager that is always there.
pub(super) const RESIDENT: &str = key_managers::RESIDENT;

/// The longest lifetime of a token, in seconds: a year.
const LIFETIME_MAX_S: u64 = 366 * 86_400;

/// Settings of a client that a body may give, with their defaults.
const SETTINGS: [(&str, &str); 7] = [
    ("application_access_token_expiry_time", "N/A"),
    ("user_access_token_expiry_time", "N/A"),
    ("refresh_token_expiry_time", "N/A"),
    ("id_token_expiry_time", "N/A"),
    ("pkceMandatory", "false"),
    ("pkceSupportPlain", "false"),
    ("bypassClientCredentials", "false"),
];

pub(super) fn settings(given: Option<&Value>) -> Value {
    let value = |name: &str, default: &str| {
        let given = given.and_then(|given| given.get(name)).filter(|value| !value.is_null());
        given.cloned().unwrap_or_else(|| default.into())
    };
    SETTINGS.iter().map(|(name, default)| ((*name).to_owned(), value(name, default))).collect::<Map<_, _>>().into()
}

/// Refuses lifetimes that are no numbers of seconds.
fn check_settings(given: Option<&Value>) -> Result<(), Problem> {
    let is_seconds = |value: &Value| match value {
        Value::Null => true,
        Value::Number(number) => number.as_i64().is_some_and(|seconds| seconds >= -1),
        Value::String(text) => {
            text.is_empty() || text == "N/A" || text.parse::<i64>().is_ok_and(|seconds| seconds >= -1)
        }
        _ => false,
    };
    let wrong = SETTINGS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| name.ends_with("_expiry_time"))
        .find(|name| given.and_then(|given| given.get(name)).is_some_and(|value| !is_seconds(value)));
    match wrong {
        None => Ok(()),
        Some(name) => {
            let text = format!("Invalid additional properties given for application: {name}");
            Err(Problem::rejected(901_410, "Invalid additional properties", text))
        }
    }
}

fn secret_body(control: &Control, client: &Object, entry: &Value) -> Value {
    json!({
        "secretId": entry["secretId"], "secretValue": control.keys.client_secret(&client.id, clients::number(entry)),
        "additionalProperties": {"description": entry["description"], "expiresAt": entry["expiresAt"]},
    })
}

pub(super) fn body(control: &Control, mapping: &Object, client: &Object) -> Value {
    let secrets: Vec<Value> =
        clients::secrets(client).iter().map(|entry| secret_body(control, client, entry)).collect();
    json!({
        "keyMappingId": mapping.id, "keyManager": key_manager_of(mapping), "consumerKey": client.id,
        "consumerSecret": match key_manager_of(mapping) {
            RESIDENT => clients::secret(&control.keys, client),
            _ => connector::secret(client).to_owned(),
        },
        "consumerSecrets": secrets,
        "supportedGrantTypes": client.document.get("grantTypes"), "callbackUrl": client.document.get("callbackUrl"),
        "keyState": "COMPLETED", "keyType": mapping.text("keyType"), "mode": mapping.text("mode"), "groupId": null,
        "token": null, "additionalProperties": settings(client.document.get("additionalProperties")),
    })
}

/// The name of the key manager of a mapping.
fn key_manager_of(mapping: &Object) -> &str {
    Some(mapping.text("keyManager")).filter(|name| !name.is_empty()).unwrap_or(RESIDENT)
}

/// The keys of an application.
pub(super) fn of_application(
    tx: &Transaction<'_>,
    control: &Control,
    application: &Object,
) -> Result<Vec<Value>, Problem> {
    let mut bodies = Vec::new();
    for mapping in tx.list(&Filter::new(Kind::KeyMapping, &application.organization).parent(&application.id))? {
        match tx.get(Kind::Client, &application.organization, &mapping.target)? {
            Some(client) => bodies.push(body(control, &mapping, &client)),
            None if !mapping.state.is_empty() => bodies.push(waiting_body(&mapping)),
            None => {}
        }
    }
    Ok(bodies)
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let bodies = call.control.store.read(|tx| of_application(tx, call.control, &applications::of_call(tx, call)?))?;
    Ok(Response::json(200, &json!({"count": bodies.len(), "list": bodies})))
}

/// A mapping and its client.
type Found = (Object, Object);

/// The mapping of a key type; absent when no keys were generated.
fn of_type(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Option<Found>, Problem> {
    let application = applications::of_call(tx, call)?;
    let all = tx.list(&Filter::new(Kind::KeyMapping, call.organization()).parent(&application.id))?;
    let Some(mapping) = all
        .into_iter()
        .find(|mapping| mapping.text("keyType") == call.parameter("keyType") && key_manager_of(mapping) == RESIDENT)
    else {
        return Ok(None);
    };
    Ok(tx.get(Kind::Client, call.organization(), &mapping.target)?.map(|client| (mapping, client)))
}

/// The mapping that a path names, also one whose keys wait for approval.
fn mapping_of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let application = applications::of_call(tx, call)?;
    let all = tx.list(&Filter::new(Kind::KeyMapping, call.organization()).parent(&application.id))?;
    let waiting =
        all.into_iter().find(|mapping| !mapping.state.is_empty() && mapping.id == call.parameter("keyMappingId"));
    match waiting {
        Some(mapping) => Ok(mapping),
        None => Ok(of_call(tx, call)?.0),
    }
}

/// The mapping that a path names, by id or by key type.
fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Found, Problem> {
    let missing =
        || Problem::new(404, 900_331, "Application Key mapping not found", "Application Key mapping not found");
    let id = call.parameter("keyMappingId");
    if id.is_empty() {
        return of_type(tx, call)?.ok_or_else(missing);
    }
    let application = applications::of_call(tx, call)?;
    let mapping = tx.get(Kind::KeyMapping, call.organization(), id)?.filter(|mapping| mapping.parent == application.id);
    let mapping = mapping.ok_or_else(missing)?;
    let client = tx.get(Kind::Client, call.organization(), &mapping.target)?.ok_or_else(missing)?;
    Ok((mapping, client))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let (mapping, client) = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(call.control, &mapping, &client)))
}

/// Without keys the body is empty: scripts pipe it to `jq`.
fn get_by_type(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(match call.control.store.read(|tx| of_type(tx, call))? {
        Some((mapping, client)) => Response::json(200, &body(call.control, &mapping, &client)),
        None => Response::of_type(200, "application/json", ""),
    })
}

fn key_type(given: &Map<String, Value>) -> Result<&str, Problem> {
    match text(given, "keyType") {
        found @ ("PRODUCTION" | "SANDBOX") => Ok(found),
        _ => Err(Problem::invalid("keyType", "the key type must be PRODUCTION or SANDBOX")),
    }
}

/// What is unique of a mapping.
pub(super) fn mapping_key(application: &Object, key_type: &str, key_manager: &str) -> String {
    match key_manager {
        RESIDENT => format!("{}:{key_type}", application.id),
        other => format!("{}:{key_type}:{other}", application.id),
    }
}

pub(super) fn keys_exist(application: &Object) -> Problem {
    let text = format!("Key Mappings already exists for application {}", application.name);
    Problem::conflict(901_409, "Key Mappings already exists", text)
}

/// Adds the mapping of a client; an application has one for each key type and key manager.
pub(super) fn add_mapping(
    tx: &Transaction<'_>,
    application: &Object,
    key_type: &str,
    client: &Object,
    mode: &str,
    key_manager: &str,
) -> Result<Object, Problem> {
    let mut document = Map::new();
    document.insert("keyType".into(), key_type.into());
    document.insert("mode".into(), mode.into());
    let key = mapping_key(application, key_type, key_manager);
    if key_manager != RESIDENT {
        document.insert("keyManager".into(), key_manager.into());
    }
    let mapping = Object::new(Kind::KeyMapping, &application.organization, key_type, document);
    let mut mapping = mapping.of(&application.id).owned(&application.owner).keyed(key);
    mapping.target.clone_from(&client.id);
    match tx.insert(&mapping)? {
        Some(()) => Ok(mapping),
        None => Err(keys_exist(application)),
    }
}

fn generate(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let key_type = key_type(&given)?;
    let manager = external_keys::find_manager(call, &given)?;
    check_settings(given.get("additionalProperties"))?;
    let grants = users::texts(given.get("grantTypesToBeSupported"));
    if grants.is_empty() {
        return Err(Problem::invalid("grantTypesToBeSupported", "at least one grant type is needed"));
    }
    let callback = Some(text(&given, "callbackUrl")).filter(|callback| !callback.is_empty());
    if callback.is_none() && grants.iter().any(|grant| matches!(grant.as_str(), "authorization_code" | "implicit")) {
        let text =
            "The callback url must have at least one URI value when using Authorization code or implicit grant types.";
        return Err(Problem::bad_request(text));
    }
    if let Some(manager) = manager {
        return external_keys::register(call, &manager, key_type, &grants, callback);
    }
    // A number or a text, in seconds.
    let validity = given.get("validityTime").and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    let (mapping, client) = call.control.change_access(|tx| {
        let application = applications::of_call(tx, call)?;
        let name = format!("{}_{}_{key_type}", application.owner, application.name);
        applications::check_approved(&application)?;
        let mut client = clients::new(call.organization(), &name, &application.owner, &grants, callback);
        client.set("additionalProperties", settings(given.get("additionalProperties")));
        if application.text("tokenType") == "DEFAULT" {
            client.set("tokenType", "DEFAULT");
        }
        let mut mapping = add_mapping(tx, &application, key_type, &client, "CREATED", RESIDENT)?;
        tx.audit(call.organization(), &call.caller.shown(), "generate-keys", Kind::Application, &application.id)?;
        if waits(tx, call, &application, &mapping, &client)? {
            mapping.target.clear();
            mapping.state = workflow::CREATED.to_owned();
            tx.update(&mut mapping)?;
            return Ok((mapping, None));
        }
        tx.insert(&client)?;
        Ok((mapping, Some(client)))
    })?;
    let Some(client) = client else { return Ok(Response::json(200, &waiting_body(&mapping))) };
    let mut body = body(call.control, &mapping, &client);
    if clients::allows(&client, "client_credentials") {
        let scopes = ["am_application_scope".to_owned(), "default".to_owned()];
        let user = shown(&client.owner, &client.organization);
        let lasts_s = validity.map(|seconds| seconds.min(LIFETIME_MAX_S));
        let subject = Subject { client: &client, user: &user, is_user: false, scopes: &scopes, lasts_s };
        let issued = tokens::issue(call.control, &subject)?;
        body["token"] = json!({"accessToken": issued.token, "tokenScopes": scopes, "validityTime": issued.lasts_s});
    }
    Ok(Response::json(200, &body))
}

/// Whether the registration of a client waits for approval.
fn waits(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    application: &Object,
    mapping: &Object,
    client: &Object,
) -> Result<bool, Problem> {
    let (workflow, key_type) = match mapping.text("keyType") {
        "SANDBOX" => (workflow::SANDBOX_KEYS, "SANDBOX"),
        _ => (workflow::PRODUCTION_KEYS, "PRODUCTION"),
    };
    let properties = json!({
        "applicationName": application.name, "userName": call.caller.shown(), "keyType": key_type,
        "callbackUrl": client.document.get("callbackUrl"), "applicationTier": application.text("throttlingPolicy"),
    });
    let pending = json!({"name": client.name, "document": client.document});
    workflow::begin(tx, call, workflow, mapping, properties, pending)
}

/// Keys that wait for approval, or were rejected.
fn waiting_body(mapping: &Object) -> Value {
    json!({
        "keyMappingId": mapping.id, "keyManager": key_manager_of(mapping), "consumerKey": null, "consumerSecret": null,
        "consumerSecrets": [], "supportedGrantTypes": [], "callbackUrl": null, "keyState": mapping.state,
        "keyType": mapping.text("keyType"), "mode": mapping.text("mode"), "groupId": null, "token": null,
        "additionalProperties": {},
    })
}

/// Registers the client of keys that were approved.
pub(crate) fn finish(
    tx: &Transaction<'_>,
    mapping: &Object,
    pending: &Value,
    is_approved: bool,
) -> Result<(), Problem> {
    let mut mapping = mapping.clone();
    if is_approved {
        let name = pending.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut client = clients::new(&mapping.organization, name, &mapping.owner, &[], None);
        client.document = pending.get("document").and_then(Value::as_object).cloned().unwrap_or_default();
        tx.insert(&client)?;
        mapping.target.clone_from(&client.id);
        mapping.state.clear();
    } else {
        mapping.state = workflow::REJECTED.to_owned();
    }
    tx.update(&mut mapping).map(|_| ())
}

/// Gives an application a client that exists already.
fn map(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let key_type = key_type(&given)?;
    let key = text(&given, "consumerKey");
    if !["", RESIDENT].contains(&text(&given, "keyManager")) {
        return external_keys::map(call, text(&given, "keyManager"), key_type, key);
    }
    let (mapping, client) = call.control.change_access(|tx| {
        let application = applications::of_call(tx, call)?;
        let client = tx.get(Kind::Client, call.organization(), key)?;
        let client = client.filter(|client| client.owner == call.caller.name || call.caller.is_admin());
        let client = client.ok_or_else(|| Problem::bad_request(format!("The client {key} is not registered")))?;
        let secret = text(&given, "consumerSecret");
        if !secret.is_empty() && !clients::has_secret(&call.control.keys, &client, secret) {
            return Err(Problem::bad_request("The consumer secret is not the client's"));
        }
        if tx.count(&Filter::new(Kind::KeyMapping, call.organization()).target(&client.id))? > 0 {
            let text = format!("The consumer key {key} is used by another application");
            return Err(Problem::conflict(901_408, "Key Mappings already exists", text));
        }
        let mapping = add_mapping(tx, &application, key_type, &client, "MAPPED", RESIDENT)?;
        Ok((mapping, client))
    })?;
    Ok(Response::json(200, &body(call.control, &mapping, &client)))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    check_settings(given.get("additionalProperties"))?;
    let (mapping, client) = call.control.store.change(|tx| {
        let (mapping, mut client) = of_call(tx, call)?;
        if let Some(grants) = given.get("supportedGrantTypes").filter(|grants| grants.is_array()) {
            client.set("grantTypes", grants.clone());
        }
        if let Some(callback) = given.get("callbackUrl") {
            client.set("callbackUrl", callback.clone());
        }
        if let Some(settings_given) = given.get("additionalProperties").filter(|given| given.is_object()) {
            client.set("additionalProperties", settings(Some(settings_given)));
        }
        tx.update(&mut client)?;
        Ok((mapping, client))
    })?;
    connector::update(call.control, &client)?;
    Ok(Response::json(200, &body(call.control, &mapping, &client)))
}

/// Removes the mapping of a client; a client that was made for it goes with it.
pub(super) fn remove(tx: &Transaction<'_>, mapping: &Object) -> Result<(), Problem> {
    if (mapping.text("mode") == "CREATED" || key_manager_of(mapping) != RESIDENT)
        && let Some(client) = tx.get(Kind::Client, &mapping.organization, &mapping.target)?
    {
        tx.end_tokens_of_client(&client.id)?;
        tx.delete(&client)?;
    }
    workflow::forget(tx, mapping)?;
    tx.delete(mapping)
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    let client = call.control.change_access(|tx| {
        let mapping = mapping_of_call(tx, call)?;
        let client = tx.get(Kind::Client, call.organization(), &mapping.target)?;
        remove(tx, &mapping)?;
        Ok(client)
    })?;
    if let Some(client) = client {
        connector::remove(call.control, &client);
    }
    Ok(Response::empty(200))
}

/// Adds a secret to a client; the number of the next one never repeats.
fn push_secret(
    client: &mut Object,
    only: bool,
    description: Option<&str>,
    ends_ms: Option<i64>,
) -> Result<Value, Problem> {
    let number = client.document.get("nextSecret").and_then(Value::as_u64).unwrap_or(1);
    let entry = clients::secret_entry(number, description, ends_ms);
    let mut entries: Vec<Value> =
        if only { Vec::new() } else { clients::secrets(client).into_iter().cloned().collect() };
    if entries.len() >= clients::SECRETS_MAX {
        return Err(Problem::bad_request(format!("A client has at most {} secrets", clients::SECRETS_MAX)));
    }
    entries.push(entry.clone());
    client.set("secrets", entries);
    client.set("nextSecret", number + 1);
    Ok(entry)
}

fn regenerate(call: &Call<'_>) -> Result<Response, Problem> {
    let client = call.control.store.change(|tx| {
        let (_, mut client) = of_call(tx, call)?;
        push_secret(&mut client, true, None, None)?;
        tx.update(&mut client)?;
        Ok(client)
    })?;
    let secret = clients::secret(&call.control.keys, &client);
    Ok(Response::json(200, &json!({"consumerKey": client.id, "consumerSecret": secret})))
}

fn add_secret(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let details = given.get("additionalProperties");
    let member = |name: &str| details.and_then(|details| details.get(name));
    let seconds = member("expiresIn").and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
    let ends_ms = seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| crate::clock::now_ms().saturating_add(seconds.saturating_mul(1000)));
    let (client, entry) = call.control.store.change(|tx| {
        let (_, mut client) = of_call(tx, call)?;
        let entry = push_secret(&mut client, false, member("description").and_then(Value::as_str), ends_ms)?;
        tx.update(&mut client)?;
        Ok((client, entry))
    })?;
    Ok(Response::json(201, &secret_body(call.control, &client, &entry)))
}

fn list_secrets(call: &Call<'_>) -> Result<Response, Problem> {
    let (_, client) = call.control.store.read(|tx| of_call(tx, call))?;
    let list = clients::secrets(&client).iter().map(|entry| secret_body(call.control, &client, entry)).collect();
    Ok(Response::json(200, &Page::of(&call.query).cut("/secrets", list)))
}

fn revoke_secret(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let id = text(&given, "secretId");
    call.control.store.change(|tx| {
        let (_, mut client) = of_call(tx, call)?;
        let entries: Vec<Value> = clients::secrets(&client).into_iter().cloned().collect();
        let rest: Vec<Value> = entries.iter().filter(|entry| entry["secretId"] != id).cloned().collect();
        if rest.len() == entries.len() {
            return Err(Problem::not_found("Consumer Secret", id));
        }
        if rest.is_empty() {
            return Err(Problem::bad_request("The last secret of a client cannot be revoked"));
        }
        client.set("secrets", rest);
        tx.update(&mut client).map(|_| ())
    })?;
    Ok(Response::empty(204))
}

fn token(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let (mapping, client) = call.control.store.read(|tx| of_call(tx, call))?;
    if key_manager_of(&mapping) != RESIDENT {
        let manager =
            call.control.store.read(|tx| key_managers::named(tx, call.organization(), key_manager_of(&mapping)))?;
        let manager =
            manager.ok_or_else(|| Problem::rejected(901_403, "Key Manager not Registered", "It is disabled"))?;
        let scopes = users::texts(given.get("scopes")).join(" ");
        return Ok(Response::json(200, &connector::token(call.control, &manager, &client, &scopes)?));
    }
    let secret = text(&given, "consumerSecret");
    if !secret.is_empty() && !clients::has_secret(&call.control.keys, &client, secret) {
        return Err(Problem::bad_request("The consumer secret is not the client's"));
    }
    let asked = users::texts(given.get("scopes")).join(" ");
    let system = call.control.scopes(call.organization())?;
    let scopes = call
        .control
        .store
        .read(|tx| crate::identity::scopes::granted(tx, &system, call.organization(), &call.caller.roles, &asked))?;
    let lasts_s = given.get("validityPeriod").and_then(Value::as_u64).map(|seconds| seconds.min(LIFETIME_MAX_S));
    let user = shown(&client.owner, &client.organization);
    let subject = Subject { client: &client, user: &user, is_user: false, scopes: &scopes, lasts_s };
    let issued = tokens::issue(call.control, &subject)?;
    let body = json!({"accessToken": issued.token, "tokenScopes": scopes, "validityTime": issued.lasts_s});
    Ok(Response::json(200, &body))
}
