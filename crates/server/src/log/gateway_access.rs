//! Requests to managed APIs in the access log: as Choreo Connect writes them, or as JSON.

use std::time::SystemTime;

use penstock_gateway::CallContext;
use penstock_transports::http::AccessEntry;

use super::date::Moment;
use super::layout::escaped;

/// Choreo Connect's default line:
/// `[start] 'METHOD original-path path PROTOCOL' status flags bytes-received bytes-sent duration upstream-duration
/// 'forwarded-for' 'user-agent' 'request-id' 'authority' 'upstream-host'`, with `-` for what there is not.
pub(super) fn line(entry: &AccessEntry<'_>, call: &CallContext, now: SystemTime) -> String {
    let of = Facts::new(entry, call, now);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!(
        "[{}] '{} {} {} {}' {} {} {} {} {} {} '{}' '{}' '{}' '{}' '{}'\n",
        of.start,
        entry.line.method.as_str(),
        escaped(&call.without_credentials(entry.line.target())),
        or_dash(of.path),
        entry.protocol,
        entry.status,
        of.flags,
        of.received,
        entry.body_bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
        entry.took.as_millis(),
        or_dash(of.upstream_ms.map(|millis| millis.to_string())),
        or_dash(of.forwarded_for),
        or_dash(of.user_agent),
        or_dash(of.request_id),
        or_dash(of.authority),
        or_dash(of.upstream),
    )
}

/// The same as one JSON object.
pub(super) fn json(entry: &AccessEntry<'_>, call: &CallContext, now: SystemTime) -> String {
    let of = Facts::new(entry, call, now);
    let site = &call.site;
    let value = serde_json::json!({
        "time": of.start,
        "method": entry.line.method.as_str(),
        "path": call.without_credentials(entry.line.target()),
        "upstream_path": of.path,
        "protocol": entry.protocol,
        "status": entry.status,
        "flags": of.flags,
        "bytes_received": of.received,
        "bytes_sent": entry.body_bytes,
        "duration_ms": entry.took.as_secs_f64() * 1e3,
        "upstream_ms": of.upstream_ms,
        "forwarded_for": of.forwarded_for,
        "user_agent": of.user_agent,
        "request_id": of.request_id,
        "authority": of.authority,
        "upstream": of.upstream,
        "client": entry.address.to_string(),
        "peer": entry.peer.to_string(),
        "api": &*site.api.name,
        "version": &*site.api.version,
        "operation": format!("{} {}", site.operation.method, site.operation.path),
        "complete": entry.complete,
    });
    format!("{value}\n")
}

/// What both lines say.
struct Facts {
    start: String,
    path: Option<String>,
    flags: &'static str,
    received: u64,
    upstream_ms: Option<u128>,
    forwarded_for: Option<String>,
    user_agent: Option<String>,
    request_id: Option<String>,
    authority: Option<String>,
    upstream: Option<String>,
}

impl Facts {
    fn new(entry: &AccessEntry<'_>, call: &CallContext, now: SystemTime) -> Facts {
        let Moment { year, month, day, hour, minute, second, milli } = Moment::from_time(now - entry.took);
        let field = |name: &str| {
            let value = entry.request_headers.and_then(|headers| headers.get(name))?;
            Some(escaped(value).into_owned())
        };
        let incomplete = if entry.complete { "-" } else { "DC" };
        Facts {
            start: format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"),
            path: call.upstream.path().map(|path| escaped(&call.without_credentials(&path)).into_owned()),
            flags: call.upstream.flag().unwrap_or(incomplete),
            received: field("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0),
            upstream_ms: call.upstream.took().map(|took| took.as_millis()),
            forwarded_for: field("X-Forwarded-For"),
            user_agent: field("User-Agent"),
            request_id: field("X-Request-Id"),
            authority: field("Host"),
            upstream: call.upstream.host(),
        }
    }
}
