//! The senders of a core: HTTP, and those of the transports that register some.

use std::rc::Rc;

use penstock_compile::MakeSenders;
use penstock_engine::ports::{ConnectionFactory, Outbound, Senders};

use crate::TRANSPORTS;

/// The connections that all cores share. One for the whole process.
pub struct SharedClients(Vec<MakeSenders>);

impl SharedClients {
    /// Nothing is connected before it is used. `factories`: the connection factories of the configuration.
    pub fn new(factories: &[ConnectionFactory]) -> SharedClients {
        SharedClients(TRANSPORTS.iter().filter_map(|kind| Some(kind.senders?(factories))).collect())
    }

    /// The senders of a core, found by the scheme of the URL.
    pub fn senders(&self, http: Rc<dyn Outbound>) -> Rc<dyn Outbound> {
        let all = self.0.iter().flat_map(|make| make());
        Rc::new(all.fold(Senders::new(http), |senders, (scheme, sender)| senders.with(&scheme, sender)))
    }
}
