//! The authorization endpoint (RFC 6749 §4.1): from a request over login and consent to a code.
//!
//! A request that waits for a login or a consent is not kept: it travels through the browser, sealed
//! (`Keys::seal`), and a cookie binds it to the browser that began.

use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use super::session::{self, Session};
use super::token::granted_scopes;
use super::{device, fields, grants, pages};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request, Response, encode};
use crate::identity::{clients, tokens};
use crate::problem::Problem;
use crate::random;
use crate::store::{Object, Ticket, TicketKind};

/// How long a code is valid, in seconds.
const CODE_S: u64 = 300;

/// How long a used code is kept, so that a replay is noticed, in seconds: as long as refresh tokens last.
const USED_CODE_S: u64 = tokens::REFRESH_S;

/// How long a request may wait for the user, in seconds.
const WAITING_S: u64 = 900;

/// The longest query of a request: it travels through the browser three times.
const QUERY_BYTES_MAX: usize = 4096;

/// The largest compiled expression of a callback.
const EXPRESSION_BYTES_MAX: usize = 1 << 16;

/// Ten years, in seconds: a consent that was given for good.
const CONSENT_S: u64 = 3650 * 86_400;

pub(super) const LOGIN: &str = "/authenticationendpoint/login.do";
pub(super) const CONSENT: &str = "/authenticationendpoint/oauth2_consent.do";

/// A redirect that sets no cookie.
pub(super) fn redirect(location: impl Into<String>) -> Response {
    Response::empty(302).with("Location", location).with("Cache-Control", "no-store")
}

fn refused(text: &str) -> Result<Response, Problem> {
    Ok(pages::message(400, "Request refused", text))
}

/// An authorization request that was checked.
pub(super) struct Waiting(Map<String, Value>);

impl Waiting {
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    fn sealed(&self, control: &Control, purpose: &str) -> String {
        control.keys.seal(purpose, &Value::Object(self.0.clone()).to_string())
    }

    /// What was sealed, unless it is too old.
    pub(super) fn unsealed(control: &Control, purpose: &str, sealed: &str) -> Option<Waiting> {
        let text = control.keys.unseal(purpose, sealed)?;
        let waiting = Waiting(serde_json::from_str(&text).ok()?);
        (waiting.number("ends") > now()).then_some(waiting)
    }

    /// The client's address with parameters.
    fn callback(&self, parameters: &[(&str, &str)]) -> Response {
        let mut location = self.text("redirect_uri").to_owned();
        let state = Some(("state", self.text("state"))).filter(|(_, state)| !state.is_empty());
        for (name, value) in parameters.iter().copied().chain(state) {
            location.push(if location.contains('?') { '&' } else { '?' });
            location.push_str(&format!("{name}={}", encode(value)));
        }
        redirect(location)
    }

    fn error(&self, code: &str, description: &str) -> Response {
        self.callback(&[("error", code), ("error_description", description)])
    }
}

/// `GET /oauth2/authorize`, and `POST` with a consent or with the request itself (OpenID Connect Core §3.1.2.1).
pub(super) fn respond(control: &Control, request: &Request) -> Result<Response, Problem> {
    let given = if request.method == "POST" { fields(request) } else { Parameters::parse(&request.query) };
    if let Some(sealed) = given.get("sessionDataKeyConsent") {
        return decided(control, request, sealed, given.get("consent").unwrap_or_default());
    }
    let session = session::of(control, request)?;
    if let Some(sealed) = given.get("sessionDataKey") {
        let Some(waiting) = Waiting::unsealed(control, "login", sealed) else {
            return refused("The login took too long. Start again at the application.");
        };
        return match session {
            Some(session) if session.started >= waiting.number("login_after") => proceed(control, waiting, &session),
            _ => Ok(login(control, waiting)),
        };
    }
    if request.query.len().max(request.body.len()) > QUERY_BYTES_MAX {
        return refused("The request is too long.");
    }
    let waiting = match checked(control, &given)? {
        Ok(waiting) => waiting,
        Err(response) => return Ok(response),
    };
    match session {
        Some(session) if session.started >= waiting.number("login_after") => proceed(control, waiting, &session),
        _ if waiting.text("prompt") == "none" => Ok(waiting.error("login_required", "Authentication is required")),
        _ => Ok(login(control, waiting)),
    }
}

