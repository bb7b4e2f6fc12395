//! Writing JTL. Every load thread fills a buffer of its own; whole lines go to the common file.
use crate::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The header line JMeter writes by default.
const COLUMNS: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n";
/// A buffer is written out when it holds this much.
const FLUSH_BYTES: usize = 64 * 1024;

/// The file all load threads write to.
#[derive(Debug)]
pub struct JtlSink {
    file: Mutex<File>,
    /// Wall-clock time of `start`, in milliseconds since 1970.
    start_unix_ms: u64,
    start: Instant,
    label: String,
    group: String,
    url: String,
}

/// What a sample is called.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// Name of the request.
    pub label: &'a str,
    /// Name of the thread group.
    pub group: &'a str,
    /// Number of the thread group, from 1.
    pub group_number: usize,
    /// Address of the request.
    pub url: &'a str,
}

/// One sample, as a load thread knows it.
#[derive(Debug)]
pub struct Sample<'a> {
    /// When it began; in the open loop, when it was due.
    pub start: Instant,
    /// When the response was complete.
    pub end: Instant,
    /// Status code; 0 if there was no response.
    pub status: u16,
    /// Why it failed.
    pub failure: Option<&'a str>,
    /// Number of the user, from 0.
    pub user: usize,
    /// Users running, of the group and of all groups.
    pub users: (usize, usize),
    /// What the sample is called, if not as all samples of the file.
    pub names: Option<Names<'a>>,
    /// Bytes read.
    pub received_bytes: u64,
    /// Bytes written.
    pub sent_bytes: u64,
    /// When the response began.
    pub first_byte: Option<Instant>,
    /// Time spent on opening a connection.
    pub connected_after: Duration,
}

impl JtlSink {
    /// Creates the file. `label` is the sampler's name, `group` the thread group's.
    pub fn create(path: &Path, label: &str, group: &str, url: &str) -> Result<Self, Error> {
        let mut file = File::create(path).map_err(|error| Error::file(path, &error))?;
        file.write_all(COLUMNS.as_bytes()).map_err(|error| Error::file(path, &error))?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_unix_ms = u64::try_from(since_1970.as_millis()).unwrap_or(0);
        Ok(JtlSink {
            file: Mutex::new(file),
            start_unix_ms,
            start: Instant::now(),
            label: label.to_owned(),
            group: group.to_owned(),
            url: url.to_owned(),
        })
    }
}

/// One load thread's lines on their way to the file.
#[derive(Debug)]
pub struct JtlBuffer {
    sink: Arc<JtlSink>,
    lines: Vec<u8>,
    failed: Option<std::io::ErrorKind>,
}

impl JtlBuffer {
    /// An empty buffer.
    pub fn new(sink: Arc<JtlSink>) -> Self {
        JtlBuffer { sink, lines: Vec::with_capacity(FLUSH_BYTES * 2), failed: None }
    }

    /// Appends one line.
    pub fn write(&mut self, sample: &Sample<'_>) {
        let sink = &self.sink;
        // As in JMeter, times are differences of whole milliseconds: each is off by less than one, their mean is not.
        let unix_ms = |moment: Instant| {
            let since_start = moment.saturating_duration_since(sink.start);
            sink.start_unix_ms + u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX / 2)
        };
        let time_stamp = unix_ms(sample.start);
        let elapsed = unix_ms(sample.end).saturating_sub(time_stamp);
        let latency = sample.first_byte.map_or(0, |moment| unix_ms(moment).saturating_sub(time_stamp));
        let (code, message) = match (sample.status, sample.failure) {
            (0, failure) => ("Non HTTP response code".to_owned(), crate::csv::field(failure.unwrap_or_default())),
            (status, _) => (status.to_string(), reason_phrase(status).to_owned()),
        };
        let failure = match sample.status {
            0 => String::new(),
            _ => crate::csv::field(sample.failure.unwrap_or_default()),
        };
        let own = Names { label: &sink.label, group: &sink.group, group_number: 1, url: &sink.url };
        let names = sample.names.unwrap_or(own);
        // Writing to a Vec cannot fail.
        let _ = writeln!(
            self.lines,
            "{time_stamp},{elapsed},{label},{code},{message},{thread},text,{success},{failure},{bytes},{sent},{group_users},{users},{url},{latency},0,{connect}",
            label = crate::csv::field(names.label),
            thread = crate::csv::field(&format!("{} {}-{}", names.group, names.group_number, sample.user + 1)),
            success = sample.failure.is_none(),
            bytes = sample.received_bytes,
            sent = sample.sent_bytes,
            group_users = sample.users.0,
            users = sample.users.1,
            url = crate::csv::field(names.url),
            connect = sample.connected_after.as_millis(),
        );
        if self.lines.len() >= FLUSH_BYTES {
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        let mut file = self.sink.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&self.lines) {
            self.failed = Some(error.kind());
        }
        self.lines.clear();
    }

    /// Writes the rest; reports the first write that failed.
    pub fn flush(mut self) -> Result<(), Error> {
        self.write_out();
        match self.failed {
            None => Ok(()),
            Some(kind) => Err(Error::Environment(format!("cannot write the JTL file: {kind}"))),
        }
    }
}

fn reason_phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("")
}
