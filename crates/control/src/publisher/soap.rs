//! SOAP APIs: their WSDL file or archive of files, and APIs that offer the operations of a SOAP backend as resources.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::api::{self, created, of_call};
use super::given::{self, Given};
use super::soap_to_rest;
use super::wsdl::{self, Wsdl};
use super::{archive, members};
use crate::http::Response;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/import-wsdl", import),
    ("POST", "/apis/validate-wsdl", validate),
    ("GET", "/apis/{apiId}/wsdl", get),
    ("PUT", "/apis/{apiId}/wsdl", put),
    ("GET", "/apis/{apiId}/wsdl-info", info),
];

/// The folder of WSDL files in a project.
const FOLDER: &str = "WSDL/";

/// The media types of one file and of an archive, as API Manager sends them.
const WSDL: &str = "application/wsdl";
const ZIP: &str = "application/zip";

/// A description with its files.
struct Described {
    wsdl: Wsdl,
    content: Bytes,
    is_archive: bool,
}

impl Described {
    fn read(call: &Call<'_>, given: Given) -> Result<Described, Problem> {
        let name = given.name.to_ascii_lowercase();
        let is_address = name.contains("://");
        if !name.is_empty() && !is_address && !name.ends_with(".wsdl") && !name.ends_with(".zip") {
            let text = "Unsupported extension. Only supported extensions are .wsdl and .zip";
            return Err(Problem::rejected(900_686, "Unsupported WSDL File Extension", text));
        }
        let is_archive = given.content.starts_with(b"PK\x03\x04");
        let wsdl = match is_archive {
            false => wsdl::read(&given.content, &[])?,
            true => read_archive(call, &given.content)?,
        };
        Ok(Described { wsdl, content: given.content, is_archive })
    }

    fn file(&self, api: &Object) -> File {
        let (extension, media_type) = if self.is_archive { ("zip", ZIP) } else { ("wsdl", WSDL) };
        let path = format!("{FOLDER}{}-{}.{extension}", api.name, api.text("version"));
        File::new(path, media_type, self.content.clone())
    }

    fn info(&self) -> Value {
        json!({"type": if self.is_archive { "ZIP" } else { "WSDL" }})
    }

    /// The first address of a port.
    fn address(&self) -> Option<&str> {
        self.wsdl.endpoints.first().map(|(_, location)| location.as_str())
    }
}

/// Reads the first file of an archive that describes a service; the others may have the schemas.
fn read_archive(call: &Call<'_>, content: &Bytes) -> Result<Wsdl, Problem> {
    let none = |why: &str| {
        let mut problem = Problem::rejected(900_681, "Invalid WSDL Archive", why);
        problem.errors.push(("900681".to_owned(), why.to_owned()));
        problem
    };
    let files = call.control.host.unzip(content.clone()).map_err(|why| none(&why))?;
    let is_wsdl = |path: &str| path.to_ascii_lowercase().ends_with(".wsdl");
    let (mut found, mut last): (Option<Wsdl>, Option<Problem>) = (None, None);
    for (path, content) in files.iter().filter(|(path, _)| is_wsdl(path)) {
        let others: Vec<&[u8]> =
            files.iter().filter(|(other, _)| other != path).map(|(_, more)| more.as_ref()).collect();
        match wsdl::read(content, &others) {
            Ok(read) if found.as_ref().is_none_or(|known| known.endpoints.is_empty()) => found = Some(read),
            Ok(_) => {}
            Err(problem) => last = Some(problem),
        }
    }
    match (found, last) {
        (Some(found), None) => Ok(found),
        (_, Some(problem)) => Err(problem),
        (None, None) => Err(none("No valid WSDLs found in the provided WSDL archive")),
    }
}

fn given(call: &Call<'_>) -> Result<Described, Problem> {
    let parts = archive::parts(call)?;
    Described::read(call, given::definition(call, &parts, "inline")?)
}

fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let body = match given(call) {
        Ok(described) => {
            let endpoints = described.wsdl.endpoints.iter();
            let endpoints: Vec<Value> =
                endpoints.map(|(name, location)| json!({"name": name, "location": location})).collect();
            let info = json!({"version": described.wsdl.version, "endpoints": endpoints});
            json!({"isValid": true, "errors": [], "wsdlInfo": info})
        }
        // Without a definition, or with one that is no WSDL by its name, there is nothing to validate.
        Err(problem) if matches!(problem.code, 400 | 900_686) => return Err(problem),
        Err(problem) => json!({"isValid": false, "errors": given::errors_of(&problem), "wsdlInfo": null}),
    };
    Ok(Response::json(200, &body))
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let kind = given::text(&parts, "implementationType").unwrap_or_else(|| "SOAP".to_owned());
    if !matches!(kind.as_str(), "SOAP" | "SOAPTOREST") {
        return Err(Problem::bad_request("`implementationType` must be SOAP or SOAPTOREST"));
    }
    let described = Described::read(call, given::definition(call, &parts, "inline")?)?;
    let mut body: Map<String, Value> = given::additional_properties(&parts)?;
    schema::check(&body, members::MEMBERS, &["name", "context", "version"])?;
    body.insert("type".into(), kind.as_str().into());
    body.insert("wsdlInfo".into(), described.info());
    if let Some(address) = described.address() {
        let endpoint = json!({"url": address});
        let config = json!({"endpoint_type": "http", "production_endpoints": endpoint, "sandbox_endpoints": endpoint});
        given::set_default(&mut body, "endpointConfig", config);
    }
    let (mut definition, mut templates) = (None, Vec::new());
    if kind == "SOAPTOREST" {
        let converted = soap_to_rest::convert(&described.wsdl)?;
        body.insert("operations".into(), Value::Array(converted.operations));
        (definition, templates) = (Some(converted.file), converted.templates);
    }
    let api = call.control.store.change(|tx| {
        let api = api::create_in(tx, &call.caller, body, definition)?;
        for file in templates.iter().chain([&described.file(&api)]) {
            tx.put_file(&api.organization, &api.id, file)?;
        }
        super::definition::refresh(tx, &api)?;
        Ok(api)
    })?;
    Ok(created(&api, "/apis"))
}

/// The WSDL file or archive of an API.
pub(crate) fn stored(tx: &Transaction<'_>, api: &Object) -> Result<File, Problem> {
    let found = tx.files(&api.id, FOLDER)?.into_iter().next();
    found.ok_or_else(|| {
        let text = format!("No WSDL Available for the API {}:{}", api.name, api.text("version"));
        Problem::new(404, 900_684, "WSDL Not Found", text)
    })
}

/// A WSDL file as a download.
pub(crate) fn download(file: File) -> Response {
    let is_archive = file.path.ends_with(".zip");
    let name = file.path.strip_prefix(FOLDER).unwrap_or(&file.path).replace(['"', '\\'], "_");
    let response = Response::of_type(200, if is_archive { ZIP } else { WSDL }, file.content);
    response.with("Content-Disposition", format!("attachment; filename=\"{name}\""))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| stored(tx, &of_call(tx, call)?))?;
    Ok(download(file))
}

fn info(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| stored(tx, &of_call(tx, call)?))?;
    let kind = if file.path.ends_with(".zip") { "ZIP" } else { "WSDL" };
    Ok(Response::json(200, &json!({"type": kind})))
}

fn put(call: &Call<'_>) -> Result<Response, Problem> {
    let described = given(call)?;
    call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        if !matches!(api.text("type"), "SOAP" | "SOAPTOREST") {
            return Err(Problem::bad_request("Only SOAP APIs have a WSDL"));
        }
        for old in tx.files(&api.id, FOLDER)? {
            tx.remove_file(&api.id, &old.path)?;
        }
        if api.text("type") == "SOAPTOREST" {
            convert_again(tx, &mut api, &described)?;
        }
        tx.put_file(&api.organization, &api.id, &described.file(&api))?;
        api.set("wsdlInfo", described.info());
        api.set("updatedBy", call.caller.shown());
        tx.update(&mut api)
    })?;
    Ok(Response::empty(200))
}

/// Replaces the resources of an API by those of another description; what is known of resources that stay is kept.
fn convert_again(tx: &Transaction<'_>, api: &mut Object, described: &Described) -> Result<(), Problem> {
    let converted = soap_to_rest::convert(&described.wsdl)?;
    let before = api.document.clone();
    let is = |left: &Value, right: &Value| ["target", "verb"].iter().all(|name| left.get(*name) == right.get(*name));
    let known = api::operations(&before);
    let one = |operation: &Value| known.iter().find(|known| is(known, operation)).unwrap_or(operation).clone();
    api.set("operations", converted.operations.iter().map(one).collect::<Vec<_>>());
    super::products::check_used_operations(tx, api, &before)?;
    for old in tx.files(&api.id, soap_to_rest::FOLDER)? {
        tx.remove_file(&api.id, &old.path)?;
    }
    for file in converted.templates.iter().chain([&converted.file]) {
        tx.put_file(&api.organization, &api.id, file)?;
    }
    super::definition::refresh(tx, api)
}
