//! The DevOps REST API: log levels of APIs, and correlation logs. They are kept and returned; the gateway does not write these
//! logs.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::{api::text, revisions};
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::settings;
use crate::store::{Filter, Kind, Object, Transaction};

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[OWN];

const OWN: &[Registration] = &[
    ("GET", "/tenant-logs/{tenant}/apis/", list),
    ("GET", "/tenant-logs/{tenant}/apis/{apiId}", get),
    ("PUT", "/tenant-logs/{tenant}/apis/{apiId}", update),
    ("GET", "/config/correlation/", correlation),
    ("PUT", "/config/correlation/", set_correlation),
];

const LEVELS: [&str; 4] = ["OFF", "BASIC", "STANDARD", "FULL"];

/// The member of an API with the levels of its resources: the first one without method and path is the API's own.
const LOG_LEVELS: &str = "logLevels";

/// Resources of one API with a level of their own.
const RESOURCES_MAX: usize = 1000;

const CORRELATION: &str = "correlation";

/// Components of correlation logs.
const COMPONENTS: [&str; 5] = ["http", "ldap", "jdbc", "synapse", "method-calls"];

/// Levels are set by administrators of the first organization, for all.
fn organization<'c>(call: &'c Call<'_>) -> Result<&'c str, Problem> {
    let tenant = call.parameter("tenant");
    if call.organization() != SUPER_ORGANIZATION && call.organization() != tenant {
        return Err(Problem::unauthenticated());
    }
    let is_known = tenant == SUPER_ORGANIZATION
        || call.control.store.read(|tx| tx.find(Kind::Organization, SUPER_ORGANIZATION, tenant))?.is_some();
    if is_known { Ok(tenant) } else { Err(Problem::new(404, 404, "Not Found", format!("No tenant {tenant}"))) }
}

fn levels(api: &Object) -> Vec<Value> {
    api.document.get(LOG_LEVELS).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The path of an API as clients of the gateway have it.
fn context(api: &Object) -> String {
    let context = revisions::versioned_context(api);
    if api.organization == SUPER_ORGANIZATION { context } else { format!("/t/{}{context}", api.organization) }
}

fn entry(api: &Object, level: &Value) -> Value {
    let mut entry = json!({
        "context": context(api), "logLevel": level["logLevel"].as_str().unwrap_or("OFF"), "apiId": api.id,
    });
    for name in ["resourceMethod", "resourcePath"] {
        if let Some(value) = level.get(name).filter(|value| value.is_string()) {
            entry[name] = value.clone();
        }
    }
    entry
}

/// The levels of an API; `OFF` when none was set.
fn entries(api: &Object) -> Vec<Value> {
    let levels = levels(api);
    match levels.iter().any(|level| level.get("resourceMethod").is_none()) {
        true => levels.iter().map(|level| entry(api, level)).collect(),
        false => std::iter::once(entry(api, &json!({}))).chain(levels.iter().map(|level| entry(api, level))).collect(),
    }
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let organization = organization(call)?;
    let wanted = match call.query.get("log-level") {
        None => None,
        Some(level) => Some(known_level(level)?),
    };
    let apis = call.control.store.read(|tx| tx.list(&Filter::new(Kind::Api, organization)))?;
    let mut list: Vec<Value> = apis.iter().flat_map(entries).collect();
    list.retain(|entry| wanted.is_none_or(|wanted| entry["logLevel"] == wanted));
    Ok(Response::json(200, &json!({"apis": list})))
}

fn by_id(tx: &Transaction<'_>, call: &Call<'_>, organization: &str) -> Result<Object, Problem> {
    let id = call.parameter("apiId");
    tx.get(Kind::Api, organization, id)?.ok_or_else(|| Problem::not_found("API", id))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let organization = organization(call)?;
    let api = call.control.store.read(|tx| by_id(tx, call, organization))?;
    Ok(Response::json(200, &json!({"apis": entries(&api)})))
}

fn known_level(given: &str) -> Result<&'static str, Problem> {
    let found = LEVELS.iter().find(|level| level.eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| {
        let text = format!("Log level should be either OFF, BASIC, STANDARD or FULL; it is `{given}`");
        Problem::rejected(901_401, "Bad Request", text)
    })
}

