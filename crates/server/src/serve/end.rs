//! The end of the server: signals, and threads that finish what they do.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::command::Failure;

/// What workers get beyond the drain time before the process ends without them.
const MARGIN: Duration = Duration::from_secs(2);

/// Waits for the first signal that asks for the end. Later ones end the process at once.
pub(super) fn wait_for_signal() -> Result<&'static str, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("signals cannot be received: {cause}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let (first, hear) = std::sync::mpsc::channel();
    let (mut terminate, mut interrupt) = {
        let _guard = runtime.enter();
        (signal(SignalKind::terminate()).map_err(cannot)?, signal(SignalKind::interrupt()).map_err(cannot)?)
    };
    let listen = move || {
        runtime.block_on(async move {
            let mut seen = 0;
            loop {
                let name = tokio::select! {
                    Some(()) = terminate.recv() => "SIGTERM",
                    Some(()) = interrupt.recv() => "SIGINT",
                    else => return,
                };
                seen += 1;
                if seen > 1 {
                    std::process::exit(130);
                }
                let _ = first.send(name);
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(cannot)?;
    // The thread lives as long as the process; if it ends, so must the wait.
    Ok(hear.recv().unwrap_or("signals cannot be received"))
}

/// Waits for threads that were told to end, within a bounded time.
pub(super) fn join(threads: Vec<JoinHandle<()>>, drain: Duration) {
    let end = Instant::now() + drain + MARGIN;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}