/// Checks a request. Errors of client and address are shown to the user; only then the address can be trusted with errors.
fn checked(control: &Control, given: &Parameters) -> Result<Result<Waiting, Response>, Problem> {
    let shown = |text: &str| refused(text).map(Err);
    let Some(id) = given.get("client_id") else { return shown("The parameter `client_id` is missing.") };
    let Some(client) = control.store.read(|tx| clients::find(tx, id))? else {
        return shown("The application is not registered.");
    };
    let Some(redirect_uri) = redirect_uri(&client, given.get("redirect_uri")) else {
        return shown("The address to return to is not registered for the application.");
    };
    let text = |name: &str| given.get(name).unwrap_or_default();
    let method = given.get("code_challenge_method").unwrap_or("plain");
    let mut waiting = Waiting(Map::new());
    for (name, value) in [
        ("client", client.id.as_str()),
        ("redirect_uri", &redirect_uri),
        ("scope", text("scope")),
        ("state", text("state")),
        ("nonce", text("nonce")),
        ("prompt", text("prompt")),
        ("challenge", text("code_challenge")),
        ("method", method),
    ] {
        waiting.0.insert(name.to_owned(), value.into());
    }
    waiting.0.insert("redirect_given".into(), given.get("redirect_uri").is_some().into());
    waiting.0.insert("ends".into(), (now() + WAITING_S).into());
    // A login that must be fresh, or not older than `max_age`.
    let login_after = match (text("prompt"), given.number("max_age")) {
        ("login", _) => now(),
        (_, Some(age)) => now().saturating_sub(age as u64),
        _ => 0,
    };
    waiting.0.insert("login_after".into(), login_after.into());
    let invalid = |code: &str, text: &str| Ok(Err(waiting.error(code, text)));
    if text("response_type") != "code" {
        return invalid("unsupported_response_type", "The response type must be code");
    }
    if !clients::allows(&client, "authorization_code") {
        return invalid("unauthorized_client", "The client may not use the authorization code grant");
    }
    let is_set = |name: &str| clients::setting_is_true(&client, name);
    let challenge = text("code_challenge");
    if challenge.is_empty() && (is_set("pkceMandatory") || is_set("bypassClientCredentials")) {
        return invalid("invalid_request", "PKCE is mandatory for this application");
    }
    let is_challenge = (43..=128).contains(&challenge.len()) && challenge.bytes().all(|byte| byte.is_ascii_graphic());
    match method {
        _ if challenge.is_empty() => {}
        _ if !is_challenge => return invalid("invalid_request", "The code challenge is not valid"),
        "S256" => {}
        "plain" if is_set("pkceSupportPlain") => {}
        _ => return invalid("invalid_request", "The application does not support this code challenge method"),
    }
    Ok(Ok(waiting))
}

/// The address to return to: one that is registered. A registration may be an expression, `regexp=(a|b)`.
pub(super) fn redirect_uri(client: &Object, asked: Option<&str>) -> Option<String> {
    let registered = client.text("callbackUrl");
    let Some(asked) = asked else {
        return (!registered.is_empty() && !registered.starts_with("regexp=")).then(|| registered.to_owned());
    };
    let scheme = asked.split(':').next().unwrap_or_default().to_ascii_lowercase();
    // Browsers run these in the page that redirects; a fragment hides what is appended (RFC 6749 §3.1.2).
    let is_unsafe = ["javascript", "data", "vbscript"].contains(&scheme.as_str())
        || asked.contains('#')
        || !asked.bytes().all(|byte| byte.is_ascii_graphic());
    let is_registered = match registered.strip_prefix("regexp=") {
        Some(expression) => {
            let anchored = RegexBuilder::new(&format!("^(?:{expression})$")).size_limit(EXPRESSION_BYTES_MAX).build();
            anchored.is_ok_and(|expression| expression.is_match(asked))
        }
        None => !registered.is_empty() && registered == asked,
    };
    (is_registered && !is_unsafe).then(|| asked.to_owned())
}

