//! Who may do what: basic authentication, tokens, administrators. Nothing is served without.

use std::net::IpAddr;

use penstock_control::{PasswordCost, passwords};
use penstock_engine::{Login, Realm, basic_credentials, is_secret};
use penstock_message::{Headers, Method};

use super::Api;
use super::call::{Refusal, refusal};
use super::users::User;

/// Passwords that are hashed at once: each takes a core and 19 MiB for a moment.
pub(super) const HASHES_AT_ONCE: usize = 2;

/// What a user must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Name and password: the login.
    Password,
    /// Any user, also to change things unless the configuration says that only administrators may.
    User,
    /// An administrator.
    Admin,
    /// Any user to read, an administrator to change.
    AdminToChange,
}

/// The caller of a request that may be made.
pub(super) async fn authenticate(
    api: &Api,
    access: Access,
    method: &Method,
    address: IpAddr,
    headers: &Headers,
) -> Result<User, Refusal> {
    let settings = api.deployer.settings();
    let field = headers.get("authorization").unwrap_or_default();
    let (scheme, credential) = field.split_once(' ').unwrap_or((field, ""));
    let user = if scheme.eq_ignore_ascii_case("bearer") && access != Access::Password {
        let current = |name: &str| api.users.find(&settings.management, name).map(|user| user.password);
        let name = api.tokens.user(credential.trim(), current);
        name.and_then(|name| api.users.find(&settings.management, &name))
    } else if scheme.eq_ignore_ascii_case("basic")
        && (access == Access::Password || settings.management.accepts_passwords)
        && let Some((name, password)) = basic_credentials(field)
    {
        login(api, address, &name, password).await?
    } else {
        None
    };
    let Some(user) = user else { return Err(unauthorized()) };
    let changes = !matches!(method, Method::Get | Method::Head);
    let needs_admin = match access {
        Access::Password => false,
        Access::User => changes && settings.management.read_only_users,
        Access::Admin => true,
        Access::AdminToChange => changes,
    };
    if needs_admin && !user.is_admin() {
        return Err(refusal(403, format!("User {} cannot be authorized", user.name)));
    }
    Ok(user)
}

/// The user of a name and a password. Failed logins are counted; during a back-off the password is not looked at.
async fn login(api: &Api, address: IpAddr, name: &str, password: String) -> Result<Option<User>, Refusal> {
    let logins = &api.state().logins;
    if let Some(left) = logins.back_off(Realm::Management, name, address) {
        let seconds = Login::BackOff(left).retry_after_seconds().unwrap_or(1);
        let mut message = refusal(429, "too many failed logins; try again later");
        message.headers.set("Retry-After", seconds.to_string());
        return Err(message);
    }
    let user = api.users.find(&api.deployer.settings().management, name);
    let is_right = verify(api, user.as_ref().map(|user| user.password.clone()), password).await;
    logins.record(Realm::Management, name, address, is_right);
    Ok(user.filter(|_| is_right))
}

/// Whether a password is the one that is kept. A wrong one costs a hash in every case, so that the time tells neither
/// whether the user exists nor how the password is kept.
pub(super) async fn verify(api: &Api, kept: Option<String>, password: String) -> bool {
    let exists = kept.is_some();
    let kept = kept.unwrap_or_default();
    if !passwords::is_hash(&kept) {
        let is_right = is_secret(kept.as_bytes(), password.as_bytes()) & exists;
        if !is_right {
            hashing(api, move || passwords::hash(&password, PasswordCost::default())).await;
        }
        return is_right;
    }
    hashing(api, move || passwords::is(&password, &kept)).await.unwrap_or_default()
}

/// The hash of a new password.
pub(super) async fn hash(api: &Api, password: String) -> Option<String> {
    hashing(api, move || passwords::hash(&password, PasswordCost::default())).await.flatten()
}

/// Hashes beside the management runtime, whose services must go on.
async fn hashing<T: Send + 'static>(api: &Api, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let _permit = api.hashing.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}

fn unauthorized() -> Refusal {
    let mut message = refusal(401, "name and password of a user, or a token of /management/login, are required");
    message.headers.set("WWW-Authenticate", "Basic realm=\"management\"");
    message
}
