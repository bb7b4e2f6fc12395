//! Counting finished exchanges and writing their lines, for the users of one thread.
use super::tally::{FailedExchange, Tally};
use super::threads::Span;
use crate::error::Error;
use crate::jtl::{JtlBuffer, JtlSink, Names, Sample};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Counts and lines of one thread.
pub struct Recorder {
    span: Span,
    tally: RefCell<Tally>,
    jtl: Option<RefCell<JtlBuffer>>,
}

impl Recorder {
    /// An empty recorder.
    pub fn new(span: Span, jtl: Option<Arc<JtlSink>>) -> Recorder {
        Recorder { span, tally: RefCell::default(), jtl: jtl.map(|sink| RefCell::new(JtlBuffer::new(sink))) }
    }

    /// Whether lines are written, and with them the moment of the first byte.
    pub fn writes_lines(&self) -> bool {
        self.jtl.is_some()
    }

    /// Whether a sample that ends now ends after the window. Counting throughput by the end keeps it true when
    /// responses take a good part of the window: as many samples reach into it as reach out of it.
    fn late(&self, now: Instant) -> bool {
        now >= self.span.window_closes || self.span.finished.load(Ordering::Relaxed)
    }

    /// Counts a finished exchange, and keeps it if it is the first that failed.
    pub fn count(&self, exchange: &Finished<'_>) {
        self.tally.borrow_mut().succeeded_at_all += u64::from(exchange.failure.is_none());
        if exchange.end >= self.span.window_opens {
            let mut tally = self.tally.borrow_mut();
            let elapsed = exchange.end.saturating_duration_since(exchange.start);
            if self.late(exchange.end) {
                tally.record_late(elapsed, exchange.failure.is_some());
            } else {
                tally.record(elapsed, exchange.sent_bytes, exchange.received_bytes);
                if exchange.failure.is_none() {
                    let window = self.span.window_closes.saturating_duration_since(self.span.window_opens);
                    let into_window = exchange.end.saturating_duration_since(self.span.window_opens);
                    tally.record_part(into_window.as_secs_f64() / window.as_secs_f64());
                }
            }
            tally.connections += u64::from(exchange.connecting.is_some());
            tally.reconnects += u64::from(exchange.reconnected);
            if let Some(reason) = exchange.failure {
                tally.record_failure(reason);
            }
        }
        if let Some(reason) = exchange.failure {
            self.keep_failure(exchange, reason);
        }
    }

    /// Writes the line of an exchange. `users` are those that run, of the group and of all groups.
    pub fn write_line(&self, exchange: &Finished<'_>, users: (usize, usize), names: Option<Names<'_>>) {
        let Some(jtl) = &self.jtl else { return };
        jtl.borrow_mut().write(&Sample {
            start: exchange.start,
            end: exchange.end,
            status: exchange.status,
            failure: exchange.failure,
            user: exchange.user,
            users,
            names,
            received_bytes: exchange.received_bytes,
            sent_bytes: exchange.sent_bytes,
            first_byte: exchange.first_byte,
            connected_after: exchange.connecting.unwrap_or_default(),
        });
    }

    fn keep_failure(&self, exchange: &Finished<'_>, reason: &str) {
        let mut tally = self.tally.borrow_mut();
        if tally.first_failure.is_none() {
            tally.first_failure = Some(FailedExchange {
                after: exchange.end.saturating_duration_since(self.span.start),
                reason: reason.to_owned(),
                request: excerpt(exchange.request),
                response: format!("{}{}", excerpt(exchange.response_head), excerpt(exchange.response_body)),
            });
        }
    }

    /// The counts, after the last line is written.
    pub fn finish(self) -> Result<Tally, Error> {
        if let Some(jtl) = self.jtl {
            jtl.into_inner().flush()?;
        }
        Ok(self.tally.into_inner())
    }
}

/// An exchange that is over, well or not.
pub struct Finished<'a> {
    /// When it began; in the open loop, when it was due.
    pub start: Instant,
    pub end: Instant,
    /// Number of the user.
    pub user: usize,
    /// Status code; 0 if there was no complete response.
    pub status: u16,
    /// Why it does not count as a success.
    pub failure: Option<&'a str>,
    pub request: &'a [u8],
    pub response_head: &'a [u8],
    /// The beginning of the body.
    pub response_body: &'a [u8],
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// When the response began, if it was noted.
    pub first_byte: Option<Instant>,
    /// Time it took to open a connection, if one was opened.
    pub connecting: Option<Duration>,
    /// Whether it replaced a kept connection that the server had closed.
    pub reconnected: bool,
}

/// As much of a message as a person wants to see on a terminal.
const EXCERPT_BYTES: usize = 2 * 1024;

fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    let mut text = String::from_utf8_lossy(shown).replace('\r', "");
    if shown.len() < bytes.len() {
        text.push_str(&format!("… ({} more bytes)", bytes.len() - shown.len()));
    }
    text
}

impl Finished<'_> {
    /// An exchange of which nothing is known but its time and its user.
    pub fn empty(start: Instant, end: Instant, user: usize) -> Self {
        Finished {
            start,
            end,
            user,
            status: 0,
            failure: None,
            request: &[],
            response_head: &[],
            response_body: &[],
            sent_bytes: 0,
            received_bytes: 0,
            first_byte: None,
            connecting: None,
            reconnected: false,
        }
    }
}
