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

/// Members of `endpointConfig` by the names that parameters have for them.
const ENDPOINTS: [(&str, &str); 7] = [
    ("production", "production_endpoints"),
    ("sandbox", "sandbox_endpoints"),
    ("productionFailovers", "production_failovers"),
    ("sandboxFailovers", "sandbox_failovers"),
    ("sessionManagement", "sessionManagement"),
    ("sessionTimeOut", "sessionTimeOut"),
    ("algoClassName", "algoClassName"),
];

/// Puts the parameters of an environment into an API. What cannot be applied is an error: a silent fallback would send
/// requests of production to the wrong backend.
pub(super) fn merge(data: &mut Map<String, Value>, parameters: &Value) -> Result<(), Problem> {
    let Some(parameters) = parameters.as_object() else {
        return Err(Problem::bad_request("intermediate_params.yaml must be a mapping"));
    };
    let routing = parameters.get("endpointRoutingPolicy").and_then(Value::as_str);
    for (name, value) in parameters {
        match name.as_str() {
            _ if value.is_null() => {}
            "endpoints" if routing.is_none() => merge_endpoints(data, name, "http", value)?,
            "loadBalanceEndpoints" => merge_endpoints(data, name, "load_balance", value)?,
            "failoverEndpoints" => merge_endpoints(data, name, "failover", value)?,
            "security" => merge_security(data, value)?,
            "policies" => drop(data.insert("policies".into(), value.clone())),
            "additionalProperties" => drop(data.insert("additionalProperties".into(), value.clone())),
            "deploymentEnvironments" | "dependentAPIs" | "certs" | "mutualSslCerts" | "endpoints" | "deploy" => {}
            "endpointRoutingPolicy" if matches!(value.as_str(), Some("load_balanced" | "failover")) => {}
            "endpointType" => set_type(data, value)?,
            other => {
                return Err(Problem::bad_request(format!(
                    "intermediate_params.yaml: the parameter `{other}` is not supported"
                )));
            }
        }
    }
    Ok(())
}

fn config(data: &mut Map<String, Value>) -> &mut Value {
    let config = data.entry("endpointConfig").or_insert_with(|| json!({}));
    if !config.is_object() {
        *config = json!({});
    }
    config
}

fn set_type(data: &mut Map<String, Value>, value: &Value) -> Result<(), Problem> {
    let config = config(data);
    let is_group = matches!(config["endpoint_type"].as_str(), Some("load_balance" | "failover"));
    config["endpoint_type"] = match value.as_str() {
        Some("rest" | "soap") if is_group => return Ok(()),
        Some("rest") => "http".into(),
        Some("soap") => "address".into(),
        // Such an API has no address: a policy sets it.
        Some("dynamic") => {
            *config = json!({
                "endpoint_type": "default", "failOver": false, "production_endpoints": {"url": "default"},
                "sandbox_endpoints": {"url": "default"},
            });
            return Ok(());
        }
        _ => {
            let text = format!("intermediate_params.yaml: the endpointType {value} is not supported");
            return Err(Problem::bad_request(text));
        }
    };
    Ok(())
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

/// Replaces the addresses, of one backend or of a group, for each kind of key.
fn merge_endpoints(data: &mut Map<String, Value>, name: &str, kind: &str, endpoints: &Value) -> Result<(), Problem> {
    let config = config(data);
    let has_address = |endpoint: &Value| endpoint.get("url").and_then(Value::as_str).is_some_and(|url| !url.is_empty());
    let keeps_type = kind == "http" && config["endpoint_type"] == "address";
    if !keeps_type {
        config["endpoint_type"] = kind.into();
    }
    for (given, kept) in ENDPOINTS {
        let Some(value) = endpoints.get(given).filter(|value| !value.is_null()) else { continue };
        let is_addressed = match value {
            Value::Array(list) => list.iter().all(has_address),
            Value::Object(_) => has_address(value),
            _ => true,
        };
        if !is_addressed {
            return Err(Problem::bad_request(format!("intermediate_params.yaml: {name}.{given} has no `url`")));
        }
        config[kept] = value.clone();
    }
    if kind == "failover" {
        config["failOver"] = "True".into();
    }
    Ok(())
}

fn merge_security(data: &mut Map<String, Value>, security: &Value) -> Result<(), Problem> {
    let config = config(data);
    for kind in ["production", "sandbox"] {
        let Some(given) = security.get(kind).and_then(Value::as_object) else { continue };
        let mut given = given.clone();
        if let Some(named) = given.get("type").and_then(Value::as_str) {
            let upper = named.to_uppercase();
            given.insert("type".into(), upper.into());
        }
        config["endpoint_security"][kind] = Value::Object(given);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(parameters: Value) -> Result<Value, String> {
        let Value::Object(mut data) = json!({"endpointConfig": {"endpoint_type": "http", "kept": 1}}) else {
            return Err("not an object".to_owned());
        };
        merge(&mut data, &parameters).map_err(|problem| problem.description)?;
        Ok(data["endpointConfig"].take())
    }

    #[test]
    fn addresses_replace_those_of_the_descriptor() {
        let one = json!({"url": "http://a"});
        assert_eq!(
            merged(json!({"endpoints": {"production": one}})).unwrap(),
            json!({"endpoint_type": "http", "kept": 1, "production_endpoints": one})
        );
        let group = json!({
            "endpointType": "rest", "endpointRoutingPolicy": "load_balanced",
            "loadBalanceEndpoints": {"production": [{"url": "http://a"}, {"url": "http://b"}], "sessionManagement": "none"},
        });
        assert_eq!(
            merged(group).unwrap(),
            json!({
                "endpoint_type": "load_balance", "kept": 1, "sessionManagement": "none",
                "production_endpoints": [{"url": "http://a"}, {"url": "http://b"}],
            })
        );
        let failover = json!({
            "endpointRoutingPolicy": "failover",
            "failoverEndpoints": {"production": one, "productionFailovers": [{"url": "http://b"}]},
        });
        assert_eq!(merged(failover).unwrap()["production_failovers"], json!([{"url": "http://b"}]));
        assert_eq!(merged(json!({"endpointType": "dynamic"})).unwrap()["endpoint_type"], "default");
    }

    #[test]
    fn what_cannot_be_applied_is_an_error() {
        for (parameters, expected) in [
            (json!({"endpoints": {"production": {"config": {}}}}), "endpoints.production has no `url`"),
            (json!({"unknown": 1}), "the parameter `unknown` is not supported"),
            (json!({"endpointType": "aws"}), "the endpointType \"aws\" is not supported"),
            (json!([]), "must be a mapping"),
        ] {
            let got = merged(parameters.clone()).unwrap_err();
            assert!(got.contains(expected), "{parameters}: {got}");
        }
    }
}
