//! What the gateway serves, of what is in the store.
//!
//! [`Serving`] is kept beside the store; a change of the store makes the next one from it and from what the change touched.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Access, AccessChange, Application, ConsumerKey, PlanLevel, Subscription, SubscriptionState};
use serde_json::Value;

use crate::host::{DeployedApi, ExternalIssuer, PlanText, Snapshot};
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::{archive, products, revisions};
use crate::store::{Filter, Kind, Object, Touched, Transaction};

/// The organizations: the first one, and those that are active.
fn organizations(tx: &Transaction<'_>) -> Result<Vec<String>, Problem> {
    let active = tx.list(&Filter::new(Kind::Organization, SUPER_ORGANIZATION).states(&["ACTIVE"]))?;
    let names = active.into_iter().map(|organization| organization.name);
    Ok(std::iter::once(SUPER_ORGANIZATION.to_owned()).chain(names).collect())
}

/// What the gateway serves now. A copy shares the APIs.
#[derive(Clone, Default)]
pub(crate) struct Serving {
    apis: Vec<Arc<ServedApi>>,
    configuration: Arc<Configuration>,
}

/// The deployed revisions of an API.
struct ServedApi {
    id: String,
    /// The APIs whose files are part of a product's.
    members: Vec<String>,
    projects: Vec<Arc<DeployedApi>>,
}

/// What counts for all APIs.
#[derive(Default)]
struct Configuration {
    plans: Vec<PlanText>,
    denials: Vec<String>,
    issuers: Vec<ExternalIssuer>,
}

impl Serving {
    /// Reads everything.
    pub(crate) fn load(tx: &Transaction<'_>) -> Result<Serving, Problem> {
        let organizations = organizations(tx)?;
        let mut apis = Vec::new();
        for organization in &organizations {
            let mut seen = std::collections::HashSet::new();
            for revision in tx.list(&Filter::new(Kind::Revision, organization).states(&["DEPLOYED"]))? {
                if !revisions::is_served(&revision) || !seen.insert(revision.parent.clone()) {
                    continue;
                }
                let Some(api) = tx.get(Kind::Api, organization, &revision.parent)? else { continue };
                apis.extend(served_api(tx, &api)?.map(Arc::new));
            }
        }
        Ok(Serving { apis, configuration: Arc::new(configuration(tx, &organizations)?) })
    }

    /// What is served after a change.
    pub(crate) fn after(&self, tx: &Transaction<'_>, touched: &Touched) -> Result<Serving, Problem> {
        if touched.organizations {
            return Serving::load(tx);
        }
        let mut next = self.clone();
        if touched.configuration {
            next.configuration = Arc::new(configuration(tx, &organizations(tx)?)?);
        }
        let mut replaced = std::collections::HashSet::new();
        let mut apis = Vec::with_capacity(next.apis.len());
        for known in next.apis {
            if !touched.all_apis && !touched.apis.contains(&known.id) && !known.has_touched_member(touched) {
                apis.push(known);
                continue;
            }
            replaced.insert(known.id.clone());
            apis.extend(served_now(tx, &known.id)?.map(|now| known.replaced_by(now)));
        }
        for id in touched.apis.iter().filter(|id| !replaced.contains(*id)) {
            apis.extend(served_now(tx, id)?.map(Arc::new));
        }
        next.apis = apis;
        Ok(next)
    }

    /// As the gateway gets it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            apis: self.apis.iter().flat_map(|api| api.projects.iter().cloned()).collect(),
            plans: self.configuration.plans.clone(),
            denials: self.configuration.denials.clone(),
            issuers: self.configuration.issuers.clone(),
        }
    }
}

impl ServedApi {
    fn has_touched_member(&self, touched: &Touched) -> bool {
        self.members.iter().any(|member| touched.apis.contains(member))
    }

    /// Takes what is the same from before, so that it is not compiled again.
    fn replaced_by(&self, mut now: ServedApi) -> Arc<ServedApi> {
        for project in &mut now.projects {
            if let Some(same) = self.projects.iter().find(|known| *known == project) {
                *project = same.clone();
            }
        }
        Arc::new(now)
    }
}

/// The API of an id, when a revision of it is served and its organization is active.
fn served_now(tx: &Transaction<'_>, id: &str) -> Result<Option<ServedApi>, Problem> {
    let Some(api) = tx.get_of_any_organization(Kind::Api, id)? else { return Ok(None) };
    let is_active = api.organization == SUPER_ORGANIZATION
        || tx
            .find(Kind::Organization, SUPER_ORGANIZATION, &api.organization)?
            .is_some_and(|organization| organization.state == "ACTIVE");
    if is_active { served_api(tx, &api) } else { Ok(None) }
}

fn served_api(tx: &Transaction<'_>, api: &Object) -> Result<Option<ServedApi>, Problem> {
    let mut projects = Vec::new();
    for revision in revisions::all(tx, api)?.iter().filter(|revision| revisions::is_served(revision)) {
        let mut project = deployed_api(tx, api, revision)?;
        if !projects.is_empty() {
            project.name = format!("{} (revision {})", project.name, revisions::number(revision));
        }
        projects.push(Arc::new(project));
    }
    let members = match archive::Subject::of(api) {
        archive::Subject::Product => products::member_ids(&api.document),
        archive::Subject::Api | archive::Subject::McpServer => Vec::new(),
    };
    Ok((!projects.is_empty()).then(|| ServedApi { id: api.id.clone(), members, projects }))
}

