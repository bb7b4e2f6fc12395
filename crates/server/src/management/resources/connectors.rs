//! `/connectors`

use serde_json::json;

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, list, refuse, text};

/// The package of a connector that names none.
const PACKAGE: &str = "org.wso2.carbon.connector";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    let found = inventory.connectors.iter().filter(|connector| call.finds(&connector.name));
    list(
        call,
        found.map(|connector| {
            let package = if connector.package.is_empty() { PACKAGE } else { &connector.package };
            json!({
                "name": connector.name,
                "package": package,
                "description": connector.description,
                "status": "enabled",
            })
        }),
    )
}

/// Connectors are enabled by being deployed; there is nothing else to switch.
pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let (Some(name), Some(status), Some(_)) =
        (text(&payload, "name"), text(&payload, "status"), text(&payload, "package"))
    else {
        return refuse(400, "Missing parameters in payload");
    };
    if !call.api.inventory().connectors.iter().any(|connector| connector.name == name) {
        return refuse(404, format!("the connector `{name}` is not deployed"));
    }
    if status != "enabled" {
        return refuse(400, "a connector is disabled by removing its archive");
    }
    audit::changed(call, Action::Enabled, "connector", &json!({ "name": name }));
    done("Status updated successfully")
}
