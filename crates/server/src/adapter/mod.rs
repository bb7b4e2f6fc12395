//! The adapter: deploying APIs over HTTPS as `apictl` and scripts do it with Choreo Connect.
//!
//! What is deployed is kept as an archive in the state folder and served like a project that was given on the command
//! line. A change is compiled whole before it is kept, and kept before it is served, so that after an answer of 200 the
//! API is there, also after a crash; a faulty one changes nothing and its errors are returned.
//!
//! Start reading at [`start`], then `routes.rs` (the REST API) and `deploy.rs` (what a request does).

mod deploy;
mod revoked;
mod routes;
pub mod store;
mod tokens;

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::ports::{Level, Service};
use penstock_transports::http::{HttpListener, PerCore, ShutdownTrigger, shutdown};
use tokio::runtime::LocalOptions;

use crate::command::Failure;
pub use deploy::Deployer;
pub(crate) use routes::error;
pub use routes::is_user;

/// Serves as long as it is held.
pub struct Adapter {
    _trigger: ShutdownTrigger,
}

/// Starts the thread. Compiling takes as long as it takes, and never a core that serves.
pub fn start(listener: HttpListener, deployer: Deployer) -> Result<Adapter, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    let (trigger, stop) = shutdown();
    let run = move || {
        let log = deployer.log().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let outcome = match runtime {
            Ok(runtime) => runtime.block_on(async move {
                let service: Rc<dyn Service> = Rc::new(routes::Routes::new(Arc::new(deployer)));
                listener.serve(PerCore::start(), service, None, stop).await
            }),
            Err(cause) => Err(cause),
        };
        if let Err(cause) = outcome {
            log.say(Level::Error, "Adapter", &format!("the adapter ended: {cause}"));
        }
    };
    std::thread::Builder::new().name("adapter".to_owned()).spawn(run).map_err(cannot)?;
    Ok(Adapter { _trigger: trigger })
}
