//! The scopes of the REST APIs, and which roles have them. A scope without an entry is the administrator's.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ADMIN_ROLE;
use crate::problem::Problem;
use crate::store::{Filter, Kind, Transaction};

/// Roles, and the scopes they have. `apim:` is left out.
const ROLE_SCOPES: &[(&[&str], &str)] = &[
    (
        &["Internal/creator"],
        "api_create api_delete mediation_policy_view mediation_policy_create mediation_policy_manage \
         api_mediation_policy_manage ep_certificates_view ep_certificates_add ep_certificates_update ep_certificates_manage \
         client_certificates_view client_certificates_add client_certificates_update client_certificates_manage \
         threat_protection_policy_create threat_protection_policy_manage common_operation_policy_manage pub_alert_manage \
         mcp_server_create mcp_server_delete service_catalog:service_write",
    ),
    (
        &["Internal/publisher"],
        "api_publish subscription_block subscription_manage monetization_usage_publish mcp_server_publish",
    ),
    (
        &["Internal/creator", "Internal/publisher"],
        "api_generate_key subscription_view document_create document_manage comment_view comment_write comment_manage \
         tier_view llm_provider_read service_catalog:service_view",
    ),
    (
        &["Internal/creator", "Internal/publisher", "Internal/observer"],
        "publisher_settings common_operation_policy_view gateway_policy_view",
    ),
    (
        &["Internal/creator", "Internal/publisher", "Internal/analytics", "Internal/observer"],
        "api_view mcp_server_view",
    ),
    (&["Internal/subscriber", "Internal/devops"], "subscribe app_manage sub_manage"),
    (&["Internal/subscriber"], "app_update store_settings api_key sub_alert_manage"),
    (
        &["Internal/devops"],
        "api_import_export api_product_import_export app_import_export policies_import_export mcp_server_import_export",
    ),
    (&["Internal/integration_dev"], "api_list_view api_definition_view mcp_server_list_view"),
];

/// Roles that exist from the start.
pub(crate) const ROLES: [&str; 9] = [
    ADMIN_ROLE,
    "Internal/creator",
    "Internal/publisher",
    "Internal/subscriber",
    "Internal/devops",
    "Internal/analytics",
    "Internal/observer",
    "Internal/integration_dev",
    "Internal/everyone",
];

/// A scope with its prefix.
pub(crate) fn full(scope: &str) -> String {
    if scope.contains(':') || scope == "openid" { scope.to_owned() } else { format!("apim:{scope}") }
}

/// What an organization sets itself: roles of scopes, and other names of roles.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoleScopes {
    pub(crate) scopes: BTreeMap<String, Vec<String>>,
    /// A role, and those that count as it.
    pub(crate) aliases: BTreeMap<String, Vec<String>>,
}

/// Scopes with their prefixes, and the roles that have them besides the administrator.
#[derive(Debug, Clone)]
pub(crate) struct SystemScopes {
    roles: BTreeMap<String, Vec<String>>,
    aliases: BTreeMap<String, Vec<String>>,
}

