//! Dynamic client registration: `POST /client-registration/v0.17/register`.

use serde_json::{Value, json};

use crate::Control;
use crate::http::{Request, Response};
use crate::identity::{Caller, clients, shown, users};
use crate::problem::Problem;
use crate::route::basic;
use crate::store::{Kind, Object};

/// Grants that need an address to redirect to.
pub(crate) const REDIRECT_GRANTS: [&str; 2] = ["authorization_code", "implicit"];

/// Where clients are registered in the way of RFC 7591 and changed in the way of RFC 7592.
pub(super) const STANDARD_PATH: &str = "/api/identity/oauth2/dcr/v1.1/register";

/// Registers a client; one that has the name already is returned as it is, with its secret.
pub(super) fn respond(control: &Control, request: &Request) -> Result<Response, Problem> {
    if request.method != "POST" {
        return Err(Problem::new(405, 405, "Method Not Allowed", "Clients are registered with POST"));
    }
    let caller = match request.header("authorization").and_then(basic) {
        Some((name, password)) => users::login(control, &name, &password, request.client)?,
        None => None,
    };
    let caller = caller.ok_or_else(Problem::unauthenticated)?;
    let body: Value =
        serde_json::from_slice(&request.body).map_err(|_| Problem::bad_request("Malformed request body."))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let name = text("clientName").ok_or_else(|| Problem::bad_request("Application name cannot be empty"))?;
    let owner = text("owner").ok_or_else(|| Problem::bad_request("Application owner cannot be empty"))?;
    let (owner, organization) = control.store.read(|tx| users::identify(tx, owner))?;
    if (owner != caller.name || organization != caller.organization) && !caller.is_admin() {
        return Err(Problem::bad_request("Logged in user is not the owner of the application"));
    }
    let callback = text("callbackUrl");
    let asked = text("grantType").unwrap_or_default().split_whitespace();
    let grants = asked.filter(|grant| callback.is_some() || !REDIRECT_GRANTS.contains(grant)).map(str::to_owned);
    let grants: Vec<String> = grants.collect();
    let client = control.store.change(|tx| {
        if let Some(mut known) = tx.find(Kind::Client, &organization, name)? {
            if known.owner != owner {
                return Err(Problem::forbidden(format!("The client `{name}` is of another owner")));
            }
            // A client that registers again may ask for more grants; its key and secret stay.
            let missing = grants.iter().any(|grant| !clients::allows(&known, grant));
            if missing {
                known.set("grantTypes", json!(grants));
                known.set("callbackUrl", json!(callback));
                tx.update(&mut known)?;
            }
            return Ok(known);
        }
        let mut client = clients::new(&organization, name, &owner, &grants, callback).keyed(name);
        client.set("tokenType", text("tokenType").unwrap_or("JWT"));
        if tx.insert(&client)?.is_none() {
            return Err(Problem::changed_meanwhile());
        }
        tx.audit(&organization, &caller.shown(), "register", Kind::Client, &client.id)?;
        Ok(client)
    })?;
    Ok(Response::json(200, &description(control, &client)))
}

/// Registration with the fields of RFC 7591; an id is the path of RFC 7592.
pub(super) fn standard(control: &Control, request: &Request, id: &str) -> Result<Response, Problem> {
    let caller = match request.header("authorization").and_then(basic) {
        Some((name, password)) => users::login(control, &name, &password, request.client)?,
        None => None,
    };
    let caller = caller.ok_or_else(Problem::unauthenticated)?;
    match (request.method.as_str(), id.is_empty()) {
        ("POST", true) => {
            let given = match Metadata::parse(&request.body) {
                Ok(given) => given,
                Err(refusal) => return Ok(refusal),
            };
            let callback = given.callback();
            let client =
                clients::new(&caller.organization, &given.name, &caller.name, &given.grants, callback.as_deref());
            let mut client = client.keyed(given.name.clone());
            given.apply(&mut client);
            let added = control.store.change(|tx| {
                tx.audit(&caller.organization, &caller.shown(), "register", Kind::Client, &client.id)?;
                tx.insert(&client)
            })?;
            Ok(match added {
                Some(()) => Response::json(201, &standard_body(control, &client)).with("Cache-Control", "no-store"),
                None => invalid_metadata(&format!("The client name `{}` is registered already", given.name)),
            })
        }
        ("GET" | "PUT" | "DELETE", false) => existing(control, request, &caller, id),
        _ => Err(Problem::new(405, 405, "Method Not Allowed", "The resource does not have this method")),
    }
}