/// Sends the browser to the login page, with a cookie that binds the request to it.
fn login(control: &Control, mut waiting: Waiting) -> Response {
    let nonce = random::secret();
    waiting.0.insert("browser".into(), random::sha256(nonce.as_bytes()).into());
    let sealed = waiting.sealed(control, "login");
    let cookie = session::nonce_cookie(&sealed, &nonce, WAITING_S);
    redirect(format!("{LOGIN}?sessionDataKey={}", encode(&sealed))).with("Set-Cookie", cookie)
}

/// Begins the login for a device.
pub(super) fn start_device(control: &Control, device: &Ticket) -> Result<Response, Problem> {
    let mut waiting = Waiting(Map::new());
    waiting.0.insert("client".into(), device.client.as_str().into());
    waiting.0.insert("device".into(), device.hash.as_str().into());
    waiting.0.insert("scope".into(), device.text("scope").into());
    waiting.0.insert("ends".into(), device.ends.into());
    Ok(login(control, waiting))
}

/// Continues after the login: consent, or the code.
fn proceed(control: &Control, mut waiting: Waiting, session: &Session) -> Result<Response, Problem> {
    let found = control.store.read(|tx| clients::find(tx, waiting.text("client")))?;
    let (Some(client), Some(user)) = (found, grants::user_of(control, &session.user)?) else {
        return refused("The application or the account does not exist any more.");
    };
    let scopes = granted_scopes(control, &user.organization, &user.roles, waiting.text("scope"))?;
    let is_device = !waiting.text("device").is_empty();
    // A registered client of the user or of an administrator needs no consent; the consent of a device is its confirmation.
    let owner = tokens::subject_of(&client.owner, &client.organization);
    let is_trusted = client.unique_key.is_some()
        && (owner == session.user || grants::user_of(control, &owner)?.is_some_and(|owner| owner.is_admin()));
    let is_asked = waiting.text("prompt").split(' ').any(|prompt| prompt == "consent");
    let is_known = || consented(control, &client, &session.user, &scopes);
    if !is_device && !is_asked && (is_trusted || is_known()?) {
        return code(control, &waiting, &client, session, &scopes);
    }
    if waiting.text("prompt") == "none" {
        return Ok(waiting.error("consent_required", "Consent is required"));
    }
    waiting.0.insert("session".into(), session.hash.as_str().into());
    waiting.0.insert("granted".into(), scopes.join(" ").into());
    let sealed = waiting.sealed(control, "consent");
    let application = if client.name.is_empty() { &client.id } else { &client.name };
    let query =
        [("application", application.as_str()), ("scope", &scopes.join(" ")), ("sessionDataKeyConsent", &sealed)];
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    Ok(redirect(format!("{CONSENT}?{}", query.join("&"))))
}

/// The page that asks for consent. What it shows is of the sealed request, never of the query beside it.
pub(super) fn consent_page(control: &Control, request: &Request) -> Result<Response, Problem> {
    let given = Parameters::parse(&request.query);
    let sealed = given.get("sessionDataKeyConsent").unwrap_or_default();
    let session = session::of(control, request)?;
    let (Some(waiting), Some(session)) = (Waiting::unsealed(control, "consent", sealed), session) else {
        return refused("The request is not valid any more. Start again at the application.");
    };
    let Some(client) = control.store.read(|tx| clients::find(tx, waiting.text("client")))? else {
        return refused("The application does not exist any more.");
    };
    let granted: Vec<&str> = waiting.text("granted").split_whitespace().collect();
    let may_remember = waiting.text("device").is_empty();
    Ok(pages::consent(sealed, &client.name, &session.user, &granted, may_remember))
}

