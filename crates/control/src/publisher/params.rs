//! The parameters of an environment, which `apictl --params` sends beside a project.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::import::Project;
use super::{certificates, client_certificates};
use crate::problem::Problem;
use crate::route::Call;
use crate::store::{Object, Transaction};

/// Where the files that parameters name are in the archive.
const FILES: &str = "Deployment/certificates/";

/// How a group of backends is balanced, as API Manager writes it.
const ROUND_ROBIN: &str = "org.apache.synapse.endpoints.algorithms.RoundRobin";

fn wrong(why: impl std::fmt::Display) -> Problem {
    let text = format!("intermediate_params.yaml: {why}");
    Problem::rejected(900_908, "Error while reading meta information from the params file", text)
}

/// Puts the parameters of an environment into an API. What cannot be applied is an error: a silent fallback would send
/// requests of production to the wrong backend.
pub(super) fn merge(data: &mut Map<String, Value>, parameters: &Value) -> Result<(), Problem> {
    let Some(parameters) = parameters.as_object() else { return Err(wrong("it must be a mapping")) };
    const KNOWN: [&str; 14] = [
        "endpoints",
        "loadBalanceEndpoints",
        "failoverEndpoints",
        "awsLambdaEndpoints",
        "endpointType",
        "endpointRoutingPolicy",
        "security",
        "policies",
        "additionalProperties",
        "deploymentEnvironments",
        "dependentAPIs",
        "certs",
        "mutualSslCerts",
        "deploy",
    ];
    let given = |name: &str| parameters.get(name).filter(|value| !value.is_null());
    if let Some(other) = parameters.keys().find(|name| !KNOWN.contains(&name.as_str()) && given(name).is_some()) {
        return Err(wrong(format!("the parameter `{other}` is not supported")));
    }
    if let Some(mut config) = endpoints(parameters)? {
        let before = data.get("endpointConfig").and_then(|config| config.get("endpoint_security"));
        if let Some(security) = before.filter(|_| given("security").is_none()) {
            config.insert("endpoint_security".into(), security.clone());
        }
        data.insert("endpointConfig".into(), Value::Object(config));
    }
    if let Some(security) = given("security") {
        merge_security(data, security)?;
    }
    let policies = given("policies").and_then(Value::as_array).into_iter().flatten();
    let policies: Vec<Value> =
        policies.filter(|policy| policy.as_str().is_some_and(|text| !text.is_empty())).cloned().collect();
    if !policies.is_empty() {
        data.insert("policies".into(), policies.into());
    }
    if let Some(properties) = given("additionalProperties") {
        data.insert("additionalProperties".into(), properties.clone());
    }
    if given("mutualSslCerts").is_some() {
        let schemes = data.entry("securityScheme").or_insert_with(|| json!([]));
        if let Some(list) = schemes.as_array_mut().filter(|list| !list.contains(&json!("mutualssl"))) {
            list.push(json!("mutualssl"));
        }
    }
    Ok(())
}

/// The `endpointConfig` that the parameters describe; `None` when they describe no backends.
fn endpoints(parameters: &Map<String, Value>) -> Result<Option<Map<String, Value>>, Problem> {
    let given = |name: &str| parameters.get(name).filter(|value| !value.is_null());
    let kind = given("endpointType").and_then(Value::as_str).unwrap_or("rest");
    let is_soap = match kind {
        "rest" | "http" => false,
        "soap" => true,
        "dynamic" | "aws" => return addressed(parameters, kind).map(Some),
        other => return Err(wrong(format!("the endpointType `{other}` is not supported"))),
    };
    let routing = given("endpointRoutingPolicy").and_then(Value::as_str).unwrap_or_default();
    let (name, policy) = match routing {
        "" => ("endpoints", if is_soap { "address" } else { "http" }),
        "load_balanced" => ("loadBalanceEndpoints", "load_balance"),
        "failover" => ("failoverEndpoints", "failover"),
        other => return Err(wrong(format!("the endpointRoutingPolicy `{other}` is not supported"))),
    };
    let Some(described) = given(name) else {
        return if routing.is_empty() { Ok(None) } else { Err(wrong(format!("please specify `{name}`"))) };
    };
    let mut config = Map::new();
    config.insert("endpoint_type".into(), policy.into());
    if policy == "load_balance" {
        config.insert("algoClassName".into(), ROUND_ROBIN.into());
        let session = described.get("sessionManagement").filter(|session| **session != "transport");
        config.extend(session.map(|session| ("sessionManagement".to_owned(), session.clone())));
        let timeout = described.get("sessionTimeOut");
        config.extend(timeout.map(|timeout| ("sessionTimeOut".to_owned(), timeout.clone())));
    }
    if policy == "failover" {
        config.insert("failOver".into(), "true".into());
        for (kind, failovers) in [("production", "productionFailovers"), ("sandbox", "sandboxFailovers")] {
            let is_missing = described.get(failovers).is_none_or(Value::is_null);
            if is_missing && described.get(kind).is_some_and(|value| !value.is_null()) {
                return Err(wrong(format!("please specify `{name}.{failovers}`")));
            }
        }
    }
    let members = [
        ("production", "production_endpoints"),
        ("sandbox", "sandbox_endpoints"),
        ("productionFailovers", "production_failovers"),
        ("sandboxFailovers", "sandbox_failovers"),
    ];
    for (member, kept) in members {
        let Some(value) = described.get(member).filter(|value| !value.is_null()) else { continue };
        let is_addressed = match value {
            Value::Array(list) => list.iter().all(has_address),
            one => has_address(one),
        };
        if !is_addressed {
            return Err(wrong(format!("{name}.{member} has no `url`")));
        }
        let mut value = value.clone();
        if is_soap && !routing.is_empty() {
            mark_soap(&mut value);
        }
        config.insert(kept.into(), value);
    }
    if !config.contains_key("production_endpoints") && !config.contains_key("sandbox_endpoints") {
        return Err(wrong(format!("please specify production or sandbox endpoints in `{name}`")));
    }
    numbers_as_texts(&mut config);
    Ok(Some(config))
}

