//! Operation policies, common ones and those of one API, and the throttling policies that publishers choose from.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::archive::{self, parts};
use super::import::Project;
use super::{api, yaml};
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{File, Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/operation-policies", list_common),
    ("POST", "/operation-policies", add_common),
    ("GET", "/operation-policies/{operationPolicyId}", get_common),
    ("DELETE", "/operation-policies/{operationPolicyId}", delete_common),
    ("GET", "/operation-policies/{operationPolicyId}/content", content_common),
    ("GET", "/operation-policies/export", export),
    ("POST", "/operation-policies/import", import),
    ("GET", "/apis/{apiId}/operation-policies", list_of_api),
    ("POST", "/apis/{apiId}/operation-policies", add_to_api),
    ("GET", "/apis/{apiId}/operation-policies/{operationPolicyId}", get_of_api),
    ("DELETE", "/apis/{apiId}/operation-policies/{operationPolicyId}", delete_of_api),
    ("GET", "/apis/{apiId}/operation-policies/{operationPolicyId}/content", content_of_api),
    ("GET", "/throttling-policies/streaming/subscription", streaming),
    ("GET", "/throttling-policies/{policyLevel}", throttling),
    ("GET", "/throttling-policies/{policyLevel}/{policyName}", throttling_by_name),
    ("GET", "/apis/{apiId}/subscription-policies", subscription_policies),
    ("GET", "/mcp-servers/{mcpServerId}/subscription-policies", subscription_policies),
];

const FLOWS: [&str; 3] = ["request", "response", "fault"];

/// Templates, by gateway: file name in the store and ending.
const SYNAPSE: &str = "policy.j2";
const CHOREO: &str = "policy.gotmpl";

fn body(policy: &Object) -> Value {
    let member = |name: &str| policy.document.get(name).cloned().unwrap_or_default();
    json!({
        "category": member("category"), "id": policy.id, "name": policy.name, "version": policy.text("version"),
        "displayName": member("displayName"), "description": member("description"),
        "applicableFlows": member("applicableFlows"), "supportedGateways": member("supportedGateways"),
        "supportedApiTypes": member("supportedApiTypes"), "isAPISpecific": !policy.parent.is_empty(),
        "md5": member("md5"), "policyAttributes": member("policyAttributes"),
    })
}

/// What API Manager answers when a policy cannot be added.
fn refused(why: impl std::fmt::Display) -> Problem {
    let text = format!("Error while adding a common operation policy. {why}");
    Problem::new(500, 902_005, "Operation policy cannot be added", text)
}

/// Adds a policy from its specification and its templates.
fn add(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    parent: &str,
    specification: Map<String, Value>,
    templates: &[(&str, Bytes)],
) -> Result<Object, Problem> {
    let text = |name: &str| specification.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = text("name");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_ .".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(refused("The specification has no valid `name`"));
    }
    let flows = specification.get("applicableFlows").and_then(Value::as_array);
    let known = |flow: &Value| flow.as_str().is_some_and(|flow| FLOWS.contains(&flow));
    if !flows.is_some_and(|flows| !flows.is_empty() && flows.iter().all(known)) {
        return Err(refused("`applicableFlows` must name the flows request, response or fault"));
    }
    if templates.is_empty() {
        return Err(refused("The definition file of the policy is missing"));
    }
    let version = if text("version").is_empty() { "v1".to_owned() } else { text("version") };
    let mut document = specification;
    document.insert("version".into(), version.as_str().into());
    let all: Vec<u8> = templates.iter().flat_map(|(_, content)| content.to_vec()).collect();
    // Clients compare the hash; which one it is does not matter to them.
    document.insert("md5".into(), crate::random::sha256(&all)[..32].into());
    let policy = Object::new(Kind::OperationPolicy, call.organization(), &name, document).of(parent);
    let policy = policy.keyed(format!("{parent}:{name}:{version}"));
    if tx.insert(&policy)?.is_none() {
        return Err(refused(format!("A policy with the name {name} and the version {version} exists")));
    }
    for (path, content) in templates {
        tx.put_file(&policy.organization, &policy.id, &File::new(*path, "text/plain", content.clone()))?;
    }
    tx.audit(call.organization(), &call.caller.shown(), "create", Kind::OperationPolicy, &policy.id)?;
    Ok(policy)
}

