//! SCIM 2 (RFC 7643, RFC 7644): users and groups, for administrators; `/Me` for every user. Groups are the roles of the
//! organization.
//!
//! Start reading at [`respond`], then `resource.rs` (users and groups as JSON), `filter.rs` and `patch.rs`.

mod filter;
mod patch;
mod resource;

use serde_json::{Map, Value, json};

use crate::Control;
use crate::http::{Parameters, Request, Response};
use crate::identity::{ADMIN_ROLE, Caller, scopes, tokens, users};
use crate::problem::Problem;
use crate::route::basic;
use crate::store::{Filter, Kind, Object, Transaction};
use filter::Condition;

const BODY_BYTES_MAX: usize = 1 << 20;

/// Entries of one page at most, and by default.
const PAGE_MAX: usize = 1000;
const PAGE: usize = 100;

/// A response of SCIM, or the error that it is; a problem is one of the server.
type Outcome = Result<Result<Response, Response>, Problem>;

/// The response to a request of SCIM; `None` for other paths.
pub(crate) fn respond(control: &Control, request: &Request) -> Option<Result<Response, Problem>> {
    let rest = request.path.strip_prefix("/scim2/")?;
    let (resource, id) = rest.split_once('/').unwrap_or((rest, ""));
    Some(answer(control, request, resource, id))
}

/// An error of RFC 7644 §3.12.
fn refusal(status: u16, kind: Option<&str>, detail: &str) -> Response {
    let schema = "urn:ietf:params:scim:api:messages:2.0:Error";
    let mut body = json!({"schemas": [schema], "status": status.to_string(), "detail": detail});
    if let Some(kind) = kind {
        body["scimType"] = kind.into();
    }
    found(status, &body)
}

fn found(status: u16, body: &Value) -> Response {
    Response::of_type(status, "application/scim+json", body.to_string())
}

fn missing(id: &str) -> Response {
    refusal(404, None, &format!("The resource {id} does not exist"))
}

/// The caller by name and password, or by an access token.
fn caller_of(control: &Control, request: &Request) -> Result<Option<Caller>, Problem> {
    let Some(authorization) = request.header("authorization") else { return Ok(None) };
    match authorization.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            // A token without a scope of administration must not manage users.
            let found = tokens::caller(control, token.trim())?;
            Ok(found.filter(|caller| caller.has("apim:admin")))
        }
        _ => match basic(authorization) {
            Some((name, password)) => users::login(control, &name, &password, request.client),
            None => Ok(None),
        },
    }
}

fn answer(control: &Control, request: &Request, resource: &str, id: &str) -> Result<Response, Problem> {
    let unauthorized =
        || refusal(401, None, "Authentication failed").with("WWW-Authenticate", "Basic realm=\"Penstock\"");
    let caller = match caller_of(control, request) {
        Ok(Some(caller)) => caller,
        Ok(None) => return Ok(unauthorized()),
        Err(problem) if problem.status == 429 => return Ok(refusal(429, Some("tooMany"), &problem.description)),
        Err(problem) => return Err(problem),
    };
    let (kind, is_me) = match resource {
        "Users" => (Kind::User, false),
        "Groups" => (Kind::Role, false),
        "Me" => (Kind::User, true),
        _ => return Ok(missing(resource)),
    };
    if !is_me && !caller.is_admin() {
        return Ok(refusal(403, None, "Users and groups are managed by administrators"));
    }
    if request.body.len() > BODY_BYTES_MAX {
        return Err(Problem::too_large(BODY_BYTES_MAX));
    }
    let given: Map<String, Value> = match request.method.as_str() {
        "POST" | "PUT" | "PATCH" => match serde_json::from_slice(&request.body) {
            Ok(given) => given,
            Err(_) => return Ok(refusal(400, Some("invalidSyntax"), "The body must be a JSON object")),
        },
        _ => Map::new(),
    };
    let query = Parameters::parse(&request.query);
    let own = match is_me {
        true => control.store.read(|tx| tx.find(Kind::User, &caller.organization, &caller.name))?.map(|user| user.id),
        false => None,
    };
    let id = own.as_deref().unwrap_or(id);
    let outcome = match (request.method.as_str(), id) {
        ("GET", "") => list(control, &caller, kind, &query),
        ("POST", ".search") if !is_me => list(control, &caller, kind, &Parameters::from_json(&Value::Object(given))),
        ("POST", "") if !is_me => create(control, &caller, kind, &given),
        ("GET", id) => control.store.read(|tx| {
            Ok(match tx.get(kind, &caller.organization, id)? {
                Some(object) => Ok(found(200, &resource::body(control, tx, &object)?)),
                None => Err(missing(id)),
            })
        }),
        ("PUT", id) if !id.is_empty() => change(control, &caller, kind, id, &given, true, is_me),
        ("PATCH", id) if !id.is_empty() => change(control, &caller, kind, id, &given, false, is_me),
        ("DELETE", id) if !id.is_empty() && !is_me => delete(control, &caller, kind, id),
        _ => Ok(Err(refusal(405, None, "The resource does not have this method"))),
    };
    Ok(outcome?.unwrap_or_else(|refused| refused))
}

