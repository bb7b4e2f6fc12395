//! Logging: what flows, the server and the listeners report, written by a thread of its own.
//!
//! A core never waits for a disk or a terminal: it puts a line into a bounded queue. A line that finds the queue full, or
//! that the disk does not take, is dropped and counted; the count is reported when lines can be written again.
//!
//! Start reading at [`Log`], then `writer.rs` (the thread) and `layout.rs` (how lines look).

mod access;
mod date;
mod gateway_access;
mod layout;
mod levels;
mod writer;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use penstock_engine::ports::{Level, LogSink, Record};

use crate::config::{AccessTarget, LogFormat, Settings};
pub use access::Access;
use levels::Levels;
pub use levels::{LevelFilter, ROOT_LOGGER};
pub use writer::Writer;
use writer::{DroppedReport, Notices, Target};

/// How long the process waits for the last lines when it ends.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The log of the process.
pub struct Log {
    writer: Writer,
    /// The writer of finished requests, once there is one.
    access: OnceLock<Writer>,
    layout: Arc<Layout>,
}

/// Which lines are written and how; a reload may change both.
#[derive(Debug)]
struct Layout {
    levels: Levels,
    format: AtomicU8,
}

/// The logs as the settings ask for them.
pub struct Logs {
    /// What flows and the server report.
    pub log: Arc<Log>,
    /// Finished requests.
    pub access: Option<Writer>,
}

/// A log file that cannot be opened.
pub type OpenError = (PathBuf, io::Error);

impl Layout {
    fn new(settings: &Settings) -> Layout {
        let layout = Layout { levels: Levels::new(), format: AtomicU8::new(0) };
        layout.set(settings);
        layout
    }

    fn set(&self, settings: &Settings) {
        self.levels.set_root(LevelFilter::from(settings.log_level));
        self.format.store(settings.log_format as u8, Ordering::Relaxed);
    }

    fn format(&self) -> LogFormat {
        if self.format.load(Ordering::Relaxed) == LogFormat::Json as u8 { LogFormat::Json } else { LogFormat::Text }
    }

    fn line(&self, record: &Record<'_>) -> String {
        let now = SystemTime::now();
        match self.format() {
            LogFormat::Text => layout::text(record, now),
            LogFormat::Json => layout::json(record, now),
        }
    }
}

impl Logs {
    /// Opens files and starts the writers.
    pub fn open(settings: &Settings) -> Result<Logs, OpenError> {
        let layout = Arc::new(Layout::new(settings));
        let reports = layout.clone();
        let notices = Notices {
            // Standard error is what is left; where it is the target itself, this fails as well.
            failing: Box::new(|why| crate::serve::say(&format!("the log cannot be written: {why}\n"))),
            dropped: DroppedReport::InTarget(Box::new(move |text| {
                reports.line(&Record { level: Level::Warn, logger: "Log", service: "", correlation: "", text })
            })),
        };
        let writer = Writer::start("log", log_target(settings)?, notices);
        let log = Arc::new(Log { writer, access: OnceLock::new(), layout });
        let access = match &settings.access_log {
            None => None,
            // One writer for one target, so that lines do not mix.
            Some(AccessTarget::Stderr) if settings.log_file.is_none() => Some(log.writer.clone()),
            Some(target) => Some(Writer::start("access-log", access_target(target)?, access_notices(&log))),
        };
        if let Some(access) = &access {
            let _ = log.access.set(access.clone());
        }
        Ok(Logs { log, access })
    }

    /// Opens the files again, under the names that they have in the new settings, and takes level and layout from there.
    /// Gives back what needs a restart.
    pub fn reopen(&self, old: &Settings, new: &Settings) -> Result<Vec<&'static str>, OpenError> {
        self.log.layout.set(new);
        let kinds = |settings: &Settings| {
            let access = settings.access_log.as_ref().map(|target| matches!(target, AccessTarget::File(_)));
            (settings.log_file.is_some(), access)
        };
        let (settings, notes) = match kinds(old) == kinds(new) {
            true => (new, Vec::new()),
            // Which writers there are was decided at the start.
            false => (old, vec!["log.file", "access_log.to"]),
        };
        if settings.log_file.is_some() {
            self.log.writer.replace(log_target(settings)?, FLUSH_MAX);
        }
        if let (Some(access), Some(target @ AccessTarget::File(_))) = (&self.access, &settings.access_log) {
            access.replace(access_target(target)?, FLUSH_MAX);
        }
        Ok(notes)
    }

    /// Waits for what is still to be written, for a limited time.
    pub fn flush(&self) {
        self.log.writer.flush(FLUSH_MAX);
        if let Some(access) = &self.access {
            access.flush(FLUSH_MAX);
        }
    }
}

fn log_target(settings: &Settings) -> Result<Target, OpenError> {
    match &settings.log_file {
        Some(file) => append(file),
        None => Ok(Box::new(io::stderr())),
    }
}

fn access_target(target: &AccessTarget) -> Result<Target, OpenError> {
    match target {
        AccessTarget::Stderr => Ok(Box::new(io::stderr())),
        AccessTarget::File(file) => append(file),
    }
}

fn append(file: &Path) -> Result<Target, OpenError> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.map(|opened| Box::new(opened) as Target).map_err(|cause| (file.to_owned(), cause))
}

/// The access log has a layout that others read by program: its writer reports in the log of the process.
fn access_notices(log: &Arc<Log>) -> Notices {
    let (failing, dropped) = (Arc::downgrade(log), Arc::downgrade(log));
    Notices {
        failing: Box::new(move |why| {
            if let Some(log) = failing.upgrade() {
                log.say(Level::Error, "AccessLog", &format!("the access log cannot be written: {why}"));
            }
        }),
        dropped: DroppedReport::Elsewhere(Box::new(move |text| {
            if let Some(log) = dropped.upgrade() {
                log.say(Level::Warn, "AccessLog", text);
            }
        })),
    }
}

impl Log {
    /// A line of the server itself.
    pub fn say(&self, level: Level, logger: &str, text: &str) {
        if self.enabled(level) {
            self.write(&Record { level, logger, service: "", correlation: "", text });
        }
    }

    /// Name, component and level of each logger, the root first.
    pub fn levels(&self) -> Vec<(String, String, LevelFilter)> {
        self.layout.levels.all()
    }

    /// Sets the level of a logger; `false` when there are too many with a level of their own.
    pub fn set_level(&self, name: &str, class: Option<&str>, level: LevelFilter) -> bool {
        self.layout.levels.set(name, class, level)
    }

    /// Gives a logger the level of the root again; `false` when it had none of its own.
    pub fn remove_level(&self, name: &str) -> bool {
        self.layout.levels.remove(name)
    }

    /// Lines dropped so far, those of the access log included.
    pub fn dropped(&self) -> u64 {
        let access = self.access.get().filter(|access| !access.is(&self.writer));
        self.writer.dropped() + access.map_or(0, Writer::dropped)
    }

    /// The layout of lines.
    pub fn format(&self) -> LogFormat {
        self.layout.format()
    }
}

impl LogSink for Log {
    fn write(&self, record: &Record<'_>) {
        if self.layout.levels.writes(record.logger, record.level) {
            self.writer.line(self.layout.line(record));
        }
    }

    fn enabled(&self, level: Level) -> bool {
        self.layout.levels.may_write(level)
    }
}
