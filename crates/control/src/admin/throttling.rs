//! Throttling policies of all levels.

use serde_json::{Map, Value, json};

use super::plan_text::{NO_LIMIT, group_text, limit_text};
use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::publisher::archive;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/throttling/policies/search", search),
    ("GET", "/throttling/policies/export", export),
    ("POST", "/throttling/policies/import", import),
    ("GET", "/throttling/policies/application", |call| list(call, "application")),
    ("POST", "/throttling/policies/application", |call| create(call, "application")),
    ("GET", "/throttling/policies/application/{policyId}", |call| get(call, "application")),
    ("PUT", "/throttling/policies/application/{policyId}", |call| update(call, "application")),
    ("DELETE", "/throttling/policies/application/{policyId}", |call| delete(call, "application")),
    ("GET", "/throttling/policies/subscription", |call| list(call, "subscription")),
    ("POST", "/throttling/policies/subscription", |call| create(call, "subscription")),
    ("GET", "/throttling/policies/subscription/{policyId}", |call| get(call, "subscription")),
    ("PUT", "/throttling/policies/subscription/{policyId}", |call| update(call, "subscription")),
    ("DELETE", "/throttling/policies/subscription/{policyId}", |call| delete(call, "subscription")),
    ("GET", "/throttling/policies/advanced", |call| list(call, "advanced")),
    ("POST", "/throttling/policies/advanced", |call| create(call, "advanced")),
    ("GET", "/throttling/policies/advanced/{policyId}", |call| get(call, "advanced")),
    ("PUT", "/throttling/policies/advanced/{policyId}", |call| update(call, "advanced")),
    ("DELETE", "/throttling/policies/advanced/{policyId}", |call| delete(call, "advanced")),
];

/// Levels: the name in paths, in `type=` of export, and in bodies.
const LEVELS: [(&str, &str, &str, &str); 4] = [
    ("subscription", "sub", "subscription policy", "SubscriptionThrottlePolicy"),
    ("application", "app", "application policy", "ApplicationThrottlePolicy"),
    ("advanced", "api", "advanced policy", "AdvancedThrottlePolicy"),
    (CUSTOM, "global", "custom rule", "CustomRule"),
];

/// The level of custom policies.
pub(super) const CUSTOM: &str = "custom";

/// The policies that every organization has: level, name, requests (0: no limit), unit.
const STANDARD: &[(&str, &str, u64, &str)] = &[
    ("application", "50PerMin", 50, "min"),
    ("application", "20PerMin", 20, "min"),
    ("application", "10PerMin", 10, "min"),
    ("application", "Unlimited", 0, "min"),
    ("subscription", "Gold", 5000, "min"),
    ("subscription", "Silver", 2000, "min"),
    ("subscription", "Bronze", 1000, "min"),
    ("subscription", "Unauthenticated", 500, "min"),
    ("subscription", "DefaultSubscriptionless", 10_000, "min"),
    ("subscription", "Unlimited", 0, "min"),
    ("advanced", "50KPerMin", 50_000, "min"),
    ("advanced", "20KPerMin", 20_000, "min"),
    ("advanced", "10KPerMin", 10_000, "min"),
    ("advanced", "Unlimited", 0, "min"),
];

/// Those that APIs with events have: they count events by day.
const STANDARD_EVENTS: &[(&str, u64)] =
    &[("AsyncGold", 50_000), ("AsyncSilver", 25_000), ("AsyncBronze", 5_000), ("AsyncUnlimited", 0)];

