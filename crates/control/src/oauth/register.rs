//! Dynamic client registration: `POST /client-registration/v0.17/register`.

use serde_json::{Value, json};

use crate::Control;
use crate::http::{Request, Response};
use crate::identity::{clients, shown, users};
use crate::problem::Problem;
use crate::route::basic;
use crate::store::{Kind, Object};

/// Grants that need an address to redirect to.
pub(crate) const REDIRECT_GRANTS: [&str; 2] = ["authorization_code", "implicit"];

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
