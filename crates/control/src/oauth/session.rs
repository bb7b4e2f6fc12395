//! Sessions of browsers: login, the cookie, logout (OpenID Connect RP-Initiated Logout, Session Management).

use serde_json::Value;

use super::authorize::{self, LOGIN, Waiting, redirect};
use super::{fields, pages};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request, Response, encode};
use crate::identity::{clients, tokens, users};
use crate::problem::Problem;
use crate::random;
use crate::store::{Ticket, TicketKind};

/// How long a session lasts, in seconds: a working day.
const SESSION_S: u64 = 8 * 3600;

const COOKIE: &str = "commonAuthId";

/// The session of a browser.
pub(super) struct Session {
    pub(super) hash: String,
    /// The user as `sub` has it.
    pub(super) user: String,
    /// When the user logged in, in seconds since 1970.
    pub(super) started: u64,
}

impl Session {
    /// `session_state` of a response: it changes when the session of the browser does.
    pub(super) fn state(&self, client: &str, redirect_uri: &str) -> String {
        let origin: String = redirect_uri.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let salt = random::hex(&random::bytes::<8>());
        format!("{}.{salt}", random::sha256(format!("{client} {origin} {} {salt}", self.hash).as_bytes()))
    }
}

/// The session of the cookie of a request.
pub(super) fn of(control: &Control, request: &Request) -> Result<Option<Session>, Problem> {
    let Some(secret) = request.cookie(COOKIE).filter(|secret| !secret.is_empty()) else { return Ok(None) };
    let hash = random::sha256(secret.as_bytes());
    let found = control.store.read(|tx| tx.ticket(TicketKind::Session, &hash))?;
    Ok(found.filter(|ticket| ticket.ends > now()).map(|ticket| Session {
        started: ticket.number("started"),
        user: ticket.user,
        hash,
    }))
}

/// The name of the cookie that binds a login to a browser. Two logins at once have two.
fn nonce_name(sealed: &str) -> String {
    format!("sessionNonceCookie-{}", &random::sha256(sealed.as_bytes())[..16])
}

pub(super) fn nonce_cookie(sealed: &str, nonce: &str, lasts_s: u64) -> String {
    format!("{}={nonce}; Path=/; Max-Age={lasts_s}; Secure; HttpOnly; SameSite=Lax", nonce_name(sealed))
}

/// `GET /authenticationendpoint/login.do`.
pub(super) fn login_page(_: &Control, request: &Request) -> Result<Response, Problem> {
    let given = Parameters::parse(&request.query);
    Ok(pages::login(given.get("sessionDataKey").unwrap_or_default(), given.flag("authFailure")))
}

/// `POST /commonauth`: name and password of the login page.
pub(super) fn login(control: &Control, request: &Request) -> Result<Response, Problem> {
    let fields = fields(request);
    let sealed = fields.get("sessionDataKey").unwrap_or_default();
    let nonce = request.cookie(&nonce_name(sealed)).unwrap_or_default();
    let waiting = Waiting::unsealed(control, "login", sealed);
    let Some(_) = waiting.filter(|waiting| random::sha256(nonce.as_bytes()) == waiting.text("browser")) else {
        let text = "The login is not valid any more, or cookies are disabled. Start again at the application.";
        return Ok(pages::message(400, "Login failed", text));
    };
    let (name, password) = (fields.get("username").unwrap_or_default(), fields.get("password").unwrap_or_default());
    let user = match users::login(control, name, password, request.client) {
        Ok(user) => user,
        Err(problem) if problem.status == 429 => return Ok(pages::message(429, "Login failed", &problem.description)),
        Err(problem) => return Err(problem),
    };
    let Some(user) = user else {
        return Ok(redirect(format!("{LOGIN}?sessionDataKey={}&authFailure=true", encode(sealed))));
    };
    // A new secret for each login: one that was set in the browser before counts for nothing.
    let secret = random::secret();
    let mut ticket = Ticket::new(TicketKind::Session, &secret, now() + SESSION_S);
    ticket.user = tokens::subject_of(&user.name, &user.organization);
    ticket.document.insert("started".into(), now().into());
    let before = of(control, request)?;
    control.store.change(|tx| {
        control.sweep_tokens(tx)?;
        if let Some(before) = &before {
            tx.drop_ticket(TicketKind::Session, &before.hash)?;
        }
        tx.add_ticket(&ticket)
    })?;
    let cookie = format!("{COOKIE}={secret}; Path=/; Secure; HttpOnly; SameSite=Lax");
    Ok(redirect(format!("/oauth2/authorize?sessionDataKey={}", encode(sealed)))
        .with("Set-Cookie", cookie)
        .with("Set-Cookie", nonce_cookie(sealed, "", 0)))
}

/// `/oidc/logout`. A client vouches for the logout with an ID token; otherwise the user is asked.
pub(super) fn logout(control: &Control, request: &Request) -> Result<Response, Problem> {
    let given = if request.method == "POST" { fields(request) } else { Parameters::parse(&request.query) };
    // An ID token that has ended still names its client.
    let hint = given.get("id_token_hint").and_then(|hint| control.keys.verified(hint));
    let session = of(control, request)?;
    let is_confirmed = request.method == "POST" && given.get("consent") == Some("approve");
    if hint.is_none() && session.is_some() && !is_confirmed {
        return Ok(pages::confirm_logout());
    }
    if let Some(session) = &session {
        control.store.change(|tx| tx.drop_ticket(TicketKind::Session, &session.hash))?;
    }
    let client = match hint.as_ref().and_then(|hint| hint.get("aud")).and_then(Value::as_str) {
        Some(id) => control.store.read(|tx| clients::find(tx, id))?,
        None => None,
    };
    let target = given.get("post_logout_redirect_uri");
    let response = match client.zip(target).and_then(|(client, target)| authorize::redirect_uri(&client, Some(target)))
    {
        Some(mut target) => {
            if let Some(state) = given.get("state") {
                target.push(if target.contains('?') { '&' } else { '?' });
                target.push_str(&format!("state={}", encode(state)));
            }
            redirect(target)
        }
        None => pages::message(200, "Logged out", "You are logged out."),
    };
    Ok(response.with("Set-Cookie", format!("{COOKIE}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax")))
}
