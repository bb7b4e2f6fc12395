//! Key managers: the resident one.

use serde_json::{Value, json};

use crate::Control;
use crate::http::Response;
use crate::oauth::token::GRANT_TYPES;
use crate::problem::Problem;
use crate::route::{Call, Registration};

pub(super) const HANDLERS: &[Registration] = &[("GET", "/key-managers", list)];

/// The name of the key manager of this server.
pub(crate) const RESIDENT: &str = "Resident Key Manager";

fn resident(control: &Control) -> Value {
    let base = control.base_url();
    json!({
        "id": "resident", "name": RESIDENT, "type": "default", "displayName": RESIDENT,
        "description": "The key manager of this server", "enabled": true, "availableGrantTypes": GRANT_TYPES,
        "tokenEndpoint": format!("{base}/oauth2/token"), "revokeEndpoint": format!("{base}/oauth2/revoke"),
        "userInfoEndpoint": format!("{base}/oauth2/userinfo"), "enableTokenGeneration": true,
        "enableTokenEncryption": false, "enableTokenHashing": false, "enableOAuthAppCreation": true,
        "enableMapOAuthConsumerApps": true, "applicationConfiguration": [], "alias": null, "additionalProperties": {},
        "tokenType": "DIRECT",
    })
}

fn list(_: &Call<'_>) -> Result<Response, Problem> {
    let entry = json!({
        "id": "resident", "name": RESIDENT, "type": "default", "description": "The key manager of this server",
        "enabled": true, "isGlobal": false, "isUsed": true, "tokenType": "DIRECT",
    });
    Ok(Response::json(200, &json!({"count": 1, "list": [entry]})))
}

/// The same for publishers and developers.
pub(crate) fn list_for_portals(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &json!({"count": 1, "list": [resident(call.control)]})))
}
