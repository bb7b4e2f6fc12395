//! The thread that writes lines.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that may wait. Enough for a burst; when the disk cannot keep up, more would not help.
const QUEUE_LINES: usize = 16_384;

/// What is collected before it is written: one system call for many lines.
const BATCH_BYTES: usize = 64 * 1024;

enum Job {
    Line(String),
    Flush(SyncSender<()>),
}

/// The way to a writer. Clones share it.
#[derive(Clone)]
pub struct Writer {
    jobs: SyncSender<Job>,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    /// Starts a thread that writes to `target` until every clone is gone.
    pub fn start(name: &str, target: Box<dyn Write + Send>) -> Writer {
        let (jobs, queue) = sync_channel(QUEUE_LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = dropped.clone();
        // Without the thread every line is dropped and counted; serving goes on.
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(move || write_all(&queue, target, &counter));
        Writer { jobs, dropped }
    }

    /// Queues a line, its end included. Never waits.
    pub fn line(&self, line: String) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.jobs.try_send(Job::Line(line)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until what was queued is written, at most `wait_max`.
    pub fn flush(&self, wait_max: Duration) {
        let (done, wait) = sync_channel(1);
        // A full queue is given the same time as a slow disk.
        let end = std::time::Instant::now() + wait_max;
        let mut job = Job::Flush(done);
        while let Err(TrySendError::Full(back)) = self.jobs.try_send(job) {
            if std::time::Instant::now() >= end {
                return;
            }
            job = back;
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = wait.recv_timeout(end.saturating_duration_since(std::time::Instant::now()));
    }
}

fn write_all(queue: &Receiver<Job>, mut target: Box<dyn Write + Send>, dropped: &AtomicU64) {
    let mut batch = Vec::with_capacity(BATCH_BYTES);
    let mut told = 0;
    while let Ok(first) = queue.recv() {
        let mut next = Some(first);
        let mut waiting = None;
        while let Some(job) = next {
            match job {
                Job::Line(line) => batch.extend_from_slice(line.as_bytes()),
                Job::Flush(done) => {
                    waiting = Some(done);
                    break;
                }
            }
            next = if batch.len() < BATCH_BYTES { queue.try_recv().ok() } else { None };
        }
        let lost = dropped.load(Ordering::Relaxed);
        if lost > told {
            batch.extend_from_slice(
                format!("{} log lines were dropped: the log cannot keep up\n", lost - told).as_bytes(),
            );
            told = lost;
        }
        // A full disk or a closed terminal must not end the server.
        let _ = target.write_all(&batch).and_then(|()| target.flush());
        batch.clear();
        if let Some(done) = waiting {
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Lets nothing through until it is opened.
    struct Gate(Arc<Mutex<Vec<u8>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_said() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let closed = written.lock().unwrap();
        let writer = Writer::start("test", Box::new(Gate(written.clone())));
        for number in 0..QUEUE_LINES * 4 {
            writer.line(format!("{number:>0100}\n"));
        }
        assert!(writer.dropped() > 0);
        drop(closed);
        writer.flush(Duration::from_secs(10));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines = text.lines().filter(|line| line.ends_with(char::is_numeric)).count() as u64;
        assert_eq!(lines + writer.dropped(), QUEUE_LINES as u64 * 4);
        assert!(text.contains(&format!("{} log lines were dropped", writer.dropped())), "{}", writer.dropped());
    }
}
