//! What every runtime of the server that runs flows is made of: a core of the data path, and the one of management.

use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::database::Databases;
use penstock_engine::ports::Environment;
use penstock_engine::store::Stores;
use penstock_engine::{Core, Current, Metrics};
use penstock_transports::SharedClients;
use penstock_transports::http::tls::TlsClient;
use penstock_transports::http::{HttpSender, PerCore, SenderConfig};

use super::state::{CoreCounters, State};
use crate::config::Settings;
use crate::log::Log;

/// What the runtimes share.
#[derive(Clone)]
pub(super) struct Facilities {
    pub(super) settings: Settings,
    pub(super) tls: Arc<TlsClient>,
    pub(super) descriptors_max: Option<RawFd>,
    pub(super) log: Arc<Log>,
    pub(super) environment: Arc<Environment>,
    pub(super) current: Arc<Current>,
    pub(super) databases: Arc<dyn Databases>,
    pub(super) stores: Arc<dyn Stores>,
    pub(super) clients: Arc<SharedClients>,
    pub(super) state: Arc<State>,
}

impl Facilities {
    /// A core for this thread, counted with the others, and its HTTP sender.
    pub(super) fn core(&self, per_core: &Rc<PerCore>) -> (Rc<Core>, Rc<HttpSender>) {
        let Facilities { settings, tls, descriptors_max, log, environment, current, databases, stores, clients, state } =
            self.clone();
        let (limits, timeouts) = (settings.limits, settings.timeouts);
        let config = SenderConfig { limits, timeouts, tls, descriptors_max, ..SenderConfig::default() };
        let sender = Rc::new(HttpSender::new(per_core, config));
        let metrics = Arc::new(Metrics::default());
        state.add_core(CoreCounters { metrics: metrics.clone(), http: per_core.counters.clone() });
        let core = Core::new(clients.senders(sender.clone()), log, environment, metrics, current);
        core.set_databases(databases);
        core.set_stores(stores);
        (core, sender)
    }
}
