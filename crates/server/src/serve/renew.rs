//! SIGHUP: configuration, certificates, keys, users and artifacts are read again, log files opened again.
//!
//! Everything is read and compiled before anything changes. A mistake changes nothing but the log files, which are opened
//! again in any case: rotation must not depend on the configuration.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use penstock_compile::{Diagnostic, Severity};
use penstock_engine::ports::{Environment, Level};
use penstock_gateway::security::AccessList;

use super::certificates::Certificates;
use super::ports::Live;
use super::state::State;
use super::swap;
use crate::build::{self, BuildOptions};
use crate::command::Failure;
use crate::config::{self, Settings, read_signing_key};
use crate::control::ControlPlane;
use crate::log::Logs;

/// Reads the configuration again, as the command line names it.
pub type Reread = Box<dyn Fn() -> Result<(Settings, Vec<Diagnostic>), Failure> + Send>;

/// What a reload works on.
pub(super) struct Renewal {
    /// `None` for a server whose artifacts are part of the program: it opens its log files again, and nothing else.
    pub(super) reread: Option<Reread>,
    pub(super) paths: Vec<PathBuf>,
    pub(super) build: BuildOptions,
    pub(super) state: Arc<State>,
    pub(super) environment: Arc<Environment>,
    pub(super) live: Live,
    /// Held while what is served changes.
    pub(super) turn: Arc<Mutex<()>>,
    /// The control plane, when it is served.
    pub(super) control: Option<ControlPlane>,
}

impl Renewal {
    /// Does all of it.
    pub(super) fn run(&mut self, logs: &Logs) {
        let turn = self.turn.clone();
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.state.settings();
        let outcome = match &self.reread {
            None => Ok(None),
            Some(reread) => self.prepare(&old, reread).map(Some),
        };
        let new = match &outcome {
            Ok(Some(prepared)) => prepared.settings.clone(),
            Ok(None) | Err(_) => old.clone(),
        };
        let log = &logs.log;
        let mut restart = match logs.reopen(&old, &new) {
            Ok(notes) => notes,
            Err((path, cause)) => {
                let text = format!("SIGHUP: the log `{}` cannot be opened again: {cause}", path.display());
                log.say(Level::Error, "Reload", &text);
                Vec::new()
            }
        };
        let prepared = match outcome {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return log.say(Level::Info, "Reload", "SIGHUP: log files are open again"),
            Err(failure) => {
                self.state.reloads_refused.fetch_add(1, Ordering::Relaxed);
                let text = format!("SIGHUP: {failure}; keeping the previous configuration");
                return log.say(Level::Error, "Reload", &text);
            }
        };
        restart.extend(prepared.restart.iter());
        if let Err(failure) = self.apply(prepared) {
            return log.say(Level::Error, "Reload", &format!("SIGHUP: {failure}"));
        }
        if !restart.is_empty() {
            let text = format!("SIGHUP: keys that change only with a restart: {}", restart.join(", "));
            log.say(Level::Warn, "Reload", &text);
        }
    }

    fn prepare(&self, old: &Settings, reread: &Reread) -> Result<Prepared, Failure> {
        let (mut settings, diagnostics) = reread()?;
        settings.gateway_state = old.gateway_state.clone();
        let restart = keep_fixed(old, &mut settings);
        let certificates = Certificates::read(&settings)?;
        let signer = settings.security.signing_key.as_ref().map(read_signing_key).transpose();
        let signer = signer.map_err(Failure::environment)?;
        let mut options = self.build.clone();
        options.configurables = config::surroundings(&self.paths).configurables();
        if let Some(compiled) = &options.compiled {
            // Mediators may keep settings of the program that they ran in first.
            compiled.clear();
        }
        let built = build::build(&self.paths, &options, &settings)?;
        for diagnostic in diagnostics.iter().chain(&built.diagnostics) {
            let level = if diagnostic.severity == Severity::Error { Level::Error } else { Level::Warn };
            self.state.log.say(level, "Reload", &diagnostic.to_string());
        }
        let running = self.state.artifacts();
        let is_new = |diagnostic: &&Diagnostic| swap::is_new(diagnostic, &running.errors);
        let new_errors = built.diagnostics.iter().filter(is_new).count();
        if new_errors > 0 {
            return Err(Failure::input(format!("the artifacts have {new_errors} new errors")));
        }
        Ok(Prepared { settings: Arc::new(settings), certificates, signer, built, restart })
    }

