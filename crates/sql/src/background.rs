//! The thread that moves the bytes of all connections to database servers, so that any core may use them.

use std::sync::{Arc, OnceLock};

use penstock_engine::database::{DatabaseError, DatabaseErrorKind};
use tokio::runtime::Handle;

use super::tls::ServerTls;

/// Makes connections to database servers.
#[derive(Clone)]
pub(crate) struct ServerConnector {
    pub(crate) tls: Arc<dyn ServerTls>,
    pub(crate) background: Background,
}

/// The thread, started with the first connection.
#[derive(Clone, Default)]
pub(crate) struct Background {
    running: Arc<OnceLock<Option<Running>>>,
}

/// The thread ends when this is dropped.
struct Running {
    handle: Handle,
    _alive: tokio::sync::oneshot::Sender<()>,
}

impl Background {
    pub(crate) fn handle(&self) -> Result<Handle, DatabaseError> {
        let running = self.running.get_or_init(start);
        running.as_ref().map(|running| running.handle.clone()).ok_or_else(|| {
            DatabaseError::new(DatabaseErrorKind::Unreachable, "no thread for database connections can be started")
        })
    }
}

fn start() -> Option<Running> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let (alive, gone) = tokio::sync::oneshot::channel::<()>();
    let run = move || drop(runtime.block_on(gone));
    std::thread::Builder::new().name("databases".to_owned()).spawn(run).ok()?;
    Some(Running { handle, _alive: alive })
}
