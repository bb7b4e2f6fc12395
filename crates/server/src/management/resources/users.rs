//! `/users`

use serde_json::json;

use super::super::access;
use super::super::audit::{self, Action};
use super::super::call::{self, Call, Outcome, Refusal, ok, refusal, refuse, text};
use super::super::users::{Refused, User};
use penstock_control::passwords::PASSWORD_BYTES_MAX;

/// The user store of users without a domain.
const PRIMARY: &str = "PRIMARY";

/// Micro Integrator's words for what was refused.
pub(super) fn refused(why: Refused, name: &str) -> Outcome {
    match why {
        Refused::Invalid(why) => refuse(400, format!("Error processing the request. {why}")),
        Refused::Unknown => refuse(404, format!("Requested resource not found. User: {name} cannot be found.")),
        Refused::Configured => {
            refuse(403, format!("`{name}` stands in the configuration of the server and is changed there"))
        }
        Refused::NotKept(why) => refuse(500, format!("nothing was changed: {why}")),
    }
}

/// There is one user store.
pub(super) fn check_domain(domain: Option<&str>) -> Result<(), Refusal> {
    match domain.filter(|domain| !domain.is_empty() && !domain.eq_ignore_ascii_case(PRIMARY)) {
        None => Ok(()),
        Some(domain) => Err(refusal(400, format!("Could not find a user-store for the given domain {domain}"))),
    }
}

pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let settings = call.api.deployer.settings();
    let (users, management) = (&call.api.users, &settings.management);
    let pattern = call.parameter("pattern").unwrap_or_else(|| "*".to_owned());
    let role = call.parameter("role");
    let fits =
        |user: &User| is_like(&user.name, &pattern) && role.as_ref().is_none_or(|role| user.roles.contains(role));
    let found = users.names(management).into_iter().filter_map(|name| users.find(management, &name));
    call::list(call, found.filter(fits).map(|user| json!({ "userId": user.name })))
}

pub(crate) async fn add(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let (Some(name), Some(password)) = (text(&payload, "userId"), text(&payload, "password")) else {
        let text =
            "Error processing the request. Missing one or more of the fields, 'userId', 'password' in the payload.";
        return refuse(400, text);
    };
    check_domain(text(&payload, "domain").as_deref())?;
    let is_admin = text(&payload, "isAdmin").is_some_and(|flag| flag.eq_ignore_ascii_case("true"));
    let hash = new_password(call, password).await?;
    let settings = call.api.deployer.settings();
    if let Err(why) = call.api.users.add(&settings.management, &name, hash, is_admin) {
        return refused(why, &name);
    }
    audit::changed(call, Action::Created, "user", &json!({ "userId": name, "isAdmin": is_admin }));
    ok(&json!({ "userId": name, "status": "Added" }))
}

async fn new_password(call: &Call<'_>, password: String) -> Result<String, Refusal> {
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return Err(refusal(400, format!("a password has 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    access::hash(call.api, password).await.ok_or_else(|| refusal(500, "the password cannot be hashed"))
}

fn find(call: &Call<'_>) -> Result<User, Refusal> {
    check_domain(call.parameter("domain").as_deref())?;
    let settings = call.api.deployer.settings();
    let found = call.api.users.find(&settings.management, call.segment);
    found.ok_or_else(|| refusal(404, format!("Requested resource not found. User: {} cannot be found.", call.segment)))
}

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let user = find(call)?;
    ok(&json!({ "userId": user.name, "isAdmin": user.is_admin(), "roles": user.roles }))
}

pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    let user = find(call)?;
    if user.name == call.user {
        return refuse(
            400,
            "Attempt to delete the logged in user. Operation not allowed. Please login from another user.",
        );
    }
    let settings = call.api.deployer.settings();
    if let Err(why) = call.api.users.delete(&settings.management, &user.name) {
        return refused(why, &user.name);
    }
    audit::changed(call, Action::Deleted, "user", &json!({ "userId": user.name }));
    ok(&json!({ "userId": user.name, "status": "Deleted" }))
}

/// Changes a password: one's own with the old one, that of another user as an administrator.
pub(crate) async fn change(call: &Call<'_>) -> Outcome {
    let user = find(call)?;
    let payload = call.payload()?;
    let (Some(new), Some(again)) = (text(&payload, "newPassword"), text(&payload, "confirmPassword")) else {
        return refuse(400, "New password or re-typed password is missing in the payload.");
    };
    if new != again {
        return refuse(400, "New password and re-typed password does not match.");
    }
    if user.name == call.user {
        let old = text(&payload, "oldPassword").unwrap_or_default();
        if !access::verify(call.api, Some(user.password.clone()), old).await {
            return refuse(400, "Failed to update user password. Please check the current password entered and retry.");
        }
    }
    let hash = new_password(call, new).await?;
    let settings = call.api.deployer.settings();
    if let Err(why) = call.api.users.set_password(&settings.management, &user.name, hash) {
        return refused(why, &user.name);
    }
    audit::changed(call, Action::Updated, "user", &json!({ "userId": user.name }));
    ok(&json!({ "userId": user.name, "status": "User password updated successfully." }))
}

/// Whether a name fits a pattern with `*` for any letters and `?` for one.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < name.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[at] => {
                at += 1;
                of += 1;
            }
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    at = from + 1;
                    of = back + 1;
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_find_names() {
        for (name, pattern, expected) in [
            ("anna", "*", true),
            ("anna", "*n*", true),
            ("anna", "a?na", true),
            ("anna", "anna*", true),
            ("anna", "*b*", false),
            ("anna", "", false),
            ("", "*", true),
        ] {
            assert_eq!(super::is_like(name, pattern), expected, "{name} {pattern}");
        }
    }
}
