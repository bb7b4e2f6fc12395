//! Certificates of backends. An API trusts those whose endpoint has the scheme, host and port of one of its own endpoints.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::archive;
use super::import::Project;
use super::{api, yaml};
use crate::certificate::{self, Described};
use crate::http::Response;
use crate::multipart::FormPart;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/endpoint-certificates", list),
    ("POST", "/endpoint-certificates", create),
    ("GET", "/endpoint-certificates/{alias}", get),
    ("PUT", "/endpoint-certificates/{alias}", update),
    ("DELETE", "/endpoint-certificates/{alias}", delete),
    ("GET", "/endpoint-certificates/{alias}/content", content),
    ("GET", "/endpoint-certificates/{alias}/usage", usage),
];

/// The folder of a project.
const FOLDER: &str = "Endpoint-certificates";

fn body(certificate: &Object) -> Value {
    json!({"alias": certificate.name, "endpoint": certificate.text("endpoint")})
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let mut filter = Filter::new(Kind::EndpointCertificate, call.organization());
    if let Some(alias) = call.query.get("alias") {
        filter = filter.named(alias);
    }
    if let Some(endpoint) = call.query.get("endpoint") {
        filter = filter.member("endpoint", &[endpoint]);
    }
    let found = call.control.store.read(|tx| tx.list(&filter))?;
    let body = Page::of(&call.query).cut("/endpoint-certificates", found.iter().map(body).collect());
    Ok(Response::json(200, &renamed(body)))
}

/// The list under the name that lists of certificates have.
pub(super) fn renamed(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut()
        && let Some(list) = members.shift_remove("list")
    {
        members.insert("certificates".into(), list);
    }
    body
}

/// The value of a text part of a form.
pub(crate) fn field(parts: &[FormPart], name: &str) -> Option<String> {
    let part = parts.iter().find(|part| part.name == name)?;
    Some(String::from_utf8_lossy(&part.content).trim().to_owned()).filter(|text| !text.is_empty())
}

/// The part `certificate` of a form.
pub(super) fn uploaded(parts: &[FormPart]) -> Option<Bytes> {
    let part = parts.iter().find(|part| part.name == "certificate")?;
    Some(part.content.clone()).filter(|content| !content.is_empty())
}

pub(super) fn missing(name: &str) -> Problem {
    Problem::bad_request(format!("The part `{name}` is missing"))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let alias = field(&parts, "alias").ok_or_else(|| missing("alias"))?;
    let endpoint = field(&parts, "endpoint").ok_or_else(|| missing("endpoint"))?;
    let content = uploaded(&parts).ok_or_else(|| missing("certificate"))?;
    if authority(&endpoint).is_none() {
        return Err(Problem::bad_request(format!("The endpoint `{endpoint}` is not a URL")));
    }
    let certificate = call.control.change_served(|tx| {
        let added = add(tx, call.organization(), &alias, &endpoint, &content)?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::EndpointCertificate, &added.id)?;
        Ok(added)
    })?;
    let location = format!("/endpoint-certificates/{alias}");
    Ok(Response::json(201, &body(&certificate)).with("Location", location))
}

fn add(
    tx: &Transaction<'_>,
    organization: &str,
    alias: &str,
    endpoint: &str,
    content: &Bytes,
) -> Result<Object, Problem> {
    Described::parse_valid(content)?;
    let mut document = Map::new();
    document.insert("endpoint".into(), endpoint.into());
    let added = Object::new(Kind::EndpointCertificate, organization, alias, document).keyed(alias);
    if tx.insert(&added)?.is_none() {
        let text =
            format!("Error while adding the certificate. The alias '{alias}' already exists in the trust store.");
        return Err(Problem::conflict(409, "Conflict", text));
    }
    tx.put_file(organization, &added.id, &File::new(certificate::FILE, "application/x-pem-file", content.clone()))?;
    Ok(added)
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let alias = call.parameter("alias");
    let found = tx.find(Kind::EndpointCertificate, call.organization(), alias)?;
    found.ok_or_else(|| {
        Problem::new(404, 404, "Not Found", format!("Certificate could not be found for the alias '{alias}'"))
    })
}

/// The certificate of an object.
pub(super) fn content_of(tx: &Transaction<'_>, object: &Object) -> Result<Bytes, Problem> {
    let file = tx.file(&object.id, certificate::FILE)?;
    Ok(file.map(|file| file.content).unwrap_or_default())
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let content = call.control.store.read(|tx| content_of(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &Described::parse(&content)?.body()))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let content = uploaded(&archive::parts(call)?).ok_or_else(|| missing("certificate"))?;
    Described::parse_valid(&content)?;
    let certificate = call.control.change_served(|tx| {
        let mut known = of_call(tx, call)?;
        let file = File::new(certificate::FILE, "application/x-pem-file", content);
        tx.put_file(&known.organization, &known.id, &file)?;
        tx.update(&mut known)?;
        Ok(known)
    })?;
    Ok(Response::json(200, &body(&certificate)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let known = of_call(tx, call)?;
        tx.delete(&known)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::EndpointCertificate, &known.id)
    })?;
    Ok(Response::empty(200))
}