fn has_address(endpoint: &Value) -> bool {
    endpoint.get("url").and_then(Value::as_str).is_some_and(|url| !url.is_empty())
}

/// Each backend of a group over SOAP names its type.
fn mark_soap(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(mark_soap),
        Value::Object(endpoint) => drop(endpoint.insert("endpoint_type".into(), "address".into())),
        _ => {}
    }
}

/// The publisher of API Manager keeps times and counts as texts.
fn numbers_as_texts(config: &mut Map<String, Value>) {
    for value in config.values_mut() {
        match value {
            Value::Number(number) => *value = number.to_string().into(),
            Value::Object(members) => numbers_as_texts(members),
            _ => {}
        }
    }
}

/// Backends without addresses: those that a policy sets, and functions of AWS.
fn addressed(parameters: &Map<String, Value>, kind: &str) -> Result<Map<String, Value>, Problem> {
    let mut config = Map::new();
    let default = json!({"url": "default"});
    if kind == "dynamic" {
        config.insert("endpoint_type".into(), "default".into());
        config.insert("failOver".into(), "false".into());
        let described = parameters.get("endpoints").and_then(Value::as_object);
        for (member, kept) in [("production", "production_endpoints"), ("sandbox", "sandbox_endpoints")] {
            let own = described.and_then(|described| described.get(member)).filter(|value| !value.is_null());
            config.insert(kept.into(), own.unwrap_or(&default).clone());
        }
        return Ok(config);
    }
    let described = parameters.get("awsLambdaEndpoints").and_then(Value::as_object);
    let described = described.ok_or_else(|| wrong("please specify `awsLambdaEndpoints`"))?;
    let is_stored = described.get("accessMethod").is_some_and(|method| method == "stored");
    if is_stored {
        config
            .extend(described.iter().filter(|(name, _)| *name != "accessMethod").map(|(k, v)| (k.clone(), v.clone())));
    }
    config.insert("access_method".into(), if is_stored { "stored" } else { "role-supplied" }.into());
    config.insert("endpoint_type".into(), "awslambda".into());
    Ok(config)
}

/// Adds the certificates that parameters name: of backends (`certs`), and of clients (`mutualSslCerts`).
pub(super) fn add_certificates(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    api: &Object,
    project: &Project,
    parameters: &Value,
) -> Result<(), Problem> {
    let entries = |name: &str| parameters.get(name).and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let file = |entry: &Value| -> Result<Bytes, Problem> {
        let path = text(entry, "path");
        let name = path.rsplit('/').next().unwrap_or_default();
        let missing = || Problem::bad_request(format!("`{FILES}{name}` is not in the archive"));
        project.file(&[&format!("{FILES}{name}")]).map(|(_, content)| content.clone()).ok_or_else(missing)
    };
    for entry in entries("certs") {
        certificates::put(tx, call, &text(entry, "alias"), &text(entry, "hostName"), &file(entry)?)?;
    }
    for entry in entries("mutualSslCerts") {
        let (alias, tier, key_type) = (text(entry, "alias"), text(entry, "tierName"), text(entry, "keyType"));
        client_certificates::put(tx, api, &key_type, &alias, &tier, &file(entry)?)?;
    }
    Ok(())
}

