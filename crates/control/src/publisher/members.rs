//! The members of an API, their types, and what they are when the client does not say.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::schema::{Is, Members};

/// Types of APIs that clients may create.
pub(crate) const TYPES: &[&str] =
    &["HTTP", "WS", "SOAPTOREST", "SOAP", "GRAPHQL", "WEBSUB", "SSE", "WEBHOOK", "ASYNC", "APIPRODUCT", "MCP"];

/// The members of an API.
pub(crate) const MEMBERS: Members = &[
    ("id", Is::Text),
    ("name", Is::Text),
    ("displayName", Is::Text),
    ("description", Is::Short(32_766)),
    ("context", Is::Short(232)),
    ("version", Is::Short(30)),
    ("provider", Is::Short(200)),
    ("lifeCycleStatus", Is::Text),
    ("wsdlInfo", Is::Map),
    ("wsdlUrl", Is::Text),
    ("responseCachingEnabled", Is::Flag),
    ("cacheTimeout", Is::Number),
    ("hasThumbnail", Is::Flag),
    ("isDefaultVersion", Is::Flag),
    ("isRevision", Is::Flag),
    ("revisionedApiId", Is::Text),
    ("revisionId", Is::Number),
    ("enableSchemaValidation", Is::Flag),
    ("enableSubscriberVerification", Is::Flag),
    ("enableStore", Is::Flag),
    ("type", Is::OneOf(TYPES)),
    ("audience", Is::OneOf(&["PUBLIC", "SINGLE"])),
    ("audiences", Is::Texts),
    ("transport", Is::Texts),
    ("tags", Is::Texts),
    ("policies", Is::Texts),
    ("organizationPolicies", Is::List),
    ("apiThrottlingPolicy", Is::Text),
    ("authorizationHeader", Is::Text),
    ("apiKeyHeader", Is::Text),
    ("securityScheme", Is::Texts),
    ("maxTps", Is::Map),
    ("visibility", Is::OneOf(&["PUBLIC", "PRIVATE", "RESTRICTED"])),
    ("visibleRoles", Is::Texts),
    ("visibleTenants", Is::Texts),
    ("visibleOrganizations", Is::Texts),
    ("mediationPolicies", Is::List),
    ("apiPolicies", Is::Map),
    ("apiHubPolicies", Is::List),
    ("subscriptionAvailability", Is::OneOf(&["CURRENT_TENANT", "ALL_TENANTS", "SPECIFIC_TENANTS"])),
    ("subscriptionAvailableTenants", Is::Texts),
    ("additionalProperties", Is::List),
    ("additionalPropertiesMap", Is::Map),
    ("monetization", Is::Map),
    ("accessControl", Is::OneOf(&["NONE", "RESTRICTED"])),
    ("accessControlRoles", Is::Texts),
    ("businessInformation", Is::Map),
    ("corsConfiguration", Is::Map),
    ("websubSubscriptionConfiguration", Is::Map),
    ("workflowStatus", Is::Text),
    ("createdTime", Is::Text),
    ("lastUpdatedTimestamp", Is::Text),
    ("lastUpdatedTime", Is::Text),
    ("endpointConfig", Is::Map),
    ("primaryProductionEndpointId", Is::Text),
    ("primarySandboxEndpointId", Is::Text),
    ("endpointImplementationType", Is::OneOf(&["INLINE", "ENDPOINT", "MOCKED_OAS"])),
    ("subtypeConfiguration", Is::Map),
    ("scopes", Is::List),
    ("operations", Is::List),
    ("threatProtectionPolicies", Is::Any),
    ("categories", Is::Texts),
    ("keyManagers", Is::Any),
    ("serviceInfo", Is::Map),
    ("advertiseInfo", Is::Map),
    ("gatewayVendor", Is::Text),
    ("gatewayType", Is::Text),
    ("initiatedFromGateway", Is::Flag),
    ("asyncTransportProtocols", Is::Texts),
    ("egress", Is::Flag),
    // Of MCP servers.
    ("throttlingPolicy", Is::Text),
    ("mcpServerPolicies", Is::Map),
    ("protocolVersion", Is::Text),
    ("revisionedMCPServerId", Is::Text),
    // Of products.
    ("state", Is::Text),
    ("apiType", Is::Text),
    ("apis", Is::List),
    ("revisionedApiProductId", Is::Text),
];

/// Members in the order of responses, with their defaults. `null` is what is not set.
pub(crate) fn defaults() -> Map<String, Value> {
    static DEFAULTS: OnceLock<Map<String, Value>> = OnceLock::new();
    let parse =
        || serde_json::from_str(include_str!("defaults.json")).expect("the file is an object, which a test shows");
    DEFAULTS.get_or_init(parse).clone()
}

/// Members of the tools of MCP servers, which have no method.
const TOOL_MEMBERS: [&str; 5] =
    ["feature", "description", "schemaDefinition", "backendOperationMapping", "apiOperationMapping"];

/// An operation as it is kept: the client's, completed.
pub(crate) fn operation(given: &Map<String, Value>) -> Map<String, Value> {
    let mut operation = Map::new();
    let or = |name: &str, default: Value| given.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(default);
    operation.insert("id".into(), or("id", "".into()));
    operation.insert("target".into(), or("target", "/*".into()));
    operation.insert("verb".into(), or("verb", "GET".into()));
    operation.insert("authType".into(), or("authType", "Application & Application User".into()));
    operation.insert("throttlingPolicy".into(), or("throttlingPolicy", "Unlimited".into()));
    operation.insert("scopes".into(), or("scopes", json!([])));
    operation.insert("usedProductIds".into(), or("usedProductIds", json!([])));
    for name in ["amznResourceName", "amznResourceTimeout", "amznResourceContentEncode", "payloadSchema", "uriMapping"]
    {
        operation.insert(name.into(), or(name, Value::Null));
    }
    let flows = given.get("operationPolicies").and_then(Value::as_object);
    let flow = |name: &str| flows.and_then(|flows| flows.get(name)).filter(|flow| flow.is_array()).cloned();
    let flow = |name: &str| flow(name).unwrap_or_else(|| json!([]));
    let policies = json!({"request": flow("request"), "response": flow("response"), "fault": flow("fault")});
    operation.insert("operationPolicies".into(), policies);
    if given.get("feature").is_some_and(|feature| feature == "TOOL") {
        operation.shift_remove("verb");
        for name in TOOL_MEMBERS {
            operation.insert(name.into(), or(name, Value::Null));
        }
    }
    operation
}

/// The operations of an API that has none of its own: every common method on every path, or every event of every topic.
pub(crate) fn default_operations(kind: &str) -> Vec<Value> {
    let verbs: &[&str] = match kind {
        "HTTP" | "SOAPTOREST" | "APIPRODUCT" => &["GET", "PUT", "POST", "DELETE", "PATCH"],
        "SOAP" => &["POST"],
        "WS" => &["PUBLISH", "SUBSCRIBE"],
        "SSE" => &["SUBSCRIBE"],
        _ => &[],
    };
    let one = |verb: &&str| {
        let mut given = Map::new();
        given.insert("verb".into(), (*verb).into());
        Value::Object(operation(&given))
    };
    verbs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_members() {
        let defaults = defaults();
        assert_eq!(crate::schema::check(&defaults, MEMBERS, &[]).map_err(|problem| problem.description), Ok(()));
    }
}
