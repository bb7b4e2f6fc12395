//! What a deployed API consists of at the gateway: the files of its project, in the places where API Manager has artifacts of
//! Synapse.

use serde_json::{Value, json};

use super::deployed;
use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::{archive, revisions};
use crate::route::{Call, Registration};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/api-artifact", api),
    ("GET", "/local-entry", |call| list(call, "localEntries", "Definitions/")),
    ("GET", "/sequence", |call| list(call, "sequences", "Policies/")),
    ("GET", "/end-points", end_points),
];

/// The files of the project that is served: path and content.
fn files(call: &Call<'_>) -> Result<Vec<(String, String)>, Problem> {
    let files = call.control.store.read(|tx| {
        let (_, revisions) = deployed(tx, call)?;
        let served = revisions.last().map(revisions::api_of);
        served.map(|served| archive::project(tx, &served, archive::Purpose::Serve)).transpose()
    })?;
    let text = |(path, content): (String, bytes::Bytes)| (path, String::from_utf8_lossy(&content).into_owned());
    Ok(files.unwrap_or_default().into_iter().map(text).collect())
}

/// The descriptor.
fn api(call: &Call<'_>) -> Result<Response, Problem> {
    let found = files(call)?.into_iter().find(|(path, _)| !path.contains('/'));
    Ok(Response::json(200, &json!({"api": found.map(|(_, content)| content)})))
}

/// The files of a folder.
fn list(call: &Call<'_>, member: &str, folder: &str) -> Result<Response, Problem> {
    let of_folder = files(call)?.into_iter().filter(|(path, _)| path.starts_with(folder));
    let list: Vec<Value> = of_folder.map(|(_, content)| content.into()).collect();
    Ok(Response::json(200, &json!({member: list})))
}

/// The configuration of the backends, without secrets.
fn end_points(call: &Call<'_>) -> Result<Response, Problem> {
    let configuration = call.control.store.read(|tx| {
        let (_, revisions) = deployed(tx, call)?;
        let mut configuration =
            revisions.last().map(revisions::api_of).and_then(|api| api.document.get("endpointConfig").cloned());
        if let Some(configuration) = configuration.as_mut().and_then(Value::as_object_mut) {
            configuration.shift_remove("endpoint_security");
        }
        Ok(configuration)
    })?;
    let list: Vec<Value> = configuration.iter().map(|configuration| configuration.to_string().into()).collect();
    Ok(Response::json(200, &json!({"endpoints": list})))
}
