//! The control plane in this process: what `penstock-control` needs of the server, and its HTTPS port.
//!
//! Start reading at [`ControlHost`], then `listen.rs` (from the port to an operation).

mod fetch;
mod listen;

use std::any::Any;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_catalog::{Access, AccessChange, Application, Denial, Plan, Subscription};
use penstock_compile::{ApiFiles, Diagnostic, FileSource, Input, InputKind};
use penstock_control::{
    Control, DeployedApi, ExternalIssuer, FetchError, FetchRequest, Fetched, Host, Login, Prepared, Snapshot,
};
use penstock_engine::ports::Level;
use penstock_engine::{Login as Attempt, Realm};
use penstock_gateway::security::{AccessList, Issuer, OpaqueTokens, OwnTokens, PublicKey, RevokedToken, TrustedKey};
use penstock_gateway::{parse_denial, parse_plan};
use penstock_transports::http::tls::TlsClient;

use crate::build::{self, BuildOptions, Managed};
use crate::config::{self, Settings};
use crate::load;
use crate::serve::{State, swap};
pub use fetch::FetchRules;
pub use listen::listen;

/// Issuers of these names sign API keys and the keys of test consoles.
const KEY_ISSUER: &str = "APIM Publisher";

/// The name of the key manager in `keyManagers` of APIs.
const RESIDENT_ISSUER: &str = "Resident Key Manager";

/// Errors of one change that a response has.
const ERRORS_MAX: usize = 100;

/// The control plane of a server, with what it runs on.
#[derive(Clone)]
pub struct ControlPlane {
    /// The control plane.
    pub control: Arc<Control>,
    /// The server as the control plane sees it.
    pub host: Arc<ControlHost>,
}

/// The opaque tokens and API keys that the control plane issued. It outlives the gateway's configuration, which holds this.
struct Issued(Weak<Control>);

impl OpaqueTokens for Issued {
    fn claims(&self, token: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.0.upgrade()?.opaque_claims(token)
    }
}

/// What the control plane needs of the server.
#[derive(Default)]
pub struct ControlHost {
    /// Deployed APIs, which every build has besides the files.
    managed: Managed,
    running: OnceLock<Running>,
    base: Mutex<Base>,
    served: Arc<Mutex<Snapshot>>,
}

/// A server that runs.
pub struct Running {
    /// Its state.
    pub state: Arc<State>,
    /// Paths as given.
    pub paths: Vec<PathBuf>,
    /// How to compile.
    pub options: BuildOptions,
    /// Held while what is served changes.
    pub turn: Arc<Mutex<()>>,
    /// TLS towards backends, which fetched definitions have in common with messages.
    pub tls: Arc<TlsClient>,
}

/// What the configuration has by itself.
#[derive(Default)]
struct Base {
    plans: Vec<Plan>,
    denials: Vec<Denial>,
    applications: Vec<Application>,
    subscriptions: Vec<Subscription>,
    issuers: Vec<Issuer>,
    /// Issuers of the configuration.
    configured_issuers: Vec<Issuer>,
    gateway: Arc<penstock_gateway::GatewayState>,
}

impl ControlHost {
    /// Deployed APIs, for the options of builds.
    pub fn managed(&self) -> Managed {
        self.managed.clone()
    }

    /// Takes what the control plane has at the start.
    pub fn load(&self, control: &Arc<Control>, gateway: &Arc<penstock_gateway::GatewayState>) -> Result<(), String> {
        let snapshot = control.snapshot()?;
        let mut keys = Vec::new();
        for jwk in control.public_jwks() {
            let key = PublicKey::from_jwk(&jwk).ok_or("a signing key cannot be used for verification")?;
            keys.push(TrustedKey { kid: None, key });
        }
        let issuer = |name: &str| Issuer {
            name: name.into(),
            issuer: control.issuer().into(),
            keys: keys.clone(),
            own_tokens: Some(OwnTokens(Arc::new(Issued(Arc::downgrade(control))))),
            validate_subscription: true,
            ..Issuer::default()
        };
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.issuers = vec![issuer(RESIDENT_ISSUER), issuer(KEY_ISSUER)];
        base.gateway = gateway.clone();
        self.managed.replace(inputs(&snapshot));
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
        Ok(())
    }

    /// Adds what the control plane has to settings that were read from files.
    pub fn configure(&self, mut settings: Settings) -> Settings {
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        let gateway = Arc::make_mut(&mut settings.gateway);
        base.configured_issuers.clone_from(&gateway.security.issuers);
        base.plans.clone_from(&gateway.limits.plans);
        base.denials.clone_from(&gateway.limits.denials);
        base.applications.clone_from(&settings.security.applications);
        base.subscriptions.clone_from(&settings.security.subscriptions);
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        // What is in the store was checked when it was added.
        let _ = base.limit(&served, &mut settings);
        settings
    }

