//! Users and groups as resources of SCIM.

use serde_json::{Map, Value, json};

use crate::Control;
use crate::identity::users;
use crate::problem::Problem;
use crate::store::{Kind, Object, Transaction};

const USER_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const GROUP_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";

/// Attributes of users that are kept as they come.
pub(super) const ATTRIBUTES: [&str; 16] = [
    "name",
    "displayName",
    "nickName",
    "profileUrl",
    "title",
    "userType",
    "preferredLanguage",
    "locale",
    "timezone",
    "externalId",
    "emails",
    "phoneNumbers",
    "ims",
    "photos",
    "addresses",
    "entitlements",
];

/// The users that have a role.
pub(super) fn members(tx: &Transaction<'_>, role: &Object) -> Result<Vec<Object>, Problem> {
    users::with_role(tx, &role.organization, &role.name)
}

/// A user or a group.
pub(super) fn body(control: &Control, tx: &Transaction<'_>, object: &Object) -> Result<Value, Problem> {
    let is_user = object.kind == Kind::User;
    let at = |resource: &str, id: &str| format!("{}/scim2/{resource}/{id}", control.base_url());
    let time = |time_ms: i64| format!("{}Z", crate::clock::shown(time_ms).replace(' ', "T"));
    let meta = json!({
        "resourceType": if is_user { "User" } else { "Group" },
        "location": at(if is_user { "Users" } else { "Groups" }, &object.id),
        "created": time(object.created_ms), "lastModified": time(object.updated_ms),
        "version": format!("W/\"{}\"", object.version),
    });
    if !is_user {
        let member = |user: &Object| json!({"value": user.id, "display": user.name, "$ref": at("Users", &user.id)});
        let members: Vec<Value> = members(tx, object)?.iter().map(member).collect();
        return Ok(json!({
            "schemas": [GROUP_SCHEMA], "id": object.id, "displayName": object.name, "members": members, "meta": meta,
        }));
    }
    let mut groups = Vec::new();
    let mut roles = Vec::new();
    for role in object.texts("roles") {
        let known = tx.find(Kind::Role, &object.organization, &role.to_lowercase())?;
        if let Some(known) = known {
            groups.push(json!({"value": known.id, "display": role, "$ref": at("Groups", &known.id)}));
        }
        roles.push(json!({"value": role, "display": role}));
    }
    let mut body = json!({
        "schemas": [USER_SCHEMA], "id": object.id, "userName": object.name, "active": users::is_active(object),
        "groups": groups, "roles": roles, "meta": meta,
    });
    if let Some(kept) = object.document.get("attributes").and_then(Value::as_object) {
        kept.iter().for_each(|(name, value)| body[name] = value.clone());
    }
    Ok(body)
}

/// Sets what a body gives of a user or a group. The password is not among it.
pub(super) fn replace(tx: &Transaction<'_>, object: &mut Object, given: &Map<String, Value>) -> Result<(), Problem> {
    if object.kind != Kind::User {
        let Some(wanted) = given.get("members").and_then(Value::as_array) else { return Ok(()) };
        let wanted: Vec<String> =
            wanted.iter().filter_map(|member| member.get("value")?.as_str().map(str::to_owned)).collect();
        return set_members(tx, object, &wanted);
    }
    let mut kept = object.document.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, value) in given.iter().filter(|(name, _)| ATTRIBUTES.contains(&name.as_str())) {
        match value {
            Value::Null => drop(kept.shift_remove(name)),
            value => drop(kept.insert(name.clone(), value.clone())),
        }
    }
    object.set("attributes", kept);
    if let Some(active) = given.get("active").and_then(Value::as_bool) {
        object.set("active", active);
    }
    tx.update(object)?;
    Ok(())
}

/// Gives a role to these users, by their ids, and to no others.
pub(super) fn set_members(tx: &Transaction<'_>, role: &Object, wanted: &[String]) -> Result<(), Problem> {
    let set = |mut user: Object, has: bool| {
        users::set_role(&mut user, &role.name, has);
        tx.update(&mut user).map(|_| ())
    };
    let present = members(tx, role)?;
    for user in present.iter().filter(|user| !wanted.contains(&user.id)) {
        set(user.clone(), false)?;
    }
    for id in wanted.iter().filter(|id| present.iter().all(|user| user.id != **id)) {
        let user = tx.get(Kind::User, &role.organization, id)?;
        set(user.ok_or_else(|| Problem::bad_request(format!("There is no user {id}")))?, true)?;
    }
    Ok(())
}
