//! The theme of the developer portal, API keys of all users, and the gateways of an environment.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock;
use crate::devportal::api_keys;
use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::publisher::archive;
use crate::route::{Call, Registration};
use crate::schema::{self, Is};
use crate::store::{File, Filter, Kind};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/tenant-theme", theme),
    ("PUT", "/tenant-theme", set_theme),
    ("GET", "/api-keys", list_api_keys),
    ("POST", "/api-keys/revoke", revoke_api_key),
    ("GET", "/environments/{environmentId}/gateways", gateways),
];

/// The largest archive of a theme.
const THEME_BYTES_MAX: usize = 5 << 20;

const THEME: &str = "theme.zip";

/// What the file of a theme belongs to: the organization itself.
fn theme_owner(call: &Call<'_>) -> String {
    format!("theme of {}", call.organization())
}

fn theme(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| tx.file(&theme_owner(call), THEME))?;
    let not_found = || Problem::new(404, 404, "Not Found", "The organization has no theme of its own");
    let file = file.ok_or_else(not_found)?;
    let name = format!("attachment; filename=\"{}.zip\"", call.organization());
    Ok(Response::of_type(200, "application/zip", file.content).with("Content-Disposition", name))
}

fn set_theme(call: &Call<'_>) -> Result<Response, Problem> {
    let content: Bytes = archive::uploaded(call, "file")?.content;
    if content.len() > THEME_BYTES_MAX {
        return Err(Problem::too_large(THEME_BYTES_MAX));
    }
    let read = call.control.host.unzip(content.clone());
    read.map_err(|why| Problem::bad_request(format!("Not an archive: {why}")))?;
    call.control.store.change(|tx| {
        let file = File { path: THEME.to_owned(), media_type: "application/zip".to_owned(), content };
        tx.put_file(call.organization(), &theme_owner(call), &file)?;
        tx.audit(call.organization(), &call.caller.shown(), "update", Kind::Setting, "theme")
    })?;
    Ok(Response::empty(200))
}

fn list_api_keys(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let keys = tx.list(&Filter::new(Kind::ApiKey, call.organization()))?;
        keys.iter().map(|key| api_keys::for_administrator(tx, key)).collect::<Result<Vec<Value>, _>>()
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn revoke_api_key(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, &[("keyUUID", Is::Text)], &["keyUUID"])?;
    api_keys::revoke_by_id(call, text(&given, "keyUUID"))?;
    Ok(Response::empty(200))
}

/// The gateway of this process serves every environment.
fn gateways(call: &Call<'_>) -> Result<Response, Problem> {
    let id = call.id();
    let all = call.control.store.read(|tx| super::environments::all(tx, call.control, call.organization()))?;
    if !all.iter().any(|environment| environment["id"] == id || environment["name"] == id) {
        return Err(Problem::not_found("Environment", id));
    }
    let gateway = json!({
        "gatewayId": call.control.config.hostname, "lastActive": clock::shown(clock::now_ms()), "status": "ACTIVE",
    });
    Ok(Response::json(200, &json!({"count": 1, "list": [gateway]})))
}
