//! Hubs of WebSub: requests, with a query and a form on a line each; the file of subscriptions, and that of
//! events.

use penstock_gateway::readers::{hub_file, hub_journal, hub_request};

/// Pieces of all.
pub const DICTIONARY: &[&str] = &[
    "hub.mode=subscribe",
    "hub.mode=unsubscribe",
    "hub.topic=",
    "hub.callback=http://",
    "hub.callback=https%3A%2F%2F",
    "hub.secret=",
    "hub.lease_seconds=",
    "&",
    "=",
    "%2F",
    "%0D%0A",
    "%00",
    "%",
    "@",
    "[::1]",
    "\n",
    "{\"version\":1,\"subscriptions\":[",
    "\"ends\":null",
    "\"secret\":\"",
    "\"algorithm\":\"sha1\"",
    "]}",
    "penstock events 1\n",
    "\0\0\0",
];

/// Reads all of them.
pub fn hub(data: &[u8]) {
    if let Some(written) = hub_file(data) {
        assert_eq!(hub_file(&written).as_deref(), Some(&*written), "{}", String::from_utf8_lossy(&written));
    }
    if let Some(written) = hub_journal(data) {
        assert!(data.starts_with(&written), "what is whole is a beginning of what was kept");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (query, form) = text.split_once('\n').unwrap_or((text, ""));
    let Some((topic, callback)) = hub_request(query, form) else { return };
    assert!(!topic.is_empty() && !topic.starts_with('/'), "{topic:?}");
    let lower = callback.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")).expect(&callback);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    assert!(!authority.is_empty() && !authority.contains('@'), "{callback:?}");
    assert!(callback.bytes().all(|byte| byte.is_ascii_graphic()), "{callback:?}");
}
