//! Applications of all users, and what else an administrator asks for.

use serde_json::{Value, json};

use crate::clock;
use crate::devportal::applications::remove;
use crate::http::Response;
use crate::identity::{shown, users};
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Api, Call, Registration};
use crate::schema::{self, Is};
use crate::store::{Filter, Kind, Object};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/applications", list),
    ("GET", "/applications/{applicationId}", get),
    ("DELETE", "/applications/{applicationId}", delete),
    ("POST", "/applications/{applicationId}/change-owner", change_owner),
    ("GET", "/settings", settings),
    ("HEAD", "/roles/{roleId}", |call| crate::publisher::scopes::role_exists(call)),
    ("POST", "/applications/{applicationId}/change-settings", change_settings),
];

fn info(application: &Object) -> Value {
    json!({
        "applicationId": application.id, "name": application.name,
        "owner": shown(&application.owner, &application.organization), "tokenType": "JWT",
        "createdTime": clock::shown(application.created_ms), "keyManagers": [], "status": "APPROVED", "groupId": "",
    })
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let body = call.control.store.read(|tx| {
        let mut filter = Filter::new(Kind::Application, call.organization());
        if let Some(user) = call.query.get("user") {
            filter = filter.owner(&users::identify(tx, user)?.0);
        }
        if let Some(name) = call.query.get("name") {
            filter = filter.name_contains(name);
        }
        let total = tx.count(&filter)?;
        let entries = tx.list(&filter.page(page.offset, page.limit))?;
        Ok(page.body("/applications", &[], entries.iter().map(info).collect(), total))
    })?;
    Ok(Response::json(200, &body))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let found = tx.get(Kind::Application, call.organization(), call.id())?;
        let found = found.ok_or_else(|| Problem::not_found("Application", call.id()))?;
        crate::devportal::applications::info(tx, &found)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_access(|tx| {
        let found = tx.get(Kind::Application, call.organization(), call.id())?;
        let found = found.ok_or_else(|| Problem::not_found("Application", call.id()))?;
        remove(tx, &found)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Application, &found.id)
    })?;
    Ok(Response::empty(200))
}

fn change_owner(call: &Call<'_>) -> Result<Response, Problem> {
    set_owner(call, call.needed("owner")?)?;
    Ok(Response::empty(200))
}

/// Changes the owner; the type of tokens is set by the owner.
fn change_settings(call: &Call<'_>) -> Result<Response, Problem> {
    let members = &[("owner", Is::Text), ("tokenType", Is::OneOf(&["JWT"]))];
    let given = schema::body(call.request, members, &[])?;
    match text(&given, "owner") {
        "" => {}
        owner => set_owner(call, owner)?,
    }
    get(call)
}

fn set_owner(call: &Call<'_>, owner: &str) -> Result<(), Problem> {
    call.control.change_access(|tx| {
        let found = tx.get(Kind::Application, call.organization(), call.id())?;
        let mut found = found.ok_or_else(|| Problem::not_found("Application", call.id()))?;
        let (owner, organization) = users::identify(tx, owner)?;
        if organization != call.organization() || tx.find(Kind::User, &organization, &owner)?.is_none() {
            // API Manager's own tests expect this status.
            return Err(Problem::new(500, 900_967, "General Error", format!("There is no user {owner}")));
        }
        found.unique_key = Some(format!("{owner}/{}", found.name.to_lowercase()));
        found.owner.clone_from(&owner);
        let taken = || Problem::conflict(900_301, "The application already exists.", "The owner has one of this name");
        tx.update(&mut found)?.ok_or_else(taken)?;
        for kind in [Kind::Subscription, Kind::KeyMapping] {
            for mut part in tx.list(&Filter::new(kind, call.organization()).parent(&found.id))? {
                part.owner.clone_from(&owner);
                tx.update(&mut part)?;
                if let Some(mut client) = tx.get(Kind::Client, call.organization(), &part.target)? {
                    client.owner.clone_from(&owner);
                    tx.update(&mut client)?;
                }
            }
        }
        tx.audit(call.organization(), &call.caller.shown(), "change-owner", Kind::Application, &found.id)
    })
}

fn settings(call: &Call<'_>) -> Result<Response, Problem> {
    let body = json!({
        "scopes": call.control.routes.scopes_of(Api::Admin), "gatewayTypes": ["Regular"],
        "IsJWTEnabledForLoginTokens": true, "orgAccessControlEnabled": false, "keyManagerConfiguration": super::key_managers::forms(),
        "gatewayConfiguration": [], "analyticsEnabled": false, "transactionCounterEnable": false,
        "isGatewayNotificationEnabled": false,
    });
    Ok(Response::json(200, &body))
}
