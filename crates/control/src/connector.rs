//! Key managers of other products: their discovery documents, and clients that are registered there (RFC 7591, RFC 7592).
//!
//! Requests leave through the [`Host`](crate::Host) and are never sent while the store is locked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::Control;
use crate::host::FetchRequest;
use crate::http::encode;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::store::Object;

/// A client that was registered at another key manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) id: String,
    pub(crate) secret: String,
    /// Where it is managed, and the token for that.
    registration: Option<(String, String)>,
}

impl Registered {
    /// What is kept of it with its client.
    pub(crate) fn document(&self) -> Value {
        let (address, token) = self.registration.clone().unwrap_or_default();
        json!({"secret": self.secret, "address": address, "token": token})
    }
}

/// The member of a client with what its key manager responded.
pub(crate) const REGISTRATION: &str = "registration";

fn failed(manager: &str, why: impl std::fmt::Display) -> Problem {
    let text = format!("The key manager {manager} cannot be used: {why}");
    Problem::new(500, 901_406, "Error while registering the application at the key manager", text)
}

/// A request to a key manager.
#[derive(Default)]
struct ManagerRequest {
    method: &'static str,
    url: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl ManagerRequest {
    fn new(method: &'static str, url: &str) -> ManagerRequest {
        let request = ManagerRequest { method, url: url.to_owned(), ..ManagerRequest::default() };
        request.with("Accept", "application/json")
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> ManagerRequest {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn body(mut self, media_type: &str, body: impl Into<Bytes>) -> ManagerRequest {
        self.body = body.into();
        self.with("Content-Type", media_type)
    }
}

/// The largest response of a key manager.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// Sends a request, and reads the JSON object of its response.
fn send(control: &Control, request: ManagerRequest) -> Result<Map<String, Value>, String> {
    let ManagerRequest { method, url, headers, body } = request;
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let request = FetchRequest { method, url: &url, headers, body, bytes_max: RESPONSE_BYTES_MAX };
    let response = control.host.fetch(&request).map_err(|error| error.to_string())?;
    if !(200..300).contains(&response.status) {
        return Err(format!("it responded with {}", response.status));
    }
    if response.body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(&response.body).map_err(|_| "its response is not a JSON object".to_owned())
}

/// The fields of a key manager that its discovery document gives; the error says why there are none.
pub(crate) fn discover(control: &Control, url: &str) -> Result<Value, String> {
    let found = send(control, ManagerRequest::new("GET", url))?;
    let text = |name: &str| found.get(name).and_then(Value::as_str);
    let issuer = text("issuer").ok_or("the document has no `issuer`")?;
    let certificates = text("jwks_uri").map(|keys| json!({"type": "JWKS", "value": keys}));
    Ok(json!({
        "issuer": issuer, "wellKnownEndpoint": url, "introspectionEndpoint": text("introspection_endpoint"),
        "clientRegistrationEndpoint": text("registration_endpoint"), "tokenEndpoint": text("token_endpoint"),
        "displayTokenEndpoint": text("token_endpoint"), "revokeEndpoint": text("revocation_endpoint"),
        "displayRevokeEndpoint": text("revocation_endpoint"), "userInfoEndpoint": text("userinfo_endpoint"),
        "authorizeEndpoint": text("authorization_endpoint"), "certificates": certificates,
        "availableGrantTypes": found.get("grant_types_supported").cloned().unwrap_or_else(|| json!([])),
        "additionalProperties": {},
    }))
}

/// Whether clients can be registered at a key manager.
pub(crate) fn registers(manager: &Object) -> bool {
    !manager.text("clientRegistrationEndpoint").is_empty()
        && manager.document.get("enableOAuthAppCreation") != Some(&Value::Bool(false))
}

fn property<'m>(manager: &'m Object, name: &str) -> &'m str {
    let properties = manager.document.get("additionalProperties").and_then(Value::as_object);
    properties.map(|properties| text(properties, name)).unwrap_or_default()
}

/// `Authorization` of a request that registers clients, by the type of the key manager.
fn authorization(control: &Control, manager: &Object) -> Result<Option<String>, String> {
    let basic = |name: &str, password: &str| Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))));
    let (name, password) = (property(manager, "Username"), property(manager, "Password"));
    if !name.is_empty() {
        return Ok(basic(name, password));
    }
    let name = property(manager, "client_registration_username");
    if !name.is_empty() {
        return Ok(basic(name, property(manager, "client_registration_password")));
    }
    let key = property(manager, "apiKey");
    if !key.is_empty() {
        return Ok(Some(format!("SSWS {key}")));
    }
    let (id, secret) = (property(manager, "client_id"), property(manager, "client_secret"));
    if id.is_empty() {
        return Ok(None);
    }
    let audience = property(manager, "audience");
    let token = request_token(control, manager.text("tokenEndpoint"), id, secret, &[("audience", audience)])?;
    Ok(Some(format!("Bearer {}", text(&token, "access_token"))))
}