    /// Says what runs, once it does.
    pub fn attach(&self, running: Running) {
        let _ = self.running.set(running);
    }
}

impl Base {
    /// Plans and deny conditions of the configuration with those of a snapshot, which win.
    fn limit(&self, snapshot: &Snapshot, settings: &mut Settings) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        let mut plans = Vec::new();
        for plan in &snapshot.plans {
            match parse_plan(plan.level, &plan.name, &plan.text) {
                Ok(plan) => plans.push(plan),
                Err(why) => errors.push(format!("the throttling policy `{}`: {why}", plan.name)),
            }
        }
        let mut denials = self.denials.clone();
        for text in &snapshot.denials {
            match parse_denial(text) {
                Ok(denial) => denials.push(denial),
                Err(why) => errors.push(format!("the deny policy `{text}`: {why}")),
            }
        }
        let mut issuers: Vec<Issuer> = self.configured_issuers.iter().chain(&self.issuers).cloned().collect();
        for external in &snapshot.issuers {
            match external_issuer(external) {
                // Tokens with the issuer of this server are verified with its own keys only.
                Ok(issuer) if self.issuers.iter().any(|own| own.issuer == issuer.issuer) => {}
                Ok(issuer) => issuers.push(issuer),
                Err(why) => errors.push(format!("the key manager `{}`: {why}", external.name)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let is_other = |known: &&Plan| plans.iter().all(|plan| (plan.level, &plan.name) != (known.level, &known.name));
        let others: Vec<Plan> = self.plans.iter().filter(is_other).cloned().collect();
        plans.extend(others);
        let gateway = Arc::make_mut(&mut settings.gateway);
        (gateway.limits.plans, gateway.limits.denials) = (plans, denials);
        gateway.security.issuers = issuers;
        Ok(())
    }
}

/// The service whose address scripts poll until API Manager has started.
const VERSION_SERVICE: &str = concat!(
    r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="Version" transports="http https"><target><inSequence>"#,
    r#"<payloadFactory media-type="xml"><format><ns:getVersionResponse xmlns:ns="http://version.services.core.carbon.wso2.org">"#,
    "<ns:return>Penstock ",
    env!("CARGO_PKG_VERSION"),
    "</ns:return></ns:getVersionResponse></format></payloadFactory><respond/></inSequence></target></proxy>"
);

/// A key manager of another product, as the gateway has it.
fn external_issuer(external: &ExternalIssuer) -> Result<Issuer, String> {
    let mut keys = Vec::new();
    if let Some(pem) = &external.pem {
        let bytes = match pem.contains("-----BEGIN") {
            true => pem.clone().into_bytes(),
            false => STANDARD.decode(pem).map_err(|_| "the certificate is neither PEM nor base64 of it".to_owned())?,
        };
        keys.push(TrustedKey { kid: None, key: PublicKey::parse(&bytes)? });
    }
    let mapping = external.claim_mapping.iter();
    Ok(Issuer {
        name: external.name.as_str().into(),
        issuer: external.issuer.as_str().into(),
        keys,
        jwks_url: external.jwks_url.as_deref().map(Into::into),
        validate_subscription: true,
        consumer_key_claim: external.consumer_key_claim.as_str().into(),
        scopes_claim: external.scopes_claim.as_str().into(),
        claim_mapping: mapping.map(|(theirs, ours)| (theirs.as_str().into(), ours.as_str().into())).collect(),
        ..Issuer::default()
    })
}

/// The files of deployed APIs as inputs of a build, and the service of the version.
fn inputs(snapshot: &Snapshot) -> Vec<Input> {
    let version = Bytes::from_static(VERSION_SERVICE.as_bytes());
    let mut inputs = vec![Input { file: "control:version.xml".into(), bytes: version, kind: InputKind::Artifact }];
    inputs.extend(snapshot.apis.iter().map(|api| {
        let kind = InputKind::ApiFiles(ApiFiles(Arc::new(DeployedFiles(api.clone()))));
        Input { file: project_name(api), bytes: Bytes::new(), kind }
    }));
    inputs
}

/// The name of the project of a deployed API in diagnostics.
fn project_name(api: &DeployedApi) -> Arc<str> {
    format!("control:{}", api.name).into()
}

/// The files of a deployed API.
struct DeployedFiles(Arc<DeployedApi>);

impl FileSource for DeployedFiles {
    fn paths(&self) -> Vec<String> {
        self.0.files.iter().map(|(path, _)| path.clone()).collect()
    }

    fn read(&self, path: &str) -> Option<Result<(Arc<str>, Bytes), String>> {
        let (_, bytes) = self.0.files.iter().find(|(known, _)| known == path)?;
        Some(Ok((format!("{}/{path}", project_name(&self.0)).into(), bytes.clone())))
    }

    /// A deployed API never changes: another revision is another one.
    fn stamp(&self, path: &str) -> Option<u64> {
        self.0.files.iter().any(|(known, _)| known == path).then_some(0)
    }

    fn owner(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.0.clone())
    }
}

impl Host for ControlHost {
    fn login(&self, account: &str, client: IpAddr, verify: &mut dyn FnMut() -> bool) -> Login {
        let Some(running) = self.running.get() else { return Login::BackOff(1) };
        let attempt = running.state.logins.attempt(Realm::Control, account, client, verify);
        match attempt {
            Attempt::Accepted => Login::Accepted,
            Attempt::Refused => Login::Refused,
            Attempt::BackOff(_) => Login::BackOff(attempt.retry_after_seconds().unwrap_or(1)),
        }
    }

