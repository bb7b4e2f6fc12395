//! Something that was published.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// The field in which an event says at which hubs and topics it was published. A hub that is a subscriber of its own,
/// directly or by others, would publish the same event for ever.
pub(super) const PATH: &str = "Penstock-Event-Path";

/// What goes on with a body, which cannot be read without the first two.
const FIELDS: [&str; 3] = ["Content-Type", "Content-Encoding", PATH];

/// Topics an event may pass.
const PATH_MAX: usize = 16;

/// What a publisher says about the body.
pub(super) type Fields = Vec<(&'static str, String)>;

/// A field that goes on, by its name.
pub(super) fn field(name: &str) -> Option<&'static str> {
    FIELDS.into_iter().find(|known| *known == name)
}

/// The fields of an event at a topic, of those it was published with; `None` when it has been there or everywhere.
pub(super) fn fields<'h>(get: impl Fn(&str) -> Option<&'h str>, mark: &str) -> Option<Fields> {
    let path = get(PATH).unwrap_or_default();
    if path.split(',').count() >= PATH_MAX || path.split(',').any(|passed| passed.trim() == mark) {
        return None;
    }
    let path = if path.is_empty() { mark.to_owned() } else { format!("{path},{mark}") };
    let about_body = FIELDS[..2].iter().filter_map(|name| Some((*name, get(name)?.to_owned())));
    Some(about_body.chain([(PATH, path)]).collect())
}

/// Something that was published.
#[derive(Debug)]
pub(super) struct Event {
    pub fields: Fields,
    pub body: Bytes,
    /// Its number among all events of this hub and those before it.
    pub number: u64,
    /// All bytes that wait, decreased by this event's after its last delivery.
    waiting: Arc<AtomicUsize>,
}

impl Event {
    /// An event whose bytes were added to those that wait.
    pub(super) fn new(number: u64, fields: Fields, body: Bytes, waiting: &Arc<AtomicUsize>) -> Event {
        Event { fields, body, number, waiting: waiting.clone() }
    }

    /// What it takes. Besides its body there are fields, and its place in several lists.
    pub(super) fn bytes(fields: &Fields, body: &Bytes) -> usize {
        256 + body.len() + fields.iter().map(|(_, value)| value.len()).sum::<usize>()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.waiting.fetch_sub(Event::bytes(&self.fields, &self.body), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_passes_a_topic_once() {
        let check = |path: Option<&str>, expected: Option<&str>| {
            let got = fields(|name| path.filter(|_| name == PATH).or((name == "Content-Type").then_some("t")), "own");
            let expected = expected.map(|path| vec![("Content-Type", "t".to_owned()), (PATH, path.to_owned())]);
            assert_eq!(got, expected, "{path:?}");
        };
        check(None, Some("own"));
        check(Some("a,owner"), Some("a,owner,own"));
        check(Some("a, own ,b"), None);
        check(Some(&"a,".repeat(20)), None);
    }
}