/// RFC 7592: reads, replaces or removes a client. One of another owner is not found, except for administrators.
fn existing(control: &Control, request: &Request, caller: &Caller, id: &str) -> Result<Response, Problem> {
    let found = control.store.read(|tx| tx.get(Kind::Client, &caller.organization, id))?;
    let is_owned = |client: &Object| client.owner == caller.name || caller.is_admin();
    // A client of an application is changed with the application.
    let found = found.filter(|client| client.unique_key.is_some() && is_owned(client));
    let Some(mut client) = found else { return Err(Problem::unauthenticated()) };
    match request.method.as_str() {
        "PUT" => {
            let given = match Metadata::parse(&request.body) {
                Ok(given) => given,
                Err(refusal) => return Ok(refusal),
            };
            given.apply(&mut client);
            control.store.change(|tx| {
                tx.audit(&caller.organization, &caller.shown(), "update", Kind::Client, id)?;
                tx.update(&mut client)
            })?;
        }
        "DELETE" => {
            let ended = control.store.change(|tx| {
                let ended = tx.end_tokens_of_client(id)?;
                tx.audit(&caller.organization, &caller.shown(), "delete", Kind::Client, id)?;
                tx.delete(&client)?;
                Ok(ended)
            })?;
            control.end_tokens(&ended);
            return Ok(Response::empty(204));
        }
        _ => {}
    }
    Ok(Response::json(200, &standard_body(control, &client)).with("Cache-Control", "no-store"))
}

fn invalid_metadata(description: &str) -> Response {
    Response::json(400, &json!({"error": "invalid_client_metadata", "error_description": description}))
}

/// The fields of a registration.
struct Metadata {
    name: String,
    grants: Vec<String>,
    redirects: Vec<String>,
    is_public: bool,
    token_type: String,
}

impl Metadata {
    fn parse(body: &[u8]) -> Result<Metadata, Response> {
        let Ok(Value::Object(given)) = serde_json::from_slice(body) else {
            return Err(invalid_metadata("The body must be a JSON object"));
        };
        let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
        let mut grants = users::texts(given.get("grant_types"));
        if grants.is_empty() {
            // RFC 7591 §2: the default.
            grants.push("authorization_code".to_owned());
        }
        if let Some(unknown) = grants.iter().find(|grant| !super::token::GRANT_TYPES.contains(&grant.as_str())) {
            return Err(invalid_metadata(&format!("The grant type `{unknown}` is not supported")));
        }
        let redirects = users::texts(given.get("redirect_uris"));
        let metadata = Metadata {
            name: text("client_name"),
            grants,
            redirects,
            is_public: text("token_endpoint_auth_method") == "none",
            token_type: text("token_type_extension"),
        };
        if metadata.name.is_empty() {
            return Err(invalid_metadata("The field `client_name` is missing"));
        }
        let needs_redirect = metadata.grants.iter().any(|grant| REDIRECT_GRANTS.contains(&grant.as_str()));
        if needs_redirect && metadata.redirects.is_empty() {
            let body =
                json!({"error": "invalid_redirect_uri", "error_description": "The field `redirect_uris` is missing"});
            return Err(Response::json(400, &body));
        }
        Ok(metadata)
    }

    /// The addresses to return to, as one registration.
    fn callback(&self) -> Option<String> {
        match self.redirects.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => {
                let escaped: Vec<String> = several.iter().map(|address| regex::escape(address)).collect();
                Some(format!("regexp=({})", escaped.join("|")))
            }
        }
    }

    fn apply(&self, client: &mut Object) {
        client.name.clone_from(&self.name);
        client.unique_key = Some(self.name.clone());
        client.set("grantTypes", json!(self.grants));
        client.set("callbackUrl", json!(self.callback()));
        client.set("redirectUris", json!(self.redirects));
        client.set("tokenType", if self.token_type.is_empty() { "JWT" } else { &self.token_type });
        client.set("additionalProperties", json!({"bypassClientCredentials": self.is_public}));
    }
}

fn standard_body(control: &Control, client: &Object) -> Value {
    let redirects = match client.document.get("redirectUris") {
        Some(redirects) => redirects.clone(),
        None => json!([client.text("callbackUrl")]),
    };
    let is_public = clients::setting_is_true(client, "bypassClientCredentials");
    json!({
        "client_id": client.id, "client_secret": clients::secret(&control.keys, client), "client_secret_expires_at": 0,
        "client_name": client.name, "grant_types": client.document.get("grantTypes"), "redirect_uris": redirects,
        "token_endpoint_auth_method": if is_public { "none" } else { "client_secret_basic" },
        "ext_application_owner": shown(&client.owner, &client.organization),
        "token_type_extension": client.text("tokenType"),
    })
}

fn description(control: &Control, client: &Object) -> Value {
    let grants = client.texts("grantTypes").join(" ");
    let callback = client.document.get("callbackUrl").cloned().unwrap_or_default();
    let details = json!({"grant_types": grants, "redirect_uris": callback, "client_name": client.name});
    json!({
        "clientId": client.id,
        "clientName": client.name,
        "callBackURL": callback,
        "clientSecret": clients::secret(&control.keys, client),
        "isSaasApplication": true,
        "appOwner": shown(&client.owner, &client.organization),
        "jsonString": details.to_string(),
        "jsonAppAttribute": "{}",
        "applicationUUID": null,
        "tokenType": client.text("tokenType"),
    })
}