/// A specification, and templates by file name.
type Definition = (Map<String, Value>, Vec<(&'static str, Bytes)>);

/// The specification and the templates of a form.
fn of_form(call: &Call<'_>) -> Result<Definition, Problem> {
    let (mut specification, mut templates) = (None, Vec::new());
    for part in parts(call)? {
        let ending = part.file_name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        match part.name.as_str() {
            "policySpecFile" => {
                let read = call.control.host.parse_yaml(&part.content).map_err(refused)?;
                let data = read.get("data").cloned().unwrap_or(read);
                specification = data.as_object().cloned();
            }
            "synapsePolicyDefinitionFile" if ending.is_none_or(|ending| ending == "j2") => {
                templates.push((SYNAPSE, part.content));
            }
            "ccPolicyDefinitionFile" if ending.is_none_or(|ending| ending == "gotmpl") => {
                templates.push((CHOREO, part.content));
            }
            "synapsePolicyDefinitionFile" | "ccPolicyDefinitionFile" => {
                return Err(refused("The definition file must end in .j2 or .gotmpl"));
            }
            _ => {}
        }
    }
    let specification = specification.ok_or_else(|| refused("The part `policySpecFile` is missing"))?;
    Ok((specification, templates))
}

fn add_common(call: &Call<'_>) -> Result<Response, Problem> {
    let (specification, templates) = of_form(call)?;
    let policy = call.control.store.change(|tx| add(tx, call, "", specification, &templates))?;
    Ok(Response::json(201, &body(&policy)).with("Location", format!("/operation-policies/{}", policy.id)))
}

fn add_to_api(call: &Call<'_>) -> Result<Response, Problem> {
    let (specification, templates) = of_form(call)?;
    let policy = call.control.store.change(|tx| {
        let api = api::of_call(tx, call)?;
        add(tx, call, &api.id, specification, &templates)
    })?;
    Ok(Response::json(201, &body(&policy)).with("Location", format!("/operation-policies/{}", policy.id)))
}

fn list_common(call: &Call<'_>) -> Result<Response, Problem> {
    // `apictl` sends `version:V` as a parameter of its own.
    let query = call.query.get("query").unwrap_or_default();
    let more = call
        .request
        .query
        .split('&')
        .find_map(|pair| crate::http::decode(pair, true).strip_prefix("version:").map(str::to_owned));
    let mut terms = Term::parse(query);
    if let Some(version) = more {
        terms.push(Term { key: "version".into(), value: version.trim_end_matches('=').to_owned(), exact: true });
    }
    terms.iter_mut().for_each(|term| term.exact = true);
    let filter = Filter::new(Kind::OperationPolicy, call.organization()).parent("").query(&terms);
    let policies = call.control.store.read(|tx| tx.list(&filter))?;
    if policies.is_empty() && !terms.is_empty() {
        return Err(Problem::new(404, 902_006, "Operation policy not found", "No operation policy fits the query"));
    }
    let page = Page::of(&call.query);
    Ok(Response::json(200, &page.cut("/operation-policies", policies.iter().map(body).collect())))
}

fn list_of_api(call: &Call<'_>) -> Result<Response, Problem> {
    let policies = call.control.store.read(|tx| {
        let api = api::of_call(tx, call)?;
        tx.list(&Filter::new(Kind::OperationPolicy, call.organization()).parent(&api.id))
    })?;
    let page = Page::of(&call.query);
    let path = format!("/apis/{}/operation-policies", call.id());
    Ok(Response::json(200, &page.cut(&path, policies.iter().map(body).collect())))
}

fn by_id(tx: &Transaction<'_>, call: &Call<'_>, parent: Option<&str>) -> Result<Object, Problem> {
    let id = call.parameter("operationPolicyId");
    let found = tx.get(Kind::OperationPolicy, call.organization(), id)?;
    let found = found.filter(|policy| parent.is_none_or(|parent| policy.parent == parent || policy.parent.is_empty()));
    found.ok_or_else(|| Problem::not_found("Operation Policy", id))
}

fn get_common(call: &Call<'_>) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| by_id(tx, call, Some("")))?;
    Ok(Response::json(200, &body(&policy)))
}

fn get_of_api(call: &Call<'_>) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| by_id(tx, call, Some(&api::of_call(tx, call)?.id)))?;
    Ok(Response::json(200, &body(&policy)))
}

fn delete_common(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| tx.delete(&by_id(tx, call, Some(""))?))?;
    Ok(Response::empty(200))
}

fn delete_of_api(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let api = api::of_call(tx, call)?;
        let policy = by_id(tx, call, Some(&api.id))?;
        if policy.parent != api.id {
            return Err(Problem::forbidden("A common policy cannot be deleted here"));
        }
        tx.delete(&policy)
    })?;
    Ok(Response::empty(200))
}