/// A certificate as a download.
pub(super) fn download(certificate: &Object, content: Bytes) -> Response {
    let disposition = format!("attachment; filename=\"{}\"", certificate::file_name(certificate));
    Response::of_type(200, "application/octet-stream", content).with("Content-Disposition", disposition)
}

fn content(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.read(|tx| {
        let known = of_call(tx, call)?;
        let content = content_of(tx, &known)?;
        Ok(download(&known, content))
    })
}

/// The APIs whose endpoints a certificate is for.
fn usage(call: &Call<'_>) -> Result<Response, Problem> {
    let apis = call.control.store.read(|tx| {
        let endpoint = authority(of_call(tx, call)?.text("endpoint"));
        let apis = tx.list(&Filter::new(Kind::Api, call.organization()))?;
        Ok(apis.into_iter().filter(|api| authorities(api).any(|known| Some(known) == endpoint)).collect::<Vec<_>>())
    })?;
    let entry = |api: &Object| {
        json!({
            "id": api.id, "name": api.name, "context": api.text("context"), "version": api.text("version"),
            "provider": crate::identity::shown(&api.owner, &api.organization),
        })
    };
    let path = format!("/endpoint-certificates/{}/usage", call.parameter("alias"));
    Ok(Response::json(200, &Page::of(&call.query).cut(&path, apis.iter().map(entry).collect())))
}

/// Scheme, host and port of an address, in lower case.
fn authority(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty())?.to_lowercase();
    let scheme = scheme.to_lowercase();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = match (has_port, scheme.as_str()) {
        (true, _) => "",
        (false, "https" | "wss") => ":443",
        (false, _) => ":80",
    };
    Some(format!("{scheme}://{host}{port}"))
}

fn authorities(api: &Object) -> impl Iterator<Item = String> {
    api::endpoint_urls(api.document.get("endpointConfig")).into_iter().filter_map(authority)
}

/// The certificates of the endpoints of an API, as files of a project.
pub(super) fn files(tx: &Transaction<'_>, api: &Object) -> Result<Vec<(String, Bytes)>, Problem> {
    let wanted: Vec<String> = authorities(api).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (mut listed, mut files) = (Vec::new(), Vec::new());
    for known in tx.list(&Filter::new(Kind::EndpointCertificate, &api.organization))? {
        let endpoint = known.text("endpoint");
        if !authority(endpoint).is_some_and(|endpoint| wanted.contains(&endpoint)) {
            continue;
        }
        let name = certificate::file_name(&known);
        listed.push(json!({"alias": known.name, "endpoint": endpoint, "certificate": name}));
        files.push((format!("{FOLDER}/{name}"), content_of(tx, &known)?));
    }
    if !listed.is_empty() {
        let list = json!({"type": "endpoint_certificates", "version": "v4.7.0", "data": listed});
        files.push((format!("{FOLDER}/endpoint_certificates.yaml"), yaml::write(&list).into()));
    }
    Ok(files)
}

/// The entries of a list of certificates in a folder of a project, each with its file.
pub(super) fn listed(
    call: &Call<'_>,
    project: &Project,
    folder: &str,
    list: &str,
) -> Result<Vec<(Value, Bytes)>, Problem> {
    let (yaml, json) = (format!("{folder}/{list}.yaml"), format!("{folder}/{list}.json"));
    let Some(data) = project.data(call, &[&yaml, &json])? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in data.as_array().into_iter().flatten() {
        let name = entry.get("certificate").and_then(Value::as_str).unwrap_or_default();
        let path = format!("{folder}/{name}");
        let missing = || Problem::bad_request(format!("`{path}` is not in the archive"));
        let (_, content) = project.file(&[&path]).ok_or_else(missing)?;
        found.push((entry.clone(), content.clone()));
    }
    Ok(found)
}

/// Adds a certificate unless there is one of its alias.
pub(super) fn put(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    alias: &str,
    endpoint: &str,
    content: &Bytes,
) -> Result<(), Problem> {
    if alias.is_empty() || authority(endpoint).is_none() {
        return Err(Problem::bad_request("A certificate of a backend needs an alias, and the URL of an endpoint"));
    }
    if tx.find(Kind::EndpointCertificate, call.organization(), alias)?.is_none() {
        add(tx, call.organization(), alias, endpoint, content)?;
    }
    Ok(())
}

/// Adds the certificates of an imported project that are not there yet.
pub(super) fn import_files(tx: &Transaction<'_>, call: &Call<'_>, project: &Project) -> Result<(), Problem> {
    for (entry, content) in listed(call, project, FOLDER, "endpoint_certificates")? {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        put(tx, call, text("alias"), text("endpoint"), &content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_compared_by_scheme_host_and_port() {
        for (url, expected) in [
            ("https://Backend/a", Some("https://backend:443")),
            ("http://backend?x", Some("http://backend:80")),
            ("https://backend:8443/a/b", Some("https://backend:8443")),
            ("wss://[::1]:8443", Some("wss://[::1]:8443")),
            ("backend", None),
            ("https://", None),
        ] {
            assert_eq!(authority(url).as_deref(), expected, "{url}");
        }
    }
}
