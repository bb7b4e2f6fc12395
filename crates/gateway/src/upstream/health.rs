//! Who is up: backends of groups are connected to again and again, on the management runtime.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::HealthCheckConfig;

/// How often it is looked whether a check is due.
const TICK: Duration = Duration::from_millis(100);

/// Checks under way at once; more wait for the next tick.
const CHECKS_MAX: usize = 64;

/// Whether a backend is up. Shared by all clusters and cores.
#[derive(Debug)]
pub(crate) struct Health {
    authority: String,
    config: HealthCheckConfig,
    down: AtomicBool,
    /// Results in a row that speak against what is believed.
    against: AtomicU32,
}

impl Health {
    /// Whether it is believed to be up. A backend is, until checks say otherwise.
    pub(crate) fn is_up(&self) -> bool {
        !self.down.load(Ordering::Relaxed)
    }

    /// Notes the outcome of a check or of a connection that a request needed.
    pub(crate) fn note(&self, success: bool) {
        let up = self.is_up();
        if success == up {
            if self.against.load(Ordering::Relaxed) != 0 {
                self.against.store(0, Ordering::Relaxed);
            }
            return;
        }
        let needed = if up { self.config.unhealthy_after } else { self.config.healthy_after };
        if self.against.fetch_add(1, Ordering::Relaxed) + 1 >= needed.max(1) {
            self.against.store(0, Ordering::Relaxed);
            self.down.store(up, Ordering::Relaxed);
        }
    }

    async fn check(&self) {
        let outcome = tokio::time::timeout(self.config.timeout, TcpStream::connect(&self.authority)).await;
        self.note(matches!(outcome, Ok(Ok(_))));
    }
}

/// All backends that are watched. Survives reloads, so that a reload does not forget who is down.
#[derive(Debug, Default)]
pub(crate) struct HealthChecks {
    watched: Mutex<Vec<Watched>>,
}

#[derive(Debug)]
struct Watched {
    health: Weak<Health>,
    due: Instant,
}

impl HealthChecks {
    /// Watches a backend (`host:port`) as long as the result is held.
    pub(crate) fn watch(&self, authority: &str, config: &HealthCheckConfig) -> Arc<Health> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|watched| watched.health.strong_count() > 0);
        let known = watched.iter().filter_map(|watched| watched.health.upgrade());
        if let Some(health) = { known }.find(|health| health.authority == authority) {
            return health;
        }
        let health = Arc::new(Health {
            authority: authority.to_owned(),
            config: config.clone(),
            down: AtomicBool::new(false),
            against: AtomicU32::new(0),
        });
        watched.push(Watched { health: Arc::downgrade(&health), due: Instant::now() });
        health
    }

    /// Checks for ever.
    pub(crate) async fn run(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut running = tokio::task::JoinSet::new();
        loop {
            ticks.tick().await;
            while running.try_join_next().is_some() {}
            for health in self.due(CHECKS_MAX.saturating_sub(running.len())) {
                running.spawn(async move { health.check().await });
            }
        }
    }

    fn due(&self, room: usize) -> Vec<Arc<Health>> {
        let now = Instant::now();
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|watched| watched.health.strong_count() > 0);
        let due = watched.iter_mut().filter(|watched| watched.due <= now).take(room);
        due.filter_map(|watched| {
            let health = watched.health.upgrade()?;
            watched.due = now + health.config.interval.max(TICK);
            Some(health)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_count_results_in_a_row() {
        let checks = HealthChecks::default();
        let config = HealthCheckConfig { unhealthy_after: 2, healthy_after: 3, ..HealthCheckConfig::default() };
        let health = checks.watch("127.0.0.1:1", &config);
        let outcomes = [(false, true), (true, true), (false, true), (false, false), (true, false), (true, false)];
        for (step, (success, up)) in outcomes.into_iter().chain([(false, false)]).enumerate() {
            health.note(success);
            assert_eq!(health.is_up(), up, "step {step}");
        }
        for up in [false, false, true] {
            health.note(true);
            assert_eq!(health.is_up(), up);
        }
        assert!(Arc::ptr_eq(&health, &checks.watch("127.0.0.1:1", &config)), "one backend is watched once");
    }
}