fn content_common(call: &Call<'_>) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| by_id(tx, call, Some("")))?;
    content(call, &policy)
}

fn content_of_api(call: &Call<'_>) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| by_id(tx, call, Some(&api::of_call(tx, call)?.id)))?;
    content(call, &policy)
}

fn content(call: &Call<'_>, policy: &Object) -> Result<Response, Problem> {
    let stem = stem(policy);
    let files = call.control.store.read(|tx| policy_files(tx, policy))?;
    archive::download(&stem, &files)
}

fn export(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, version) = (call.needed("name")?, call.needed("version")?);
    let policy = call.control.store.read(|tx| find(tx, call.organization(), "", name, version))?;
    let policy = policy.ok_or_else(|| {
        Problem::new(404, 902_006, "Operation policy not found", format!("No operation policy {name} {version}"))
    })?;
    content(call, &policy)
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let part = archive::uploaded(call, "file")?;
    let files =
        call.control.host.unzip(part.content).map_err(|why| Problem::bad_request(format!("Not an archive: {why}")))?;
    let is_specification = |path: &str| [".yaml", ".yml", ".json"].iter().any(|ending| path.ends_with(ending));
    let found = files.iter().find(|(path, _)| is_specification(path));
    let (_, text) = found.ok_or_else(|| Problem::bad_request("The archive has no specification of a policy"))?;
    let read = call.control.host.parse_yaml(text).map_err(Problem::bad_request)?;
    let data = read.get("data").cloned().unwrap_or(read);
    let specification =
        data.as_object().cloned().ok_or_else(|| Problem::bad_request("The specification is not a mapping"))?;
    let template =
        |ending: &str| files.iter().find(|(path, _)| path.ends_with(ending)).map(|(_, content)| content.clone());
    let mut templates = Vec::new();
    templates.extend(template(".j2").map(|content| (SYNAPSE, content)));
    templates.extend(template(".gotmpl").map(|content| (CHOREO, content)));
    let name = api::text(&specification, "name").to_owned();
    let version =
        Some(api::text(&specification, "version")).filter(|version| !version.is_empty()).unwrap_or("v1").to_owned();
    let policy = call.control.store.change(|tx| {
        if find(tx, call.organization(), "", &name, &version)?.is_some() {
            let text =
                format!("Existing common operation policy found for the same name: {name} and version: {version}");
            return Err(Problem::conflict(903_001, "Operation policy exists", text));
        }
        add(tx, call, "", specification, &templates)
    })?;
    Ok(Response::json(201, &body(&policy)))
}

/// A policy by name and version: of an API, otherwise a common one.
fn find(
    tx: &Transaction<'_>,
    organization: &str,
    parent: &str,
    name: &str,
    version: &str,
) -> Result<Option<Object>, Problem> {
    let own = tx.find(Kind::OperationPolicy, organization, &format!("{parent}:{name}:{version}"))?;
    match own {
        None if !parent.is_empty() => tx.find(Kind::OperationPolicy, organization, &format!(":{name}:{version}")),
        found => Ok(found),
    }
}

