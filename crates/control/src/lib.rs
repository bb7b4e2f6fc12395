//! API management: the key manager and the publisher, developer portal and admin REST APIs, with their store.
//!
//! [`Control::respond`] makes a response of a request; sockets are the caller's. It blocks (database, hashing of passwords,
//! compilation of APIs), so the caller runs it on a thread that may. The crate is independent of mediators and of the
//! gateway: a change of the store makes a [`Snapshot`], which the [`Host`] compiles before the change is
//! committed and serves afterwards, before the response is sent.
//!
//! Start reading at [`Control`], then `route.rs` (from a request to an operation), `operations.txt` (the table of operations),
//! `store/` and one folder for each REST API.

mod admin;
mod catalog;
mod certificate;
mod clock;
mod comments;
mod connector;
mod devops;
mod devportal;
mod gateway;
mod host;
mod http;
mod identity;
mod labels;
pub mod multipart;
mod oauth;
mod page;
mod problem;
mod publisher;
mod random;
mod route;
mod schema;
mod scim;
mod settings;
mod snapshot;
mod soap;
mod store;
#[cfg(test)]
mod tests;
mod workflow;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub use host::{
    DeployedApi, ExternalIssuer, FetchError, FetchRequest, Fetched, Host, Login, PlanText, Prepared, Snapshot,
};
pub use http::{Request, Response};
use identity::keys::Keys;
pub use identity::keys::{SigningKey, rotate_signing_key};
pub use identity::passwords::{self, PasswordCost};
use identity::scopes::{RoleScopes, SystemScopes};
use identity::{ADMIN_ROLE, SUPER_ORGANIZATION, tokens, users};
use penstock_catalog::{Access, AccessChange};
use problem::Problem;
use route::Routes;
use snapshot::Serving;
pub use store::backup::{backup, restore};
use store::{Filter, Kind, Store, Touched, Transaction};

/// The largest body of a request: archives with documents and definitions.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// Pause between removals of ended tokens, in seconds.
const SWEEP_S: u64 = 60;

/// How a control plane is started.
#[derive(Clone)]
pub struct ControlConfig {
    /// The folder of the database and the keys.
    pub folder: PathBuf,
    /// The name clients know the server by.
    pub hostname: String,
    /// The port of the REST APIs.
    pub port: u16,
    /// The ports of the gateway for HTTP and HTTPS.
    pub gateway_ports: (u16, u16),
    /// The password of `admin`, when it is given. It replaces the one that is kept.
    pub admin_password: Option<String>,
    /// A key that signs tokens in place of the generated one.
    pub signing_key: Option<SigningKey>,
    /// How much work a guess of a password costs.
    pub password_cost: PasswordCost,
}

/// The control plane.
pub struct Control {
    config: ControlConfig,
    store: Store,
    keys: Keys,
    host: Arc<dyn Host>,
    routes: Routes,
    standard_scopes: SystemScopes,
    /// The scopes of each organization, with its own roles.
    scopes: RwLock<HashMap<String, Arc<SystemScopes>>>,
    issuer: String,
    /// A hash that no password has: logins of unknown users are checked against it.
    no_password: String,
    /// What the gateway serves, once that was read. Held while it changes.
    serving: Mutex<Option<Serving>>,
    /// When tokens that have ended are removed from the store again, in seconds since 1970.
    next_sweep: AtomicU64,
}

/// A control plane that was started.
pub struct Started {
    /// The control plane.
    pub control: Arc<Control>,
    /// The password of `admin`, when it was generated now. It is shown once.
    pub generated_password: Option<String>,
}

