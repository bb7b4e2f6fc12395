//! The access log: the common format, with the time taken at the end.

use std::sync::Arc;
use std::time::SystemTime;

use penstock_gateway::CallContext;
use penstock_transports::http::{AccessEntry, AccessLog};

use super::date::Moment;
use super::layout::escaped;
use super::{Log, Writer, gateway_access};
use crate::config::LogFormat;

/// Notes finished requests. One per core.
pub struct Access {
    writer: Writer,
    log: Arc<Log>,
    /// Whether there are managed APIs, whose lines say more.
    managed: bool,
}

impl Access {
    /// Writes to a writer, in the format of the log. `managed` says whether there may be requests to managed APIs, whose lines say more.
    pub fn new(writer: Writer, log: Arc<Log>, managed: bool) -> Access {
        Access { writer, log, managed }
    }
}

impl AccessLog for Access {
    fn record(&self, entry: &AccessEntry<'_>) {
        let now = SystemTime::now();
        let call = entry.extension.and_then(|extension| extension.downcast_ref::<CallContext>());
        // A message to an MCP server became a call of a tool.
        let became = call.and_then(CallContext::innermost);
        let call = became.as_deref().or(call);
        self.writer.line(match (call, self.log.format()) {
            (None, _) => line(entry, now),
            (Some(call), LogFormat::Text) => gateway_access::line(entry, call, now),
            (Some(call), LogFormat::Json) => gateway_access::json(entry, call, now),
        });
    }

    fn wants_headers(&self) -> bool {
        self.managed
    }
}

/// `127.0.0.1 - - [21/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 0.003`.
fn line(entry: &AccessEntry<'_>, now: SystemTime) -> String {
    let moment = Moment::from_time(now);
    let Moment { year, day, hour, minute, second, .. } = moment;
    let bytes = entry.body_bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    format!(
        "{} - - [{day:02}/{}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000] \"{} {} {}\" {} {bytes} {:.3}{}\n",
        entry.address,
        moment.month_name(),
        entry.line.method.as_str(),
        // A quote would end the request line early for a reader of the log.
        escaped(entry.line.target()).replace('"', "%22"),
        entry.protocol,
        entry.status,
        entry.took.as_secs_f64(),
        if entry.complete { "" } else { " incomplete" },
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use penstock_message::{Method, RequestLine};

    use super::*;

    #[test]
    fn a_request_is_one_line() {
        let request = RequestLine { method: Method::Get, target: "/a?b=\"".into(), secure: false };
        let entry = AccessEntry {
            address: [127, 0, 0, 1].into(),
            peer: ([127, 0, 0, 1], 5).into(),
            line: &request,
            protocol: "HTTP/1.1",
            status: 200,
            body_bytes: None,
            took: Duration::from_millis(3),
            complete: true,
            request_headers: None,
            extension: None,
        };
        let now = UNIX_EPOCH + Duration::from_secs(20_778 * 86_400);
        assert_eq!(
            line(&entry, now),
            "127.0.0.1 - - [21/Nov/2026:00:00:00 +0000] \"GET /a?b=%22 HTTP/1.1\" 200 - 0.003\n"
        );
    }
}