const MEMBERS: Members = &[("logLevel", Is::Text), ("resourceMethod", Is::Text), ("resourcePath", Is::Text)];

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let organization = organization(call)?;
    let given = schema::body(call.request, MEMBERS, &["logLevel"])?;
    let level = known_level(text(&given, "logLevel"))?;
    let (method, path) = (text(&given, "resourceMethod"), text(&given, "resourcePath"));
    if method.is_empty() != path.is_empty() {
        return Err(Problem::bad_request("`resourceMethod` and `resourcePath` are given together"));
    }
    let changed = call.control.store.change(|tx| {
        let mut api = by_id(tx, call, organization)?;
        let mut levels = levels(&api);
        let is_same = |known: &Value| {
            known["resourceMethod"].as_str().unwrap_or_default().eq_ignore_ascii_case(method)
                && known["resourcePath"].as_str().unwrap_or_default() == path
        };
        levels.retain(|known| !is_same(known));
        let mut changed = json!({"logLevel": level});
        if !method.is_empty() {
            changed["resourceMethod"] = method.to_uppercase().into();
            changed["resourcePath"] = path.into();
        }
        if levels.len() >= RESOURCES_MAX {
            return Err(Problem::bad_request(format!("An API has at most {RESOURCES_MAX} log levels")));
        }
        levels.insert(if method.is_empty() { 0 } else { levels.len() }, changed.clone());
        api.set(LOG_LEVELS, levels);
        tx.update(&mut api)?;
        tx.audit(organization, &call.caller.shown(), "set-log-level", Kind::Api, &api.id)?;
        Ok(entry(&api, &changed))
    })?;
    Ok(Response::json(200, &json!({"apis": [changed]})))
}

fn component(own: &Map<String, Value>, name: &str) -> Value {
    let enabled = own.get(name).and_then(|kept| kept.get("enabled")).and_then(Value::as_str).unwrap_or("false");
    let kept = own.get(name).and_then(|kept| kept.get("properties")).filter(|kept| kept.is_array()).cloned();
    let properties = match name {
        "jdbc" => kept.unwrap_or_else(|| {
            json!([{"name": "deniedThreads", "value": [
                "MessageDeliveryTaskThreadPool", "HumanTaskServer", "BPELServer", "CarbonDeploymentSchedulerThread",
            ]}])
        }),
        _ => kept.unwrap_or_else(|| json!([])),
    };
    json!({"name": name, "enabled": enabled, "properties": properties})
}

fn components(own: &Map<String, Value>) -> Value {
    json!({"components": COMPONENTS.iter().map(|name| component(own, name)).collect::<Vec<_>>()})
}

fn correlation(call: &Call<'_>) -> Result<Response, Problem> {
    let own = call.control.store.read(|tx| settings::get(tx, SUPER_ORGANIZATION, CORRELATION))?;
    Ok(Response::json(200, &components(&own)))
}

fn set_correlation(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, &[("components", Is::List)], &["components"])?;
    let own = call.control.store.change(|tx| {
        let mut own = settings::get(tx, SUPER_ORGANIZATION, CORRELATION)?;
        for component in given.get("components").and_then(Value::as_array).into_iter().flatten() {
            let name = component["name"].as_str().unwrap_or_default();
            if !COMPONENTS.contains(&name) {
                let text = format!("`{name}` is not a component of correlation logs");
                return Err(Problem::rejected(902_021, "Bad Request", text));
            }
            // A text in requests of `apictl`.
            let enabled = match &component["enabled"] {
                Value::Bool(enabled) => enabled.to_string(),
                Value::String(text) if ["true", "false"].contains(&text.as_str()) => text.clone(),
                _ => {
                    let text = format!("`enabled` of `{name}` is neither `true` nor `false`");
                    return Err(Problem::rejected(902_020, "Bad Request", text));
                }
            };
            own.insert(name.to_owned(), json!({"enabled": enabled, "properties": component["properties"]}));
        }
        settings::set(tx, SUPER_ORGANIZATION, CORRELATION, own.clone())?;
        tx.audit(SUPER_ORGANIZATION, &call.caller.shown(), "update", Kind::Setting, CORRELATION)?;
        Ok(own)
    })?;
    Ok(Response::json(200, &components(&own)))
}