/// Adds the policies that every organization has.
pub(crate) fn add_standard(tx: &Transaction<'_>, organization: &str) -> Result<(), Problem> {
    let rows = STANDARD.iter().map(|(level, name, count, unit)| {
        let description = match count {
            0 => "Allows unlimited requests".to_owned(),
            count => {
                let condition = match *name {
                    "DefaultSubscriptionless" => " when subscription validation is disabled",
                    _ => "",
                };
                format!("Allows {count} requests per {}{condition}", if *unit == "min" { "minute" } else { "day" })
            }
        };
        let count = if *count == 0 { NO_LIMIT } else { *count };
        let limit = json!({
            "type": "REQUESTCOUNTLIMIT",
            "requestCount": {"timeUnit": unit, "unitTime": 1, "requestCount": count},
            "bandwidth": null, "eventCount": null,
        });
        (*level, *name, description, limit)
    });
    let events = STANDARD_EVENTS.iter().map(|(name, count)| {
        let description = match count {
            0 => "Allows unlimited events".to_owned(),
            count => format!("Allows {count} events per day"),
        };
        let count = if *count == 0 { NO_LIMIT } else { *count };
        let limit = json!({
            "type": "EVENTCOUNTLIMIT",
            "eventCount": {"timeUnit": "days", "unitTime": 1, "eventCount": count},
            "bandwidth": null, "requestCount": null,
        });
        ("subscription", *name, description, limit)
    });
    for (level, name, description, limit) in rows.chain(events) {
        let mut document = Map::new();
        document.insert("policyName".into(), name.into());
        document.insert("displayName".into(), name.into());
        document.insert("description".into(), description.into());
        document.insert("defaultLimit".into(), limit);
        complete(&mut document, level);
        document.insert("isDeployed".into(), true.into());
        let policy = Object::new(Kind::Throttling, organization, name, document);
        tx.insert(&policy.of(level).keyed(format!("{level}:{name}")))?;
    }
    Ok(())
}

/// Whether an organization has a policy.
pub(crate) fn exists(tx: &Transaction<'_>, organization: &str, level: &str, name: &str) -> Result<bool, Problem> {
    Ok(tx.find(Kind::Throttling, organization, &format!("{level}:{name}"))?.is_some())
}

/// The policies of a level as publishers and developers choose from them.
pub(crate) fn choices(tx: &Transaction<'_>, organization: &str, level: &str) -> Result<Vec<Value>, Problem> {
    let policies = tx.list(&Filter::new(Kind::Throttling, organization).parent(level))?;
    let shown = policies.iter().filter(|policy| policy.name != "Unauthenticated");
    Ok(shown.map(|policy| choice(policy, level)).collect())
}

/// The plans that count events, as an administrator sees them.
pub(crate) fn streaming(tx: &Transaction<'_>, organization: &str) -> Result<Vec<Value>, Problem> {
    let policies = tx.list(&Filter::new(Kind::Throttling, organization).parent("subscription"))?;
    let counts_events =
        |policy: &&Object| policy.document.get("defaultLimit").is_some_and(|limit| limit["type"] == "EVENTCOUNTLIMIT");
    Ok(policies.iter().filter(counts_events).map(body).collect())
}

fn choice(policy: &Object, level: &str) -> Value {
    let limit = policy.document.get("defaultLimit").cloned().unwrap_or_default();
    let kind = limit["type"].as_str().unwrap_or_default();
    let part = match kind {
        "BANDWIDTHLIMIT" => &limit["bandwidth"],
        "EVENTCOUNTLIMIT" => &limit["eventCount"],
        _ => &limit["requestCount"],
    };
    let count = ["requestCount", "eventCount", "dataAmount"].iter().find_map(|name| part[*name].as_u64());
    let own = |name: &str| policy.document.get(name).cloned().unwrap_or_default();
    json!({
        "name": policy.name, "displayName": own("displayName"), "description": own("description"),
        "policyLevel": if level == "advanced" { "api" } else { level }, "attributes": {}, "requestCount": count,
        "dataUnit": part["dataUnit"], "unitTime": part["unitTime"], "timeUnit": part["timeUnit"],
        "rateLimitCount": own("rateLimitCount").as_u64().unwrap_or_default(), "rateLimitTimeUnit": own("rateLimitTimeUnit"),
        "quotaPolicyType": if kind == "BANDWIDTHLIMIT" { "BANDWIDTHVOLUME" } else { "REQUESTCOUNT" },
        "tierPlan": own("billingPlan").as_str().unwrap_or("FREE"),
        "stopOnQuotaReach": own("stopOnQuotaReach").as_bool().unwrap_or(true), "monetizationAttributes": null,
        "throttlingPolicyPermissions": own("permissions"),
    })
}

