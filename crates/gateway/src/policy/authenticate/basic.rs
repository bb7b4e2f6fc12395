//! Name and password.

use penstock_engine::{Exchange, Realm, basic_credentials};

use super::{Accepted, Attempt, Authenticate, SentIn};
use crate::CallContext;
use crate::caller::Caller;
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
    let Some((user, password)) = basic_credentials(value) else { return Attempt::Absent };
    let logins = exchange.core().environment.users.logins.clone();
    let login = logins.attempt(Realm::Gateway, &user, exchange.client.address, || {
        knows(&rules.config.security.users, &user, &password)
    });
    if !login.is_accepted() {
        if let Some(seconds) = login.retry_after_seconds() {
            exchange.reply_headers.append("Retry-After", seconds.to_string());
        }
        return Attempt::Refused(Refusal::invalid("name or password is wrong"));
    }
    let caller = Caller { token_type: "Basic", subject: user.into(), ..Caller::default() };
    Attempt::Accepted(Accepted { caller: Some(caller), token: None, sent_in: SentIn::Header(name) })
}
