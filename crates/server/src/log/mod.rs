//! Logging: what flows, the server and the listeners have to say, written by a thread of its own.
//!
//! A core never waits for a disk or a terminal: it puts a line into a bounded queue, and when the queue is full the line
//! is dropped, counted and mentioned.
//!
//! Start reading at [`Log`], then `writer.rs` (the thread) and `layout.rs` (how lines look).

mod access;
mod date;
mod gateway_access;
mod layout;
mod writer;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use penstock_engine::ports::{Level, LogSink, Record};

use crate::config::{AccessTarget, LogFormat, Settings};
pub use access::Access;
pub use writer::Writer;

/// How long the process waits for the last lines when it ends.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The log of the process.
pub struct Log {
    writer: Writer,
    level: Level,
    format: LogFormat,
}

/// The logs as the settings ask for them.
pub struct Logs {
    /// What flows and the server say.
    pub log: Arc<Log>,
    /// Finished requests.
    pub access: Option<Writer>,
}

impl Logs {
    /// Opens files and starts the writers.
    pub fn open(settings: &Settings) -> Result<Logs, (std::path::PathBuf, io::Error)> {
        let writer = match &settings.log_file {
            Some(file) => Writer::start("log", Box::new(append(file)?)),
            None => Writer::start("log", Box::new(io::stderr())),
        };
        let access = match &settings.access_log {
            None => None,
            // One writer for one target, so that lines do not mix.
            Some(AccessTarget::Stderr) if settings.log_file.is_none() => Some(writer.clone()),
            Some(AccessTarget::Stderr) => Some(Writer::start("access-log", Box::new(io::stderr()))),
            Some(AccessTarget::File(file)) => Some(Writer::start("access-log", Box::new(append(file)?))),
        };
        Ok(Logs { log: Arc::new(Log { writer, level: settings.log_level, format: settings.log_format }), access })
    }

    /// Waits for what is still to be written, for a limited time.
    pub fn flush(&self) {
        self.log.writer.flush(FLUSH_MAX);
        if let Some(access) = &self.access {
            access.flush(FLUSH_MAX);
        }
    }
}

fn append(file: &Path) -> Result<impl Write + Send + 'static, (std::path::PathBuf, io::Error)> {
    OpenOptions::new().create(true).append(true).open(file).map_err(|cause| (file.to_owned(), cause))
}

impl Log {
    /// A line of the server itself.
    pub fn say(&self, level: Level, logger: &str, text: &str) {
        if self.enabled(level) {
            self.write(&Record { level, logger, service: "", correlation: "", text });
        }
    }

    /// Lines dropped so far.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }
}

impl LogSink for Log {
    fn write(&self, record: &Record<'_>) {
        let now = SystemTime::now();
        let line = match self.format {
            LogFormat::Text => layout::text(record, now),
            LogFormat::Json => layout::json(record, now),
        };
        self.writer.line(line);
    }

    fn enabled(&self, level: Level) -> bool {
        level >= self.level
    }
}