/// Members that a level has and that a body may leave out.
fn complete(document: &mut Map<String, Value>, level: &str) {
    let mut or = |name: &str, default: Value| {
        if document.get(name).is_none_or(Value::is_null) {
            document.insert(name.to_owned(), default);
        }
    };
    or("isDeployed", false.into());
    if level == "subscription" {
        or("graphQLMaxComplexity", 0.into());
        or("graphQLMaxDepth", 0.into());
        or("rateLimitCount", 0.into());
        or("rateLimitTimeUnit", "sec".into());
        or("subscriberCount", 0.into());
        or("customAttributes", json!([]));
        or("stopOnQuotaReach", true.into());
        or("billingPlan", "FREE".into());
    }
    if level == "advanced" {
        or("conditionalGroups", json!([]));
    }
}

pub(super) fn body(policy: &Object) -> Value {
    let kind = LEVELS.iter().find(|(level, ..)| *level == policy.parent).map(|(.., kind)| *kind);
    // `apictl` reads the first members by their position.
    let mut body = Map::new();
    body.insert("policyId".into(), policy.id.as_str().into());
    body.insert("policyName".into(), policy.name.as_str().into());
    for name in ["displayName", "description", "isDeployed"] {
        body.insert(name.into(), policy.document.get(name).cloned().unwrap_or_default());
    }
    body.insert("type".into(), kind.into());
    for (name, value) in &policy.document {
        if !body.contains_key(name) {
            body.insert(name.clone(), value.clone());
        }
    }
    if policy.parent == "subscription" && body.get("permissions").is_none_or(Value::is_null) {
        body.insert("permissions".into(), json!({"permissionType": "ALLOW", "roles": ["Internal/everyone"]}));
    }
    Value::Object(body)
}

fn list(call: &Call<'_>, level: &str) -> Result<Response, Problem> {
    let policies =
        call.control.store.read(|tx| tx.list(&Filter::new(Kind::Throttling, call.organization()).parent(level)))?;
    let list: Vec<Value> = policies.iter().map(body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn check(given: &Map<String, Value>, level: &str) -> Result<(), Problem> {
    if level == CUSTOM {
        return super::custom::check(given);
    }
    let name = text(given, "policyName");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. ".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(Problem::invalid(
            "policyName",
            "the name is empty or contains a character that names must not contain",
        ));
    }
    for group in given.get("conditionalGroups").and_then(Value::as_array).into_iter().flatten() {
        group_text(group).map_err(|why| Problem::invalid("conditionalGroups", why))?;
    }
    match limit_text(given) {
        Some(_) => Ok(()),
        None => Err(Problem::invalid("defaultLimit", "the limit must have a type, an amount and a time")),
    }
}

fn taken(name: &str, level: &str) -> Problem {
    let text = format!("Throttling policy of type: {level} with name: {name} already exists.");
    Problem::conflict(903_001, "Throttling policy already exists", text)
}

pub(super) fn insert(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    level: &str,
    mut given: Map<String, Value>,
) -> Result<Object, Problem> {
    check(&given, level)?;
    let name = text(&given, "policyName").to_owned();
    for member in ["policyId", "type", "isDeployed"] {
        given.shift_remove(member);
    }
    complete(&mut given, level);
    let policy = Object::new(Kind::Throttling, call.organization(), &name, given).of(level);
    let policy = policy.keyed(format!("{level}:{name}"));
    tx.insert(&policy)?.ok_or_else(|| taken(&name, level))?;
    tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Throttling, &policy.id)?;
    Ok(policy)
}