impl SystemScopes {
    /// Those of the table, for the scopes of all operations.
    pub(crate) fn standard<'s>(of_operations: impl Iterator<Item = &'s str>) -> SystemScopes {
        let mut scopes: BTreeMap<String, Vec<String>> = of_operations.map(|scope| (full(scope), Vec::new())).collect();
        for (roles, names) in ROLE_SCOPES {
            for name in names.split_whitespace() {
                scopes.entry(full(name)).or_default().extend(roles.iter().map(|role| (*role).to_owned()));
            }
        }
        SystemScopes { roles: scopes, aliases: BTreeMap::new() }
    }

    /// With what an organization sets itself.
    pub(crate) fn with(&self, own: &RoleScopes) -> SystemScopes {
        let mut scopes = SystemScopes { aliases: own.aliases.clone(), ..self.clone() };
        for (scope, roles) in &mut scopes.roles {
            if let Some(set) = own.scopes.get(scope) {
                roles.clone_from(set);
            }
        }
        scopes
    }

    /// Whether it is one of them.
    pub(crate) fn contains(&self, scope: &str) -> bool {
        self.roles.contains_key(scope)
    }

    /// Whether one of these roles has a scope.
    pub(crate) fn allows(&self, scope: &str, roles: &[String]) -> bool {
        let counts_as = |role: &String, wanted: &String| {
            role == wanted || self.aliases.get(wanted).is_some_and(|aliases| aliases.contains(role))
        };
        let bound = self.roles.get(scope);
        let has = |role: &String| {
            role == ADMIN_ROLE || bound.is_some_and(|bound| bound.iter().any(|wanted| counts_as(role, wanted)))
        };
        self.contains(scope) && roles.iter().any(has)
    }

    /// Those that these roles have.
    pub(crate) fn of_roles(&self, roles: &[String]) -> Vec<String> {
        self.roles.keys().filter(|scope| self.allows(scope, roles)).cloned().collect()
    }

    /// All, with their roles.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.roles.iter().map(|(scope, roles)| (scope.as_str(), roles.as_slice()))
    }
}

/// The requested scopes that a user with these roles is granted. An unregistered scope is always granted: clients use one to
/// tell their tokens apart.
pub(crate) fn granted(
    tx: &Transaction<'_>,
    system: &SystemScopes,
    organization: &str,
    roles: &[String],
    asked: &str,
) -> Result<Vec<String>, Problem> {
    let mut granted: Vec<String> = Vec::new();
    for scope in asked.split_whitespace() {
        let is_granted = if system.contains(scope) {
            system.allows(scope, roles)
        } else if scope.starts_with("apim:") {
            // A scope of a version that is not known opens nothing here.
            false
        } else {
            match bindings(tx, organization, scope)? {
                Some(bound) if !bound.is_empty() => {
                    roles.iter().any(|role| bound.iter().any(|wanted| wanted.eq_ignore_ascii_case(role)))
                }
                _ => true,
            }
        };
        if is_granted && !granted.iter().any(|known| known == scope) {
            granted.push(scope.to_owned());
        }
    }
    if granted.is_empty() {
        granted.push("default".to_owned());
    }
    Ok(granted)
}

/// The roles that a registered scope is bound to; `None` for an unregistered scope.
fn bindings(tx: &Transaction<'_>, organization: &str, name: &str) -> Result<Option<Vec<String>>, Problem> {
    let roles = |value: Option<&Value>| -> Vec<String> {
        value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if let Some(shared) = tx.find(Kind::Scope, organization, name)? {
        return Ok(Some(roles(shared.document.get("bindings"))));
    }
    let apis = tx.list(&Filter::new(Kind::Api, organization).with_scope(name).page(0, 1))?;
    let scopes = apis.first().and_then(|api| api.document.get("scopes")?.as_array().cloned()).unwrap_or_default();
    let local = scopes.into_iter().filter_map(|entry| entry.get("scope").cloned());
    let found = local.into_iter().find(|scope| scope.get("name").and_then(Value::as_str) == Some(name));
    Ok(found.map(|scope| roles(scope.get("bindings"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_scopes() {
        let scopes = SystemScopes::standard(["api_view", "tier_manage", "service_catalog:service_view"].into_iter());
        let roles = |name: &str| vec![name.to_owned()];
        for (scope, role, expected) in [
            ("apim:api_view", "Internal/creator", true),
            ("apim:api_view", "Internal/subscriber", false),
            ("apim:subscribe", "Internal/subscriber", true),
            ("apim:tier_manage", "Internal/publisher", false),
            ("apim:tier_manage", "admin", true),
            ("service_catalog:service_view", "Internal/publisher", true),
            ("apim:unknown", "admin", false),
        ] {
            assert_eq!(scopes.allows(scope, &roles(role)), expected, "{scope} {role}");
        }
    }
}
