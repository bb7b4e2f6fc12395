//! Clients that all cores share, as the senders of each core.

use std::rc::Rc;
use std::sync::Arc;

use penstock_compile::MakeSenders;
use penstock_engine::Fault;
use penstock_engine::ports::{LocalFuture, Outbound, Outgoing};
use penstock_message::Message;

/// A client whose connections all cores share.
pub(crate) trait SharedClient: Send + Sync + 'static {
    /// Sends a message of a core.
    fn deliver(self: Arc<Self>, outgoing: Outgoing) -> impl Future<Output = Result<Message, Fault>>;
}

/// Makes the senders of these URL schemes.
pub(crate) fn senders<C: SharedClient>(client: C, schemes: Vec<String>) -> MakeSenders {
    let client = Arc::new(client);
    Box::new(move || {
        let sender: Rc<dyn Outbound> = Rc::new(Sender(client.clone()));
        schemes.iter().map(|scheme| (scheme.clone(), sender.clone())).collect()
    })
}

/// The sender of a core.
struct Sender<C>(Arc<C>);

impl<C: SharedClient> Outbound for Sender<C> {
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        Box::pin(self.0.clone().deliver(outgoing))
    }
}
