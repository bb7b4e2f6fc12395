//! Conditions, compiled: what of a request they look at.

use penstock_catalog::{Condition, IpRange, Subject};
use penstock_engine::Exchange;
use regex::Regex;
use serde_json::Value;

use crate::{CallContext, text};

/// Conditions that must all hold.
#[derive(Debug)]
pub(crate) struct Conditions(Vec<(Test, bool)>);

#[derive(Debug)]
enum Test {
    Ip(IpRange),
    Header(Box<str>, Regex),
    Claim(Box<str>, Regex),
    Query(Box<str>, Regex),
    User(Box<str>),
    Api(Box<str>),
    Application(Box<str>),
}

impl Conditions {
    pub(crate) fn new(conditions: &[Condition]) -> Conditions {
        Conditions(conditions.iter().map(|condition| (Test::new(&condition.subject), condition.inverted)).collect())
    }

    /// Whether all of them hold. No condition holds for nothing: a group without one matches no request.
    pub(crate) fn hold(&self, exchange: &Exchange, context: &CallContext) -> bool {
        !self.0.is_empty() && self.0.iter().all(|(test, inverted)| test.fits(exchange, context) != *inverted)
    }
}

impl Test {
    fn new(subject: &Subject) -> Test {
        match subject {
            Subject::Ip(range) => Test::Ip(*range),
            Subject::Header { name, pattern } => Test::Header((&**name).into(), whole(pattern)),
            Subject::Claim { name, pattern } => Test::Claim((&**name).into(), whole(pattern)),
            Subject::Query { name, pattern } => Test::Query((&**name).into(), whole(pattern)),
            Subject::User(name) => Test::User((&**name).into()),
            Subject::Api(name) => Test::Api((&**name).into()),
            Subject::Application(name) => Test::Application((&**name).into()),
        }
    }

    fn fits(&self, exchange: &Exchange, context: &CallContext) -> bool {
        let caller = || context.caller.borrow();
        match self {
            Test::Ip(range) => range.contains(exchange.client.address),
            Test::Header(name, pattern) => {
                let values = exchange.message.headers.get_all(name);
                { values }.any(|value| std::str::from_utf8(value).is_ok_and(|value| pattern.is_match(value)))
            }
            Test::Claim(name, pattern) => {
                let caller = caller();
                let claim = caller.claims.as_ref().and_then(|claims| claims.get(&**name));
                claim.is_some_and(|claim| claim_fits(claim, pattern))
            }
            Test::Query(name, pattern) => {
                let query = exchange.client.line.query().unwrap_or_default();
                let parameters = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let decoded = |text| text::percent_decoded(text, true);
                { parameters }.any(|(key, value)| decoded(key) == **name && pattern.is_match(&decoded(value)))
            }
            Test::User(name) => {
                let subject = caller().subject.clone();
                // The super tenant's name may be said or not.
                subject.trim_end_matches("@carbon.super") == name.trim_end_matches("@carbon.super")
            }
            Test::Api(name) => {
                let api = &context.site.api;
                let (context, version) =
                    name.rsplit_once(':').map_or((&**name, None), |(context, version)| (context, Some(version)));
                *api.base_path == *context && version.is_none_or(|version| *api.version == *version)
            }
            Test::Application(name) => {
                let caller = caller();
                let own = name.rsplit_once(':').map_or(&**name, |(_, name)| name);
                *caller.application_id == **name || *caller.application_name == *own
            }
        }
    }
}

/// A pattern that must fit the whole value. What is no pattern is compared as it stands.
fn whole(pattern: &str) -> Regex {
    let literal = || Regex::new(&format!("^(?:{})$", regex::escape(pattern)));
    let compiled = Regex::new(&format!("^(?:{pattern})$")).or_else(|_| literal());
    compiled.expect("an escaped text is a regular expression")
}

fn claim_fits(claim: &Value, pattern: &Regex) -> bool {
    match claim {
        Value::String(text) => pattern.is_match(text),
        Value::Array(items) => items.iter().any(|item| claim_fits(item, pattern)),
        Value::Null => false,
        other => pattern.is_match(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_the_whole_value() {
        for (pattern, value, fits) in
            [("gold", "gold", true), ("gold", "golden", false), ("g.*", "golden", true), ("a(b", "a(b", true)]
        {
            assert_eq!(whole(pattern).is_match(value), fits, "{pattern} {value}");
        }
    }

    #[test]
    fn claims_of_every_kind_are_compared() {
        for (claim, fits) in [
            (serde_json::json!("7"), true),
            (serde_json::json!(7), true),
            (serde_json::json!(["a", 7]), true),
            (serde_json::json!(null), false),
        ] {
            assert_eq!(claim_fits(&claim, &whole("7")), fits, "{claim}");
        }
    }
}
