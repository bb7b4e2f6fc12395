//! The thread that writes lines.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Lines that may wait. Enough for a burst; when the disk cannot keep up, more would not help.
const QUEUE_LINES: usize = 16_384;

/// The bytes of these lines: a message may be as long as a body.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is collected before it is written: one system call for many lines.
const BATCH_BYTES: usize = 64 * 1024;

/// How often a target that could not be written is tried again when no line arrives.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Where lines go.
pub type Target = Box<dyn Write + Send>;

enum Job {
    Line(String),
    Flush(SyncSender<()>),
    Replace(Target),
}

/// How a writer reports its own failures.
pub struct Notices {
    /// Called when the target cannot be written, once until it can be again.
    pub failing: Box<dyn Fn(&str) + Send>,
    /// How dropped lines are reported.
    pub dropped: DroppedReport,
}

/// Where dropped lines are reported, once the target can be written again.
pub enum DroppedReport {
    /// In the target, as this line.
    InTarget(Box<dyn Fn(&str) -> String + Send>),
    /// In another log.
    Elsewhere(Box<dyn Fn(&str) + Send>),
}

/// The way to a writer. Clones share it.
#[derive(Clone)]
pub struct Writer {
    jobs: SyncSender<Job>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    dropped: AtomicU64,
    queued_bytes: AtomicUsize,
}

impl Writer {
    /// Starts a thread that writes to `target` until every clone is gone.
    pub fn start(name: &str, target: Target, notices: Notices) -> Writer {
        let (jobs, queue) = sync_channel(QUEUE_LINES);
        let counts = Arc::<Counts>::default();
        let mut thread = WriterThread {
            target,
            notices,
            counts: counts.clone(),
            reported: 0,
            failure: None,
            has_failed: None,
            ends_within_line: false,
        };
        // Without the thread every line is dropped and counted; serving goes on.
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(move || thread.run(&queue));
        Writer { jobs, counts }
    }

