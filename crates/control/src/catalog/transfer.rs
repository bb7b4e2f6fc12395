//! Import and export of services: an archive with a folder for each.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::services::{DEFINITION, METADATA, Sent, info};
use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::archive;
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Transaction};

pub(super) const HANDLERS: &[Registration] =
    &[("POST", "/services/import", import), ("GET", "/services/export", export)];

const METADATA_FILES: [&str; 3] = ["metadata.yaml", "metadata.yml", "metadata.json"];

/// The services of an archive.
fn read(call: &Call<'_>, archive: Bytes) -> Result<Vec<Sent>, Problem> {
    let files =
        call.control.host.unzip(archive).map_err(|why| Problem::bad_request(format!("Not an archive: {why}")))?;
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|(path, _)| METADATA_FILES.iter().find_map(|name| path.strip_suffix(name))).collect();
    if folders.is_empty() {
        return Err(Problem::bad_request("The archive has no service: no folder of it has metadata.yaml"));
    }
    let mut services = Vec::new();
    for folder in folders {
        let inside = |path: &str| path.strip_prefix(folder).filter(|name| !name.contains('/')).map(str::to_owned);
        let file = |fits: &dyn Fn(&str) -> bool| {
            files.iter().find(|(path, _)| inside(path).is_some_and(|name| fits(&name))).map(|(_, content)| content)
        };
        let metadata = file(&|name| METADATA_FILES.contains(&name)).cloned().unwrap_or_default();
        let definition = file(&|name| name.starts_with("definition.")).cloned().unwrap_or_default();
        let parsed = call.control.host.parse_yaml(&metadata);
        let parsed = parsed.map_err(|why| Problem::bad_request(format!("{folder}metadata.yaml: {why}")))?;
        let Value::Object(parsed) = parsed else {
            return Err(Problem::bad_request(format!("{folder}metadata.yaml must be a mapping")));
        };
        services.push(Sent::new(call, parsed, metadata, definition)?);
    }
    Ok(services)
}

/// Adds what is not there, and with `overwrite` replaces what differs. What is the same is not touched and not listed.
fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let services = read(call, archive::uploaded(call, "file")?.content)?;
    let overwrite = call.query.flag("overwrite");
    let list = call.control.store.change(|tx| {
        let mut list = Vec::new();
        for sent in services {
            match tx.find(Kind::Service, call.organization(), sent.key())? {
                None => list.push(info(&sent.insert(tx, call)?)),
                Some(known) if sent.is_same(&known) => {}
                Some(_) if !overwrite => {
                    let text = format!("The service '{}' exists and overwrite is false", sent.key());
                    return Err(Problem::bad_request(text));
                }
                Some(mut known) => {
                    sent.replace(tx, &mut known)?;
                    list.push(info(&known));
                }
            }
        }
        Ok(list)
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn export(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, version) = (call.needed("name")?, call.needed("version")?);
    let files = call.control.store.read(|tx| files(tx, call, name, version))?;
    archive::download(&format!("{name}-{version}"), &files)
}

fn files(tx: &Transaction<'_>, call: &Call<'_>, name: &str, version: &str) -> Result<Vec<(String, Bytes)>, Problem> {
    let same = tx.list(&Filter::new(Kind::Service, call.organization()).named(name))?;
    let found = same.into_iter().find(|service| service.text("version") == version);
    let found = found.ok_or_else(|| {
        Problem::new(404, 404, "Not Found", format!("No service with the name {name} and the version {version}"))
    })?;
    let mut files = Vec::new();
    for file in tx.files(&found.id, "")? {
        let name = match file.path.as_str() {
            METADATA => "metadata.yaml",
            DEFINITION => match found.text("definitionType") {
                "WSDL1" | "WSDL2" => "definition.wsdl",
                "GRAPHQL_SDL" => "definition.graphql",
                _ => "definition.yaml",
            },
            _ => continue,
        };
        files.push((name.to_owned(), file.content));
    }
    Ok(files)
}
