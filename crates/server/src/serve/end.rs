//! The end of the server: threads that finish what they do.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What workers get beyond the drain time before the process ends without them.
const MARGIN: Duration = Duration::from_secs(2);

/// Waits for the end of stopping threads, within a bounded time.
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
