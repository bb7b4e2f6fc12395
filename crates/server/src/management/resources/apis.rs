//! `/apis`

use std::sync::Arc;

use penstock_engine::Program;
use penstock_engine::route::Api;
use serde_json::{Value, json};

use super::super::call::{Call, Outcome, list, ok, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::{statistics, switch_aspect, tracing};

const KIND: &str = "api";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    let program = call.api.state().current.get();
    match call.parameter("apiName") {
        Some(name) => match find(&program, inventory.of_kind(KIND), &name) {
            Some((found, api)) => ok(&detail(call, &found, api)),
            None => unknown(),
        },
        None => {
            let apis = inventory.of_kind(KIND).filter_map(|found| Some((found, served(&program, &found)?)));
            list(call, apis.filter(|(_, api)| call.finds(&api.name)).map(|(found, api)| summary(call, &found, api)))
        }
    }
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(name) = text(&payload, "name") else { return refuse(400, "Unsupported operation") };
    let inventory = call.api.inventory();
    let program = call.api.state().current.get();
    let Some((found, _)) = find(&program, inventory.of_kind(KIND), &name) else {
        return refuse(400, format!("Specified API ('{name}') not found"));
    };
    switch_aspect(call, &payload, &found, "api", &json!({ "apiName": name }))
}

/// The API of a program that an artifact became.
fn served<'p>(program: &'p Program, found: &Deployed<'_>) -> Option<&'p Arc<Api>> {
    program.routes.apis().iter().find(|api| api.at == found.artifact.at)
}

/// The API of a name, with its version (`orders:v1`) or without.
fn find<'i, 'p>(
    program: &'p Program,
    mut artifacts: impl Iterator<Item = Deployed<'i>>,
    name: &str,
) -> Option<(Deployed<'i>, &'p Arc<Api>)> {
    artifacts.find_map(|found| {
        let api = served(program, &found)?;
        (&*api.name == name || found.artifact.name == name).then_some((found, api))
    })
}

fn summary(call: &Call<'_>, found: &Deployed<'_>, api: &Api) -> Value {
    let state = call.api.state();
    let (host, served) = (&state.hostname, state.served);
    let context = &api.context;
    let http = format!("http://{host}:{}{context}", served.http);
    let https = served.https.map(|port| format!("https://{host}:{port}{context}"));
    let urls: Vec<String> = match api.secure {
        Some(true) => https.into_iter().collect(),
        Some(false) => vec![http],
        None => std::iter::once(http).chain(https).collect(),
    };
    json!({
        "name": *api.name,
        "url": urls.first(),
        "urlList": urls,
        "tracing": tracing(call, found),
    })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>, api: &Api) -> Value {
    let mut detail = summary(call, found, api);
    detail["version"] = json!(api.version.as_ref().map_or("N/A", |version| &*version.text));
    detail["stats"] = json!(statistics(call, found));
    detail["context"] = json!(*api.context);
    detail["port"] = json!(api.port.map_or(-1, i32::from));
    if let Some(host) = &api.host {
        detail["host"] = json!(**host);
    }
    let resources = found.element.elements("resource").map(|resource| {
        let methods: Vec<&str> = resource.attribute("methods").unwrap_or_default().split_whitespace().collect();
        let url = resource.attribute("uri-template").or_else(|| resource.attribute("url-mapping")).unwrap_or("N/A");
        json!({ "methods": methods, "url": url })
    });
    detail["resources"] = resources.collect();
    detail["configuration"] = json!(found.configuration());
    detail
}