/// A token of the client credentials grant.
fn request_token(
    control: &Control,
    endpoint: &str,
    id: &str,
    secret: &str,
    more: &[(&str, &str)],
) -> Result<Map<String, Value>, String> {
    if endpoint.is_empty() {
        return Err("it has no `tokenEndpoint`".to_owned());
    }
    let mut form = "grant_type=client_credentials".to_owned();
    for (name, value) in more.iter().filter(|(_, value)| !value.is_empty()) {
        form.push_str(&format!("&{name}={}", encode(value)));
    }
    // RFC 6749 §2.3.1: both parts are encoded as in a form.
    let credentials = STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
    let request = ManagerRequest::new("POST", endpoint)
        .with("Authorization", format!("Basic {credentials}"))
        .body("application/x-www-form-urlencoded", form);
    let token = send(control, request)?;
    if text(&token, "access_token").is_empty() { Err("it issued no token".to_owned()) } else { Ok(token) }
}

fn metadata(name: &str, grants: &[String], callback: Option<&str>) -> Value {
    let redirects: Vec<&str> = callback.into_iter().flat_map(|all| all.split(',')).map(str::trim).collect();
    json!({"client_name": name, "grant_types": grants, "redirect_uris": redirects})
}

/// Registers a client.
pub(crate) fn register(
    control: &Control,
    manager: &Object,
    name: &str,
    grants: &[String],
    callback: Option<&str>,
) -> Result<Registered, Problem> {
    let registered = || {
        let mut request = ManagerRequest::new("POST", manager.text("clientRegistrationEndpoint"));
        if let Some(authorization) = authorization(control, manager)? {
            request = request.with("Authorization", authorization);
        }
        let found = send(control, request.body("application/json", metadata(name, grants, callback).to_string()))?;
        let member = |name: &str| text(&found, name).to_owned();
        let (address, token) = (member("registration_client_uri"), member("registration_access_token"));
        match member("client_id") {
            id if id.is_empty() => Err("its response has no `client_id`".to_owned()),
            id => Ok(Registered {
                id,
                secret: member("client_secret"),
                registration: (!address.is_empty() && !token.is_empty()).then_some((address, token)),
            }),
        }
    };
    registered().map_err(|why| failed(&manager.name, why))
}

/// Changes or removes (`metadata` is `None`) a client that was registered.
fn manage(control: &Control, client: &Object, metadata: Option<Value>) -> Result<(), String> {
    let registration = client.document.get(REGISTRATION).and_then(Value::as_object);
    let member = |name: &str| registration.map(|kept| text(kept, name)).unwrap_or_default();
    if member("address").is_empty() {
        return Ok(());
    }
    let method = if metadata.is_some() { "PUT" } else { "DELETE" };
    let mut request = ManagerRequest::new(method, member("address"));
    request = request.with("Authorization", format!("Bearer {}", member("token")));
    if let Some(mut metadata) = metadata {
        metadata["client_id"] = client.id.as_str().into();
        request = request.body("application/json", metadata.to_string());
    }
    send(control, request).map(|_| ())
}

/// Sends the grants and the callback of a client to its key manager.
pub(crate) fn update(control: &Control, client: &Object) -> Result<(), Problem> {
    let grants: Vec<String> = client.texts("grantTypes").into_iter().map(str::to_owned).collect();
    let callback = Some(client.text("callbackUrl")).filter(|callback| !callback.is_empty());
    manage(control, client, Some(metadata(&client.name, &grants, callback))).map_err(|why| failed("of the client", why))
}

/// Removes a client at its key manager. It is not known here any more, so a failure goes to the log only.
pub(crate) fn remove(control: &Control, client: &Object) {
    if let Err(why) = manage(control, client, None) {
        control.host.report_error(&format!("the client {} remains at its key manager: {why}", client.id));
    }
}

/// A token of a client that was registered at a key manager.
pub(crate) fn token(control: &Control, manager: &Object, client: &Object, scopes: &str) -> Result<Value, Problem> {
    let secret = secret(client);
    let found = request_token(control, manager.text("tokenEndpoint"), &client.id, secret, &[("scope", scopes)]);
    let found = found.map_err(|why| failed(&manager.name, why))?;
    let granted: Vec<&str> = text(&found, "scope").split_whitespace().collect();
    Ok(json!({
        "accessToken": found.get("access_token"), "tokenScopes": granted, "validityTime": found.get("expires_in"),
    }))
}

/// The secret of a client that was registered at a key manager.
pub(crate) fn secret(client: &Object) -> &str {
    let registration = client.document.get(REGISTRATION).and_then(Value::as_object);
    registration.map(|kept| text(kept, "secret")).unwrap_or_default()
}
