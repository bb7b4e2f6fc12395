//! Users: name, password, roles.

use serde_json::{Map, Value, json};

use super::passwords::{self, PASSWORD_BYTES_MAX, PasswordCost};
use super::{Caller, SUPER_ORGANIZATION, split_name};
use crate::Control;
use crate::host::Login;
use crate::problem::Problem;
use crate::store::{Filter, Kind, Object, Transaction};

/// The role of everyone who has an account.
const EVERYONE: &str = "Internal/everyone";

/// Shorter passwords are refused for users that are added; the administrator of a demonstration is the exception.
const PASSWORD_CHARS_MIN: usize = 5;

/// Adds a user; `None` when the name is taken.
pub(crate) fn add(
    tx: &Transaction<'_>,
    organization: &str,
    name: &str,
    password: &str,
    roles: &[String],
    cost: PasswordCost,
) -> Result<Option<()>, Problem> {
    let hash = passwords::hash(password, cost).ok_or_else(|| Problem::bad_request("the password is too long"))?;
    let mut document = Map::new();
    document.insert("password".into(), hash.into());
    document.insert("roles".into(), json!(roles));
    tx.insert(&Object::new(Kind::User, organization, name, document).keyed(name))
}

/// Whether a user may log in: an administrator can disable an account.
pub(crate) fn is_active(user: &Object) -> bool {
    user.document.get("active") != Some(&Value::Bool(false))
}

/// Why a password is refused for an account; `None` for one that is not.
pub(crate) fn weakness(password: &str) -> Option<String> {
    if password.chars().count() < PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return Some(format!("A password has {PASSWORD_CHARS_MIN} to {PASSWORD_BYTES_MAX} characters"));
    }
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    password.contains(is_blank).then(|| "A password must not contain blanks".to_owned())
}

/// Gives a user a role, or takes it.
pub(crate) fn set_role(user: &mut Object, role: &str, has: bool) {
    let mut roles = texts(user.document.get("roles"));
    roles.retain(|known| !known.eq_ignore_ascii_case(role));
    if has {
        roles.push(role.to_owned());
    }
    user.set("roles", json!(roles));
}

/// The users of an organization that have a role.
pub(crate) fn with_role(tx: &Transaction<'_>, organization: &str, role: &str) -> Result<Vec<Object>, Problem> {
    let mut users = tx.list(&Filter::new(Kind::User, organization))?;
    users.retain(|user| user.texts("roles").iter().any(|known| known.eq_ignore_ascii_case(role)));
    Ok(users)
}

/// The roles of a user.
pub(crate) fn roles(user: &Object) -> Vec<String> {
    let mut roles: Vec<String> = user.texts("roles").into_iter().map(str::to_owned).collect();
    roles.push(EVERYONE.to_owned());
    roles
}

/// Name and organization of a user name.
pub(crate) fn identify(tx: &Transaction<'_>, name: &str) -> Result<(String, String), Problem> {
    let domain = name.rsplit_once('@').map_or("", |(_, domain)| domain);
    let is_known = match domain {
        "" | SUPER_ORGANIZATION => false,
        domain => tx.find(Kind::Organization, SUPER_ORGANIZATION, domain)?.is_some_and(|found| found.state == "ACTIVE"),
    };
    let (name, organization) = split_name(name, |_| is_known);
    Ok((name.to_owned(), organization.to_owned()))
}

/// A user by name, with the roles and all scopes of these.
pub(crate) fn find(
    control: &Control,
    tx: &Transaction<'_>,
    name: &str,
    organization: &str,
) -> Result<Option<Caller>, Problem> {
    let Some(user) = tx.find(Kind::User, organization, name)?.filter(is_active) else { return Ok(None) };
    let roles = roles(&user);
    let scopes = control.scopes(organization)?.of_roles(&roles);
    Ok(Some(Caller { name: user.name, organization: user.organization, roles, scopes }))
}

/// The user of a name and a password. Failures are counted, and an unknown name costs as much time as a wrong password.
pub(crate) fn login(
    control: &Control,
    name: &str,
    password: &str,
    client: std::net::IpAddr,
) -> Result<Option<Caller>, Problem> {
    let (name, organization) = control.store.read(|tx| identify(tx, name))?;
    let user = control.store.read(|tx| tx.find(Kind::User, &organization, &name))?;
    let kept = user.as_ref().map_or(control.no_password.as_str(), |user| user.text("password"));
    let account = format!("{name}@{organization}");
    let is_active = user.as_ref().is_some_and(is_active);
    match control.host.login(&account, client, &mut || passwords::is(password, kept) && is_active) {
        Login::Accepted => control.store.read(|tx| find(control, tx, &name, &organization)),
        Login::Refused => Ok(None),
        Login::BackOff(seconds) => {
            let mut problem = Problem::new(429, 429, "Too Many Requests", "Too many failed logins; try again later");
            problem.errors.push(("retry_after_s".to_owned(), seconds.to_string()));
            Err(problem)
        }
    }
}

/// Replaces the password of a user: the access tokens that ended with it, for the gateway; `None` when there is no such user.
pub(crate) fn set_password(
    tx: &Transaction<'_>,
    organization: &str,
    name: &str,
    password: &str,
    cost: PasswordCost,
) -> Result<Option<Vec<(String, u64)>>, Problem> {
    let Some(mut user) = tx.find(Kind::User, organization, name)? else { return Ok(None) };
    let hash = passwords::hash(password, cost).ok_or_else(|| Problem::bad_request("the password is too long"))?;
    user.set("password", hash);
    tx.update(&mut user)?;
    // What was issued for the old password must not outlive it.
    tx.end_tokens_of_user(organization, name).map(Some)
}

/// The roles that a role list of a body names and that do not exist.
pub(crate) fn unknown_roles(tx: &Transaction<'_>, organization: &str, roles: &[&str]) -> Result<Vec<String>, Problem> {
    let mut unknown = Vec::new();
    for role in roles {
        let is_standard = super::scopes::ROLES.iter().any(|known| known.eq_ignore_ascii_case(role));
        if !is_standard && tx.find(Kind::Role, organization, &role.to_lowercase())?.is_none() {
            unknown.push((*role).to_owned());
        }
    }
    Ok(unknown)
}

/// A role's name in base64url, as paths have it.
pub(crate) fn decode_name(encoded: &str) -> Option<String> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('='));
    let bytes =
        bytes.or_else(|_| base64::engine::general_purpose::STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')));
    String::from_utf8(bytes.ok()?).ok()
}

/// The texts of a list.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
