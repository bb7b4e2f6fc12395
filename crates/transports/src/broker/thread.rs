//! One thread with a runtime for the clients of all brokers. Their connections outlive the cores that use them, and their
//! heartbeats are sent while a core is busy.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};

static THREAD: OnceLock<Result<Handle, String>> = OnceLock::new();

/// The runtime of broker clients. It is started when the first client connects.
pub(crate) fn handle() -> Result<Handle, String> {
    THREAD.get_or_init(start).clone()
}

fn start() -> Result<Handle, String> {
    let failed = |cause: std::io::Error| format!("the thread of broker clients cannot be started: {cause}");
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("brokers".to_owned()).spawn(run).map_err(failed)?;
    Ok(handle)
}
