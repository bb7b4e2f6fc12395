//! What the gateway serves, of what is in the store.

use std::sync::Arc;

use penstock_catalog::{Application, PlanLevel, Subscription, SubscriptionState};
use serde_json::Value;

use crate::host::{Access, DeployedApi, PlanText, Snapshot};
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::{archive, revisions};
use crate::store::{Filter, Kind, Object, Transaction};

/// The organizations: the first one, and those that are active.
fn organizations(tx: &Transaction<'_>) -> Result<Vec<String>, Problem> {
    let active = tx.list(&Filter::new(Kind::Organization, SUPER_ORGANIZATION).states(&["ACTIVE"]))?;
    let names = active.into_iter().map(|organization| organization.name);
    Ok(std::iter::once(SUPER_ORGANIZATION.to_owned()).chain(names).collect())
}

/// The deployed revisions as API projects, with plans and deny conditions.
pub(crate) fn of(tx: &Transaction<'_>) -> Result<Snapshot, Problem> {
    let mut snapshot = Snapshot::default();
    for organization in organizations(tx)? {
        for revision in tx.list(&Filter::new(Kind::Revision, &organization).states(&["DEPLOYED"]))? {
            if !revisions::is_served(&revision) {
                continue;
            }
            let Some(api) = tx.get(Kind::Api, &organization, &revision.parent)? else { continue };
            snapshot.apis.push(deployed_api(tx, &api, &revision)?);
        }
        for manager in tx.list(&Filter::new(Kind::KeyManager, &organization))? {
            snapshot.issuers.extend(crate::admin::key_managers::issuer(&manager));
        }
        // Plans are known to the gateway by name only, so an organization cannot have one that differs from another's.
        if organization == SUPER_ORGANIZATION {
            for policy in tx.list(&Filter::new(Kind::Throttling, &organization))? {
                snapshot.plans.extend(plan(&policy));
            }
            for deny in tx.list(&Filter::new(Kind::Deny, &organization))? {
                snapshot.denials.extend(crate::admin::deny::condition(&deny));
            }
        }
    }
    Ok(snapshot)
}

/// A revision as the gateway gets it: the state and what is a portal's matter are those of now.
fn deployed_api(tx: &Transaction<'_>, api: &Object, revision: &Object) -> Result<DeployedApi, Problem> {
    let mut served = revisions::api_of(revision);
    served.state.clone_from(&api.state);
    served.owner.clone_from(&api.owner);
    served.set("isDefaultVersion", api.flag("isDefaultVersion"));
    if api.organization != SUPER_ORGANIZATION {
        let context = format!("/t/{}{}", api.organization, served.text("context"));
        served.set("context", context);
    }
    let mut files = archive::project(tx, &served, archive::Purpose::Serve)?;
    // The hosts of the first environment are every host: clients reach a gateway by any name.
    let hosts: Vec<Value> = revisions::deployed(revision)
        .iter()
        .filter(|deployment| crate::publisher::api::text(deployment, "name") != revisions::DEFAULT_ENVIRONMENT)
        .map(|deployment| {
            serde_json::json!({"deploymentEnvironment": deployment.get("name"), "deploymentVhost": deployment.get("vhost")})
        })
        .collect();
    let is_everywhere = hosts.len() < revisions::deployed(revision).len();
    if !is_everywhere {
        let content = serde_json::json!({"type": "deployment_environments", "version": "v4.3.0", "data": hosts});
        files.push(("deployment_environments.yaml".to_owned(), content.to_string().into()));
    }
    Ok(DeployedApi { name: format!("{}-{}", api.name, api.text("version")), files })
}

/// A plan in the notation of the configuration; `None` for what is no plan.
fn plan(policy: &Object) -> Option<PlanText> {
    let level = match policy.parent.as_str() {
        "subscription" => PlanLevel::Subscription,
        "application" => PlanLevel::Application,
        "advanced" => PlanLevel::Api,
        _ => return None,
    };
    let text = crate::admin::throttling::limit_text(&policy.document)?;
    Some(PlanText { level, name: policy.name.clone(), text })
}

/// Applications with their keys, and subscriptions.
pub(crate) fn access(tx: &Transaction<'_>) -> Result<Access, Problem> {
    let mut access = Access::default();
    for organization in organizations(tx)? {
        for application in tx.list(&Filter::new(Kind::Application, &organization))? {
            let id: Arc<str> = application.id.as_str().into();
            // An API key names the application itself.
            let mut keys = vec![(id.clone(), true)];
            for mapping in tx.list(&Filter::new(Kind::KeyMapping, &organization).parent(&application.id))? {
                let key = mapping.target.as_str().into();
                keys.push((key, mapping.text("keyType") != "SANDBOX"));
            }
            access.applications.push(Application {
                id,
                name: application.name.as_str().into(),
                owner: application.owner.as_str().into(),
                tier: application.text("throttlingPolicy").into(),
                keys,
            });
        }
        for subscription in tx.list(&Filter::new(Kind::Subscription, &organization))? {
            access.subscriptions.push(Subscription {
                application: subscription.parent.as_str().into(),
                api: subscription.text("apiName").into(),
                version: subscription.text("apiVersion").into(),
                tier: subscription.text("throttlingPolicy").into(),
                state: match subscription.state.as_str() {
                    "BLOCKED" => SubscriptionState::Blocked,
                    "PROD_ONLY_BLOCKED" => SubscriptionState::ProductionBlocked,
                    "ON_HOLD" => SubscriptionState::OnHold,
                    "REJECTED" => SubscriptionState::Rejected,
                    _ => SubscriptionState::Unblocked,
                },
            });
        }
    }
    Ok(access)
}
