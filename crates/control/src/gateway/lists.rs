//! APIs, applications and subscriptions as the gateway knows them.

use serde_json::{Value, json};

use super::organization;
use crate::http::Response;
use crate::identity::shown;
use crate::problem::Problem;
use crate::publisher::{api, revisions};
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis", apis),
    ("GET", "/apis/{apiId}", api_by_id),
    ("GET", "/applications", applications),
    ("GET", "/subscriptions", subscriptions),
];

/// Objects have no numbers here; clients identify them by the unique id.
const NO_NUMBER: u64 = 0;

fn metadata(api: &Object) -> Value {
    json!({
        "apiUUID": api.id, "apiId": NO_NUMBER, "provider": shown(&api.owner, &api.organization), "name": api.name,
        "version": api.text("version"), "context": revisions::versioned_context(api),
        "policy": api.document.get("apiThrottlingPolicy"), "apiType": api.text("type"),
        "isDefaultVersion": api.flag("isDefaultVersion"), "status": api.state,
    })
}

fn is_deployed(tx: &Transaction<'_>, api: &Object) -> Result<bool, Problem> {
    Ok(revisions::all(tx, api)?.iter().any(revisions::is_served))
}

/// Deployed APIs; the one of a context and a version when both are given.
fn apis(call: &Call<'_>) -> Result<Response, Problem> {
    let wanted = match (call.query.get("context"), call.query.get("version")) {
        (Some(context), Some(version)) => Some((context, version)),
        (None, None) => None,
        _ => return Err(Problem::bad_request("`context` and `version` must be given together")),
    };
    let list = call.control.store.read(|tx| {
        let mut list = Vec::new();
        for api in tx.list(&Filter::new(Kind::Api, organization(call)))? {
            let fits = wanted.is_none_or(|(context, version)| {
                let own = [api.text("context").to_owned(), revisions::versioned_context(&api)];
                api.text("version") == version && own.iter().any(|own| own == context)
            });
            if fits && is_deployed(tx, &api)? {
                list.push(metadata(&api));
            }
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn api_by_id(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let found = tx.get(Kind::Api, organization(call), call.id())?;
        let api = found.ok_or_else(|| Problem::not_found("API", call.id()))?;
        if !is_deployed(tx, &api)? {
            return Err(Problem::not_found("API", call.id()));
        }
        let mapping = |operation: &Value| {
            json!({
                "authScheme": operation["authType"], "throttlingPolicy": operation["throttlingPolicy"],
                "httpMethod": operation["verb"], "urlPattern": operation["target"], "scopes": operation["scopes"],
            })
        };
        let subscriptions = tx.list(&Filter::new(Kind::Subscription, &api.organization).target(&api.id))?;
        let mut body = metadata(&api);
        body["urlMappings"] = api::operations(&api.document).iter().map(mapping).collect();
        // The name is misspelt in the interface.
        body["subscripitons"] = subscriptions.iter().map(subscription).collect();
        Ok(body)
    })?;
    Ok(Response::json(200, &body))
}

fn subscription(subscription: &Object) -> Value {
    json!({
        "subscriptionId": NO_NUMBER, "subscriptionUUID": subscription.id,
        "policyId": subscription.text("throttlingPolicy"), "apiId": NO_NUMBER, "apiUUID": subscription.target,
        "appId": NO_NUMBER, "applicationUUID": subscription.parent, "subscriptionState": subscription.state,
    })
}

fn applications(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let mut filter = Filter::new(Kind::Application, organization(call));
        if let Some(name) = call.query.get("name") {
            filter = filter.named(name);
        }
        let mut list = Vec::new();
        for application in tx.list(&filter)? {
            if call.query.get("uuid").is_some_and(|id| id != application.id) {
                continue;
            }
            let keys = tx.list(&Filter::new(Kind::KeyMapping, &application.organization).parent(&application.id))?;
            let key = |key: &Object| {
                json!({
                    "consumerKey": key.target, "keyType": key.text("keyType"),
                    "keyManager": crate::admin::key_managers::RESIDENT,
                })
            };
            list.push(json!({
                "uuid": application.id, "id": NO_NUMBER, "name": application.name, "subName": application.owner,
                "policy": application.text("throttlingPolicy"), "tokenType": "JWT",
                "attributes": application.document.get("attributes"), "keys": keys.iter().map(key).collect::<Vec<_>>(),
            }));
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// The subscription of an application to an API.
fn subscriptions(call: &Call<'_>) -> Result<Response, Problem> {
    let (api, application) = (call.needed("apiUUID")?, call.needed("appUUID")?);
    let filter = Filter::new(Kind::Subscription, organization(call)).parent(application).target(api);
    let found = call.control.store.read(|tx| tx.list(&filter))?;
    let found = found.first().ok_or_else(|| {
        let text = format!("The application {application} has no subscription to the API {api}");
        Problem::new(404, 404, "Not Found", text)
    })?;
    Ok(Response::json(200, &subscription(found)))
}
