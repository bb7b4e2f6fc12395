//! The WS-Policy of a throttle.

use std::net::IpAddr;
use std::time::Duration;

use penstock_compile::Element;

use super::rate::Rate;

/// The namespace of throttle assertions.
const NAMESPACE: &str = "http://www.wso2.org/products/wso2commons/throttle";

/// What a policy allows.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Requests that run at once.
    pub(super) at_once: Option<i64>,
    rules: Vec<(Callers, Rule)>,
}

/// Who a rule is for.
#[derive(Debug, PartialEq, Eq)]
enum Callers {
    One(IpAddr),
    Between(IpAddr, IpAddr),
    /// `192.168.*.*`: the text before the first star.
    Beginning(String),
    /// Clients that no other rule names.
    Other,
    /// A host name: addresses are not resolved back to names here.
    Host(String),
}

/// What a rule says.
#[derive(Debug)]
pub(super) enum Rule {
    Allow,
    Deny,
    Rate(Rate),
}

impl Policy {
    /// Reads a policy. `Err` when there is nothing of a throttle in it.
    pub(super) fn read(el: &Element<'_>) -> Result<Policy, String> {
        let Some(assertion) = find(el, "ThrottleAssertion", 0) else {
            return Err(format!("it holds no throttle assertion of the namespace `{NAMESPACE}`"));
        };
        let mut policy = Policy::default();
        for child in assertion.children() {
            match child.name() {
                "MaximumConcurrentAccess" => {
                    let limit = child.text().parse::<i64>().ok().filter(|limit| *limit > 0);
                    policy.at_once =
                        Some(limit.ok_or_else(|| format!("`{}` is not a number of requests", child.text()))?);
                }
                "Policy" => policy.rules.extend(rule_of(&child)?),
                _ => {}
            }
        }
        Ok(policy)
    }

    /// The rule for a caller: one that names it, else the one for all others.
    pub(super) fn rule_for(&self, caller: IpAddr) -> Option<&Rule> {
        let named = self.rules.iter().find(|(callers, _)| callers.names(caller));
        let found = named.or_else(|| self.rules.iter().find(|(callers, _)| *callers == Callers::Other));
        found.map(|(_, rule)| rule)
    }
}

/// Policies inside policies: deeper than this there is nothing.
const DEPTH_MAX: usize = 8;

/// The first element inside whose name ends so: mediators, services and modules have assertions of their own.
fn find<'e>(el: &Element<'e>, name: &str, depth: usize) -> Option<Element<'e>> {
    let document = &el.source.document;
    if el.name().ends_with(name) && document.namespace(el.node) == NAMESPACE {
        return Some(*el);
    }
    if depth == DEPTH_MAX {
        return None;
    }
    el.children().find_map(|child| find(&child, name, depth + 1))
}

fn rule_of(el: &Element<'_>) -> Result<Option<(Callers, Rule)>, String> {
    let Some(id) = find(el, "ID", 0) else { return Ok(None) };
    let kind = el.source.document.attribute(id.node, NAMESPACE, "type").or(id.attribute("type")).unwrap_or("IP");
    let text = id.text();
    let callers = match kind.to_ascii_uppercase().as_str() {
        "IP" => Callers::parse(&text).ok_or_else(|| format!("`{text}` is not an address"))?,
        "DOMAIN" if !text.eq_ignore_ascii_case("other") => Callers::Host(text),
        "DOMAIN" => Callers::Other,
        other => return Err(format!("callers of the type `{other}` are not known")),
    };
    let said = |name| find(el, name, 0).map(|found| found.text());
    let milliseconds = |name| -> Result<u64, String> {
        match said(name) {
            None => Ok(0),
            Some(text) => text.parse().map_err(|_| format!("`{text}` is not a time in milliseconds")),
        }
    };
    if find(el, "Allow", 0).is_some() || said("IsAllow").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return Ok(Some((callers, Rule::Allow)));
    }
    if find(el, "Deny", 0).is_some() || said("IsAllow").is_some_and(|text| text.eq_ignore_ascii_case("false")) {
        return Ok(Some((callers, Rule::Deny)));
    }
    let Some(count) = said("MaximumCount") else { return Ok(None) };
    let count = count.parse::<u64>().map_err(|_| format!("`{count}` is not a number of requests"))?;
    let unit = Duration::from_millis(milliseconds("UnitTime")?);
    if count == 0 || unit.is_zero() {
        return Ok(Some((callers, Rule::Allow)));
    }
    let prohibit = Duration::from_millis(milliseconds("ProhibitTimePeriod")?);
    Ok(Some((callers, Rule::Rate(Rate::new(count, unit, prohibit)))))
}

impl Callers {
    fn parse(text: &str) -> Option<Callers> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("other") {
            return Some(Callers::Other);
        }
        if let Some((before, _)) = text.split_once('*') {
            return Some(Callers::Beginning(before.to_owned()));
        }
        match text.split_once('-') {
            Some((low, high)) => Some(Callers::Between(low.trim().parse().ok()?, high.trim().parse().ok()?)),
            None => Some(Callers::One(text.parse().ok()?)),
        }
    }

    fn names(&self, caller: IpAddr) -> bool {
        match self {
            Callers::One(one) => *one == caller,
            Callers::Between(low, high) => (*low..=*high).contains(&caller),
            Callers::Beginning(text) => caller.to_string().starts_with(text),
            Callers::Host(name) => *name == caller.to_string(),
            Callers::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_by_address() {
        let caller: IpAddr = "10.1.2.3".parse().unwrap();
        for (text, expected) in [
            ("10.1.2.3", true),
            ("10.1.2.4", false),
            ("10.1.2.1-10.1.2.9", true),
            ("10.1.3.1 - 10.1.3.9", false),
            ("10.1.*.*", true),
            ("10.2.*", false),
            ("other", false),
        ] {
            assert_eq!(Callers::parse(text).unwrap().names(caller), expected, "{text}");
        }
        assert!(Callers::parse("nobody").is_none());
    }
}
