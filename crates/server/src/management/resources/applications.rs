//! `/applications`: Carbon applications, listed, deployed and undeployed.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use bytes::Bytes;
use penstock_compile::Diagnostic;
use penstock_engine::ports::Level;
use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{self, Call, Outcome, done, ok, refuse, unknown};
use crate::adapter::Deployer;
use crate::load::Application;
use crate::rest::multipart;
use crate::serve::{registry, swap};
use crate::{build, config, load};

/// Where a home keeps its applications.
const OF_HOME: &str = "repository/deployment/server/carbonapps";

/// Who may read an application: what the process's mask lets.
const FILE_MODE: u32 = 0o666;

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    if let Some(name) = call.parameter("carbonAppName") {
        return one(call, &name);
    }
    let inventory = call.api.inventory();
    let found = inventory.applications.iter().filter(|(application, _)| call.finds(&application.name));
    let (faulty, active): (Vec<_>, Vec<_>) = found.partition(|(_, fault)| fault.is_some());
    let items = |applications: &[&(Application, Option<String>)]| -> Vec<Value> {
        applications.iter().map(|(application, fault)| detail(application, fault.as_deref())).collect()
    };
    ok(&json!({
        "totalCount": active.len() + faulty.len(),
        "activeCount": active.len(),
        "activeList": items(&active),
        "faultyCount": faulty.len(),
        "faultyList": items(&faulty),
    }))
}

pub(crate) fn read_one(call: &Call<'_>) -> Outcome {
    one(call, call.segment)
}

fn one(call: &Call<'_>, name: &str) -> Outcome {
    let inventory = call.api.inventory();
    let Some((application, fault)) = inventory.applications.iter().find(|(known, _)| is_called(known, name)) else {
        return unknown();
    };
    if call.headers.get("accept").is_some_and(|accept| accept.contains("application/octet-stream")) {
        return match std::fs::read(&application.file) {
            Ok(content) => call::bytes("application/octet-stream", Bytes::from(content)),
            Err(cause) => refuse(500, format!("the file of the application cannot be read: {cause}")),
        };
    }
    ok(&detail(application, fault.as_deref()))
}

pub(crate) fn fault(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    let found = inventory.applications.iter().find(|(known, _)| is_called(known, call.segment));
    match found {
        Some((application, Some(reason))) => ok(&json!({
            "name": application.name,
            "version": application.version,
            "errorMessage": reason,
            "faultStackTrace": reason,
        })),
        _ => unknown(),
    }
}

/// Whether an application has this name, with its version or without, or its file has.
fn is_called(application: &Application, name: &str) -> bool {
    let file = Path::new(&application.file).file_name().map(|file| file.to_string_lossy().into_owned());
    let file = file.unwrap_or_default();
    application.name == name
        || format!("{}_{}", application.name, application.version) == name
        || file == name
        || file.strip_suffix(".car") == Some(name)
}

fn detail(application: &Application, fault: Option<&str>) -> Value {
    let artifacts = application.artifacts.iter().map(|(name, kind)| {
        let kind = kind.split_once('/').map_or(kind.as_str(), |(_, kind)| kind);
        json!({ "name": name, "type": kind })
    });
    let mut detail = json!({
        "name": application.name,
        "version": application.version,
        "artifacts": artifacts.collect::<Vec<_>>(),
    });
    if let Some(reason) = fault {
        detail["errorMessage"] = json!(reason);
    }
    detail
}

/// Deploys the `.car` file of a form. An application with errors changes nothing.
pub(crate) async fn deploy(call: &Call<'_>) -> Outcome {
    let failed = |why: &str| refuse(400, format!("Error when deploying the Carbon Application. {why}"));
    let content_type = call.headers.get("content-type").unwrap_or_default();
    if !content_type.to_ascii_lowercase().contains("multipart/form-data") {
        return failed("Supports only for the Content-Type : multipart/form-data");
    }
    let parts = match multipart::parts(content_type, call.body) {
        Ok(parts) => parts,
        Err(why) => return failed(why),
    };
    let mut files = parts.into_iter().filter_map(|part| Some((part.file_name?, part.content)));
    let Some((name, content)) = files.next() else { return failed("No file exist to be uploaded. ") };
    if files.next().is_some() {
        return failed("Uploading Multiple files in one request is not supported. ");
    }
    if !name.ends_with(".car") {
        return failed("Only files with the extension .car is supported. ");
    }
    if name.starts_with('.') || name.contains(['/', '\\', '\0']) || name.contains(char::is_control) {
        return failed("The name of the file is not a plain name. ");
    }
    let folder = match folder(&call.api.deployer) {
        Ok(folder) => folder,
        Err(why) => return refuse(500, why),
    };
    let (deployer, file) = (call.api.deployer.clone(), folder.join(&name));
    let changed = tokio::task::spawn_blocking(move || replace(&deployer, &file, Some(content))).await;
    finish(call, changed, Action::Created, &name, format!("Successfully added Carbon Application : {name}"))
}