fn stem(policy: &Object) -> String {
    format!("{}_{}", policy.name, policy.text("version"))
}

/// The specification and the templates of a policy as files.
fn policy_files(tx: &Transaction<'_>, policy: &Object) -> Result<Vec<(String, Bytes)>, Problem> {
    let stem = stem(policy);
    let mut data = policy.document.clone();
    data.shift_remove("md5");
    let specification = json!({"type": "operation_policy_specification", "version": "v4.7.0", "data": data});
    let mut files = vec![(format!("{stem}.yaml"), Bytes::from(yaml::write(&specification)))];
    for file in tx.files(&policy.id, "")? {
        let ending = file.path.rsplit('.').next().unwrap_or_default().to_owned();
        files.push((format!("{stem}.{ending}"), file.content));
    }
    Ok(files)
}

/// The uses of policies of an API: the flow, and the use.
fn uses(document: &Map<String, Value>) -> Vec<(&'static str, &Value)> {
    let of_operations = api::operations(document).iter().filter_map(|operation| operation.get("operationPolicies"));
    let all = of_operations.chain(document.get("apiPolicies"));
    all.flat_map(|flows| {
        FLOWS.into_iter().flat_map(move |flow| {
            flows.get(flow).and_then(Value::as_array).into_iter().flatten().map(move |one| (flow, one))
        })
    })
    .collect()
}

/// The policy that a use means: by id, otherwise by name and version. `None` for the built-in ones of the gateway.
fn used(tx: &Transaction<'_>, organization: &str, api: &str, one: &Value) -> Result<Option<Object>, Problem> {
    let text = |name: &str| one.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(id) = text("policyId")
        && let Some(found) = tx.get(Kind::OperationPolicy, organization, id)?
    {
        return Ok(Some(found));
    }
    let version = text("policyVersion").unwrap_or("v1");
    find(tx, organization, api, text("policyName").unwrap_or_default(), version)
}

/// Checks how an API uses policies: the flow, and the attributes that must be given.
pub(super) fn check_uses(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    for (flow, one) in uses(&api.document) {
        let Some(policy) = used(tx, &api.organization, &api.id, one)? else { continue };
        if !policy.texts("applicableFlows").contains(&flow) {
            let text = format!("The policy {} does not run in the {flow} flow", policy.name);
            return Err(Problem::rejected(902_008, "Operation policy is not applicable", text));
        }
        let attributes = policy.document.get("policyAttributes").and_then(Value::as_array).into_iter().flatten();
        for attribute in attributes {
            let is_required = attribute.get("required").and_then(Value::as_bool).unwrap_or_default();
            let name = attribute.get("name").and_then(Value::as_str).unwrap_or_default();
            let has_default = attribute.get("defaultValue").is_some_and(|value| !value.is_null());
            let given = one.get("parameters").and_then(|parameters| parameters.get(name));
            let is_given = given.is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
            if is_required && !has_default && !is_given {
                let text = format!("The policy {} needs the attribute {name}", policy.name);
                return Err(Problem::rejected(902_009, "Required attribute of the policy is missing", text));
            }
        }
    }
    Ok(())
}

/// The files in `Policies/` of a project: the policies that the API uses.
pub(super) fn files(tx: &Transaction<'_>, api: &Object) -> Result<Vec<(String, Bytes)>, Problem> {
    // A revision uses the policies of the API that it is a copy of.
    let of = api.text("revisionedApiId");
    let parent = if of.is_empty() { api.id.as_str() } else { of };
    let mut found: Vec<(String, Bytes)> = Vec::new();
    for (_, one) in uses(&api.document) {
        let Some(policy) = used(tx, &api.organization, parent, one)? else { continue };
        for (path, content) in policy_files(tx, &policy)? {
            let path = format!("Policies/{path}");
            if found.iter().all(|(known, _)| *known != path) {
                found.push((path, content));
            }
        }
    }
    Ok(found)
}

