//! `ADD_QUERY`, `REMOVE_QUERY`.

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::path::{now, put};

/// Adds a parameter, in place of one that has its name.
pub(super) struct Add {
    name: String,
    value: String,
}

/// Removes all parameters of a name.
pub(super) struct Remove {
    pub(super) name: String,
}

impl Add {
    pub(super) fn new(name: &str, value: &str) -> Add {
        Add { name: encode(name), value: encode(value) }
    }
}

impl Mediator for Add {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut target = without(&now(exchange)?, &self.name);
        target.push(if target.contains('?') { '&' } else { '?' });
        target.push_str(&self.name);
        target.push('=');
        target.push_str(&self.value);
        put(exchange, target);
        Ok(Flow::Next)
    }
}

impl Mediator for Remove {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let target = without(&now(exchange)?, &encode(&self.name));
        put(exchange, target);
        Ok(Flow::Next)
    }
}

/// A path and query without the parameters of a name.
fn without(target: &str, name: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let mut kept = path.to_owned();
    let mut mark = '?';
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        if parameter.split('=').next() != Some(name) {
            kept.push(mark);
            kept.push_str(parameter);
            mark = '&';
        }
    }
    kept
}

/// Text as part of a query (RFC 3986 §3.4), without what separates parameters.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$'()*,;:@/?".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_leave_a_query() {
        for (target, name, expected) in
            [("/a", "x", "/a"), ("/a?x=1", "x", "/a"), ("/a?x=1&y=2&x=3", "x", "/a?y=2"), ("/a?xx=1&x", "x", "/a?xx=1")]
        {
            assert_eq!(without(target, name), expected, "{target}");
        }
        assert_eq!(encode("a b&c=d/ü"), "a%20b%26c%3Dd/%C3%BC");
    }
}
