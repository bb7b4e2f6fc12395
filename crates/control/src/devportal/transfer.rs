//! Export and import of applications, with their subscriptions and keys, as `apictl` moves them between servers.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{applications, keys, subscriptions};
use crate::http::Response;
use crate::identity::{clients, shown, users};
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::publisher::{archive, yaml};
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] =
    &[("GET", "/applications/export", export), ("POST", "/applications/import", import)];

/// The descriptor of an application in its archive.
const DESCRIPTORS: [&str; 3] = ["application.yaml", "application.yml", "application.json"];

/// The owner whose application is meant; only an administrator may name another user.
fn owner(tx: &Transaction<'_>, call: &Call<'_>, given: &str) -> Result<String, Problem> {
    let (name, organization) = users::identify(tx, given)?;
    if organization != call.organization() || tx.find(Kind::User, &organization, &name)?.is_none() {
        return Err(Problem::bad_request(format!("There is no user {given}")));
    }
    match name == call.caller.name || call.caller.is_admin() {
        true => Ok(name),
        false => Err(Problem::forbidden("The application is of another user")),
    }
}

fn export(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, owned_by) = (call.needed("appName")?, call.needed("appOwner")?);
    let with_keys = call.query.flag("withKeys");
    let (folder, descriptor) = call.control.store.read(|tx| {
        let owner = owner(tx, call, owned_by)?;
        let found = tx.find(Kind::Application, call.organization(), &applications::key(&owner, name))?;
        let application = found.ok_or_else(|| {
            Problem::new(404, 900_307, "Application Not Found", format!("No application {name} of the user {owned_by}"))
        })?;
        let data = json!({
            "applicationInfo": applications::info(tx, &application)?,
            "subscribedAPIs": subscribed(tx, &application)?,
            "applicationKeys": if with_keys { keys::of_application(tx, call.control, &application)? } else { Vec::new() },
        });
        let descriptor = json!({"type": "application", "version": "v4.7.0", "data": data});
        Ok((format!("{}-{}", application.owner, application.name), descriptor))
    })?;
    let is_json = call.query.get("format").is_some_and(|format| format.eq_ignore_ascii_case("json"));
    let file = match is_json {
        true => ("application.json".to_owned(), Bytes::from(format!("{descriptor:#}"))),
        false => ("application.yaml".to_owned(), yaml::write(&descriptor).into()),
    };
    archive::download(&folder, &[file])
}

fn subscribed(tx: &Transaction<'_>, application: &Object) -> Result<Vec<Value>, Problem> {
    let mut list = Vec::new();
    for subscription in tx.list(&Filter::new(Kind::Subscription, &application.organization).parent(&application.id))? {
        let Some(api) = tx.get(Kind::Api, &application.organization, &subscription.target)? else { continue };
        list.push(json!({
            "apiId": {
                "providerName": shown(&api.owner, &api.organization), "apiName": api.name, "version": api.text("version"),
            },
            "throttlingPolicy": subscription.text("throttlingPolicy"),
        }));
    }
    Ok(list)
}

/// Adds an application, or with `update` replaces what is known of it. An API that cannot be subscribed to does not stop the
/// import: the response is 207 and lists it.
fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let data = read(call, archive::uploaded(call, "file")?.content)?;
    let member = |name: &str| data.get(name).cloned().unwrap_or_default();
    let Value::Object(info) = member("applicationInfo") else {
        return Err(Problem::bad_request("application.yaml: `applicationInfo` must be a mapping"));
    };
    let (body, skipped) = call.control.change_access(|tx| {
        let application = put(tx, call, &info)?;
        if !call.query.flag("skipApplicationKeys") {
            for key in member("applicationKeys").as_array().into_iter().flatten().filter_map(Value::as_object) {
                put_key(tx, call, &application, key)?;
            }
        }
        let mut skipped = Vec::new();
        if !call.query.flag("skipSubscriptions") {
            for entry in member("subscribedAPIs").as_array().into_iter().flatten() {
                skipped.extend(subscribe(tx, call, &application, entry)?);
            }
        }
        tx.audit(call.organization(), &call.caller.shown(), "import", Kind::Application, &application.id)?;
        Ok((applications::info(tx, &application)?, skipped))
    })?;
    Ok(match skipped.is_empty() {
        true => Response::json(200, &body),
        false => Response::json(207, &json!({"count": skipped.len(), "list": skipped})),
    })
}

