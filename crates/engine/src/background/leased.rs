//! Services that run on one node: the one with their lease.
//!
//! A node counts the time of its lease from before it asked for it, so by its own clock the lease ends no later than by that
//! of the database. Without a renewal the service is asked to stop a third of that time earlier, and ended when it is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::table::Wanted;
use super::{BackgroundService, Control, RunService, ServiceError};
use crate::lease::{Lease, Leases};
use crate::ports::Level;

/// The leases of the cluster, and how long each lasts after it was acquired or extended.
#[derive(Clone)]
pub struct Coordination {
    /// The leases.
    pub leases: Arc<dyn Leases>,
    /// Their time. A node that ends without giving its leases back is replaced after it.
    pub time: Duration,
}

/// Runs a service while this node has its lease, until it must stop or fails.
pub(super) async fn run(
    service: BackgroundService,
    mut control: Control,
    coordination: Coordination,
) -> Result<(), ServiceError> {
    let Coordination { leases, time } = coordination;
    let name = format!("{}/{}", service.kind, service.name);
    let unknown = |error| ServiceError::temporary(format!("the lease `{name}` is not available: {error}"));
    while control.next().await {
        let asked = Instant::now();
        let Some(lease) = leases.acquire(&name, time).await.map_err(unknown)? else {
            control.standby();
            control.sleep(time / 3).await;
            continue;
        };
        control.log(Level::Info, &format!("runs on this node, with lease {}", lease.fencing_token));
        control.leads();
        let mut held = Held { leases: &*leases, lease: &lease, time, end: asked + time };
        let ended = held.run(service.runner.clone(), &control).await;
        // So that another node need not wait for the end of the lease. Without an answer it ends by itself.
        let _ = leases.release(&lease).await;
        match ended {
            Some(outcome) => return outcome,
            None => control.faulty("the lease was lost; another node may run the service"),
        }
    }
    Ok(())
}

/// A lease that this node has.
struct Held<'l> {
    leases: &'l dyn Leases,
    lease: &'l Lease,
    time: Duration,
    /// When it ends unless it is extended.
    end: Instant,
}

impl Held<'_> {
    /// Runs the service: its outcome, or `None` when the lease was lost and the service has stopped.
    async fn run(&mut self, runner: Arc<dyn RunService>, control: &Control) -> Option<Result<(), ServiceError>> {
        let margin = self.time / 3;
        let mut commands = control.status.wanted.subscribe();
        let (inner, wanted) = control.derived();
        let mut task = JoinSet::new();
        task.spawn_local(run_until_stopped(runner, inner));
        let mut renewal = Instant::now() + margin;
        loop {
            let is_lost = tokio::select! {
                ended = task.join_next() => return Some(outcome(ended)),
                changed = commands.changed() => {
                    if changed.is_ok() {
                        wanted.send_replace(*commands.borrow_and_update());
                    }
                    changed.is_err()
                }
                () = sleep_until(renewal) => {
                    let is_lost = self.extend(margin).await;
                    renewal = Instant::now() + if self.end > Instant::now() + margin { margin } else { RETRY };
                    is_lost
                }
            };
            if is_lost {
                wanted.send_replace(Wanted::Stop);
                if timeout_at(self.end, task.join_next()).await.is_err() {
                    task.shutdown().await;
                }
                return None;
            }
        }
    }
}

impl Held<'_> {
    /// Extends the lease: whether it was lost, or has to be given up because its state is not known.
    async fn extend(&mut self, margin: Duration) -> bool {
        let asked = Instant::now();
        let acquired = self.leases.acquire(&self.lease.name, self.time);
        match timeout_at(self.end - margin, acquired).await {
            Ok(Ok(Some(lease))) if lease == *self.lease => {
                self.end = asked + self.time;
                false
            }
            Ok(Ok(_)) => true,
            Ok(Err(_)) | Err(_) => Instant::now() + RETRY >= self.end - margin,
        }
    }
}

/// Between two attempts to extend a lease while its state is not known.
const RETRY: Duration = Duration::from_millis(200);

/// A service that has done all it had to do keeps its lease, so that no other node does it again.
async fn run_until_stopped(runner: Arc<dyn RunService>, control: Control) -> Result<(), ServiceError> {
    let mut control = control;
    loop {
        runner.run(control.clone()).await?;
        if control.is_stopping() {
            return Ok(());
        }
        control.finished();
        if !control.activated().await {
            return Ok(());
        }
    }
}

fn outcome(ended: Option<Result<Result<(), ServiceError>, tokio::task::JoinError>>) -> Result<(), ServiceError> {
    match ended {
        Some(Ok(outcome)) => outcome,
        _ => Err(ServiceError::temporary("it stopped because of a defect in Penstock; the log has the message")),
    }
}
