use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::background::{RunService, ServiceState};
use crate::fake::{self, run};
use crate::ports::LocalFuture;
use crate::{Place, Program};

#[derive(Default)]
struct Saved(Mutex<Vec<(String, bool)>>);

impl SavedStates for Saved {
    fn paused(&self, _kind: &str, name: &str) -> Option<bool> {
        self.0.lock().unwrap().iter().rev().find(|(known, _)| known == name).map(|(_, paused)| *paused)
    }

    fn save(&self, _kind: &str, name: &str, paused: bool) {
        self.0.lock().unwrap().push((name.to_owned(), paused));
    }

    fn forget(&self, _kind: &str, name: &str) {
        self.0.lock().unwrap().retain(|(known, _)| known != name);
    }
}

/// Reports what happens to it, and fails as often as it should.
struct Probe {
    events: UnboundedSender<String>,
    name: &'static str,
    failures: AtomicUsize,
    lasting: bool,
}

impl RunService for Probe {
    fn run(&self, mut control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let fails =
            self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        let (events, name, lasting) = (self.events.clone(), self.name, self.lasting);
        Box::pin(async move {
            events.send(format!("{name} starts")).unwrap();
            if fails && lasting {
                return Err(ServiceError::lasting("no such queue"));
            }
            if fails {
                return Err(ServiceError::temporary("broker away"));
            }
            while control.next().await {
                control.until(std::future::pending::<()>()).await;
                if !control.is_stopping() {
                    events.send(format!("{name} pauses")).unwrap();
                }
            }
            events.send(format!("{name} stops")).unwrap();
            Ok(())
        })
    }
}

struct Bench {
    supervisor: Supervisor,
    table: Arc<ServiceTable>,
    saved: Arc<Saved>,
    sender: UnboundedSender<String>,
    events: UnboundedReceiver<String>,
}

impl Bench {
    fn new() -> Bench {
        let (sender, events) = unbounded_channel();
        let (table, saved) = (Arc::new(ServiceTable::default()), Arc::new(Saved::default()));
        let core = fake::core(Program::default());
        let supervisor = Supervisor::new(core, table.clone(), saved.clone(), Duration::from_secs(5));
        Bench { supervisor, table, saved, sender, events }
    }

    fn service(&self, name: &'static str, content: u64, failures: usize, lasting: bool) -> BackgroundService {
        let failures = AtomicUsize::new(failures);
        let runner = Arc::new(Probe { events: self.sender.clone(), name, failures, lasting });
        BackgroundService {
            kind: "probe",
            name: name.into(),
            content,
            at: Place::default(),
            starts_paused: false,
            is_coordinated: true,
            runner,
        }
    }

    async fn event(&mut self) -> String {
        self.events.recv().await.unwrap()
    }
}

#[test]
fn a_reload_keeps_what_did_not_change_and_restarts_and_stops_the_rest() {
    run(async {
        let mut bench = Bench::new();
        let services = ["kept", "changed", "removed"].map(|name| bench.service(name, 1, 0, false));
        bench.supervisor.apply(&services);
        let mut started = [bench.event().await, bench.event().await, bench.event().await];
        started.sort();
        assert_eq!(started, ["changed starts", "kept starts", "removed starts"]);
        let next = [bench.service("kept", 1, 0, false), bench.service("changed", 2, 0, false)];
        bench.supervisor.apply(&next);
        let mut seen = [bench.event().await, bench.event().await, bench.event().await];
        let stop = seen.iter().position(|event| event == "changed stops").unwrap();
        let start = seen.iter().position(|event| event == "changed starts").unwrap();
        assert!(stop < start, "the new version starts after the old one has stopped: {seen:?}");
        seen.sort();
        assert_eq!(seen, ["changed starts", "changed stops", "removed stops"]);
        bench.supervisor.stop_all().await;
        let mut last = [bench.events.recv().await.unwrap(), bench.events.recv().await.unwrap()];
        last.sort();
        assert_eq!(last, ["changed stops", "kept stops"]);
        assert!(bench.table.all().is_empty());
    });
}