/// `data` of the descriptor in an archive.
fn read(call: &Call<'_>, archive: Bytes) -> Result<Map<String, Value>, Problem> {
    let files =
        call.control.host.unzip(archive).map_err(|why| Problem::bad_request(format!("Not an archive: {why}")))?;
    let found = files.iter().find(|(path, _)| DESCRIPTORS.contains(&path.rsplit('/').next().unwrap_or(path)));
    let (path, content) = found.ok_or_else(|| Problem::bad_request("The archive has no application.yaml"))?;
    let read = call.control.host.parse_yaml(content);
    let mut value = read.map_err(|why| Problem::bad_request(format!("{path}: {why}")))?;
    match value.get_mut("data").map(Value::take) {
        Some(Value::Object(data)) => Ok(data),
        _ => Err(Problem::bad_request(format!("{path}: `data` must be a mapping"))),
    }
}

fn put(tx: &Transaction<'_>, call: &Call<'_>, info: &Map<String, Value>) -> Result<Object, Problem> {
    let name = text(info, "name").trim().to_owned();
    if name.is_empty() {
        return Err(Problem::bad_request("application.yaml: `applicationInfo` has no `name`"));
    }
    let kept = Some(text(info, "owner")).filter(|owner| !owner.is_empty() && call.query.flag("preserveOwner"));
    let owner = match call.query.get("appOwner").or(kept) {
        Some(given) => owner(tx, call, given)?,
        None => call.caller.name.clone(),
    };
    let mut document = info.clone();
    document.retain(|member, _| applications::KEPT.contains(&member.as_str()));
    if call.query.flag("ignoreTier") {
        document.insert("throttlingPolicy".into(), "Unlimited".into());
    }
    applications::check(tx, call, &document)?;
    let key = applications::key(&owner, &name);
    match tx.find(Kind::Application, call.organization(), &key)? {
        Some(_) if !call.query.flag("update") => Err(applications::taken(&name)),
        Some(mut known) => {
            known.document = document;
            tx.update(&mut known)?;
            Ok(known)
        }
        None => {
            let added = Object::new(Kind::Application, call.organization(), &name, document).owned(&owner).keyed(key);
            tx.insert(&added)?.ok_or_else(|| applications::taken(&name))?;
            Ok(added)
        }
    }
}

/// Gives an application the consumer key that it had. Its secret is this server's: secrets are derived from the server's key.
fn put_key(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    application: &Object,
    given: &Map<String, Value>,
) -> Result<(), Problem> {
    let (key_type, consumer_key) = (text(given, "keyType"), text(given, "consumerKey"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !matches!(key_type, "PRODUCTION" | "SANDBOX") || consumer_key.is_empty() || !consumer_key.bytes().all(is_plain) {
        return Err(Problem::bad_request("application.yaml: a key needs `keyType` and `consumerKey`"));
    }
    let known = tx.list(&Filter::new(Kind::KeyMapping, call.organization()).parent(&application.id))?;
    if known.iter().any(|known| known.text("keyType") == key_type) {
        return Ok(());
    }
    if clients::find(tx, consumer_key)?.is_some() {
        let text = format!("The consumer key {consumer_key} is used by another application");
        return Err(Problem::conflict(901_408, "Key Mappings already exists", text));
    }
    let grants = users::texts(given.get("supportedGrantTypes"));
    let callback = Some(text(given, "callbackUrl")).filter(|callback| !callback.is_empty());
    let name = format!("{}_{}_{key_type}", application.owner, application.name);
    let mut client = clients::new(call.organization(), &name, &application.owner, &grants, callback);
    client.id = consumer_key.to_owned();
    client.set("additionalProperties", keys::settings(given.get("additionalProperties")));
    keys::add_mapping(tx, application, key_type, &client, "CREATED", keys::RESIDENT)?;
    tx.insert(&client).map(|_| ())
}

/// Subscribes to an API of the archive; the API when that is not possible.
fn subscribe(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    application: &Object,
    entry: &Value,
) -> Result<Option<Value>, Problem> {
    let member = |name: &str| entry["apiId"][name].as_str().unwrap_or_default();
    let (name, version) = (member("apiName"), member("version"));
    let skipped = || Some(json!({"name": name, "version": version, "provider": member("providerName")}));
    let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(name))?;
    let Some(api) = same.into_iter().find(|api| api.text("version") == version) else { return Ok(skipped()) };
    let plan = entry.get("throttlingPolicy").cloned().unwrap_or_default();
    let given = json!({"apiId": api.id, "applicationId": application.id, "throttlingPolicy": plan});
    let Value::Object(given) = given else { return Ok(None) };
    match subscriptions::insert(tx, call, &given) {
        Ok(_) => Ok(None),
        // Subscribed already.
        Err(problem) if problem.code == 900_336 => Ok(None),
        Err(problem) if problem.status < 500 => Ok(skipped()),
        Err(problem) => Err(problem),
    }
}
