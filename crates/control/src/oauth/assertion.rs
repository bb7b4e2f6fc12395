//! Grants for a JWT: JWT bearer (RFC 7523) and token exchange (RFC 8693). Access tokens of this server count as assertions.

use serde_json::{Map, Value};

use super::error;
use super::grants::user_of;
use super::token::{Grant, Granted, granted_scopes, invalid_grant, missing};
use crate::Control;
use crate::http::Parameters;
use crate::identity::tokens;
use crate::store::{Ticket, TicketKind};

const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";

pub(super) fn jwt_bearer(control: &Control, fields: &Parameters) -> Granted {
    let Some(text) = fields.get("assertion") else { return missing("assertion") };
    let Some(claims) = tokens::verify(control, text)? else { return invalid_grant("The assertion is not valid") };
    // RFC 7523 §3: the id of an assertion counts once.
    if let Some(id) = claims.get("jti").and_then(Value::as_str) {
        let ends = claims.get("exp").and_then(Value::as_u64).unwrap_or_default();
        let used = Ticket::new(TicketKind::Assertion, id, ends);
        let is_first = control.store.change(|tx| {
            control.sweep_tokens(tx)?;
            tx.add_ticket(&used)
        })?;
        if !is_first {
            return invalid_grant("The assertion was used before");
        }
    }
    grant(control, fields, &claims, false)
}

pub(super) fn token_exchange(control: &Control, fields: &Parameters) -> Granted {
    let Some(text) = fields.get("subject_token") else { return missing("subject_token") };
    match fields.get("subject_token_type") {
        Some(ACCESS_TOKEN_TYPE | JWT_TYPE) => {}
        None => return missing("subject_token_type"),
        Some(_) => return Ok(Err(error(400, "invalid_request", "Unsupported subject token type"))),
    }
    if fields.get("requested_token_type").is_some_and(|wanted| ![ACCESS_TOKEN_TYPE, JWT_TYPE].contains(&wanted)) {
        return Ok(Err(error(400, "invalid_request", "Unsupported requested token type")));
    }
    if fields.get("actor_token").is_some() {
        return Ok(Err(error(400, "invalid_request", "Actor tokens are not supported")));
    }
    let Some(claims) = tokens::verify(control, text)? else { return invalid_grant("The subject token is not valid") };
    Ok(grant(control, fields, &claims, true)?.map(|grant| Grant { issued_type: Some(ACCESS_TOKEN_TYPE), ..grant }))
}

/// A grant for the subject of a token, with no scope that the token lacks.
fn grant(control: &Control, fields: &Parameters, claims: &Map<String, Value>, is_bounded: bool) -> Granted {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let has = |wanted: &str| text("scope").split_whitespace().any(|scope| scope == wanted);
    let asked = fields.get("scope").unwrap_or(text("scope"));
    if !asked.split_whitespace().all(has) {
        return Ok(Err(error(400, "invalid_scope", "A scope that the subject token does not have was requested")));
    }
    let Some(user) = user_of(control, text("sub"))? else { return invalid_grant("The user does not exist") };
    let scopes = granted_scopes(control, &user.organization, &user.roles, asked)?;
    let ends = is_bounded.then(|| claims.get("exp").and_then(Value::as_u64)).flatten();
    let (subject, organization) = (text("sub").to_owned(), user.organization);
    Ok(Ok(Grant { user: subject, organization, is_user: true, scopes, ends, ..Grant::default() }))
}