fn create(call: &Call<'_>, level: &str) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let policy = call.control.change_served(|tx| insert(tx, call, level, given))?;
    Ok(Response::json(201, &body(&policy)).with("Location", format!("/throttling/policies/{level}/{}", policy.id)))
}

pub(super) fn of_call(tx: &Transaction<'_>, call: &Call<'_>, level: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Throttling, call.organization(), call.id())?.filter(|policy| policy.parent == level);
    found.ok_or_else(|| Problem::not_found("Throttle Policy", call.id()))
}

fn get(call: &Call<'_>, level: &str) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| of_call(tx, call, level))?;
    Ok(Response::json(200, &body(&policy)))
}

pub(super) fn replace(tx: &Transaction<'_>, policy: &mut Object, mut given: Map<String, Value>) -> Result<(), Problem> {
    given.insert("policyName".into(), policy.name.as_str().into());
    check(&given, &policy.parent)?;
    for member in ["policyId", "type", "isDeployed"] {
        given.shift_remove(member);
    }
    complete(&mut given, &policy.parent);
    policy.document = given;
    tx.update(policy).map(|_| ())
}

fn update(call: &Call<'_>, level: &str) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let policy = call.control.change_served(|tx| {
        let mut policy = of_call(tx, call, level)?;
        replace(tx, &mut policy, given)?;
        Ok(policy)
    })?;
    Ok(Response::json(200, &body(&policy)))
}

fn delete(call: &Call<'_>, level: &str) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let policy = of_call(tx, call, level)?;
        if is_used(tx, &policy)? {
            let text = format!("The policy {} is used and cannot be deleted", policy.name);
            return Err(Problem::new(403, 900_971, "Policy is used", text));
        }
        tx.delete(&policy)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Throttling, &policy.id)
    })?;
    Ok(Response::empty(200))
}

/// Whether an API, an application or a subscription has a policy.
fn is_used(tx: &Transaction<'_>, policy: &Object) -> Result<bool, Problem> {
    let by = |kind: Kind, member: &str| {
        let filter = Filter::new(kind, &policy.organization).member(member, &[&policy.name]);
        tx.count(&filter).map(|count| count > 0)
    };
    Ok(match policy.parent.as_str() {
        "application" => by(Kind::Application, "throttlingPolicy")?,
        "subscription" => by(Kind::Subscription, "throttlingPolicy")?,
        CUSTOM => false,
        _ => {
            by(Kind::Api, "apiThrottlingPolicy")?
                || tx.count(&Filter::new(Kind::Api, &policy.organization).with_operation_policy(&policy.name))? > 0
        }
    })
}

fn level_of(short: &str) -> Option<&'static str> {
    LEVELS.iter().find(|(level, known, ..)| *known == short || *level == short).map(|(level, ..)| *level)
}

