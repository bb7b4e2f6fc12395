//! `/login` and `/logout`.

use penstock_engine::ports::Level;
use serde_json::json;

use super::super::audit;
use super::super::call::{Call, Outcome, ok, refuse};
use super::super::tokens::{NotIssued, TokenPolicy};

/// Issues a token to a user who gave name and password.
pub(crate) fn login(call: &Call<'_>) -> Outcome {
    let settings = call.api.deployer.settings();
    let management = &settings.management;
    let policy = TokenPolicy {
        lifetime: management.token_lifetime,
        tokens_max: management.tokens_max,
        replaces_oldest: management.replaces_oldest_token,
    };
    let password = call.api.users.find(management, call.user).map(|user| user.password).unwrap_or_default();
    match call.api.tokens.issue(call.user, &password, call.is_admin, call.authority, policy) {
        Ok(token) => {
            audit::logged_in(call);
            ok(&json!({ "AccessToken": token }))
        }
        Err(NotIssued::Full) => refuse(500, "Max concurrent access limit exceeded"),
        Err(NotIssued::NoRandomNumbers) => {
            call.api.log(Level::Error, "no token is issued: the system has no random numbers");
            refuse(500, "Error occurred while generating JWT token")
        }
    }
}

/// Ends the token of the request.
pub(crate) fn logout(call: &Call<'_>) -> Outcome {
    let field = call.headers.get("authorization").unwrap_or_default();
    if let Some((scheme, token)) = field.split_once(' ')
        && scheme.eq_ignore_ascii_case("bearer")
    {
        call.api.tokens.revoke(token.trim());
    }
    ok(&json!({}))
}