#[test]
fn a_pause_is_saved_and_holds_after_a_restart() {
    run(async {
        let mut bench = Bench::new();
        let service = bench.service("orders", 1, 0, false);
        bench.supervisor.apply(std::slice::from_ref(&service));
        assert_eq!(bench.event().await, "orders starts");
        let status = bench.table.get("probe", "orders").unwrap();
        status.pause();
        assert_eq!(bench.event().await, "orders pauses");
        while bench.saved.paused("probe", "orders") != Some(true) || status.state() != ServiceState::Paused {
            tokio::task::yield_now().await;
        }
        bench.supervisor.apply(&[bench.service("orders", 2, 0, false)]);
        assert_eq!(bench.event().await, "orders stops");
        let status = bench.table.get("probe", "orders").unwrap();
        assert_eq!(status.state(), ServiceState::Paused);
        status.activate();
        assert_eq!(bench.event().await, "orders starts");
        assert_eq!(status.state(), ServiceState::Running);
    });
}

#[test]
fn a_service_that_fails_is_run_again_and_one_that_cannot_work_waits_for_an_operator() {
    run(async {
        let mut bench = Bench::new();
        tokio::time::pause();
        let services = [bench.service("broker", 1, 2, false)];
        bench.supervisor.apply(&services);
        for _ in 0..3 {
            assert_eq!(bench.event().await, "broker starts");
        }
        let status = bench.table.get("probe", "broker").unwrap();
        assert_eq!(status.restarts(), 2);
        bench.supervisor.apply(&[bench.service("queue", 1, 1, true)]);
        let mut seen = [bench.event().await, bench.event().await];
        seen.sort();
        assert_eq!(seen, ["broker stops", "queue starts"]);
        let status = bench.table.get("probe", "queue").unwrap();
        while status.state() != ServiceState::Faulty("no such queue".into()) {
            tokio::task::yield_now().await;
        }
        status.activate();
        assert_eq!(bench.event().await, "queue starts");
        assert_eq!(status.state(), ServiceState::Running);
    });
}

/// Leases in this process, which a test takes away.
#[derive(Default)]
struct FakeLeases {
    holder: Mutex<u64>,
    is_away: std::sync::atomic::AtomicBool,
}

impl crate::lease::Leases for FakeLeases {
    fn acquire(
        &self,
        name: &str,
        _time: Duration,
    ) -> LocalFuture<'static, Result<Option<crate::lease::Lease>, crate::lease::LeaseError>> {
        let lease = match *self.holder.lock().unwrap() {
            0 => None,
            fencing_token => Some(crate::lease::Lease { name: name.into(), fencing_token }),
        };
        let is_away = self.is_away.load(Ordering::Relaxed);
        let outcome = if is_away { Err(crate::lease::LeaseError("away".to_owned())) } else { Ok(lease) };
        Box::pin(std::future::ready(outcome))
    }

    fn release(&self, _lease: &crate::lease::Lease) -> LocalFuture<'static, Result<(), crate::lease::LeaseError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn a_coordinated_service_runs_while_its_lease_is_held() {
    run(async {
        let mut bench = Bench::new();
        let leases = Arc::new(FakeLeases::default());
        bench.supervisor.coordinate(Coordination { leases: leases.clone(), time: Duration::from_millis(60) });
        bench.supervisor.apply(&[bench.service("led", 1, 0, false)]);
        let status = bench.table.get("probe", "led").unwrap();
        while status.state() != ServiceState::Standby {
            tokio::task::yield_now().await;
        }
        *leases.holder.lock().unwrap() = 1;
        assert_eq!(bench.event().await, "led starts");
        *leases.holder.lock().unwrap() = 0;
        assert_eq!(bench.event().await, "led stops");
        *leases.holder.lock().unwrap() = 2;
        assert_eq!(bench.event().await, "led starts");
        // The state of the lease is not known: the service stops before it ends.
        leases.is_away.store(true, Ordering::Relaxed);
        assert_eq!(bench.event().await, "led stops");
        bench.supervisor.stop_all().await;
    });
}