    fn parse_yaml(&self, text: &[u8]) -> Result<serde_json::Value, String> {
        let document = penstock_projects::parse_document(&Arc::default(), text);
        document.map(|document| document.item().json()).map_err(|(at, why)| format!("{}:{}: {why}", at.line, at.column))
    }

    fn fetch(&self, request: &FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let Some(running) = self.running.get() else {
            return Err(FetchError::Failed("the server is starting".to_owned()));
        };
        fetch::fetch(request, &running.state.settings().fetch_from, &running.tls)
    }

    fn unzip(&self, archive: Bytes) -> Result<Vec<(String, Bytes)>, String> {
        load::unzip("the archive", archive)
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Prepared, Vec<String>> {
        let Some(running) = self.running.get() else { return Err(vec!["the server is starting".to_owned()]) };
        let turn = running.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if served == *snapshot {
            return Ok(Box::new(|| ()));
        }
        let mut settings = running.state.settings();
        // APIs are compiled anew when the configuration of the gateway is another one.
        let configuration = |of: &Snapshot| (of.plans.clone(), of.denials.clone(), of.issuers.clone());
        if configuration(&served) != configuration(snapshot) {
            let base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
            base.limit(snapshot, Arc::make_mut(&mut settings))?;
        }
        let mut options = running.options.clone();
        options.configurables = config::surroundings(&running.paths).configurables();
        options.managed = Managed::default();
        options.managed.replace(inputs(snapshot));
        let built = build::build(&running.paths, &options, &settings).map_err(|error| vec![error.to_string()])?;
        let before = running.state.artifacts();
        let is_new = |diagnostic: &&Diagnostic| swap::is_new(diagnostic, &before.errors);
        let errors: Vec<String> =
            built.diagnostics.iter().filter(is_new).take(ERRORS_MAX).map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        drop(turn);
        let (state, turn, managed) = (running.state.clone(), running.turn.clone(), self.managed.clone());
        let inputs = options.managed;
        let (served, snapshot) = (self.served.clone(), snapshot.clone());
        Ok(Box::new(move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            managed.take(&inputs);
            *served.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
            state.replace_settings(settings.clone());
            swap::swap(&state, &settings, built, "Control", "deployed APIs changed");
        }))
    }

    fn set_access(&self, access: Access) {
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list = AccessList::new(&base.applications, &base.subscriptions);
        list.extend(access);
        base.gateway.security.set_access(list);
    }

    fn change_access(&self, steps: Vec<AccessChange>) {
        let gateway = self.base.lock().unwrap_or_else(PoisonError::into_inner).gateway.clone();
        gateway.security.change_access(|list| list.change(steps));
    }

    fn revoke(&self, id: &str, ends: u64) {
        let gateway = self.base.lock().unwrap_or_else(PoisonError::into_inner).gateway.clone();
        let token = RevokedToken { id: id.to_owned(), expires: Some(ends) };
        if let Err(why) = gateway.security.revocations.revoke(token) {
            self.report_error(&format!("a token is revoked until the server ends: {why}"));
        }
    }

    fn reset_application_plan(&self, application: &str, user: &str) {
        let gateway = self.base.lock().unwrap_or_else(PoisonError::into_inner).gateway.clone();
        gateway.reset_limits(&format!("application:{application}:{user}"));
    }

    fn report_error(&self, text: &str) {
        if let Some(running) = self.running.get() {
            running.state.log.say(Level::Error, "Control", text);
        }
    }
}
