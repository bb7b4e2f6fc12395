//! `POST /oauth2/token`: grants.

use serde_json::{Value, json};

use super::{client, error, fields, invalid_client};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request, Response};
use crate::identity::keys::Keys;
use crate::identity::tokens::{self, Issued, Subject};
use crate::identity::{clients, scopes, users};
use crate::problem::Problem;
use crate::store::Object;

/// The grants that are implemented.
pub(super) const GRANT_TYPES: [&str; 3] = ["client_credentials", "password", "refresh_token"];

/// The longest lifetime that a request may ask for, in seconds: a year.
const LIFETIME_MAX_S: u64 = 366 * 86_400;

/// A grant that succeeded.
struct Grant {
    /// `sub`.
    user: String,
    organization: String,
    is_user: bool,
    scopes: Vec<String>,
}

pub(super) fn respond(control: &Control, request: &Request) -> Result<Response, Problem> {
    let fields = fields(request);
    let Some(client) = client(control, request, &fields)? else { return Ok(invalid_client()) };
    let Some(grant_type) = fields.get("grant_type") else {
        return Ok(error(400, "invalid_request", "The parameter `grant_type` is missing"));
    };
    if !GRANT_TYPES.contains(&grant_type) {
        return Ok(error(400, "unsupported_grant_type", "Unsupported grant_type value"));
    }
    if !clients::allows(&client, grant_type) {
        let text = "The authenticated client is not authorized to use this authorization grant type";
        return Ok(error(400, "unauthorized_client", text));
    }
    let granted = match grant_type {
        "password" => password(control, request, &fields)?,
        "refresh_token" => refresh(control, &fields, &client)?,
        _ => client_credentials(control, &fields, &client)?,
    };
    match granted {
        Ok(grant) => issue(control, &fields, &client, grant_type, &grant),
        Err(refusal) => Ok(refusal),
    }
}

type Granted = Result<Result<Grant, Response>, Problem>;

/// The requested scopes that the user is granted.
fn granted(control: &Control, organization: &str, roles: &[String], requested: &str) -> Result<Vec<String>, Problem> {
    control.store.read(|tx| scopes::granted(tx, control.scopes(), organization, roles, requested))
}

fn client_credentials(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    // The client has the roles of its owner.
    let owner = control.store.read(|tx| users::find(control, tx, &client.owner, &client.organization))?;
    let roles = owner.map(|owner| owner.roles).unwrap_or_default();
    let asked = fields.get("scope").unwrap_or_default();
    let mut scopes = granted(control, &client.organization, &roles, asked)?;
    scopes.retain(|scope| scope != "openid");
    if scopes.is_empty() {
        scopes.push("default".to_owned());
    }
    let user = tokens::subject_of(&client.owner, &client.organization);
    Ok(Ok(Grant { user, organization: client.organization.clone(), is_user: false, scopes }))
}

fn password(control: &Control, request: &Request, fields: &Parameters) -> Granted {
    let (Some(name), Some(password)) = (fields.get("username"), fields.get("password")) else {
        return Ok(Err(error(400, "invalid_request", "Missing parameters: username, password")));
    };
    let Some(user) = users::login(control, name, password, request.client)? else {
        return Ok(Err(error(400, "invalid_grant", &format!("Authentication failed for {name}"))));
    };
    let asked = fields.get("scope").unwrap_or_default();
    let scopes = granted(control, &user.organization, &user.roles, asked)?;
    let subject = tokens::subject_of(&user.name, &user.organization);
    Ok(Ok(Grant { user: subject, organization: user.organization, is_user: true, scopes }))
}

/// A refresh token counts once; the access token that came with it ends.
fn refresh(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    let invalid = || Ok(Err(error(400, "invalid_grant", "Persisted access token data not found")));
    let Some(sent) = fields.get("refresh_token") else {
        return Ok(Err(error(400, "invalid_request", "Missing parameters: refresh_token")));
    };
    let hash = crate::random::sha256(sent.as_bytes());
    let taken = control.store.change(|tx| {
        let Some(taken) = tx.take_refresh_token(&hash, &client.id)? else { return Ok(None) };
        tx.revoke(&taken.organization, &taken.access_id, taken.access_ends)?;
        Ok(Some(taken))
    })?;
    let Some(taken) = taken else { return invalid() };
    control.host.revoke(&taken.access_id, taken.access_ends);
    if taken.ends <= now() {
        return invalid();
    }
    let user = control.store.read(|tx| {
        let (name, organization) = users::identify(tx, &taken.user)?;
        users::find(control, tx, &name, &organization)
    })?;
    let Some(user) = user else { return invalid() };
    let before: Vec<&str> = taken.scope.split_whitespace().collect();
    let asked = fields.get("scope").unwrap_or(&taken.scope);
    if asked.split_whitespace().any(|scope| !before.contains(&scope)) {
        return Ok(Err(error(400, "invalid_scope", "A scope that the refresh token does not have was requested")));
    }
    let scopes = granted(control, &taken.organization, &user.roles, asked)?;
    Ok(Ok(Grant { user: taken.user, organization: taken.organization, is_user: true, scopes }))
}

fn issue(
    control: &Control,
    fields: &Parameters,
    client: &Object,
    grant_type: &str,
    grant: &Grant,
) -> Result<Response, Problem> {
    let lasts_s = fields.number("validity_period").map(|seconds| (seconds as u64).min(LIFETIME_MAX_S));
    let subject = Subject { client, user: &grant.user, is_user: grant.is_user, scopes: &grant.scopes, lasts_s };
    let access = tokens::issue(control, &subject);
    let scope = grant.scopes.join(" ");
    let mut body = json!({
        "access_token": access.token, "scope": scope, "token_type": "Bearer", "expires_in": access.lasts_s,
    });
    if grant_type != "client_credentials" {
        let (token, kept) = tokens::refresh(client, &grant.organization, &grant.user, &scope, &access);
        control.store.change(|tx| tx.keep_refresh_token(&kept))?;
        body["refresh_token"] = token.into();
    }
    if grant.scopes.iter().any(|scope| scope == "openid") {
        body["id_token"] = id_token(control, client, grant, &access).into();
    }
    Ok(Response::json(200, &body).with("Cache-Control", "no-store").with("Pragma", "no-cache"))
}

fn id_token(control: &Control, client: &Object, grant: &Grant, access: &Issued) -> String {
    let claims: Value = json!({
        "iss": control.issuer(), "sub": grant.user, "aud": client.id, "azp": client.id, "iat": now(), "exp": access.ends,
        "at_hash": Keys::half_hash(&access.token), "jti": crate::random::uuid(),
    });
    control.keys.sign("JWT", &claims)
}