/// The decision of the user.
fn decided(control: &Control, request: &Request, sealed: &str, decision: &str) -> Result<Response, Problem> {
    let session = session::of(control, request)?;
    let waiting = Waiting::unsealed(control, "consent", sealed);
    let (Some(waiting), Some(session)) = (waiting, session) else {
        return refused("The request is not valid any more. Start again at the application.");
    };
    if request.method != "POST" || waiting.text("session") != session.hash {
        return refused("The request is of another session.");
    }
    let is_approved = matches!(decision, "approve" | "approveAlways");
    let scopes: Vec<String> = waiting.text("granted").split_whitespace().map(str::to_owned).collect();
    let device = waiting.text("device");
    if !device.is_empty() {
        return Ok(match (device::decide(control, device, &session.user, &scopes, is_approved)?, is_approved) {
            (false, _) => pages::message(400, "Code expired", "The code of the device has expired."),
            (true, true) => pages::message(200, "Device connected", "You can return to your device."),
            (true, false) => pages::message(200, "Access denied", "The device gets no access."),
        });
    }
    if !is_approved {
        return Ok(waiting.error("access_denied", "User denied the consent"));
    }
    let Some(client) = control.store.read(|tx| clients::find(tx, waiting.text("client")))? else {
        return refused("The application does not exist any more.");
    };
    if decision == "approveAlways" {
        let mut ticket = consent_ticket(&client, &session.user);
        ticket.document.insert("scopes".into(), json!(scopes));
        control.store.change(|tx| {
            tx.drop_ticket(TicketKind::Consent, &ticket.hash)?;
            tx.add_ticket(&ticket)
        })?;
    }
    code(control, &waiting, &client, &session, &scopes)
}

fn consent_ticket(client: &Object, user: &str) -> Ticket {
    let mut ticket = Ticket::new(TicketKind::Consent, &format!("{} {user}", client.id), now() + CONSENT_S);
    ticket.client.clone_from(&client.id);
    ticket.user = user.to_owned();
    ticket
}

/// Whether a user allowed these scopes to a client for good.
fn consented(control: &Control, client: &Object, user: &str, scopes: &[String]) -> Result<bool, Problem> {
    let hash = consent_ticket(client, user).hash;
    let found = control.store.read(|tx| tx.ticket(TicketKind::Consent, &hash))?;
    let known = found.map(|ticket| crate::identity::users::texts(ticket.document.get("scopes"))).unwrap_or_default();
    Ok(!known.is_empty() && scopes.iter().all(|scope| known.contains(scope)))
}

/// Issues a code.
fn code(
    control: &Control,
    waiting: &Waiting,
    client: &Object,
    session: &Session,
    scopes: &[String],
) -> Result<Response, Problem> {
    let code = random::secret();
    let mut ticket = Ticket::new(TicketKind::Code, &code, now() + CODE_S + USED_CODE_S);
    ticket.client.clone_from(&client.id);
    ticket.user.clone_from(&session.user);
    for name in ["redirect_uri", "redirect_given", "nonce", "challenge", "method"] {
        ticket.document.insert(name.into(), waiting.0.get(name).cloned().unwrap_or_default());
    }
    ticket.document.insert("scope".into(), scopes.join(" ").into());
    ticket.document.insert("auth_time".into(), session.started.into());
    ticket.document.insert("valid_until".into(), (now() + CODE_S).into());
    ticket.document.insert("family".into(), random::uuid().into());
    control.store.change(|tx| {
        control.sweep_tokens(tx)?;
        tx.add_ticket(&ticket)
    })?;
    let state = session.state(&client.id, waiting.text("redirect_uri"));
    Ok(waiting.callback(&[("code", &code), ("session_state", &state)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kind;

    #[test]
    fn an_address_is_registered() {
        let client = |callback: &str| {
            let mut client = Object::new(Kind::Client, "carbon.super", "one", Map::new());
            client.set("callbackUrl", callback);
            client
        };
        for (registered, asked, expected) in [
            ("https://a/cb", Some("https://a/cb"), true),
            ("https://a/cb", Some("https://a/cb/x"), false),
            ("https://a/cb", Some("https://a/cb#x"), false),
            ("https://a/cb", None, true),
            ("regexp=(https://a/in|https://a/out)", Some("https://a/out"), true),
            ("regexp=(https://a/in|https://a/out)", Some("https://a/out.evil"), false),
            ("regexp=(https://a/in|https://a/out)", None, false),
            ("regexp=.*", Some("javascript:alert(1)"), false),
            ("regexp=(", Some("https://a/in"), false),
            ("", Some(""), false),
        ] {
            assert_eq!(redirect_uri(&client(registered), asked).is_some(), expected, "{registered} {asked:?}");
        }
    }
}
