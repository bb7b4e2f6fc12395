//! The device authorization grant (RFC 8628): a device shows a code, a user types it in a browser.

use serde_json::{Value, json};

use super::token::{DEVICE_CODE, Grant, Granted, granted_scopes, invalid_grant, missing};
use super::{client_or_public, error, fields, grants, invalid_client, pages};
use crate::Control;
use crate::clock::now;
use crate::http::{Parameters, Request, Response};
use crate::identity::clients;
use crate::problem::Problem;
use crate::random;
use crate::store::{Object, Ticket, TicketKind};

/// How long a device may wait, in seconds.
const LASTS_S: u64 = 600;

/// The shortest pause between two requests of a device, in seconds (RFC 8628 §3.2).
const INTERVAL_S: u64 = 5;

/// Devices of one client that wait at once: each is a row in the store.
const WAITING_MAX: usize = 10_000;

/// Letters of user codes: no vowels and nothing that looks like a digit (RFC 8628 §6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// The page where users type codes.
pub(super) const PAGE: &str = "/authenticationendpoint/device.do";

/// `POST /oauth2/device_authorize`.
pub(super) fn authorize(control: &Control, request: &Request) -> Result<Response, Problem> {
    let fields = fields(request);
    let Some(client) = client_or_public(control, request, &fields)? else { return Ok(invalid_client()) };
    if !clients::allows(&client, DEVICE_CODE) {
        return Ok(error(400, "unauthorized_client", "The client may not use the device authorization grant"));
    }
    let (device_code, user_code) = (random::secret(), user_code());
    let mut device = Ticket::new(TicketKind::Device, &device_code, now() + LASTS_S);
    device.client.clone_from(&client.id);
    device.state = "PENDING".to_owned();
    device.document.insert("scope".into(), fields.get("scope").unwrap_or_default().into());
    let mut user = Ticket::new(TicketKind::UserCode, &normalized(&user_code), now() + LASTS_S);
    user.client.clone_from(&client.id);
    user.document.insert("device".into(), device.hash.as_str().into());
    let is_kept = control.store.change(|tx| {
        control.sweep_tokens(tx)?;
        if tx.count_tickets(TicketKind::Device, &client.id)? >= WAITING_MAX {
            return Ok(false);
        }
        Ok(tx.add_ticket(&device)? && tx.add_ticket(&user)?)
    })?;
    if !is_kept {
        return Ok(error(400, "slow_down", "Too many devices wait for authorization"));
    }
    let page = format!("{}{PAGE}", control.base_url());
    let body = json!({
        "device_code": device_code, "user_code": user_code, "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={user_code}"), "expires_in": LASTS_S,
        "interval": INTERVAL_S,
    });
    Ok(Response::json(200, &body).with("Cache-Control", "no-store"))
}

fn user_code() -> String {
    // 240 is the largest multiple of 20 that a byte can have: no letter is likelier than another.
    let mut letters = std::iter::repeat_with(random::bytes::<16>)
        .flatten()
        .filter(|byte| *byte < 240)
        .map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    let mut four = || letters.by_ref().take(4).collect::<String>();
    let first = four();
    format!("{first}-{}", four())
}

/// A user code as it is kept: people leave the hyphen out and type small letters.
fn normalized(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// The page for the code of a device, and what it sends.
pub(super) fn page(control: &Control, request: &Request) -> Result<Response, Problem> {
    let given = if request.method == "POST" { fields(request) } else { Parameters::parse(&request.query) };
    if request.method != "POST" {
        return Ok(pages::device(given.get("user_code").unwrap_or_default(), false));
    }
    let code = given.get("user_code").unwrap_or_default();
    let Some(device) = waiting(control, code)? else { return Ok(pages::device(code, true)) };
    super::authorize::start_device(control, &device)
}

/// The device that waits for a user code.
fn waiting(control: &Control, user_code: &str) -> Result<Option<Ticket>, Problem> {
    let hash = random::sha256(normalized(user_code).as_bytes());
    let found = control.store.read(|tx| {
        let Some(user) = tx.ticket(TicketKind::UserCode, &hash)? else { return Ok(None) };
        tx.ticket(TicketKind::Device, user.text("device"))
    })?;
    Ok(found.filter(|device| device.state == "PENDING" && device.ends > now()))
}

/// Notes the decision of a user.
pub(super) fn decide(
    control: &Control,
    device: &str,
    user: &str,
    scopes: &[String],
    is_approved: bool,
) -> Result<bool, Problem> {
    control.store.change(|tx| {
        let found = tx.ticket(TicketKind::Device, device)?;
        let Some(mut ticket) = found.filter(|ticket| ticket.state == "PENDING" && ticket.ends > now()) else {
            return Ok(false);
        };
        ticket.state = if is_approved { "APPROVED" } else { "DENIED" }.to_owned();
        ticket.user = user.to_owned();
        ticket.document.insert("granted".into(), scopes.join(" ").into());
        tx.update_ticket(&ticket)?;
        Ok(true)
    })
}

/// What became of the request of a device.
enum Poll {
    Unknown,
    Early,
    Is(Ticket),
}

pub(super) fn grant(control: &Control, fields: &Parameters, client: &Object) -> Granted {
    let Some(code) = fields.get("device_code") else { return missing("device_code") };
    let hash = random::sha256(code.as_bytes());
    let poll = control.store.change(|tx| {
        let Some(mut ticket) = tx.ticket(TicketKind::Device, &hash)?.filter(|ticket| ticket.client == client.id) else {
            return Ok(Poll::Unknown);
        };
        if ticket.state != "PENDING" {
            tx.drop_ticket(TicketKind::Device, &hash)?;
            return Ok(Poll::Is(ticket));
        }
        let is_early = now() < ticket.number("polled") + INTERVAL_S;
        ticket.document.insert("polled".into(), Value::from(now()));
        tx.update_ticket(&ticket)?;
        Ok(if is_early { Poll::Early } else { Poll::Is(ticket) })
    })?;
    let refused = |code: &str, text: &str| Ok(Err(error(400, code, text)));
    let ticket = match poll {
        Poll::Unknown => return invalid_grant("The device code is not known"),
        Poll::Early => return refused("slow_down", "The device polls too often"),
        Poll::Is(ticket) if ticket.ends <= now() => return refused("expired_token", "The device code has expired"),
        Poll::Is(ticket) => ticket,
    };
    match ticket.state.as_str() {
        "PENDING" => refused("authorization_pending", "The user has not authorized the device yet"),
        "DENIED" => refused("access_denied", "The user denied the request"),
        _ => {
            let Some(user) = grants::user_of(control, &ticket.user)? else {
                return invalid_grant("The user does not exist");
            };
            let scopes = granted_scopes(control, &user.organization, &user.roles, ticket.text("granted"))?;
            let organization = user.organization;
            let family = Some(random::uuid());
            Ok(Ok(Grant { user: ticket.user, organization, is_user: true, scopes, family, ..Grant::default() }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_codes_can_be_typed() {
        let code = user_code();
        assert_eq!(code.len(), 9);
        assert_eq!(normalized(&code).len(), 8);
        assert_eq!(normalized(&code.to_lowercase().replace('-', " ")), normalized(&code));
    }
}
