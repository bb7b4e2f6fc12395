//! The services that run, as other threads see them: state, counters, and the state that is wanted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

/// How a service fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// It runs.
    Running,
    /// It was paused, or waits to be activated.
    Paused,
    /// Another node of the cluster runs it.
    Standby,
    /// It did all it had to do: a task that ran as often as its count.
    Finished,
    /// It does not work; the reason.
    Faulty(Arc<str>),
}

/// What is wanted of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Run,
    Pause,
    Stop,
}

/// A service as other threads see it.
#[derive(Debug)]
pub struct ServiceStatus {
    /// The kind of artifact.
    pub kind: &'static str,
    /// The name.
    pub name: Arc<str>,
    state: Mutex<ServiceState>,
    pub(super) wanted: watch::Sender<Wanted>,
    succeeded: AtomicU64,
    failed: AtomicU64,
    restarts: AtomicU64,
    /// Whether it reported that it works, or that it does not.
    has_reported: AtomicBool,
    /// Notified when an operator wants a run at once.
    triggered: Notify,
}

impl ServiceStatus {
    pub(super) fn new(kind: &'static str, name: Arc<str>, is_paused: bool) -> Arc<ServiceStatus> {
        let (state, wanted) = match is_paused {
            true => (ServiceState::Paused, Wanted::Pause),
            false => (ServiceState::Running, Wanted::Run),
        };
        Arc::new(ServiceStatus {
            kind,
            name,
            state: Mutex::new(state),
            wanted: watch::Sender::new(wanted),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            has_reported: AtomicBool::new(false),
            triggered: Notify::new(),
        })
    }

    /// How it fares.
    pub fn state(&self) -> ServiceState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Messages or runs that ended well.
    pub fn succeeded(&self) -> u64 {
        self.succeeded.load(Ordering::Relaxed)
    }

    /// Messages or runs that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// How often it was run again after an error.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Pauses it after the message at hand.
    pub fn pause(&self) {
        self.want(Wanted::Pause);
    }

    /// Activates it after a pause, or after it ended by itself.
    pub fn activate(&self) {
        self.want(Wanted::Run);
    }

    /// Runs it once at once, if it runs on a schedule. Its schedule stays as it is.
    pub fn trigger(&self) {
        self.triggered.notify_one();
    }

    pub(super) async fn triggered(&self) {
        self.triggered.notified().await;
    }

    /// Whether it is paused, or will be when its current message is done.
    pub fn is_pausing(&self) -> bool {
        *self.wanted.borrow() == Wanted::Pause
    }

    /// Whether it has come so far that it works, does not work, or waits to be activated.
    pub fn has_settled(&self) -> bool {
        self.has_reported.load(Ordering::Acquire) || self.is_pausing()
    }

    pub(super) fn reported(&self) {
        self.has_reported.store(true, Ordering::Release);
    }

    pub(super) fn set_state(&self, state: ServiceState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(super) fn count(&self, succeeded: bool) {
        let counter = if succeeded { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    fn want(&self, wanted: Wanted) {
        // A stopping service gets no further commands.
        self.wanted.send_if_modified(|now| {
            let stops = *now == Wanted::Stop;
            if !stops {
                *now = wanted;
            }
            !stops
        });
    }
}

type Services = BTreeMap<(&'static str, Arc<str>), Arc<ServiceStatus>>;

/// The services of the current program by kind and name.
#[derive(Debug, Default)]
pub struct ServiceTable {
    services: Mutex<Services>,
}

impl ServiceTable {
    /// All services, ordered by kind and name.
    pub fn all(&self) -> Vec<Arc<ServiceStatus>> {
        self.lock().values().cloned().collect()
    }

    /// The service of a kind and name.
    pub fn get(&self, kind: &'static str, name: &str) -> Option<Arc<ServiceStatus>> {
        self.lock().get(&(kind, Arc::from(name))).cloned()
    }

    pub(super) fn put(&self, status: Arc<ServiceStatus>) {
        self.lock().insert((status.kind, status.name.clone()), status);
    }

    pub(super) fn remove(&self, status: &Arc<ServiceStatus>) {
        let mut services = self.lock();
        let key = (status.kind, status.name.clone());
        if services.get(&key).is_some_and(|known| Arc::ptr_eq(known, status)) {
            services.remove(&key);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Services> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