/// Plans, deny conditions and key managers.
fn configuration(tx: &Transaction<'_>, organizations: &[String]) -> Result<Configuration, Problem> {
    let mut found = Configuration::default();
    for organization in organizations {
        for manager in tx.list(&Filter::new(Kind::KeyManager, organization))? {
            found.issuers.extend(crate::admin::key_managers::issuer(&manager));
        }
    }
    // Plans are known to the gateway by name only, so an organization cannot have one that differs from another's.
    for policy in tx.list(&Filter::new(Kind::Throttling, SUPER_ORGANIZATION))? {
        found.plans.extend(plan(&policy));
    }
    for deny in tx.list(&Filter::new(Kind::Deny, SUPER_ORGANIZATION))? {
        found.denials.extend(crate::admin::deny::condition(&deny));
    }
    Ok(found)
}

/// A revision as the gateway gets it: the state and what is a portal's matter are those of now.
fn deployed_api(tx: &Transaction<'_>, api: &Object, revision: &Object) -> Result<DeployedApi, Problem> {
    let mut served = revisions::api_of(revision);
    served.state.clone_from(&api.state);
    served.owner.clone_from(&api.owner);
    served.set("isDefaultVersion", api.flag("isDefaultVersion"));
    let mut name = format!("{}-{}", api.name, api.text("version"));
    if api.organization != SUPER_ORGANIZATION {
        let context = format!("/t/{}{}", api.organization, served.text("context"));
        served.set("context", context);
        // Organizations may have APIs of the same name, and the gateway tells projects apart by name.
        name = format!("{}/{name}", api.organization);
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
    Ok(DeployedApi { name, files })
}

/// A plan in the notation of the configuration; `None` for what is no plan.
fn plan(policy: &Object) -> Option<PlanText> {
    let level = match policy.parent.as_str() {
        "subscription" => PlanLevel::Subscription,
        "application" => PlanLevel::Application,
        "advanced" => PlanLevel::Api,
        _ => return None,
    };
    let text = crate::admin::plan_text::limit_text(&policy.document)?;
    Some(PlanText { level, name: policy.name.clone(), text })
}

/// All applications, keys and subscriptions.
pub(crate) fn access(tx: &Transaction<'_>) -> Result<Access, Problem> {
    let mut access = Access::default();
    for organization in organizations(tx)? {
        let list = |kind| tx.list(&Filter::new(kind, &organization));
        let mut ids: HashMap<String, Arc<str>> = HashMap::new();
        for found in list(Kind::Application)?.into_iter().filter(is_known) {
            let application = application(&found);
            ids.insert(found.id, application.id.clone());
            access.applications.push(application);
        }
        // Keys and subscriptions share the texts of their applications.
        let share = |id: &mut Arc<str>| ids.get(&**id).into_iter().for_each(|known| *id = known.clone());
        for mapping in list(Kind::KeyMapping)?.into_iter().filter(is_known) {
            let mut key = consumer_key(&mapping);
            share(&mut key.application);
            access.keys.push(key);
        }
        for found in list(Kind::Subscription)? {
            let mut subscription = subscription(&found);
            share(&mut subscription.application);
            access.subscriptions.push(subscription);
        }
    }
    Ok(access)
}

/// Whether the gateway knows an object: applications that wait for approval or were rejected it does not, nor keys without a
/// client.
fn is_known(object: &Object) -> bool {
    match object.kind {
        Kind::Application => matches!(object.state.as_str(), "" | crate::workflow::APPROVED),
        Kind::KeyMapping => !object.target.is_empty(),
        _ => true,
    }
}

/// The step that makes an object known to the gateway; `None` for what is no part of access lists.
pub(crate) fn addition(object: &Object) -> Option<AccessChange> {
    if !is_known(object) {
        return None;
    }
    match object.kind {
        Kind::Application => Some(AccessChange::Application(application(object))),
        Kind::KeyMapping => Some(AccessChange::Key(consumer_key(object))),
        Kind::Subscription => Some(AccessChange::Subscription(subscription(object))),
        _ => None,
    }
}

/// The step that takes an object from the gateway.
pub(crate) fn removal(object: &Object) -> Option<AccessChange> {
    match object.kind {
        Kind::Application => Some(AccessChange::NoApplication(object.id.as_str().into())),
        Kind::KeyMapping => Some(AccessChange::NoKey(consumer_key(object))),
        Kind::Subscription => Some(AccessChange::NoSubscription(subscription(object))),
        _ => None,
    }
}

fn application(object: &Object) -> Application {
    let id: Arc<str> = object.id.as_str().into();
    Application {
        name: object.name.as_str().into(),
        owner: object.owner.as_str().into(),
        organization: Some(object.organization.as_str().into()),
        tier: object.text("throttlingPolicy").into(),
        // An API key names the application itself.
        keys: vec![(id.clone(), true)],
        id,
    }
}

fn consumer_key(mapping: &Object) -> ConsumerKey {
    ConsumerKey {
        application: mapping.parent.as_str().into(),
        key: mapping.target.as_str().into(),
        production: mapping.text("keyType") != "SANDBOX",
    }
}

fn subscription(object: &Object) -> Subscription {
    Subscription {
        application: object.parent.as_str().into(),
        api: object.text("apiName").into(),
        version: object.text("apiVersion").into(),
        tier: object.text("throttlingPolicy").into(),
        state: match object.state.as_str() {
            "BLOCKED" => SubscriptionState::Blocked,
            "PROD_ONLY_BLOCKED" => SubscriptionState::ProductionBlocked,
            "ON_HOLD" => SubscriptionState::OnHold,
            "REJECTED" => SubscriptionState::Rejected,
            _ => SubscriptionState::Unblocked,
        },
    }
}
