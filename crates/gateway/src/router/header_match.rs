//! Header fields that a request must have to be for an operation (`match.headers` of the API Platform).

use std::cmp::Reverse;
use std::sync::Arc;

use penstock_catalog::HeaderMatch;
use penstock_message::Headers;
use penstock_projects::whole_value;
use regex::Regex;

/// The conditions of one operation, ready to be compared.
#[derive(Debug)]
pub(super) struct HeaderConditions(Box<[(Arc<str>, Wanted)]>);

#[derive(Debug)]
enum Wanted {
    Text(Arc<str>),
    Pattern(Box<Regex>),
}

impl HeaderConditions {
    /// Conditions whose expressions were checked before.
    pub(super) fn new(matches: &[HeaderMatch]) -> HeaderConditions {
        let wanted = |one: &HeaderMatch| {
            let wanted = match one.is_pattern {
                false => Wanted::Text(one.value.clone()),
                true => Wanted::Pattern(Box::new(whole_value(&one.value)?)),
            };
            Some((one.name.clone(), wanted))
        };
        HeaderConditions(matches.iter().filter_map(wanted).collect())
    }

    pub(super) fn hold(&self, headers: &Headers) -> bool {
        self.0.iter().all(|(name, wanted)| {
            headers.get(name).is_some_and(|value| match wanted {
                Wanted::Text(text) => **text == *value,
                Wanted::Pattern(pattern) => pattern.is_match(value),
            })
        })
    }

    /// What sorts operations of one path and method: more conditions first, then more that are no expressions.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let texts = self.0.iter().filter(|(_, wanted)| matches!(wanted, Wanted::Text(_))).count();
        Reverse((self.0.len(), texts))
    }
}
