//! Conditions on requests: which a limit counts, and who is refused.

use std::net::IpAddr;
use std::sync::Arc;

use crate::Limit;

/// Requests for which all conditions hold, with a limit of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConditionalGroup {
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// How much in what time; absent means no limit.
    pub limit: Option<Limit>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What is looked at.
    pub subject: Subject,
    /// Whether it holds when the subject does not fit (`invertCondition`).
    pub inverted: bool,
}

/// A condition on which requests are refused with 900805.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Its name in lists.
    pub name: Arc<str>,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
}

/// What a condition looks at. Patterns are regular expressions that must fit the whole value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The client's address.
    Ip(IpRange),
    /// A header field.
    Header {
        /// Its name.
        name: Arc<str>,
        /// What its value must fit.
        pattern: Arc<str>,
    },
    /// A claim of the token.
    Claim {
        /// Its name.
        name: Arc<str>,
        /// What its value must fit.
        pattern: Arc<str>,
    },
    /// A query parameter.
    Query {
        /// Its name.
        name: Arc<str>,
        /// What its value must fit.
        pattern: Arc<str>,
    },
    /// The user.
    User(Arc<str>),
    /// The API, as `context` or `context:version`.
    Api(Arc<str>),
    /// The application, by id, by name, or as `owner:name`.
    Application(Arc<str>),
}

/// Addresses from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    /// The lowest.
    pub first: IpAddr,
    /// The highest.
    pub last: IpAddr,
}

impl IpRange {
    /// Reads `10.0.0.1`, `10.0.0.0/8` or `10.0.0.1-10.0.0.9`, and the same of version 6.
    pub fn parse(text: &str) -> Option<IpRange> {
        let text = text.trim();
        if let Some((first, last)) = text.split_once('-') {
            let range = IpRange { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? };
            let same = range.first.is_ipv4() == range.last.is_ipv4();
            return (same && range.first <= range.last).then_some(range);
        }
        let Some((address, bits)) = text.split_once('/') else {
            let address: IpAddr = text.parse().ok()?;
            return Some(IpRange { first: address, last: address });
        };
        let bits: u32 = bits.trim().parse().ok()?;
        match address.trim().parse().ok()? {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
                let first = u32::from(address) & mask;
                Some(IpRange { first: IpAddr::V4(first.into()), last: IpAddr::V4((first | !mask).into()) })
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
                let first = u128::from(address) & mask;
                Some(IpRange { first: IpAddr::V6(first.into()), last: IpAddr::V6((first | !mask).into()) })
            }
        }
    }

    /// Whether an address lies in it. An address of version 4 in the clothes of version 6 is one of version 4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && self.first <= address && address <= self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_they_say() {
        for (range, inside, outside) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("10.1.2.3/8", "10.255.0.1", "11.0.0.1"),
            ("0.0.0.0/0", "255.1.1.1", "::1"),
            ("10.0.0.5-10.0.0.9", "::ffff:10.0.0.9", "10.0.0.10"),
            ("fd00::/8", "fdff::1", "fe00::1"),
        ] {
            let parsed = IpRange::parse(range).expect(range);
            assert!(parsed.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{range} {outside}");
        }
        for bad in ["", "10.0.0", "10.0.0.1/33", "10.0.0.9-10.0.0.1", "10.0.0.1-::1", "x/8"] {
            assert_eq!(IpRange::parse(bad), None, "{bad}");
        }
    }
}
