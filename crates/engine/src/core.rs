//! What every exchange of one core shares.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::background::ServiceError;
use crate::database::Databases;
use crate::entrance::Entrances;
use crate::ports::{Environment, LogSink, Outbound};
use crate::store::{StoreError, Stores};
use crate::{Fault, Metrics, Program};

/// A program as one core holds it: cloning is not shared between cores.
pub struct Loaded {
    /// The program.
    pub program: Arc<Program>,
}

/// The program that new requests get. One for the whole process; cores notice a change by its
/// generation, so that a request costs one relaxed load.
pub struct Current {
    generation: AtomicU64,
    program: std::sync::RwLock<Arc<Program>>,
    changes: watch::Sender<()>,
}

impl Current {
    /// Starts with a program.
    pub fn new(program: Arc<Program>) -> Arc<Current> {
        Arc::new(Current {
            generation: AtomicU64::new(1),
            program: std::sync::RwLock::new(program),
            changes: watch::Sender::new(()),
        })
    }

    /// Swaps the program; requests that are running keep theirs.
    pub fn swap(&self, program: Arc<Program>) {
        let mut slot = self.program.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *slot = program;
        self.generation.fetch_add(1, Ordering::Release);
        drop(slot);
        self.changes.send_replace(());
    }

    /// Changes whenever the program does, for what must follow it without a request.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The program of now.
    pub fn get(&self) -> Arc<Program> {
        self.program.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// One core: its ports, its view of the current program, its counters.
pub struct Core {
    /// The sender.
    pub outbound: Rc<dyn Outbound>,
    /// Where log lines go.
    pub log: Arc<dyn LogSink>,
    /// System properties, environment variables, `file.properties`.
    pub environment: Arc<Environment>,
    /// Counters of this core.
    pub metrics: Arc<Metrics>,
    current: Arc<Current>,
    databases: OnceCell<Arc<dyn Databases>>,
    stores: OnceCell<Arc<dyn Stores>>,
    entrances: OnceCell<Arc<dyn Entrances>>,
    seen: RefCell<(u64, Rc<Loaded>)>,
    /// Local calls that run.
    pub(crate) local_calls: Cell<usize>,
}

impl Core {
    /// A core that serves the current program.
    pub fn new(
        outbound: Rc<dyn Outbound>,
        log: Arc<dyn LogSink>,
        environment: Arc<Environment>,
        metrics: Arc<Metrics>,
        current: Arc<Current>,
    ) -> Rc<Core> {
        let generation = current.generation.load(Ordering::Acquire);
        let loaded = Rc::new(Loaded { program: current.get() });
        Rc::new(Core {
            outbound,
            log,
            environment,
            metrics,
            current,
            databases: OnceCell::new(),
            stores: OnceCell::new(),
            entrances: OnceCell::new(),
            seen: RefCell::new((generation, loaded)),
            local_calls: Cell::new(0),
        })
    }

    /// Gives the core its databases, once, before it serves.
    pub fn set_databases(&self, databases: Arc<dyn Databases>) {
        // A second call changes nothing: flows may be using the first already.
        let _ = self.databases.set(databases);
    }

    /// The databases.
    pub fn databases(&self) -> Result<&Arc<dyn Databases>, Fault> {
        self.databases.get().ok_or_else(|| Fault::new("no databases are configured"))
    }

    /// Gives the core its message stores, once, before it serves.
    pub fn set_stores(&self, stores: Arc<dyn Stores>) {
        // As with databases.
        let _ = self.stores.set(stores);
    }

    /// The message stores.
    pub fn stores(&self) -> Result<&Arc<dyn Stores>, StoreError> {
        let none = || StoreError { message: "no message stores are configured".into(), is_unreachable: false };
        self.stores.get().ok_or_else(none)
    }

    /// Gives the core what opens ports, once, before services run on it.
    pub fn set_entrances(&self, entrances: Arc<dyn Entrances>) {
        // As with databases.
        let _ = self.entrances.set(entrances);
    }

    /// What opens ports.
    pub fn entrances(&self) -> Result<&Arc<dyn Entrances>, ServiceError> {
        self.entrances.get().ok_or_else(|| ServiceError::lasting("ports cannot be opened here"))
    }

    /// The program new requests get.
    pub fn program(&self) -> Rc<Loaded> {
        let generation = self.current.generation.load(Ordering::Acquire);
        let mut seen = self.seen.borrow_mut();
        if seen.0 != generation {
            *seen = (generation, Rc::new(Loaded { program: self.current.get() }));
        }
        seen.1.clone()
    }
}
