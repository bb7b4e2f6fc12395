//! What a running service is given: the core it runs sequences on, when to pause and stop, where it reports.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::table::{ServiceState, ServiceStatus, Wanted};
use crate::Core;
use crate::ports::{Level, Record};

/// A service's side of its supervisor.
#[derive(Clone)]
pub struct Control {
    core: Rc<Core>,
    pub(super) status: Arc<ServiceStatus>,
    wanted: watch::Receiver<Wanted>,
    logger: &'static str,
}

impl Control {
    pub(super) fn new(core: Rc<Core>, status: Arc<ServiceStatus>, logger: &'static str) -> Control {
        let wanted = status.wanted.subscribe();
        Control { core, status, wanted, logger }
    }

    /// The core that sequences run on; it knows the current program.
    pub fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// Waits while the service is paused. `false` when it must stop.
    pub async fn next(&mut self) -> bool {
        loop {
            let wanted = *self.wanted.borrow_and_update();
            match wanted {
                Wanted::Run => {
                    if self.status.state() == ServiceState::Paused {
                        self.status.set_state(ServiceState::Running);
                    }
                    return true;
                }
                Wanted::Pause => self.status.set_state(ServiceState::Paused),
                Wanted::Stop => return false,
            }
            if self.wanted.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits that long, shorter when the service must pause or stop. `false` when it must stop; a pause is waited for.
    pub async fn sleep(&mut self, time: Duration) -> bool {
        self.until(tokio::time::sleep(time)).await;
        self.next().await
    }

    /// Waits for a future: `None` when the service must pause or stop before it is ready.
    pub async fn until<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut wanted = self.wanted.clone();
        if *wanted.borrow_and_update() != Wanted::Run {
            return None;
        }
        tokio::select! {
            biased;
            _ = wanted.wait_for(|wanted| *wanted != Wanted::Run) => None,
            output = future => Some(output),
        }
    }

    /// Whether the service must stop: finish the message at hand and take no other.
    pub fn is_stopping(&self) -> bool {
        *self.wanted.borrow() == Wanted::Stop
    }

    /// Whether the service may take another message: it must neither pause nor stop.
    pub fn is_wanted(&self) -> bool {
        *self.wanted.borrow() == Wanted::Run
    }

    /// Pauses the service, as an operator would. It stays paused over restarts.
    pub fn pause(&self) {
        self.status.pause();
    }

    /// Reports that the service does not work at present and goes on trying: a broker that is away.
    pub fn faulty(&self, reason: impl Into<Arc<str>>) {
        self.status.reported();
        let reason = reason.into();
        if self.status.state() != ServiceState::Faulty(reason.clone()) {
            self.log(Level::Warn, &reason);
            self.status.set_state(ServiceState::Faulty(reason));
        }
    }

    /// Reports that the service works.
    pub fn working(&self) {
        self.status.reported();
        if matches!(self.status.state(), ServiceState::Faulty(_)) {
            self.status.set_state(ServiceState::Running);
        }
    }

    /// Notes that another node runs the service.
    pub(super) fn standby(&self) {
        self.status.reported();
        self.status.set_state(ServiceState::Standby);
    }

    /// Notes that this node runs the service from now on.
    pub(super) fn leads(&self) {
        self.status.set_state(ServiceState::Running);
    }

    /// The same service with commands of its own, which begin as they are now.
    pub(super) fn derived(&self) -> (Control, watch::Sender<Wanted>) {
        let sender = watch::Sender::new(*self.wanted.borrow());
        (Control { wanted: sender.subscribe(), ..self.clone() }, sender)
    }

    /// Notes that the service did all it had to do.
    pub(super) fn finished(&self) {
        self.status.set_state(ServiceState::Finished);
    }

    /// Waits until an operator activates a service that ended by itself. `false` when it must stop.
    pub(super) async fn activated(&mut self) -> bool {
        self.wanted.mark_unchanged();
        while self.wanted.changed().await.is_ok() {
            match *self.wanted.borrow_and_update() {
                Wanted::Run => {
                    self.status.set_state(ServiceState::Running);
                    return true;
                }
                Wanted::Pause => {}
                Wanted::Stop => return false,
            }
        }
        false
    }

    /// Waits until an operator wants a run at once, whatever the schedule.
    pub async fn triggered(&self) {
        self.status.triggered().await;
    }

    /// Counts a message, or a run, that ended.
    pub fn count(&self, succeeded: bool) {
        self.status.count(succeeded);
    }

    /// Writes a log line about the service.
    pub fn log(&self, level: Level, text: &str) {
        let text = format!("{}: {text}", self.status.name);
        self.core.log.write(&Record { level, logger: self.logger, service: "", correlation: "", text: &text });
    }
}