/// RFC 7644 §3.4.2.
fn list(control: &Control, caller: &Caller, kind: Kind, query: &Parameters) -> Outcome {
    let conditions = match query.get("filter").map(filter::parse) {
        None => Vec::new(),
        Some(Ok(conditions)) => conditions,
        Some(Err(why)) => return Ok(Err(refusal(400, Some("invalidFilter"), &why))),
    };
    let start = query.number("startIndex").unwrap_or(1).max(1);
    let count = query.number("count").unwrap_or(PAGE).min(PAGE_MAX);
    control.store.read(|tx| {
        let (total, resources) = match conditions.as_slice() {
            // Without conditions the database counts and cuts.
            [] => {
                let filter = Filter::new(kind, &caller.organization);
                let total = tx.count(&filter)?;
                let objects = tx.list(&filter.page(start - 1, count))?;
                let bodies = objects.iter().map(|object| resource::body(control, tx, object));
                (total, bodies.collect::<Result<Vec<_>, _>>()?)
            }
            conditions => {
                let fitting = fitting(control, tx, caller, kind, conditions)?;
                (fitting.len(), fitting.into_iter().skip(start - 1).take(count).collect())
            }
        };
        let schema = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
        Ok(Ok(found(
            200,
            &json!({
                "schemas": [schema], "totalResults": total, "startIndex": start, "itemsPerPage": resources.len(),
                "Resources": resources,
            }),
        )))
    })
}

/// The resources that fulfil all conditions.
fn fitting(
    control: &Control,
    tx: &Transaction<'_>,
    caller: &Caller,
    kind: Kind,
    conditions: &[Condition],
) -> Result<Vec<Value>, Problem> {
    let mut filter = Filter::new(kind, &caller.organization);
    let name = if kind == Kind::User { "username" } else { "displayname" };
    if let Some(wanted) = conditions.iter().find_map(|condition| condition.equals(name)) {
        filter = filter.named(wanted);
    }
    let mut fitting = Vec::new();
    for object in tx.list(&filter)? {
        let body = resource::body(control, tx, &object)?;
        if conditions.iter().all(|condition| condition.holds(&body)) {
            fitting.push(body);
        }
    }
    Ok(fitting)
}