/// Replaces the credentials for backends. A kind of key that the parameters leave out has none.
fn merge_security(data: &mut Map<String, Value>, security: &Value) -> Result<(), Problem> {
    let Some(security) = security.as_object() else { return Err(wrong("`security` must be a mapping")) };
    let mut kept = Map::new();
    for kind in ["production", "sandbox"] {
        let given = security.get(kind).and_then(Value::as_object);
        let is_enabled = |given: &Map<String, Value>| match given.get("enabled") {
            Some(Value::String(text)) => text == "true",
            other => other.and_then(Value::as_bool).unwrap_or(false),
        };
        let mut own = given.cloned().unwrap_or_default();
        if given.is_some_and(is_enabled) {
            let named = own.get("type").and_then(Value::as_str).map(str::to_uppercase);
            let named = named.ok_or_else(|| wrong(format!("please specify `security.{kind}.type`")))?;
            let needed: &[&str] = match named.as_str() {
                "BASIC" | "DIGEST" => &["username", "password"],
                "OAUTH" => &["grantType", "clientId", "clientSecret"],
                "APIKEY" => &["apiKeyIdentifier", "apiKeyValue"],
                other => {
                    return Err(wrong(format!("`security.{kind}.type` must be basic, digest or oauth, not {other}")));
                }
            };
            if let Some(missing) = needed.iter().find(|name| own.get(**name).is_none_or(Value::is_null)) {
                return Err(wrong(format!("please specify `security.{kind}.{missing}`")));
            }
            if let Some(grant) = own.get("grantType").and_then(Value::as_str).map(str::to_uppercase) {
                own.insert("grantType".into(), grant.into());
            }
            own.insert("enabled".into(), true.into());
            own.insert("type".into(), named.into());
        } else {
            own.insert("enabled".into(), false.into());
            own.insert("type".into(), "NONE".into());
        }
        kept.insert(kind.into(), Value::Object(own));
    }
    let config = data.entry("endpointConfig").or_insert_with(|| json!({}));
    if !config.is_object() {
        *config = json!({});
    }
    config["endpoint_security"] = Value::Object(kept);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(parameters: Value) -> Result<Value, String> {
        let Value::Object(mut data) = json!({"endpointConfig": {"endpoint_type": "http", "other": 1}}) else {
            return Err("not an object".to_owned());
        };
        merge(&mut data, &parameters).map_err(|problem| problem.description)?;
        Ok(data["endpointConfig"].take())
    }

    #[test]
    fn addresses_replace_those_of_the_descriptor() {
        let one = json!({"url": "http://a"});
        assert_eq!(
            merged(json!({"endpoints": {"production": {"url": "http://a", "config": {"retryDelay": 5}}}})).unwrap(),
            json!({"endpoint_type": "http", "production_endpoints": {"url": "http://a", "config": {"retryDelay": "5"}}})
        );
        let group = json!({
            "endpointType": "rest", "endpointRoutingPolicy": "load_balanced",
            "loadBalanceEndpoints": {
                "production": [{"url": "http://a"}, {"url": "http://b"}], "sessionManagement": "transport", "sessionTimeOut": 5,
            },
        });
        assert_eq!(
            merged(group).unwrap(),
            json!({
                "endpoint_type": "load_balance", "algoClassName": ROUND_ROBIN, "sessionTimeOut": "5",
                "production_endpoints": [{"url": "http://a"}, {"url": "http://b"}],
            })
        );
        let failover = json!({
            "endpointRoutingPolicy": "failover", "endpointType": "soap",
            "failoverEndpoints": {"production": one, "productionFailovers": [{"url": "http://b"}]},
        });
        let expected = json!([{"url": "http://b", "endpoint_type": "address"}]);
        assert_eq!(merged(failover).unwrap()["production_failovers"], expected);
        assert_eq!(merged(json!({"endpointType": "dynamic"})).unwrap()["endpoint_type"], "default");
        assert_eq!(merged(json!({"policies": ["Gold"]})).unwrap(), json!({"endpoint_type": "http", "other": 1}));
        let keys = json!({"accessMethod": "stored", "amznAccessKey": "k", "amznSecretKey": "s", "amznRegion": "r"});
        let aws = merged(json!({"endpointType": "aws", "awsLambdaEndpoints": keys})).unwrap();
        assert_eq!((&aws["access_method"], &aws["amznRegion"]), (&json!("stored"), &json!("r")));
    }

    #[test]
    fn credentials_are_complete() {
        let basic = json!({"enabled": true, "type": "basic", "username": "u", "password": "p"});
        let config = merged(json!({"security": {"production": basic}})).unwrap();
        assert_eq!(config["endpoint_security"]["production"]["type"], "BASIC");
        assert_eq!(config["endpoint_security"]["sandbox"], json!({"enabled": false, "type": "NONE"}));
        let without = json!({"enabled": true, "type": "basic", "username": "u"});
        let why = merged(json!({"security": {"production": without}})).unwrap_err();
        assert!(why.contains("security.production.password"), "{why}");
    }

    #[test]
    fn what_cannot_be_applied_is_an_error() {
        for (parameters, expected) in [
            (json!({"endpoints": {"production": {"config": {}}}}), "endpoints.production has no `url`"),
            (json!({"unknown": 1}), "the parameter `unknown` is not supported"),
            (json!({"endpointType": "aws"}), "please specify `awsLambdaEndpoints`"),
            (json!({"endpointType": "other"}), "the endpointType `other` is not supported"),
            (json!({"endpointRoutingPolicy": "failover"}), "please specify `failoverEndpoints`"),
            (json!([]), "must be a mapping"),
        ] {
            let got = merged(parameters.clone()).unwrap_err();
            assert!(got.contains(expected), "{parameters}: {got}");
        }
    }
}
