//! `POST /oauth2/token`: from a request to a grant, and from a grant to tokens. The grants are in `grants.rs`, `assertion.rs`
//! and `device.rs`.

use serde_json::{Value, json};

use super::{assertion, client, device, error, fields, grants, invalid_client};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request, Response};
use crate::identity::keys::Keys;
use crate::identity::tokens::{self, Issued, Subject};
use crate::identity::{clients, scopes};
use crate::problem::Problem;
use crate::store::Object;

pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(super) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The grants that are implemented.
pub(crate) const GRANT_TYPES: [&str; 7] =
    ["client_credentials", "password", "refresh_token", "authorization_code", JWT_BEARER, TOKEN_EXCHANGE, DEVICE_CODE];

/// The longest lifetime that a request may ask for, in seconds: a year.
const LIFETIME_MAX_S: u64 = 366 * 86_400;

/// How long ID tokens last unless the client has a setting, in seconds.
const ID_TOKEN_S: u64 = 3600;

/// A grant that succeeded.
#[derive(Default)]
pub(super) struct Grant {
    /// `sub`.
    pub(super) user: String,
    pub(super) organization: String,
    pub(super) is_user: bool,
    pub(super) scopes: Vec<String>,
    /// Tokens of the same login; `None` when no refresh token is issued.
    pub(super) family: Option<String>,
    /// Claims of the ID token: `nonce`, `auth_time`.
    pub(super) id_claims: Vec<(&'static str, Value)>,
    /// The latest end of the access token, when what it came of ends.
    pub(super) ends: Option<u64>,
    /// `issued_token_type` of the response (RFC 8693 §2.2.1).
    pub(super) issued_type: Option<&'static str>,
}

/// A grant, or the response that refuses it.
pub(super) type Granted = Result<Result<Grant, Response>, Problem>;

/// The refusal of a grant.
pub(super) fn invalid_grant(description: &str) -> Granted {
    Ok(Err(error(400, "invalid_grant", description)))
}

/// The refusal of a request without a parameter.
pub(super) fn missing(names: &str) -> Granted {
    Ok(Err(error(400, "invalid_request", &format!("Missing parameters: {names}"))))
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
        "password" => grants::password(control, request, &fields)?,
        "refresh_token" => grants::refresh(control, &fields, &client)?,
        "authorization_code" => grants::code(control, &fields, &client)?,
        JWT_BEARER => assertion::jwt_bearer(control, &fields)?,
        TOKEN_EXCHANGE => assertion::token_exchange(control, &fields)?,
        DEVICE_CODE => device::grant(control, &fields, &client)?,
        _ => grants::client_credentials(control, &fields, &client)?,
    };
    match granted {
        Ok(grant) => issue(control, &fields, &client, &grant),
        Err(refusal) => Ok(refusal),
    }
}

/// The requested scopes that the user is granted.
pub(super) fn granted_scopes(
    control: &Control,
    organization: &str,
    roles: &[String],
    asked: &str,
) -> Result<Vec<String>, Problem> {
    let system = control.scopes(organization)?;
    control.store.read(|tx| scopes::granted(tx, &system, organization, roles, asked))
}

fn issue(control: &Control, fields: &Parameters, client: &Object, grant: &Grant) -> Result<Response, Problem> {
    let asked_s = fields.number("validity_period").map(|seconds| (seconds as u64).min(LIFETIME_MAX_S));
    let rest_s = grant.ends.map(|ends| ends.saturating_sub(now()).max(1));
    let lasts_s = match (asked_s, rest_s) {
        (Some(asked), Some(rest)) => Some(asked.min(rest)),
        (None, Some(rest)) => Some(rest.min(tokens::ACCESS_S)),
        (asked, None) => asked,
    };
    let subject = Subject { client, user: &grant.user, is_user: grant.is_user, scopes: &grant.scopes, lasts_s };
    let access = tokens::issue(control, &subject)?;
    let scope = grant.scopes.join(" ");
    let mut body = json!({
        "access_token": access.token, "scope": scope, "token_type": "Bearer", "expires_in": access.lasts_s,
    });
    if let Some(family) = &grant.family {
        let (token, kept) = tokens::refresh(client, &grant.organization, &grant.user, &scope, family, &access);
        control.store.change(|tx| {
            control.sweep_tokens(tx)?;
            tx.keep_refresh_token(&kept)
        })?;
        body["refresh_token"] = token.into();
    }
    if let Some(issued_type) = grant.issued_type {
        body["issued_token_type"] = issued_type.into();
    }
    if grant.scopes.iter().any(|scope| scope == "openid") {
        body["id_token"] = id_token(control, client, grant, &access).into();
    }
    Ok(Response::json(200, &body).with("Cache-Control", "no-store").with("Pragma", "no-cache"))
}

fn id_token(control: &Control, client: &Object, grant: &Grant, access: &Issued) -> String {
    let lasts_s = tokens::seconds_of(client, "id_token_expiry_time").unwrap_or(ID_TOKEN_S);
    let mut claims: Value = json!({
        "iss": control.issuer(), "sub": grant.user, "aud": client.id, "azp": client.id, "iat": now(),
        "exp": now().saturating_add(lasts_s), "at_hash": Keys::half_hash(&access.token), "jti": crate::random::uuid(),
    });
    for (name, value) in &grant.id_claims {
        claims[*name] = value.clone();
    }
    control.keys.sign("JWT", &claims)
}