fn create(control: &Control, caller: &Caller, kind: Kind, given: &Map<String, Value>) -> Outcome {
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let name = if kind == Kind::User { text("userName") } else { text("displayName") };
    let name = name.strip_prefix("PRIMARY/").unwrap_or(name);
    if name.is_empty() {
        return Ok(Err(refusal(400, Some("invalidValue"), "The name is missing")));
    }
    if let Some(why) = users::weakness(text("password")).filter(|_| kind == Kind::User) {
        return Ok(Err(refusal(400, Some("invalidValue"), &why)));
    }
    let taken = || refusal(409, Some("uniqueness"), &format!("The name {name} is taken"));
    if kind == Kind::Role && scopes::ROLES.iter().any(|role| role.eq_ignore_ascii_case(name)) {
        return Ok(Err(taken()));
    }
    let (organization, cost) = (caller.organization.as_str(), control.config.password_cost);
    control.store.change(|tx| {
        let added = match kind {
            Kind::User => users::add(tx, organization, name, text("password"), &[], cost)?,
            _ => tx.insert(&Object::new(kind, organization, name, Map::new()).keyed(name.to_lowercase()))?,
        };
        let key = if kind == Kind::User { name.to_owned() } else { name.to_lowercase() };
        let (Some(()), Some(mut object)) = (added, tx.find(kind, organization, &key)?) else { return Ok(Err(taken())) };
        resource::replace(tx, &mut object, given)?;
        tx.audit(organization, &caller.shown(), "create", kind, &object.id)?;
        let body = resource::body(control, tx, &object)?;
        let location = body["meta"]["location"].as_str().unwrap_or_default().to_owned();
        Ok(Ok(found(201, &body).with("Location", location)))
    })
}

/// Replaces a resource, or parts of it. Users may change their own attributes, but neither roles nor state.
fn change(
    control: &Control,
    caller: &Caller,
    kind: Kind,
    id: &str,
    given: &Map<String, Value>,
    is_whole: bool,
    is_me: bool,
) -> Outcome {
    let mut ended = Vec::new();
    let outcome = control.store.change(|tx| {
        let Some(mut object) = tx.get(kind, &caller.organization, id)? else { return Ok(Err(missing(id))) };
        let mut given = match is_whole {
            true => given.clone(),
            false => match patch::apply(tx, &object, given)? {
                Ok(given) => given,
                Err(why) => return Ok(Err(refusal(400, Some("invalidPath"), &why))),
            },
        };
        if is_me {
            given.retain(|name, _| !matches!(name.as_str(), "active" | "groups" | "roles" | "userName"));
        }
        let is_disabled = given.get("active") == Some(&Value::Bool(false));
        if is_disabled && object.name == ADMIN_ROLE {
            return Ok(Err(refusal(400, Some("mutability"), "The administrator cannot be disabled")));
        }
        let name = if kind == Kind::User { "userName" } else { "displayName" };
        let renamed = given.get(name).and_then(Value::as_str).is_some_and(|name| name != object.name);
        if renamed {
            return Ok(Err(refusal(400, Some("mutability"), "Users and groups cannot be renamed")));
        }
        resource::replace(tx, &mut object, &given)?;
        if let Some(password) = given.get("password").and_then(Value::as_str).filter(|_| kind == Kind::User) {
            if let Some(why) = users::weakness(password) {
                return Ok(Err(refusal(400, Some("invalidValue"), &why)));
            }
            let cost = control.config.password_cost;
            let of_password = users::set_password(tx, &object.organization, &object.name, password, cost)?;
            ended.extend(of_password.unwrap_or_default());
        }
        if is_disabled && kind == Kind::User {
            ended.extend(tx.end_tokens_of_user(&object.organization, &object.name)?);
        }
        tx.audit(&caller.organization, &caller.shown(), "update", kind, id)?;
        let object = tx.get(kind, &caller.organization, id)?.unwrap_or(object);
        Ok(Ok(found(200, &resource::body(control, tx, &object)?)))
    })?;
    control.end_tokens(&ended);
    Ok(outcome)
}

fn delete(control: &Control, caller: &Caller, kind: Kind, id: &str) -> Outcome {
    let mut ended = Vec::new();
    let outcome = control.store.change(|tx| {
        let Some(object) = tx.get(kind, &caller.organization, id)? else { return Ok(Err(missing(id))) };
        if kind == Kind::User && object.name == ADMIN_ROLE {
            return Ok(Err(refusal(400, Some("mutability"), "The administrator cannot be removed")));
        }
        if kind == Kind::User {
            ended = tx.end_tokens_of_user(&object.organization, &object.name)?;
        } else {
            resource::set_members(tx, &object, &[])?;
        }
        tx.delete(&object)?;
        tx.audit(&caller.organization, &caller.shown(), "delete", kind, id)?;
        Ok(Ok(Response::empty(204)))
    })?;
    control.end_tokens(&ended);
    Ok(outcome)
}