    /// Queues a line, its end included. Never waits.
    pub fn line(&self, line: String) {
        let length = line.len();
        let before = self.counts.queued_bytes.fetch_add(length, Ordering::Relaxed);
        let has_room = before == 0 || before.saturating_add(length) <= QUEUE_BYTES_MAX;
        if !has_room || self.jobs.try_send(Job::Line(line)).is_err() {
            self.counts.queued_bytes.fetch_sub(length, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    /// Whether both write to the same target.
    pub fn is(&self, other: &Writer) -> bool {
        Arc::ptr_eq(&self.counts, &other.counts)
    }

    /// Writes what was queued to the present target and everything later to another one. `false` when the queue did not
    /// move for `wait_max`.
    pub fn replace(&self, target: Target, wait_max: Duration) -> bool {
        self.queue(Job::Replace(target), Instant::now() + wait_max)
    }

    /// Waits until what was queued is written, at most `wait_max`.
    pub fn flush(&self, wait_max: Duration) {
        let (done, wait) = sync_channel(1);
        let end = Instant::now() + wait_max;
        if self.queue(Job::Flush(done), end) {
            let _ = wait.recv_timeout(end.saturating_duration_since(Instant::now()));
        }
    }

    /// Queues a job; a full queue is given time until `end`.
    fn queue(&self, mut job: Job, end: Instant) -> bool {
        loop {
            job = match self.jobs.try_send(job) {
                Ok(()) => return true,
                Err(TrySendError::Full(back)) if Instant::now() < end => back,
                Err(_) => return false,
            };
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

struct WriterThread {
    target: Target,
    notices: Notices,
    counts: Arc<Counts>,
    /// How many of the dropped lines were reported.
    reported: u64,
    /// Why the target cannot be written now.
    failure: Option<String>,
    /// Why it could not be written since the last report.
    has_failed: Option<String>,
    /// Whether the target ends with the beginning of a line.
    ends_within_line: bool,
}

impl WriterThread {
    fn run(&mut self, queue: &Receiver<Job>) {
        let mut batch = Vec::with_capacity(BATCH_BYTES);
        loop {
            let first = match queue.recv_timeout(RETRY_EVERY) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.report_dropped();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut next = Some(first);
            let mut last = None;
            while let Some(job) = next {
                match job {
                    Job::Line(line) => batch.extend_from_slice(line.as_bytes()),
                    other => {
                        last = Some(other);
                        break;
                    }
                }
                next = if batch.len() < BATCH_BYTES { queue.try_recv().ok() } else { None };
            }
            if !batch.is_empty() {
                self.write(&batch);
                self.counts.queued_bytes.fetch_sub(batch.len(), Ordering::Relaxed);
                batch.clear();
            }
            if let Some(Job::Replace(target)) = last {
                self.target = target;
                self.failure = None;
                self.ends_within_line = false;
                last = None;
            }
            if self.failure.is_none() {
                self.report_dropped();
            }
            if let Some(Job::Flush(done)) = last {
                let _ = done.send(());
            }
        }
    }

    /// Writes lines; those that cannot be written are dropped and counted. Whether all were written.
    fn write(&mut self, lines: &[u8]) -> bool {
        let outcome = if self.ends_within_line { write_some(&mut self.target, b"\n") } else { (0, None) };
        self.ends_within_line &= outcome.1.is_some();
        let (written, error) = match outcome.1 {
            None => write_some(&mut self.target, lines),
            error => (0, error),
        };
        let (done, lost) = lines.split_at(written);
        if let Some(last) = done.last() {
            self.ends_within_line = *last != b'\n';
        }
        let lost = lost.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counts.dropped.fetch_add(lost, Ordering::Relaxed);
        match error {
            None => self.failure = None,
            Some(error) => {
                if self.failure.is_none() {
                    (self.notices.failing)(&error);
                }
                self.has_failed = Some(error.clone());
                self.failure = Some(error);
            }
        }
        lost == 0 && self.failure.is_none()
    }

    /// Reports how many lines were dropped since the last report, if that can be written.
    fn report_dropped(&mut self) {
        let dropped = self.counts.dropped.load(Ordering::Relaxed);
        let count = dropped - self.reported;
        if count == 0 {
            return;
        }
        let reason = self.has_failed.as_deref().unwrap_or("the log cannot keep up");
        let text = format!("{count} log lines were dropped: {reason}");
        let is_reported = match &self.notices.dropped {
            DroppedReport::InTarget(line) => {
                let line = line(&text);
                let is_written = self.write(line.as_bytes());
                if !is_written {
                    // The report itself is no line that was dropped.
                    self.counts.dropped.fetch_sub(1, Ordering::Relaxed);
                }
                is_written
            }
            // Whether the target can be written shows with its next line.
            DroppedReport::Elsewhere(_) if self.failure.is_some() => false,
            DroppedReport::Elsewhere(report) => {
                report(&text);
                true
            }
        };
        if is_reported {
            self.reported = dropped;
            self.has_failed = None;
        }
    }
}

/// Writes as much as the target takes; how much, and why it took no more.
fn write_some(target: &mut Target, bytes: &[u8]) -> (usize, Option<String>) {
    let mut written = 0;
    while written < bytes.len() {
        match target.write(&bytes[written..]) {
            Ok(0) => return (written, Some("the log is closed".to_owned())),
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Some(error.to_string())),
        }
    }
    match target.flush() {
        Ok(()) => (written, None),
        Err(error) => (written, Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Takes as many bytes as there is room for.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Disk {
        fn with_room(room: usize) -> Disk {
            Disk(Arc::new(Mutex::new((Vec::new(), room))))
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let (written, room) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            *room -= count;
            written.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Reports in the log itself, and failures into a list.
    fn notices(failures: &Arc<Mutex<Vec<String>>>) -> Notices {
        let failures = failures.clone();
        Notices {
            failing: Box::new(move |why| failures.lock().unwrap().push(why.to_owned())),
            dropped: DroppedReport::InTarget(Box::new(|text| format!("{text}\n"))),
        }
    }

    #[test]
    fn lines_that_do_not_fit_into_the_queue_are_counted_and_reported() {
        let disk = Disk::with_room(usize::MAX);
        let closed = disk.0.lock().unwrap();
        let writer = Writer::start("test", Box::new(disk.clone()), notices(&Arc::default()));
        for number in 0..QUEUE_LINES * 4 {
            writer.line(format!("{number:>0100}\n"));
        }
        assert!(writer.dropped() > 0);
        drop(closed);
        writer.flush(Duration::from_secs(10));
        let text = disk.text();
        let lines = text.lines().filter(|line| line.ends_with(char::is_numeric)).count() as u64;
        assert_eq!(lines + writer.dropped(), QUEUE_LINES as u64 * 4);
        let report = format!("{} log lines were dropped: the log cannot keep up\n", writer.dropped());
        assert!(text.contains(&report), "{report}");
    }

    #[test]
    fn the_queue_has_a_limit_in_bytes() {
        let disk = Disk::with_room(usize::MAX);
        let closed = disk.0.lock().unwrap();
        let writer = Writer::start("test", Box::new(disk.clone()), notices(&Arc::default()));
        let line = "x".repeat(QUEUE_BYTES_MAX / 4);
        for _ in 0..6 {
            writer.line(format!("{line}\n"));
        }
        assert_eq!(writer.dropped(), 3);
        drop(closed);
        writer.flush(Duration::from_secs(10));
        assert_eq!(disk.text().lines().filter(|line| line.starts_with('x')).count(), 3);
        writer.line("later\n".to_owned());
        writer.flush(Duration::from_secs(10));
        assert!(disk.text().ends_with("later\n"), "room is given back");
    }

    #[test]
    fn a_full_disk_is_reported_once_and_its_count_when_there_is_room_again() {
        let disk = Disk::with_room(10);
        let failures = Arc::<Mutex<Vec<String>>>::default();
        let writer = Writer::start("test", Box::new(disk.clone()), notices(&failures));
        for line in ["first\n", "second\n", "third\n"] {
            writer.line(line.to_owned());
            writer.flush(Duration::from_secs(10));
        }
        assert_eq!((disk.text().as_str(), writer.dropped()), ("first\nseco", 2));
        assert_eq!(failures.lock().unwrap().len(), 1, "{failures:?}");
        disk.0.lock().unwrap().1 = usize::MAX;
        writer.line("fourth\n".to_owned());
        writer.flush(Duration::from_secs(10));
        assert_eq!(disk.text(), "first\nseco\nfourth\n2 log lines were dropped: no storage space\n");
        assert_eq!(writer.dropped(), 2);
    }

    #[test]
    fn another_target_begins_where_the_first_ended() {
        let (first, second) = (Disk::with_room(usize::MAX), Disk::with_room(usize::MAX));
        let writer = Writer::start("test", Box::new(first.clone()), notices(&Arc::default()));
        writer.line("one\n".to_owned());
        assert!(writer.replace(Box::new(second.clone()), Duration::from_secs(10)));
        writer.line("two\n".to_owned());
        writer.flush(Duration::from_secs(10));
        assert_eq!((first.text().as_str(), second.text().as_str()), ("one\n", "two\n"));
    }
}
