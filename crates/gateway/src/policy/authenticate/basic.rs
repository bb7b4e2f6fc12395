//! Name and password.

use penstock_engine::{Exchange, basic_credentials};

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
    let Some((user, password)) = basic_credentials(value) else { return Attempt::Absent };
    if !knows(&rules.config.security.users, &user, &password) {
        return Attempt::Refused(Refusal::invalid("name or password is wrong"));
    }
    let caller = Caller { token_type: "Basic", subject: user.into(), ..Caller::default() };
    Attempt::Accepted(Accepted { caller: Some(caller), token: None, sent_in: SentIn::Header(name) })
}
