//! `/roles`

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, ok, refuse, text};
use super::super::users::Refused;
use super::users::{check_domain, refused};

pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let roles = call.api.users.roles().into_iter().filter(|role| call.finds(role));
    super::super::call::list(call, roles.map(|role| json!({ "role": role })))
}

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    check_domain(call.parameter("domain").as_deref())?;
    let settings = call.api.deployer.settings();
    let (users, management) = (&call.api.users, &settings.management);
    if !users.roles().iter().any(|role| role == call.segment) {
        return unknown_role(call.segment);
    }
    let names = users.names(management).into_iter();
    let has = |name: &String| {
        users.find(management, name).is_some_and(|user| user.roles.iter().any(|role| role == call.segment))
    };
    ok(&json!({ "role": call.segment, "users": names.filter(has).collect::<Vec<_>>() }))
}

fn unknown_role(role: &str) -> Outcome {
    refuse(404, format!("Requested resource not found. Role: {role} cannot be found."))
}

pub(crate) fn add(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    check_domain(text(&payload, "domain").as_deref())?;
    let Some(role) = text(&payload, "role") else {
        return refuse(400, "Error processing the request. Missing role name in the payload");
    };
    if let Err(why) = call.api.users.add_role(&role) {
        return refused(why, &role);
    }
    audit::changed(call, Action::Created, "role", &json!({ "role": role }));
    ok(&json!({ "role": role, "status": "Added" }))
}

pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    check_domain(call.parameter("domain").as_deref())?;
    let role = call.segment;
    match call.api.users.delete_role(role) {
        Ok(()) => {}
        Err(Refused::Unknown) => return unknown_role(role),
        Err(Refused::Configured) => return refuse(403, format!("the role `{role}` cannot be deleted")),
        Err(why) => return refused(why, role),
    }
    audit::changed(call, Action::Deleted, "role", &json!({ "role": role }));
    ok(&json!({ "role": role, "status": "Deleted" }))
}

/// `{"userId": …, "addedRoles": […], "removedRoles": […]}`
pub(crate) fn assign(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    check_domain(text(&payload, "domain").as_deref())?;
    let roles = |name: &str| -> Option<Vec<String>> {
        let texts = |items: &Vec<Value>| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        payload.get(name)?.as_array().map(texts)
    };
    let (given, taken) = (roles("addedRoles"), roles("removedRoles"));
    let (Some(user), true) = (text(&payload, "userId"), given.is_some() || taken.is_some()) else {
        return refuse(
            400,
            "Error processing the request. Missing one or more of the fields, 'userId', 'addedRoles', 'removedRoles' \
             in the payload.",
        );
    };
    let settings = call.api.deployer.settings();
    let (given, taken) = (given.unwrap_or_default(), taken.unwrap_or_default());
    if let Err(why) = call.api.users.assign(&settings.management, &user, &given, &taken) {
        return refused(why, &user);
    }
    let info = json!({ "userId": user, "addedRoles": given, "removedRoles": taken });
    audit::changed(call, Action::Updated, "role", &info);
    ok(&json!({ "userId": user, "status": "Added/removed the roles" }))
}
