//! `/proxy-services`

use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, refuse, text, unknown};
use super::super::inventory::Deployed;
use super::{read_artifacts, statistics, switch_aspect, tracing};

const KIND: &str = "proxy";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "proxyServiceName",
        |_| unknown(),
        |found| summary(call, &found.artifact.name),
        |found| detail(call, found),
    )
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let Some(name) = text(&payload, "name") else { return refuse(400, "Unsupported operation") };
    let info = json!({ "proxyName": name });
    let Some(status) = text(&payload, "status") else {
        let inventory = call.api.inventory();
        let Some(found) = inventory.find(KIND, &name) else {
            return refuse(400, format!("Specified proxy ('{name}') not found"));
        };
        return switch_aspect(call, &payload, &found, "proxy_service", &info);
    };
    let state = call.api.state();
    let program = state.current.get();
    if program.routes.proxy(&name).is_none() {
        return refuse(404, "Proxy service could not be found");
    }
    let starts = match status.to_ascii_lowercase().as_str() {
        "active" => true,
        "inactive" => false,
        _ => return refuse(400, "Provided state is not valid"),
    };
    state.switches.start_proxy(&program, &name, starts);
    // Its listeners of other transports are services of their own.
    let listeners = state.services.all();
    for listener in listeners.iter().filter(|one| one.kind == "listener") {
        if listener.name.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/')) {
            if starts { listener.activate() } else { listener.pause() }
        }
    }
    audit::changed(call, if starts { Action::Enabled } else { Action::Disabled }, "proxy_service", &info);
    done(format!("Proxy service {name} {} successfully", if starts { "started" } else { "stopped" }))
}

fn addresses(call: &Call<'_>, name: &str) -> Vec<String> {
    let state = call.api.state();
    let (host, served) = (&state.hostname, state.served);
    let program = state.current.get();
    let proxy = program.routes.proxy(name);
    let http = proxy.is_some_and(|proxy| proxy.http).then(|| format!("http://{host}:{}/services/{name}", served.http));
    let https = served.https.filter(|_| proxy.is_some_and(|proxy| proxy.https));
    http.into_iter().chain(https.map(|port| format!("https://{host}:{port}/services/{name}"))).collect()
}

fn summary(call: &Call<'_>, name: &str) -> Value {
    let address = addresses(call, name).into_iter().next().unwrap_or_else(|| format!("/services/{name}"));
    json!({ "name": name, "wsdl1_1": format!("{address}?wsdl"), "wsdl2_0": format!("{address}?wsdl2") })
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let name = &found.artifact.name;
    let program = call.api.state().current.get();
    let mut detail = summary(call, name);
    detail["stats"] = json!(statistics(call, found));
    detail["tracing"] = json!(tracing(call, found));
    detail["configuration"] = json!(found.configuration());
    detail["eprs"] = json!(addresses(call, name));
    detail["isRunning"] = json!(program.routes.proxy(name).is_some_and(|proxy| !proxy.is_stopped.is_on()));
    detail
}
