//! The grants of RFC 6749: client credentials, password, refresh token, authorization code.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::error;
use super::token::{Grant, Granted, granted_scopes, invalid_grant, missing};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request};
use crate::identity::{Caller, tokens, users};
use crate::problem::Problem;
use crate::random;
use crate::store::{Object, Presented, TicketKind};

pub(super) fn client_credentials(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    // The client has the roles of its owner.
    let owner = control.store.read(|tx| users::find(control, tx, &client.owner, &client.organization))?;
    let roles = owner.map(|owner| owner.roles).unwrap_or_default();
    let asked = fields.get("scope").unwrap_or_default();
    let mut scopes = granted_scopes(control, &client.organization, &roles, asked)?;
    scopes.retain(|scope| scope != "openid");
    if scopes.is_empty() {
        scopes.push("default".to_owned());
    }
    let user = tokens::subject_of(&client.owner, &client.organization);
    Ok(Ok(Grant { user, organization: client.organization.clone(), scopes, ..Grant::default() }))
}

pub(super) fn password(control: &Control, request: &Request, fields: &Parameters) -> Granted {
    let (Some(name), Some(password)) = (fields.get("username"), fields.get("password")) else {
        return missing("username, password");
    };
    let Some(user) = users::login(control, name, password, request.client)? else {
        return invalid_grant(&format!("Authentication failed for {name}"));
    };
    let asked = fields.get("scope").unwrap_or_default();
    let scopes = granted_scopes(control, &user.organization, &user.roles, asked)?;
    Ok(Ok(of_user(&user, scopes)))
}

/// A grant of a user, with a family of its own.
fn of_user(user: &Caller, scopes: Vec<String>) -> Grant {
    Grant {
        user: tokens::subject_of(&user.name, &user.organization),
        organization: user.organization.clone(),
        is_user: true,
        scopes,
        family: Some(random::uuid()),
        ..Grant::default()
    }
}

/// The user of a subject, when the account still exists.
pub(super) fn user_of(control: &Control, subject: &str) -> Result<Option<Caller>, Problem> {
    control.store.read(|tx| {
        let (name, organization) = users::identify(tx, subject)?;
        users::find(control, tx, &name, &organization)
    })
}

/// A refresh token counts once; the access token that came with it ends. One that comes again was stolen, or its successor
/// was: everything that came of the same login ends (RFC 9700 §4.14.2).
pub(super) fn refresh(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    const INVALID: &str = "Persisted access token data not found";
    let Some(sent) = fields.get("refresh_token") else { return missing("refresh_token") };
    let hash = random::sha256(sent.as_bytes());
    let (taken, ended) = control.store.change(|tx| {
        Ok(match tx.take_refresh_token(&hash, &client.id)? {
            Presented::Unknown => (None, Vec::new()),
            Presented::Replayed(family) => (None, tx.end_family(&family)?),
            Presented::First(taken) => {
                tx.revoke(&taken.organization, &taken.access_id, taken.access_ends)?;
                let ended = vec![(taken.access_id.clone(), taken.access_ends)];
                (Some(taken), ended)
            }
        })
    })?;
    control.end_tokens(&ended);
    let Some(taken) = taken.filter(|taken| taken.ends > now()) else { return invalid_grant(INVALID) };
    let Some(user) = user_of(control, &taken.user)? else { return invalid_grant(INVALID) };
    let before: Vec<&str> = taken.scope.split_whitespace().collect();
    let asked = fields.get("scope").unwrap_or(&taken.scope);
    if asked.split_whitespace().any(|scope| !before.contains(&scope)) {
        return Ok(Err(error(400, "invalid_scope", "A scope that the refresh token does not have was requested")));
    }
    let scopes = granted_scopes(control, &taken.organization, &user.roles, asked)?;
    let organization = taken.organization;
    Ok(Ok(Grant {
        user: taken.user,
        organization,
        is_user: true,
        scopes,
        family: Some(taken.family),
        ..Grant::default()
    }))
}

/// A code counts once; one that comes again ends what was issued for it (RFC 6749 §4.1.2).
pub(super) fn code(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    const INVALID: &str = "Invalid authorization code received from token request";
    let Some(sent) = fields.get("code") else { return missing("code") };
    let hash = random::sha256(sent.as_bytes());
    let (ticket, ended) = control.store.change(|tx| {
        let Some(mut ticket) = tx.ticket(TicketKind::Code, &hash)?.filter(|ticket| ticket.client == client.id) else {
            return Ok((None, Vec::new()));
        };
        if ticket.state == "USED" {
            return Ok((None, tx.end_family(ticket.text("family"))?));
        }
        ticket.state = "USED".to_owned();
        tx.update_ticket(&ticket)?;
        Ok((Some(ticket), Vec::new()))
    })?;
    control.end_tokens(&ended);
    // A used code is kept for longer than it is valid.
    let Some(ticket) = ticket.filter(|ticket| ticket.number("valid_until") > now()) else {
        return invalid_grant(INVALID);
    };
    let redirect = ticket.text("redirect_uri");
    if (ticket.document.get("redirect_given") == Some(&Value::Bool(true)) || fields.get("redirect_uri").is_some())
        && fields.get("redirect_uri") != Some(redirect)
    {
        return invalid_grant("Callback url mismatch");
    }
    if !proves(ticket.text("challenge"), ticket.text("method"), fields.get("code_verifier").unwrap_or_default()) {
        return invalid_grant("PKCE validation failed");
    }
    let Some(user) = user_of(control, &ticket.user)? else { return invalid_grant(INVALID) };
    let scopes = granted_scopes(control, &user.organization, &user.roles, ticket.text("scope"))?;
    let mut grant = of_user(&user, scopes);
    grant.family = Some(ticket.text("family").to_owned());
    grant.id_claims.push(("auth_time", ticket.number("auth_time").into()));
    if !ticket.text("nonce").is_empty() {
        grant.id_claims.push(("nonce", ticket.text("nonce").into()));
    }
    Ok(Ok(grant))
}

/// Whether a verifier belongs to a challenge (RFC 7636 §4.6). A verifier without a challenge is refused: the code was
/// requested without PKCE, so another client may have injected it.
fn proves(challenge: &str, method: &str, verifier: &str) -> bool {
    if challenge.is_empty() {
        return verifier.is_empty();
    }
    let is_well_formed = (43..=128).contains(&verifier.len())
        && verifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let computed = match method {
        "S256" => URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())),
        _ => verifier.to_owned(),
    };
    is_well_formed && random::is_same(computed.as_bytes(), challenge.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_belongs_to_one_challenge() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(proves(challenge, "S256", verifier));
        assert!(proves(verifier, "plain", verifier));
        assert!(!proves(challenge, "plain", verifier));
        assert!(!proves(challenge, "S256", ""));
        assert!(!proves("", "", verifier));
        assert!(!proves("short", "plain", "short"));
        assert!(proves("", "", ""));
    }
}
