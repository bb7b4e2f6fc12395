//! Settings of an organization: its configuration, the roles of scopes.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::ADMIN_ROLE;
use crate::identity::scopes::RoleScopes;
use crate::identity::users::texts;
use crate::problem::Problem;
use crate::route::Call;
use crate::store::{Kind, Object, Transaction};
use crate::workflow;

/// Of the admin REST API.
pub(crate) const ADMIN_HANDLERS: &[crate::route::Registration] = &[
    ("GET", "/tenant-config", configuration),
    ("PUT", "/tenant-config", set_configuration),
    ("GET", "/tenant-config-schema", configuration_schema),
    ("GET", "/system-scopes", system_scopes),
    ("PUT", "/system-scopes", set_system_scopes),
    ("GET", "/system-scopes/{scopeName}", scope_of_user),
    ("GET", "/system-scopes/role-aliases", role_aliases),
    ("PUT", "/system-scopes/role-aliases", set_role_aliases),
];

const CONFIGURATION: &str = "tenant-config";
const SCOPES: &str = "system-scopes";
const ALIASES: &str = "role-aliases";

/// The largest configuration of an organization.
const CONFIGURATION_BYTES_MAX: usize = 1 << 20;

/// A setting; empty when it was never set.
pub(crate) fn get(tx: &Transaction<'_>, organization: &str, name: &str) -> Result<Map<String, Value>, Problem> {
    Ok(tx.find(Kind::Setting, organization, name)?.map(|setting| setting.document).unwrap_or_default())
}

/// Replaces a setting.
pub(crate) fn set(
    tx: &Transaction<'_>,
    organization: &str,
    name: &str,
    document: Map<String, Value>,
) -> Result<(), Problem> {
    match tx.find(Kind::Setting, organization, name)? {
        Some(mut known) => {
            known.document = document;
            tx.update(&mut known)?;
        }
        None => {
            tx.insert(&Object::new(Kind::Setting, organization, name, document).keyed(name))?;
        }
    }
    Ok(())
}

/// Whether requests of a type wait for approval in an organization.
pub(crate) fn needs_approval(tx: &Transaction<'_>, organization: &str, workflow: &str) -> Result<bool, Problem> {
    let configuration = get(tx, organization, CONFIGURATION)?;
    Ok(configuration.get("Workflows").and_then(|all| all.get(workflow)) == Some(&Value::Bool(true)))
}

fn configuration(call: &Call<'_>) -> Result<Response, Problem> {
    let own = call.control.store.read(|tx| get(tx, call.organization(), CONFIGURATION))?;
    let mut body = json!({"Workflows": workflow::TYPES.iter().map(|name| ((*name).to_owned(), false.into())).collect::<Map<_, _>>()});
    if let (Some(body), false) = (body.as_object_mut(), own.is_empty()) {
        body.clone_from(&own);
    }
    Ok(Response::json(200, &body))
}

fn set_configuration(call: &Call<'_>) -> Result<Response, Problem> {
    if call.request.body.len() > CONFIGURATION_BYTES_MAX {
        return Err(Problem::too_large(CONFIGURATION_BYTES_MAX));
    }
    let given = crate::schema::object(call.request)?;
    match given.get("Workflows") {
        None => {}
        Some(Value::Object(workflows)) => {
            let wrong =
                workflows.iter().find(|(name, on)| !workflow::TYPES.contains(&name.as_str()) || !on.is_boolean());
            if let Some((name, _)) = wrong {
                let text = format!("`{name}` is not a type of workflows, or not `true` or `false`");
                return Err(Problem::invalid("Workflows", text));
            }
        }
        Some(_) => return Err(Problem::invalid("Workflows", "an object is needed")),
    }
    call.control.store.change(|tx| {
        set(tx, call.organization(), CONFIGURATION, given.clone())?;
        tx.audit(call.organization(), &call.caller.shown(), "update", Kind::Setting, CONFIGURATION)
    })?;
    Ok(Response::json(200, &given.into()))
}

fn configuration_schema(_: &Call<'_>) -> Result<Response, Problem> {
    let flags: Map<String, Value> =
        workflow::TYPES.iter().map(|name| ((*name).to_owned(), json!({"type": "boolean"}))).collect();
    let body = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"Workflows": {"type": "object", "properties": flags, "additionalProperties": false}},
        "additionalProperties": true,
    });
    Ok(Response::json(200, &body))
}

/// Roles of scopes, and other names of roles, of an organization.
pub(crate) fn role_scopes(tx: &Transaction<'_>, organization: &str) -> Result<RoleScopes, Problem> {
    let lists =
        |document: Map<String, Value>| document.into_iter().map(|(name, list)| (name, texts(Some(&list)))).collect();
    let (scopes, aliases) = (get(tx, organization, SCOPES)?, get(tx, organization, ALIASES)?);
    Ok(RoleScopes { scopes: lists(scopes), aliases: lists(aliases) })
}

