//! Does to a message what an interceptor service decided.

use bytes::Bytes;
use penstock_message::{Body, Form, Headers, Message, SizeHint};

use super::reply::{Changes, Decision};
use crate::watched_body::{BodyWatch, watch};

/// Fields whose names begin so are the gateway's own; services cannot touch them.
const RESERVED: [&str; 2] = ["x-wso2", "x-envoy"];

/// Whether a service may change the field. Pseudo fields are no fields here.
fn is_open(name: &str) -> bool {
    let begins = |prefix: &&str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    !name.starts_with(':') && !RESERVED.iter().any(begins)
}

/// Remove, then replace, then add.
pub(super) fn headers(headers: &mut Headers, changes: &Changes) {
    fields(headers, changes, is_open);
}

fn fields(fields: &mut Headers, changes: &Changes, may_change: fn(&str) -> bool) {
    for name in changes.remove.iter().filter(|name| may_change(name)) {
        fields.remove(name);
    }
    for (name, value) in changes.replace.iter().filter(|(name, _)| may_change(name)) {
        fields.set(name, value);
    }
    for (name, value) in changes.add.iter().filter(|(name, _)| may_change(name)) {
        fields.append(name, value);
    }
}

/// Changes what follows a body, now or when it comes. With `compat`, whether Choreo Connect's script gets past this: it
/// fails where there is nothing to change, and can change nothing else once it had to wait. No name is reserved there.
pub(super) fn trailers(body: &mut Body, changes: &Changes, compat: bool) -> bool {
    if changes.is_empty() {
        return true;
    }
    if body.is_stream() {
        watch(body, |_| ChangedTrailers { changes: changes.clone(), compat });
        return !compat;
    }
    let form = body.take();
    body.put(form);
    let goes_on = !compat || body.trailers().is_some();
    if goes_on {
        body.change_trailers(|trailers| retell(trailers, changes, compat));
    }
    goes_on
}

fn retell(trailers: &mut Headers, changes: &Changes, compat: bool) {
    fields(trailers, changes, if compat { |_| true } else { is_open });
}

/// Changes trailers that a service has changed before they came.
struct ChangedTrailers {
    changes: Changes,
    compat: bool,
}

impl BodyWatch for ChangedTrailers {
    fn size_hint(&self, size: SizeHint) -> SizeHint {
        // A body of a stated length has no place behind it (RFC 9112 §7.1.2).
        let adds_none = self.changes.replace.is_empty() && self.changes.add.is_empty();
        if self.compat || adds_none { size } else { SizeHint::Unknown }
    }

    fn trailers(&mut self, trailers: Option<Headers>) -> Option<Headers> {
        if self.compat && trailers.is_none() {
            return None;
        }
        let mut trailers = trailers.unwrap_or_default();
        retell(&mut trailers, &self.changes, self.compat);
        Some(trailers).filter(|trailers| !trailers.is_empty())
    }
}

/// Replaces the body of a message and drops its Content-Length.
pub(in crate::policy) fn body(message: &mut Message, body: &Bytes) {
    message.body.put(if body.is_empty() { Form::Empty } else { Form::Bytes(body.clone()) });
    message.headers.remove("content-length");
}

/// The answer of a service that answers itself.
pub(super) fn direct_answer(decision: Decision, compat: bool) -> Message {
    let body = decision.body.unwrap_or_default();
    let status = decision.response_code.unwrap_or(if body.is_empty() { 204 } else { 200 });
    let mut headers = Headers::new();
    for (name, value) in &decision.headers.add {
        if compat || is_open(name) {
            headers.append(name, value);
        }
    }
    if compat {
        headers.append("x-amz-function-error", "Choreo-Connect: Added this header in direct respond");
    }
    if !body.is_empty() && !headers.contains("content-type") {
        headers.append("content-type", "text/plain");
    }
    let form = if body.is_empty() { Form::Empty } else { Form::Bytes(body) };
    Message { headers, body: Body::from_form(form), status, ..Message::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(reply: &str) -> Vec<String> {
        let mut fields = Headers::new();
        for (name, value) in [("a", "1"), ("b", "2"), ("X-WSO2-Key", "3")] {
            fields.append(name, value);
        }
        headers(&mut fields, &Decision::parse(reply.as_bytes(), false).expect(reply).headers);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
    }

    #[test]
    fn remove_comes_before_replace_and_that_before_add() {
        let all = r#"{"headersToAdd":{"a":"A"},"headersToReplace":{"a":"R","c":"C"},"headersToRemove":["a"]}"#;
        assert_eq!(changed(all), ["b=2", "X-WSO2-Key=3", "a=R", "c=C", "a=A"]);
        assert_eq!(changed(r#"{"headersToReplace":{"A":"R"}}"#), ["a=R", "b=2", "X-WSO2-Key=3"]);
    }

    #[test]
    fn reserved_names_are_passed_over() {
        let reply = r#"{"headersToAdd":{"x-wso2-x":"A","X-Envoy-y":"B",":path":"/"},"headersToReplace":{"x-wso2-key":"R"},
                        "headersToRemove":["x-wso2-key"]}"#;
        assert_eq!(changed(reply), ["a=1", "b=2", "X-WSO2-Key=3"]);
    }

    #[test]
    fn a_direct_answer_has_the_status_its_body_suggests() {
        for (reply, status) in [
            (r#"{"directRespond":true}"#, 204),
            (r#"{"directRespond":true,"body":""}"#, 204),
            (r#"{"directRespond":true,"body":"bm8="}"#, 200),
            (r#"{"directRespond":true,"body":"","responseCode":202}"#, 202),
        ] {
            let answer = direct_answer(Decision::parse(reply.as_bytes(), false).expect(reply), false);
            assert_eq!(answer.status, status, "{reply}");
            assert!(!answer.headers.contains("x-amz-function-error"));
        }
    }
}
