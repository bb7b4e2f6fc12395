//! The account of the caller, and what the portal asks besides APIs and applications: organizations, attributes.

use serde_json::{Value, json};

use super::applications;
use crate::http::Response;
use crate::identity::{SUPER_ORGANIZATION, users};
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema::{self, Is};
use crate::store::{Filter, Kind};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/me/change-password", change_password),
    ("GET", "/tenants", organizations),
    ("GET", "/settings/application-attributes", application_attributes),
    ("POST", "/applications/{applicationId}/reset-throttle-policy", reset_throttling),
];

fn change_password(call: &Call<'_>) -> Result<Response, Problem> {
    let needed = ["currentPassword", "newPassword"];
    let given = schema::body(call.request, &[("currentPassword", Is::Text), ("newPassword", Is::Text)], &needed)?;
    let (before, new) = (text(&given, "currentPassword"), text(&given, "newPassword"));
    let name = crate::identity::shown(&call.caller.name, call.organization());
    if users::login(call.control, &name, before, call.request.client)?.is_none() {
        let text = "The current password entered is incorrect";
        return Err(Problem::rejected(901_451, "Current password incorrect", text));
    }
    if let Some(why) = users::weakness(new) {
        return Err(Problem::rejected(901_452, "Password pattern invalid", why));
    }
    let cost = call.control.config.password_cost;
    let ended = call.control.store.change(|tx| {
        tx.audit(call.organization(), &call.caller.shown(), "change-password", Kind::User, &call.caller.name)?;
        users::set_password(tx, call.organization(), &call.caller.name, new, cost)
    })?;
    call.control.end_tokens(&ended.unwrap_or_default());
    Ok(Response::empty(200))
}

/// Organizations in a state, for anyone: the portal lets visitors choose one.
fn organizations(call: &Call<'_>) -> Result<Response, Problem> {
    let state = call.query.get("state").unwrap_or("active");
    let kept = match state {
        "active" => "ACTIVE",
        "inactive" => "INACTIVE",
        other => return Err(Problem::bad_request(format!("`{other}` is neither `active` nor `inactive`"))),
    };
    let others =
        call.control.store.read(|tx| tx.list(&Filter::new(Kind::Organization, SUPER_ORGANIZATION).states(&[kept])))?;
    let first = (state == "active").then(|| SUPER_ORGANIZATION.to_owned());
    let names = first.into_iter().chain(others.into_iter().map(|organization| organization.name));
    let list: Vec<Value> = names.map(|domain| json!({"domain": domain, "status": state})).collect();
    Ok(Response::json(200, &Page::of(&call.query).cut("/tenants", list)))
}

/// Applications have no attributes that an administrator defines.
fn application_attributes(_: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &json!({"count": 0, "list": []})))
}

/// Forgets what a user of an application used of its plan in the present window.
fn reset_throttling(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, &[("userName", Is::Text)], &["userName"])?;
    let application = call.control.store.read(|tx| applications::of_call(tx, call))?;
    call.control.host.reset_application_plan(&application.id, text(&given, "userName"));
    Ok(Response::empty(200))
}
