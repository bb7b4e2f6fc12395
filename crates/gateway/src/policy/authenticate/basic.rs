//! Name and password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::Exchange;

use super::{Accepted, Attempt, Authenticate, SentIn};
use crate::context::{CallContext, Caller};
use crate::security::{Refusal, knows};

/// Looks for them.
pub(super) fn attempt<'r>(
    rules: &'r Authenticate,
    exchange: &mut Exchange,
    _context: &CallContext,
    _may_fetch: bool,
) -> Attempt<'r> {
    if !rules.basic {
        return Attempt::Absent;
    }
    let name = &rules.authorization_header;
    let Some(value) = exchange.message.headers.get(name) else { return Attempt::Absent };
    let Some((user, password)) = credentials(value) else { return Attempt::Absent };
    if !knows(&rules.config.security.users, &user, &password) {
        return Attempt::Refused(Refusal::invalid("name or password is wrong"));
    }
    let caller = Caller { token_type: "Basic", subject: user.into(), ..Caller::default() };
    Attempt::Accepted(Accepted { caller: Some(caller), token: None, sent_in: SentIn::Header(name) })
}

/// Name and password of `Basic …` (RFC 7617).
pub(crate) fn credentials(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    decoded.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}
