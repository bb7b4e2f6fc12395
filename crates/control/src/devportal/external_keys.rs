//! Keys of applications at key managers of other products: clients that are registered there, or exist there.

use serde_json::{Map, Value, json};

use super::applications;
use super::keys::{RESIDENT, add_mapping, body, keys_exist, mapping_key};
use crate::admin::key_managers;
use crate::connector;
use crate::http::Response;
use crate::identity::clients;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::Call;
use crate::store::{Kind, Object};

/// The key manager of another product that a body names; `None` for that of this server.
pub(super) fn find_manager(call: &Call<'_>, given: &Map<String, Value>) -> Result<Option<Object>, Problem> {
    let name = text(given, "keyManager");
    if ["", RESIDENT].contains(&name) {
        return Ok(None);
    }
    let found = call.control.store.read(|tx| key_managers::named(tx, call.organization(), name))?;
    match found.filter(connector::registers) {
        Some(manager) => Ok(Some(manager)),
        None => {
            let text = format!("Clients cannot be registered at the key manager {name}");
            Err(Problem::rejected(901_405, "Key Manager doesn't support generating OAuth applications", text))
        }
    }
}

/// Registers a client at the key manager of another product. Nothing is locked while that is asked.
pub(super) fn register(
    call: &Call<'_>,
    manager: &Object,
    key_type: &str,
    grants: &[String],
    callback: Option<&str>,
) -> Result<Response, Problem> {
    let application = call.control.store.read(|tx| {
        let application = applications::of_call(tx, call)?;
        applications::check_approved(&application)?;
        let key = mapping_key(&application, key_type, &manager.name);
        match tx.find(Kind::KeyMapping, call.organization(), &key)? {
            Some(_) => Err(keys_exist(&application)),
            None => Ok(application),
        }
    })?;
    let name = format!("{}_{}_{key_type}", application.owner, application.name);
    let registered = connector::register(call.control, manager, &name, grants, callback)?;
    let mut client = clients::new(call.organization(), &name, &application.owner, grants, callback).of(&manager.id);
    client.id.clone_from(&registered.id);
    client.set("secrets", json!([]));
    client.set(connector::REGISTRATION, registered.document());
    let added = call.control.change_access(|tx| {
        if clients::find(tx, &client.id)?.is_some() {
            let text = format!("The consumer key {} is used by another application", client.id);
            return Err(Problem::conflict(901_408, "Key Mappings already exists", text));
        }
        tx.insert(&client)?;
        let mapping = add_mapping(tx, &application, key_type, &client, "CREATED", &manager.name)?;
        tx.audit(call.organization(), &call.caller.shown(), "generate-keys", Kind::Application, &application.id)?;
        Ok(mapping)
    });
    match added {
        Ok(mapping) => Ok(Response::json(200, &body(call.control, &mapping, &client))),
        Err(problem) => {
            connector::remove(call.control, &client);
            Err(problem)
        }
    }
}

/// Gives an application a client of another key manager: its tokens count for the application. The secret stays there.
pub(super) fn map(call: &Call<'_>, name: &str, key_type: &str, key: &str) -> Result<Response, Problem> {
    if key.is_empty() {
        return Err(Problem::invalid("consumerKey", "a consumer key is needed"));
    }
    let (mapping, client) = call.control.change_access(|tx| {
        let application = applications::of_call(tx, call)?;
        let manager = key_managers::named(tx, call.organization(), name)?.ok_or_else(|| {
            Problem::rejected(
                901_403,
                "Key Manager not Registered",
                format!("The key manager {name} is not registered"),
            )
        })?;
        if manager.document.get("enableMapOAuthConsumerApps") == Some(&false.into()) {
            return Err(Problem::bad_request(format!("The key manager {name} does not allow clients to be mapped")));
        }
        let mut client = clients::new(call.organization(), key, &application.owner, &[], None).of(&manager.id);
        key.clone_into(&mut client.id);
        client.set("secrets", json!([]));
        // Ids of clients are unique in all organizations.
        if clients::find(tx, key)?.is_some() {
            let text = format!("The consumer key {key} is used by another application");
            return Err(Problem::conflict(901_408, "Key Mappings already exists", text));
        }
        tx.insert(&client)?;
        let mapping = add_mapping(tx, &application, key_type, &client, "MAPPED", &manager.name)?;
        Ok((mapping, client))
    })?;
    Ok(Response::json(200, &body(call.control, &mapping, &client)))
}