/// Removes the file of an application.
pub(crate) async fn undeploy(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    let Some((application, _)) = inventory.applications.iter().find(|(known, _)| is_called(known, call.segment)) else {
        return refuse(404, format!("Carbon Application ('{}') does not exist", call.segment));
    };
    let file = PathBuf::from(&application.file);
    if !file.is_file() {
        return refuse(400, "the application is inside another archive, and only that one can be removed");
    }
    let (deployer, name) = (call.api.deployer.clone(), call.segment.to_owned());
    let changed = tokio::task::spawn_blocking(move || replace(&deployer, &file, None)).await;
    finish(call, changed, Action::Deleted, &name, format!("Successfully removed Carbon Application {name}"))
}

fn finish(
    call: &Call<'_>,
    changed: Result<Result<(), Failed>, tokio::task::JoinError>,
    action: Action,
    name: &str,
    text: String,
) -> Outcome {
    match changed {
        Ok(Ok(())) => {
            audit::changed(call, action, "carbon_application", &json!({ "cAppFileName": name }));
            done(text)
        }
        Ok(Err(Failed::Broken(reasons))) => refuse(400, format!("nothing was changed: {}", reasons.join("; "))),
        Ok(Err(Failed::Environment(why))) => {
            call.api.log(Level::Error, &format!("{name}: {why}"));
            refuse(500, format!("nothing was changed: {why}"))
        }
        Err(_) => refuse(500, "nothing was changed: the server has a defect, see its log"),
    }
}

/// Why nothing was changed.
enum Failed {
    Broken(Vec<String>),
    Environment(String),
}

/// Reasons that one response lists.
const REASONS_MAX: usize = 20;

/// Puts the file of an application, or removes it, and serves the result; with new errors the file is put back.
fn replace(deployer: &Deployer, file: &Path, content: Option<Bytes>) -> Result<(), Failed> {
    let _turn = deployer.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |cause: std::io::Error| Failed::Environment(format!("`{}`: {cause}", file.display()));
    let before = match std::fs::read(file) {
        Ok(bytes) => Some(bytes),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(cause) => return Err(failed(cause)),
    };
    let put = |content: Option<&[u8]>| match content {
        Some(bytes) => registry::replace(file, bytes, FILE_MODE),
        None => std::fs::remove_file(file),
    };
    put(content.as_deref()).map_err(failed)?;
    let outcome = serve(deployer, file, content.is_some());
    if outcome.is_err() {
        put(before.as_deref()).map_err(failed)?;
    }
    outcome
}

fn serve(deployer: &Deployer, file: &Path, is_added: bool) -> Result<(), Failed> {
    let mut options = deployer.options.clone();
    options.configurables = config::surroundings(&deployer.paths).configurables();
    let settings = deployer.settings();
    let built =
        build::build(&deployer.paths, &options, &settings).map_err(|error| Failed::Environment(error.to_string()))?;
    let running = deployer.state.artifacts();
    let new: Vec<&Diagnostic> =
        built.diagnostics.iter().filter(|diagnostic| swap::is_new(diagnostic, &running.errors)).collect();
    if !new.is_empty() {
        return Err(Failed::Broken(new.iter().take(REASONS_MAX).map(ToString::to_string).collect()));
    }
    let shown = file.display().to_string();
    if is_added && !built.origin.applications.iter().any(|application| application.file == shown) {
        let why = "the file is not served: it is no application, or one of that name and version is served already";
        return Err(Failed::Broken(vec![why.to_owned()]));
    }
    let what = format!("{shown} is {}", if is_added { "deployed" } else { "undeployed" });
    swap::swap(&deployer.state, &settings, built, "ManagementAPI", &what);
    Ok(())
}

/// The folder that applications are put into: the one of the configuration, of the home, or the first folder that is served.
fn folder(deployer: &Deployer) -> Result<PathBuf, String> {
    let settings = deployer.settings();
    let served = |folder: &Path| {
        let real = folder.canonicalize();
        real.is_ok_and(|real| {
            deployer.paths.iter().any(|path| path.canonicalize().is_ok_and(|path| real.starts_with(path)))
        })
    };
    if let Some(folder) = &settings.management.applications {
        return match served(folder) {
            true => Ok(folder.clone()),
            false => Err(format!("`management.applications`: `{}` is no folder that is served", folder.display())),
        };
    }
    if let Some(home) = deployer.paths.iter().find(|path| load::is_home(path)) {
        let folder = home.join(OF_HOME);
        std::fs::create_dir_all(&folder).map_err(|cause| format!("`{}`: {cause}", folder.display()))?;
        return Ok(folder);
    }
    let folder = deployer.paths.iter().find(|path| path.is_dir()).cloned();
    folder.ok_or_else(|| "no folder is served that applications could be put into".to_owned())
}