impl Control {
    /// Opens the store and the keys of a folder, and makes what is missing.
    pub fn open(config: ControlConfig, host: Arc<dyn Host>) -> Result<Started, String> {
        std::fs::create_dir_all(&config.folder).map_err(|error| format!("`{}`: {error}", config.folder.display()))?;
        let store = Store::open(&config.folder)?;
        let keys = Keys::open(&config.folder, config.signing_key.as_ref())?;
        let routes = Routes::new();
        let standard_scopes = SystemScopes::standard(routes.scopes());
        let no_password = passwords::hash(&random::secret(), config.password_cost).unwrap_or_default();
        let control = Control {
            issuer: format!("https://{}:{}/oauth2/token", config.hostname, config.port),
            config,
            store,
            keys,
            host,
            routes,
            standard_scopes,
            scopes: RwLock::default(),
            no_password,
            serving: Mutex::default(),
            next_sweep: AtomicU64::new(clock::now() + SWEEP_S),
        };
        let generated_password = control.prepare_store().map_err(cause_of)?;
        Ok(Started { control: Arc::new(control), generated_password })
    }

    /// Makes the administrator and what every organization has; the password of the administrator when it was generated.
    fn prepare_store(&self) -> Result<Option<String>, Problem> {
        let cost = self.config.password_cost;
        self.store.change(|tx| {
            tx.sweep_tokens(clock::now())?;
            admin::throttling::add_standard(tx, SUPER_ORGANIZATION)?;
            let known = tx.find(Kind::User, SUPER_ORGANIZATION, ADMIN_ROLE)?;
            match (known, &self.config.admin_password) {
                (Some(user), Some(password)) => {
                    if !passwords::is(password, user.text("password")) {
                        users::set_password(tx, SUPER_ORGANIZATION, ADMIN_ROLE, password, cost)?;
                    }
                    Ok(None)
                }
                (Some(_), None) => Ok(None),
                (None, given) => {
                    let generated = given.is_none().then(random::secret);
                    let password = given.as_deref().or(generated.as_deref()).unwrap_or_default();
                    let roles = [ADMIN_ROLE.to_owned()];
                    users::add(tx, SUPER_ORGANIZATION, ADMIN_ROLE, password, &roles, cost)?;
                    Ok(generated)
                }
            }
        })
    }

    /// Responds to a request. It blocks.
    pub fn respond(&self, request: &Request) -> Response {
        let mut problem = match self.routes.respond(self, request) {
            Ok(response) => return response,
            Err(problem) => problem,
        };
        if let Some(cause) = problem.take_cause() {
            self.host.report_error(&format!("{} {}: {cause}", request.method, request.path));
        }
        problem.response()
    }

    /// The public keys of access tokens, as JWKs.
    pub fn public_jwks(&self) -> Vec<serde_json::Value> {
        self.keys.jwks()
    }

    /// Revokes access tokens at the gateway.
    fn end_tokens(&self, ended: &[(String, u64)]) {
        ended.iter().for_each(|(id, ends)| self.host.revoke(id, *ends));
    }

    /// `iss` of access tokens.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The address of the REST APIs.
    pub(crate) fn base_url(&self) -> String {
        format!("https://{}:{}", self.config.hostname, self.config.port)
    }

