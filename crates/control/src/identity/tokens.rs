//! Access tokens: JWTs of the resident key manager.

use serde_json::{Map, Value, json};

use super::{Caller, shown, users};
use crate::Control;
use crate::clock::now;
use crate::problem::Problem;
use crate::random;
use crate::store::{Object, RefreshToken, Ticket, TicketKind};

/// How long access tokens last unless the application says otherwise.
pub(crate) const ACCESS_S: u64 = 3600;

/// How long refresh tokens last.
pub(crate) const REFRESH_S: u64 = 86_400;

/// An access token.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) token: String,
    pub(crate) id: String,
    pub(crate) ends: u64,
    pub(crate) lasts_s: u64,
}

/// Whom a token is for.
pub(crate) struct Subject<'s> {
    pub(crate) client: &'s Object,
    /// The user with the organization, as `sub` has it.
    pub(crate) user: &'s str,
    /// Whether a user stands behind it, or the client itself.
    pub(crate) is_user: bool,
    pub(crate) scopes: &'s [String],
    /// The lifetime that the request wants.
    pub(crate) lasts_s: Option<u64>,
}

/// Issues an access token.
pub(crate) fn issue(control: &Control, subject: &Subject<'_>) -> Result<Issued, Problem> {
    let Subject { client, user, is_user, scopes, lasts_s } = subject;
    let member = if *is_user { "user_access_token_expiry_time" } else { "application_access_token_expiry_time" };
    let lasts_s = lasts_s.or_else(|| seconds_of(client, member)).filter(|lasts| *lasts > 0).unwrap_or(ACCESS_S);
    let (start, id) = (now(), random::uuid());
    let ends = start.saturating_add(lasts_s);
    let claims = json!({
        "sub": user,
        "aut": if *is_user { "APPLICATION_USER" } else { "APPLICATION" },
        "iss": control.issuer(),
        "aud": client.id,
        "azp": client.id,
        "client_id": client.id,
        "scope": scopes.join(" "),
        "nbf": start,
        "iat": start,
        "exp": ends,
        "jti": id,
    });
    let token = if is_opaque(client) {
        let token = random::secret();
        let mut ticket = Ticket::new(TicketKind::Opaque, &token, ends);
        ticket.client.clone_from(&client.id);
        ticket.user = (*user).to_owned();
        ticket.document = claims.as_object().cloned().unwrap_or_default();
        control.store.change(|tx| tx.add_ticket(&ticket))?;
        token
    } else {
        control.keys.sign("at+jwt", &claims)
    };
    Ok(Issued { token, id, ends, lasts_s })
}

/// A lifetime that a client sets.
pub(crate) fn seconds_of(client: &Object, member: &str) -> Option<u64> {
    let value = client.document.get("additionalProperties")?.get(member)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).filter(|seconds| *seconds > 0)
}

/// Whether a client gets tokens that say nothing by themselves.
fn is_opaque(client: &Object) -> bool {
    ["DEFAULT", "OPAQUE"].iter().any(|name| client.text("tokenType").eq_ignore_ascii_case(name))
}

/// Makes a refresh token, and what is kept of it.
pub(crate) fn refresh(
    client: &Object,
    organization: &str,
    user: &str,
    scope: &str,
    family: &str,
    access: &Issued,
) -> (String, RefreshToken) {
    let token = random::secret();
    let kept = RefreshToken {
        hash: random::sha256(token.as_bytes()),
        organization: organization.to_owned(),
        client: client.id.clone(),
        user: user.to_owned(),
        scope: scope.to_owned(),
        family: family.to_owned(),
        access_id: access.id.clone(),
        access_ends: access.ends,
        ends: now().saturating_add(seconds_of(client, "refresh_token_expiry_time").unwrap_or(REFRESH_S)),
    };
    (token, kept)
}

/// The claims of an access token that is valid now.
pub(crate) fn verify(control: &Control, token: &str) -> Result<Option<Map<String, Value>>, Problem> {
    let claims = if token.contains('.') {
        match control.keys.verified(token) {
            Some(Value::Object(claims)) => claims,
            _ => return Ok(None),
        }
    } else {
        let hash = random::sha256(token.as_bytes());
        match control.store.read(|tx| tx.ticket(TicketKind::Opaque, &hash))? {
            Some(ticket) => ticket.document,
            None => return Ok(None),
        }
    };
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let is_over = claims.get("exp").and_then(Value::as_u64).is_none_or(|ends| ends <= now());
    // API keys and internal keys have the same signature, and are for the gateway only.
    if is_over || claims.contains_key("token_type") || text("iss") != Some(control.issuer()) {
        return Ok(None);
    }
    let Some(id) = text("jti") else { return Ok(None) };
    Ok(if control.store.read(|tx| tx.is_revoked(id))? { None } else { Some(claims) })
}

/// The caller of an access token: the roles are those of now, the scopes those of the token.
pub(crate) fn caller(control: &Control, token: &str) -> Result<Option<Caller>, Problem> {
    let Some(claims) = verify(control, token)? else { return Ok(None) };
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let (subject, scopes) = (text("sub").to_owned(), text("scope").to_owned());
    let found = control.store.read(|tx| {
        let (name, organization) = users::identify(tx, &subject)?;
        users::find(control, tx, &name, &organization)
    })?;
    let Some(caller) = found else { return Ok(None) };
    // A scope that a role lost since does not count any more.
    let system = control.scopes(&caller.organization)?;
    let scopes = scopes.split_whitespace().map(str::to_owned);
    let scopes = scopes.filter(|scope| !system.contains(scope) || caller.has(scope)).collect();
    Ok(Some(Caller { scopes, ..caller }))
}

/// `sub` of a user.
pub(crate) fn subject_of(name: &str, organization: &str) -> String {
    shown(name, organization)
}
