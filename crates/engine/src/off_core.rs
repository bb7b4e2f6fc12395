//! Work of a library that cannot pause: on a thread that may block, so that the core serves others meanwhile.

use penstock_budget::Account;

use crate::Fault;

/// Runs work on one of the few blocking threads of the core, which take it in the order it came. It may hold as much memory
/// as a message.
pub async fn off_core<T: Send + 'static>(
    memory_bytes_max: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let bounded = move || Account::new(memory_bytes_max).enter(|| penstock_budget::run(work));
    match tokio::task::spawn_blocking(bounded).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(stop)) => Err(Fault::new(stop.to_string()).public()),
        // It panicked, which the log has, or the process ends.
        Err(_) => Err(Fault::new("the work for the message ended before it was done")),
    }
}