    /// The scopes of the REST APIs, and which roles have them in an organization.
    fn scopes(&self, organization: &str) -> Result<Arc<SystemScopes>, Problem> {
        let known = self.scopes.read().unwrap_or_else(PoisonError::into_inner).get(organization).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let own = self.store.read(|tx| settings::role_scopes(tx, organization))?;
        let scopes = Arc::new(self.standard_scopes.with(&own));
        let mut all = self.scopes.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(organization.to_owned()).or_insert(scopes).clone())
    }

    /// Replaces the roles of scopes of an organization.
    fn set_scopes(&self, organization: &str, own: &RoleScopes) {
        let scopes = Arc::new(self.standard_scopes.with(own));
        self.scopes.write().unwrap_or_else(PoisonError::into_inner).insert(organization.to_owned(), scopes);
    }

    /// The claims of an opaque access token or API key that is valid now, for the gateway. It blocks.
    pub fn opaque_claims(&self, token: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        let found = match tokens::verify(self, token) {
            Ok(None) => self.store.read(|tx| devportal::api_keys::claims(tx, self, token)),
            found => found,
        };
        found.unwrap_or_else(|mut problem| {
            self.host.report_error(&format!("an opaque token: {}", problem.take_cause().unwrap_or_default()));
            None
        })
    }

    /// What the gateway is to serve, after a start.
    pub fn snapshot(&self) -> Result<Snapshot, String> {
        let mut serving = self.serving();
        let found = self.store.read(Serving::load).map_err(cause_of)?;
        Ok(serving.insert(found).snapshot())
    }

    /// Gives the gateway applications, subscriptions and revoked tokens, after a start.
    pub fn publish_access(&self) -> Result<(), String> {
        let _serving = self.serving();
        let found = self.store.read(|tx| Ok((snapshot::access(tx)?, tx.revoked(clock::now())?)));
        let (access, revoked) = found.map_err(cause_of)?;
        self.host.set_access(access);
        revoked.iter().for_each(|(id, ends)| self.host.revoke(id, *ends));
        Ok(())
    }

    fn serving(&self) -> MutexGuard<'_, Option<Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that the gateway serves: the change is made, what it leads to is compiled, then it is committed and
    /// served. A change that does not compile is not made.
    fn change_served<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut serving = self.serving();
        let (result, (next, access)) = self.store.change_and_publish(run, |tx, touched| {
            let next = self.prepare_served(tx, serving.as_ref(), touched)?;
            let access = AccessUpdate::prepare(tx, touched)?;
            *touched = Touched::default();
            Ok((next, access))
        })?;
        if let Some((next, prepared)) = next {
            prepared();
            *serving = Some(next);
        }
        access.publish(&*self.host);
        Ok(result)
    }

    /// Compiles what is served after a change; `None` when that is what is served already.
    fn prepare_served(
        &self,
        tx: &Transaction<'_>,
        serving: Option<&Serving>,
        touched: &Touched,
    ) -> Result<Option<(Serving, Prepared)>, Problem> {
        let next = match serving {
            Some(_) if !touched.is_of_snapshot() => return Ok(None),
            Some(serving) => serving.after(tx, touched)?,
            None => Serving::load(tx)?,
        };
        let prepared = self.host.prepare(&next.snapshot()).map_err(|errors| {
            let mut problem = Problem::bad_request(errors.first().cloned().unwrap_or_default());
            problem.errors.extend(errors.into_iter().map(|error| ("400".to_owned(), error)));
            problem
        })?;
        Ok(Some((next, prepared)))
    }

    /// Changes applications, keys or subscriptions.
    fn change_access<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        // Updates reach the gateway in the order of the changes.
        let _serving = self.serving();
        let (result, access) = self.store.change_and_publish(run, |tx, touched| {
            let access = AccessUpdate::prepare(tx, touched)?;
            touched.access.clear();
            Ok(access)
        })?;
        access.publish(&*self.host);
        Ok(result)
    }

    /// Removes tokens that have ended, when it is time to.
    fn sweep_tokens(&self, tx: &Transaction<'_>) -> Result<(), Problem> {
        let now = clock::now();
        let due = self.next_sweep.load(Ordering::Relaxed);
        let next = now + SWEEP_S;
        if now < due || self.next_sweep.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Ok(());
        }
        tx.sweep_tokens(now)
    }

    /// How many APIs are kept.
    pub fn api_count(&self) -> usize {
        self.store.read(|tx| tx.count(&Filter::new(Kind::Api, SUPER_ORGANIZATION))).unwrap_or_default()
    }
}

fn cause_of(mut problem: Problem) -> String {
    problem.take_cause().unwrap_or(problem.description)
}

/// How the gateway learns of changed applications, keys and subscriptions.
enum AccessUpdate {
    Steps(Vec<AccessChange>),
    All(Access),
}

impl AccessUpdate {
    fn prepare(tx: &Transaction<'_>, touched: &Touched) -> Result<AccessUpdate, Problem> {
        match touched.organizations {
            true => snapshot::access(tx).map(AccessUpdate::All),
            false => Ok(AccessUpdate::Steps(touched.access.clone())),
        }
    }

    fn publish(self, host: &dyn Host) {
        match self {
            AccessUpdate::Steps(steps) if steps.is_empty() => {}
            AccessUpdate::Steps(steps) => host.change_access(steps),
            AccessUpdate::All(access) => host.set_access(access),
        }
    }
}