    fn apply(&mut self, prepared: Prepared) -> Result<(), Failure> {
        let Prepared { settings, certificates, signer, built, .. } = prepared;
        certificates.apply(&self.live.tls)?;
        self.live.apply(&settings);
        self.environment.users.replace(settings.users.iter().cloned().collect());
        self.environment.users.replace_roles(settings.roles.clone());
        let security = &settings.gateway_state.security;
        if let Some(signer) = signer {
            security.set_signer(signer);
        }
        match &self.control {
            Some(plane) => plane.control.publish_access().map_err(Failure::environment)?,
            None => {
                security.set_access(AccessList::new(&settings.security.applications, &settings.security.subscriptions));
            }
        }
        self.state.replace_settings(settings.clone());
        swap::swap(&self.state, &settings, built, "Reload", "SIGHUP");
        Ok(())
    }
}

/// What was read and can be used.
struct Prepared {
    settings: Arc<Settings>,
    certificates: Certificates,
    signer: Option<penstock_gateway::security::Signer>,
    built: build::Built,
    /// Keys whose new values count only after a restart.
    restart: Vec<&'static str>,
}

/// Puts the old value back where a new one cannot count while the server runs, and names these keys.
fn keep_fixed(old: &Settings, new: &mut Settings) -> Vec<&'static str> {
    let mut names = Vec::new();
    macro_rules! keep {
        ($($name:literal: $($field:ident).+;)+) => {$(
            if old.$($field).+ != new.$($field).+ {
                new.$($field).+ = old.$($field).+.clone();
                names.push($name);
            }
        )+};
    }
    keep! {
        "workers": workers;
        "watch": watch;
        "listener.offset": offset;
        "listener.host": host;
        "listener.http_port": http_port;
        "listener.https_port": https_port;
        "listener.http_port": http_port_base;
        "listener.https_port": https_port_base;
        "listener.https": https;
        "listener.hostname": hostname;
        "listener.list_services": list_services;
        "admin.host": admin_host;
        "admin.port": admin_port;
        "registry.folder": registry_folder;
        "message_stores.in_memory_database": in_memory_database;
        "coordination": coordination;
        "gateway.enabled": gateway_opening;
        "adapter.enabled": adapter.enabled;
        "adapter.host": adapter.host;
        "adapter.port": adapter.port;
        "adapter.state": adapter.state;
        "gateway.revoked": security.revoked;
        "management.enabled": management.enabled;
        "management.host": management.host;
        "management.port": management.port;
        "management.state": management.state;
        "limits.total_memory": total_memory;
        "timeouts.connect": timeouts.connect;
        "timeouts.reply_body": timeouts.reply_body;
        "timeouts.pool_idle": timeouts.pool_idle;
    }
    let gateway = Arc::make_mut(&mut new.gateway);
    if gateway.http_port != old.gateway.http_port {
        gateway.http_port = old.gateway.http_port;
        names.push("gateway.http_port");
    }
    if gateway.https_port != old.gateway.https_port {
        gateway.https_port = old.gateway.https_port;
        names.push("gateway.https_port");
    }
    if old.databases.entries != new.databases.entries {
        new.databases = old.databases.clone();
        names.push("databases");
    }
    if old.secrets != new.secrets {
        new.secrets = old.secrets.clone();
        names.push("secrets");
    }
    names.dedup();
    names
}
