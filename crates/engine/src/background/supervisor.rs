//! Starts, keeps, drains and stops services. A reload hands it the services of the new program.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};

use super::backoff::{Backoff, LONGEST};
use super::control::Control;
use super::table::{ServiceStatus, ServiceTable, Wanted};
use super::{BackgroundService, Coordination, ServiceError, leased};
use crate::Core;
use crate::ports::Level;

/// Paused services that stay paused over restarts.
pub trait SavedStates: Send + Sync {
    /// Whether the service was paused or activated before; `None` when it never was.
    fn paused(&self, kind: &str, name: &str) -> Option<bool>;

    /// Keeps it.
    fn save(&self, kind: &str, name: &str, paused: bool);

    /// Forgets it, because the service is no longer deployed.
    fn forget(&self, kind: &str, name: &str);
}

type Key = (&'static str, Arc<str>);

struct Running {
    content: u64,
    status: Arc<ServiceStatus>,
    task: JoinHandle<()>,
}

/// Runs the services of the current program on the runtime it was made on.
pub struct Supervisor {
    core: Rc<Core>,
    table: Arc<ServiceTable>,
    states: Arc<dyn SavedStates>,
    /// How long a service may take to stop before it is ended.
    drain: Duration,
    /// Absent on a node that is alone.
    coordination: Option<Coordination>,
    running: HashMap<Key, Running>,
    /// Services that were replaced or removed and are still stopping.
    stopping: Vec<JoinHandle<()>>,
}

impl Supervisor {
    /// A supervisor with nothing to run. Must live on a [`tokio::task::LocalSet`] or a local runtime.
    pub fn new(core: Rc<Core>, table: Arc<ServiceTable>, states: Arc<dyn SavedStates>, drain: Duration) -> Supervisor {
        Supervisor { core, table, states, drain, coordination: None, running: HashMap::new(), stopping: Vec::new() }
    }

    /// Runs coordinated services under leases from now on.
    pub fn coordinate(&mut self, coordination: Coordination) {
        self.coordination = Some(coordination);
    }

    /// Runs these services from now on: those whose content is the same go on undisturbed, those that changed stop and
    /// start anew, those that are gone stop.
    pub fn apply(&mut self, services: &[BackgroundService]) {
        self.stopping.retain(|task| !task.is_finished());
        let wanted: HashMap<Key, &BackgroundService> =
            services.iter().map(|service| ((service.kind, service.name.clone()), service)).collect();
        let gone: Vec<Key> = self.running.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
        for key in gone {
            if let Some(running) = self.running.remove(&key) {
                self.states.forget(key.0, &key.1);
                let stop = self.stop(running);
                self.stopping.push(tokio::task::spawn_local(stop));
            }
        }
        for (key, service) in wanted {
            match self.running.remove(&key) {
                Some(running) if running.content == service.content => drop(self.running.insert(key, running)),
                before => {
                    let before = before.map(|running| self.stop(running));
                    let started = self.start(service.clone(), before);
                    self.running.insert(key, started);
                }
            }
        }
    }

    /// Stops all services and waits until they have finished their messages, at most the drain time.
    pub async fn stop_all(mut self) {
        let running: Vec<Running> = self.running.drain().map(|(_, running)| running).collect();
        let stops: Vec<_> = running.into_iter().map(|running| tokio::task::spawn_local(self.stop(running))).collect();
        for task in self.stopping.into_iter().chain(stops) {
            // A service that panicked has stopped too.
            let _ = task.await;
        }
    }

    fn start(&self, service: BackgroundService, before: Option<impl Future<Output = ()> + 'static>) -> Running {
        let paused = self.states.paused(service.kind, &service.name).unwrap_or(service.starts_paused);
        let status = ServiceStatus::new(service.kind, service.name.clone(), paused);
        self.table.put(status.clone());
        let content = service.content;
        let control = Control::new(self.core.clone(), status.clone(), "Service");
        let states = self.states.clone();
        let coordination = self.coordination.clone().filter(|_| service.is_coordinated);
        let task = tokio::task::spawn_local(async move {
            // Two versions of a service never hold the same port, file or queue.
            if let Some(before) = before {
                before.await;
            }
            tokio::join!(keep_running(service, control.clone(), coordination), save_pauses(control, states));
        });
        Running { content, status, task }
    }

    /// Stops a service and waits for its end.
    fn stop(&self, running: Running) -> impl Future<Output = ()> + 'static {
        let Running { status, mut task, .. } = running;
        let (table, drain) = (self.table.clone(), self.drain);
        status.wanted.send_replace(Wanted::Stop);
        async move {
            if tokio::time::timeout(drain, &mut task).await.is_err() {
                task.abort();
            }
            table.remove(&status);
        }
    }
}

/// Saves each pause and activation, by an operator or by the service itself.
async fn save_pauses(control: Control, states: Arc<dyn SavedStates>) {
    let mut wanted = control.status.wanted.subscribe();
    while wanted.changed().await.is_ok() {
        let now = *wanted.borrow_and_update();
        if now == Wanted::Stop {
            return;
        }
        states.save(control.status.kind, &control.status.name, now == Wanted::Pause);
    }
}

/// Runs a service, again after an error, until it must stop.
async fn keep_running(service: BackgroundService, mut control: Control, coordination: Option<Coordination>) {
    let mut backoff = Backoff::default();
    while control.next().await {
        let started = tokio::time::Instant::now();
        // A task of its own, so that a panic ends this service only; the set ends it when the supervisor gives up waiting.
        let mut task = JoinSet::new();
        match coordination.clone() {
            None => task.spawn_local(service.runner.run(control.clone())),
            Some(coordination) => task.spawn_local(leased::run(service.clone(), control.clone(), coordination)),
        };
        let error = match task.join_next().await {
            Some(Ok(Ok(()))) if control.is_stopping() => return,
            Some(Ok(Ok(()))) => {
                control.finished();
                if control.activated().await {
                    continue;
                }
                return;
            }
            Some(Ok(Err(error))) => error,
            _ => ServiceError::temporary("it stopped because of a defect in Penstock; the log has the message"),
        };
        control.faulty(error.reason);
        if !error.is_temporary {
            if control.activated().await {
                continue;
            }
            return;
        }
        if started.elapsed() > LONGEST {
            backoff.reset();
        }
        let pause = backoff.next_pause();
        control.log(Level::Info, &format!("next attempt in {} ms", pause.as_millis()));
        if !control.sleep(pause).await {
            return;
        }
        control.status.count_restart();
    }
}

#[cfg(test)]
mod tests;