fn search(call: &Call<'_>) -> Result<Response, Problem> {
    let terms = Term::parse(call.query.get("query").unwrap_or_default());
    let of = |key: &str| terms.iter().find(|term| term.key == key).map(|term| term.value.as_str());
    let level = match of("type") {
        Some("all") | None => None,
        Some(short) => {
            Some(level_of(short).ok_or_else(|| Problem::bad_request(format!("Unknown type of policy {short}")))?)
        }
    };
    let policies = call.control.store.read(|tx| {
        let mut filter = Filter::new(Kind::Throttling, call.organization());
        if let Some(level) = level {
            filter = filter.parent(level);
        }
        if let Some(name) = of("name") {
            filter = filter.named(name);
        }
        tx.list(&filter)
    })?;
    let entry = |policy: &Object| {
        let short = LEVELS.iter().find(|(level, ..)| *level == policy.parent).map(|(_, short, ..)| *short);
        json!({
            "policyId": 0, "uuid": policy.id, "policyName": policy.name, "displayName": policy.text("displayName"),
            "description": policy.text("description"), "isDeployed": policy.flag("isDeployed"), "type": short,
        })
    };
    let list: Vec<Value> = policies.iter().map(entry).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn export(call: &Call<'_>) -> Result<Response, Problem> {
    let name = call.needed("name")?;
    let wanted = call.query.get("type").and_then(level_of);
    let policy = call.control.store.read(|tx| {
        let mut found = None;
        for (level, ..) in LEVELS.iter().filter(|(level, ..)| wanted.is_none_or(|wanted| wanted == *level)) {
            found = found.or(tx.find(Kind::Throttling, call.organization(), &format!("{level}:{name}"))?);
        }
        Ok(found)
    })?;
    let policy = policy.ok_or_else(|| {
        Problem::new(404, 903_004, "Throttling policy not found", format!("Requested policy {name} not found"))
    })?;
    let subtype = LEVELS.iter().find(|(level, ..)| *level == policy.parent).map(|(_, _, subtype, _)| *subtype);
    let mut data = body(&policy);
    data["isDeployed"] = false.into();
    let body = json!({"type": "throttling policy", "subtype": subtype, "version": "v4.7.0", "data": data});
    Ok(Response::json(200, &body))
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let part = archive::uploaded(call, "file")?;
    let read = call.control.host.parse_yaml(&part.content).map_err(Problem::bad_request)?;
    let subtype = read.get("subtype").and_then(Value::as_str).unwrap_or_default();
    let level = LEVELS.iter().find(|(_, _, known, _)| *known == subtype).map(|(level, ..)| *level);
    let level = level.ok_or_else(|| Problem::bad_request(format!("Unknown type of policy `{subtype}`")))?;
    let Some(given) = read.get("data").and_then(Value::as_object).cloned() else {
        return Err(Problem::bad_request("The file has no `data`"));
    };
    let overwrite = call.query.flag("overwrite");
    let (policy, is_new) = call.control.change_served(|tx| {
        if level == CUSTOM && call.organization() != crate::identity::SUPER_ORGANIZATION {
            return Err(Problem::forbidden("Only the first organization has custom policies"));
        }
        let name = text(&given, "policyName").to_owned();
        match tx.find(Kind::Throttling, call.organization(), &format!("{level}:{name}"))? {
            Some(_) if !overwrite => Err(taken(&name, level)),
            Some(mut policy) => {
                replace(tx, &mut policy, given)?;
                Ok((policy, false))
            }
            None => Ok((insert(tx, call, level, given)?, true)),
        }
    })?;
    Ok(Response::json(if is_new { 201 } else { 200 }, &body(&policy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_configuration_has_them() {
        for (policy, expected) in [
            (
                json!({"defaultLimit": {"type": "REQUESTCOUNTLIMIT", "requestCount": {"timeUnit": "min", "unitTime": 2, "requestCount": 5}}}),
                Some("5/2min"),
            ),
            (
                json!({"defaultLimit": {"type": "BANDWIDTHLIMIT", "bandwidth": {"timeUnit": "hours", "unitTime": 1, "dataAmount": 5, "dataUnit": "MB"}}}),
                Some("5MB/1hour"),
            ),
            (
                json!({
                    "defaultLimit": {"type": "REQUESTCOUNTLIMIT", "requestCount": {"timeUnit": "min", "unitTime": 1, "requestCount": NO_LIMIT}},
                    "rateLimitCount": 3, "rateLimitTimeUnit": "sec", "stopOnQuotaReach": false, "graphQLMaxDepth": 4,
                }),
                Some("unlimited burst 3/1sec soft depth 4"),
            ),
            (json!({"defaultLimit": {"type": "REQUESTCOUNTLIMIT"}}), None),
            (json!({}), None),
        ] {
            assert_eq!(limit_text(policy.as_object().unwrap()).as_deref(), expected, "{policy}");
        }
    }
}