fn scope_list(call: &Call<'_>) -> Result<Value, Problem> {
    let scopes = call.control.scopes(call.organization())?;
    let entry = |(name, roles): (&str, &[String])| {
        let others = roles.iter().map(String::as_str).filter(|role| *role != ADMIN_ROLE);
        let roles: Vec<&str> = std::iter::once(ADMIN_ROLE).chain(others).collect();
        json!({"tag": tag(name), "name": name, "description": name, "roles": roles})
    };
    let list: Vec<Value> = scopes.all().map(entry).collect();
    Ok(json!({"count": list.len(), "list": list}))
}

/// The group in which the portal shows a scope.
fn tag(scope: &str) -> &str {
    let plain = scope.rsplit(':').next().unwrap_or(scope);
    match plain {
        "subscribe" | "app_manage" | "sub_manage" | "api_key" | "app_update" | "store_settings"
        | "sub_alert_manage" => "Devportal",
        _ if scope.starts_with("service_catalog:") => "Service Catalog",
        _ if plain.starts_with("admin") || plain.starts_with("tier_") || plain.starts_with("bl_") => "Admin",
        _ => "Publisher",
    }
}

fn system_scopes(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &scope_list(call)?))
}

/// The entries of a list in a body.
fn entries<'g>(given: &'g Map<String, Value>) -> Result<Vec<&'g Map<String, Value>>, Problem> {
    let list = given.get("list").and_then(Value::as_array);
    let list = list.ok_or_else(|| Problem::invalid("list", "a list is needed"))?;
    let entry = |entry: &'g Value| entry.as_object().ok_or_else(|| Problem::bad_request("Malformed request body."));
    list.iter().map(entry).collect()
}

fn named<'g>(entry: &'g Map<String, Value>, member: &str) -> Result<&'g str, Problem> {
    let name = entry.get(member).and_then(Value::as_str).unwrap_or_default().trim();
    if name.is_empty() { Err(Problem::invalid(member, "must not be empty")) } else { Ok(name) }
}

/// Roles as a list, or as one text with commas.
fn roles_of(entry: &Map<String, Value>, member: &str) -> Vec<String> {
    match entry.get(member) {
        Some(Value::String(text)) => {
            text.split(',').map(str::trim).filter(|role| !role.is_empty()).map(str::to_owned).collect()
        }
        other => texts(other),
    }
}

/// Stores a setting of scopes, and has it count at once.
fn put(call: &Call<'_>, name: &str, document: Map<String, Value>) -> Result<(), Problem> {
    let own = call.control.store.change(|tx| {
        set(tx, call.organization(), name, document)?;
        tx.audit(call.organization(), &call.caller.shown(), "update", Kind::Setting, name)?;
        role_scopes(tx, call.organization())
    })?;
    call.control.set_scopes(call.organization(), &own);
    Ok(())
}

fn set_system_scopes(call: &Call<'_>) -> Result<Response, Problem> {
    let given = crate::schema::object(call.request)?;
    let known = call.control.scopes(call.organization())?;
    let mut document = call.control.store.read(|tx| get(tx, call.organization(), SCOPES))?;
    for entry in entries(&given)? {
        let name = named(entry, "name")?;
        if !known.contains(name) {
            return Err(Problem::bad_request(format!("The scope {name} does not exist")));
        }
        document.insert(name.to_owned(), json!(roles_of(entry, "roles")));
    }
    put(call, SCOPES, document)?;
    Ok(Response::json(200, &scope_list(call)?))
}

/// The scope, when the user has it. Its name is in base64, as roles in paths are.
fn scope_of_user(call: &Call<'_>) -> Result<Response, Problem> {
    let encoded = call.id();
    let known = call.control.scopes(call.organization())?;
    let decoded = crate::identity::users::decode_name(encoded).filter(|name| known.contains(name));
    let name = decoded.unwrap_or_else(|| encoded.to_owned());
    if !known.contains(&name) {
        return Err(Problem::not_found("Scope", &name));
    }
    let user = call.query.get("username").unwrap_or(&call.caller.name);
    let found = call.control.store.read(|tx| {
        let (user, organization) = crate::identity::users::identify(tx, user)?;
        // Users of the own organization may be named without it.
        let organization =
            if user.contains('@') || organization != call.organization() { call.organization() } else { &organization };
        crate::identity::users::find(call.control, tx, &user, organization)
    })?;
    match found.is_some_and(|user| user.has(&name)) {
        true => Ok(Response::json(200, &json!({"name": name}))),
        false => Err(Problem::new(404, 404, "Not Found", format!("The user {user} does not have the scope {name}"))),
    }
}

fn alias_list(call: &Call<'_>) -> Result<Value, Problem> {
    let aliases = call.control.store.read(|tx| role_scopes(tx, call.organization()))?.aliases;
    let list: Vec<Value> = aliases.iter().map(|(role, aliases)| json!({"role": role, "aliases": aliases})).collect();
    Ok(json!({"count": list.len(), "list": list}))
}

fn role_aliases(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &alias_list(call)?))
}

fn set_role_aliases(call: &Call<'_>) -> Result<Response, Problem> {
    let given = crate::schema::object(call.request)?;
    let mut document = Map::new();
    for entry in entries(&given)? {
        document.insert(named(entry, "role")?.to_owned(), json!(roles_of(entry, "aliases")));
    }
    put(call, ALIASES, document)?;
    Ok(Response::json(200, &alias_list(call)?))
}