/// Adds the policies of an imported project that are not there yet; name, version and id of each.
pub(super) fn import_files(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    project: &Project,
) -> Result<Vec<(String, String, String)>, Problem> {
    let mut imported = Vec::new();
    for (path, content) in project.folder("Policies/") {
        let Some(stem) = [".yaml", ".yml", ".json"].iter().find_map(|ending| path.strip_suffix(ending)) else {
            continue;
        };
        let read = call
            .control
            .host
            .parse_yaml(content)
            .map_err(|why| Problem::bad_request(format!("Policies/{path}: {why}")))?;
        let data = read.get("data").cloned().unwrap_or(read);
        let Some(specification) = data.as_object().cloned() else { continue };
        let name = api::text(&specification, "name").to_owned();
        let version =
            Some(api::text(&specification, "version")).filter(|text| !text.is_empty()).unwrap_or("v1").to_owned();
        let id = match find(tx, call.organization(), "", &name, &version)? {
            Some(known) => known.id,
            None => {
                let template = |ending: &str| {
                    project.file(&[&format!("Policies/{stem}.{ending}")]).map(|(_, content)| content.clone())
                };
                let mut templates = Vec::new();
                templates.extend(template("j2").map(|content| (SYNAPSE, content)));
                templates.extend(template("gotmpl").map(|content| (CHOREO, content)));
                add(tx, call, "", specification, &templates)?.id
            }
        };
        imported.push((name, version, id));
    }
    Ok(imported)
}

/// Gives the uses of an imported API the ids that the policies have here.
pub(super) fn rename_ids(data: &mut Map<String, Value>, imported: &[(String, String, String)]) {
    let rename = |flows: &mut Value| {
        let lists = flows.as_object_mut().into_iter().flat_map(|flows| flows.values_mut());
        for one in lists.filter_map(Value::as_array_mut).flatten() {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
            let version = if text("policyVersion").is_empty() { "v1" } else { text("policyVersion") };
            let found = imported.iter().find(|(name, known, _)| name == text("policyName") && known == version);
            if let Some((_, _, id)) = found {
                one["policyId"] = id.as_str().into();
            }
        }
    };
    if let Some(flows) = data.get_mut("apiPolicies") {
        rename(flows);
    }
    for operation in data.get_mut("operations").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(flows) = operation.get_mut("operationPolicies") {
            rename(flows);
        }
    }
}

fn throttling(call: &Call<'_>) -> Result<Response, Problem> {
    let level = level(call)?;
    let list = call.control.store.read(|tx| crate::admin::throttling::choices(tx, call.organization(), level))?;
    let page = Page::of(&call.query);
    Ok(Response::json(200, &page.cut(&format!("/throttling-policies/{}", call.id()), list)))
}

fn throttling_by_name(call: &Call<'_>) -> Result<Response, Problem> {
    let level = level(call)?;
    let name = call.parameter("policyName");
    let list = call.control.store.read(|tx| crate::admin::throttling::choices(tx, call.organization(), level))?;
    let found = list.into_iter().find(|policy| policy["name"] == name);
    Ok(Response::json(200, &found.ok_or_else(|| Problem::not_found("Throttling Policy", name))?))
}

/// The plans that count events.
fn streaming(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| crate::admin::throttling::streaming(tx, call.organization()))?;
    Ok(Response::json(200, &Page::of(&call.query).cut("/throttling-policies/streaming/subscription", list)))
}

fn level<'c>(call: &'c Call<'_>) -> Result<&'c str, Problem> {
    match call.id() {
        "api" => Ok("advanced"),
        "subscription" => Ok("subscription"),
        other => Err(Problem::bad_request(format!(
            "'{other}' is not a level of throttling policies; 'api' and 'subscription' are"
        ))),
    }
}

/// The plans of an API.
fn subscription_policies(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let api = api::of_call(tx, call)?;
        let all = crate::admin::throttling::choices(tx, call.organization(), "subscription")?;
        let names: Vec<String> = api.texts("policies").into_iter().map(str::to_owned).collect();
        Ok(all
            .into_iter()
            .filter(|policy| names.iter().any(|name| policy["name"] == name.as_str()))
            .collect::<Vec<_>>())
    })?;
    Ok(Response::json(200, &Value::Array(list)))
}
