//! What clients ask before anything else: settings, categories, key managers, tags.

use serde_json::{Value, json};

use crate::http::Response;
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::route::{Call, Registration};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/settings", settings),
    ("GET", "/api-categories", |call| crate::admin::categories::list_for_portals(call)),
    ("GET", "/key-managers", |call| crate::admin::key_managers::list_for_portals(call)),
];

fn settings(call: &Call<'_>) -> Result<Response, Problem> {
    let known = call.control.scopes(SUPER_ORGANIZATION)?;
    let scopes: Vec<&str> = known.all().map(|(scope, _)| scope).collect();
    let environments =
        call.control.store.read(|tx| crate::admin::environments::all(tx, call.control, call.organization()))?;
    let environments: Vec<Value> = if call.is_anonymous() { Vec::new() } else { environments };
    let body = json!({
        "devportalUrl": format!("{}/devportal", call.control.base_url()),
        "environment": environments,
        "gatewayTypes": ["Regular"],
        "scopes": scopes,
        "monetizationAttributes": [],
        "subscriberContactAttributes": {"recipient": null, "contact": null},
        "securityAuditProperties": null,
        "externalStoresEnabled": false,
        "docVisibilityEnabled": true,
        "portalConfigurationOnlyModeEnabled": false,
        "crossTenantSubscriptionEnabled": false,
        "defaultAdvancePolicy": "Unlimited",
        "defaultSubscriptionPolicy": "Unlimited",
        "authorizationHeader": "Authorization",
        "IsJWTEnabledForLoginTokens": true,
        "orgAccessControlEnabled": false,
        "allowSubscriptionValidationDisabling": false,
        "designAssistantEnabled": false,
        "aiAuthTokenProvided": false,
        "isGatewayNotificationEnabled": false,
        "isMCPSupportEnabled": true,
        "customProperties": [],
    });
    Ok(Response::json(200, &body))
}
