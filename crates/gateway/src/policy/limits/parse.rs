//! Limits and conditions as a configuration writes them in one line.
//!
//! ```text
//! 5000/1m                                       requests in a time
//! 100MiB/1h                                     bytes of requests and answers
//! 100/1m burst 10/1s                            and no more than that at once
//! 100/1m; header X-Tier=gold: 500/1m            another limit for some
//! 100/1m depth 5 complexity 100                 and GraphQL queries that ask no more than that
//! 100/1m subscribers 5                         events, and subscriptions to topics
//! unlimited
//! ```

use std::time::Duration;

use penstock_catalog::{Condition, ConditionalGroup, Denial, IpRange, Limit, LimitUnit, Plan, PlanLevel, Subject};

use super::CustomLimit;

/// Reads a plan.
pub fn parse_plan(level: PlanLevel, name: &str, text: &str) -> Result<Plan, String> {
    let mut parts = text.split(';').map(str::trim);
    let (limit, rest) = limits(parts.next().unwrap_or_default())?;
    let mut plan = Plan { name: name.into(), level, limit, stop_on_quota: true, ..Plan::default() };
    for word in rest {
        match word {
            Word::Burst(burst) => plan.burst = Some(burst),
            Word::Soft => plan.stop_on_quota = false,
            Word::Depth(depth) => plan.query.depth = Some(depth),
            Word::Complexity(complexity) => plan.query.complexity = Some(complexity),
            Word::Subscribers(subscribers) => plan.subscribers = Some(subscribers),
        }
    }
    for group in parts.filter(|group| !group.is_empty()) {
        // The last colon: addresses of version 6 and names of APIs hold others.
        let (said, limit) = group.rsplit_once(": ").ok_or_else(|| format!("`{group}` must be `CONDITIONS: LIMIT`"))?;
        let (limit, rest) = limits(limit.trim())?;
        if !rest.is_empty() {
            return Err(format!("`{group}` can have a limit only"));
        }
        plan.groups.push(ConditionalGroup { conditions: conditions(said)?, limit });
    }
    Ok(plan)
}

/// Reads a deny condition: `ip 10.0.0.0/8 and not header X-Partner=yes`.
pub fn parse_denial(text: &str) -> Result<Denial, String> {
    Ok(Denial { name: text.trim().into(), conditions: conditions(text)? })
}

/// Reads a limit with a key of its own: `$clientIp:$apiContext 10/1m`.
pub fn parse_custom(name: &str, text: &str) -> Result<CustomLimit, String> {
    let said = || format!("`{text}` must be `KEY LIMIT`, such as `$clientIp 10/1m`");
    let (key, limit) = text.trim().rsplit_once(' ').ok_or_else(said)?;
    Ok(CustomLimit { name: name.into(), key: key.trim().into(), limit: limit_of(limit)? })
}

enum Word {
    Burst(Limit),
    Soft,
    Depth(u64),
    Complexity(u64),
    Subscribers(u64),
}

fn limits(text: &str) -> Result<(Option<Limit>, Vec<Word>), String> {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let limit = if first == "unlimited" { None } else { Some(limit_of(first)?) };
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        found.push(match word {
            "burst" => Word::Burst(limit_of(words.next().unwrap_or_default())?),
            "soft" => Word::Soft,
            "depth" => Word::Depth(count(word, words.next())?),
            "complexity" => Word::Complexity(count(word, words.next())?),
            "subscribers" => Word::Subscribers(count(word, words.next())?),
            other => {
                let known = "`burst LIMIT`, `soft`, `depth COUNT`, `complexity COUNT` and `subscribers COUNT`";
                return Err(format!("`{other}` is not known; after a limit come {known}"));
            }
        });
    }
    Ok((limit, found))
}

/// A number that is at least one.
fn count(word: &str, text: Option<&str>) -> Result<u64, String> {
    let number = text.and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{word}` must have a number behind it, not `{}`", text.unwrap_or_default()))
}

fn limit_of(text: &str) -> Result<Limit, String> {
    let wrong = || format!("`{text}` must be an amount in a time, such as `5000/1m` or `10MiB/1h`");
    let (amount, time) = text.split_once('/').ok_or_else(wrong)?;
    let end = amount.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(amount.len());
    let (number, unit) = amount.split_at(end);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let (unit, factor) = match unit {
        "" => (LimitUnit::Requests, 1),
        "B" => (LimitUnit::Bytes, 1),
        "KB" | "KiB" => (LimitUnit::Bytes, 1 << 10),
        "MB" | "MiB" => (LimitUnit::Bytes, 1 << 20),
        "GB" | "GiB" => (LimitUnit::Bytes, 1 << 30),
        _ => return Err(wrong()),
    };
    let end = time.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(time.len());
    let (count, word) = time.split_at(end);
    let count: u64 = if count.is_empty() { 1 } else { count.parse().map_err(|_| wrong())? };
    let seconds = match word {
        "s" | "sec" => 1,
        "" | "m" | "min" => 60,
        "h" | "hour" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return Err(wrong()),
    };
    let window = Duration::from_secs(count.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)?);
    Ok(Limit { amount: number.checked_mul(factor).ok_or_else(wrong)?, unit, window })
}

fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    text.split(" and ").map(str::trim).map(condition).collect()
}

fn condition(text: &str) -> Result<Condition, String> {
    let (inverted, text) = text.strip_prefix("not ").map_or((false, text), |rest| (true, rest.trim()));
    let (kind, value) = text.split_once(' ').unwrap_or((text, ""));
    let value = value.trim();
    let pair = || {
        let pair = value.split_once('=').map(|(name, pattern)| (name.trim().into(), pattern.trim().into()));
        pair.ok_or_else(|| format!("`{text}` must be `{kind} NAME=PATTERN`"))
    };
    let some = || if value.is_empty() { Err(format!("`{text}` must be `{kind} VALUE`")) } else { Ok(value.into()) };
    let subject = match kind {
        "ip" => {
            let range = IpRange::parse(value);
            Subject::Ip(range.ok_or_else(|| format!("`{value}` is not an address, `FIRST-LAST` or `ADDRESS/BITS`"))?)
        }
        "header" => pair().map(|(name, pattern)| Subject::Header { name, pattern })?,
        "claim" => pair().map(|(name, pattern)| Subject::Claim { name, pattern })?,
        "query" => pair().map(|(name, pattern)| Subject::Query { name, pattern })?,
        "user" => Subject::User(some()?),
        "api" => Subject::Api(some()?),
        "application" => Subject::Application(some()?),
        other => {
            return Err(format!("`{other}` is not known: ip, header, claim, query, user, api or application"));
        }
    };
    if let Subject::Header { pattern, .. } | Subject::Claim { pattern, .. } | Subject::Query { pattern, .. } = &subject
        && let Err(error) = regex::Regex::new(pattern)
    {
        return Err(format!("`{pattern}` is not a regular expression: {}", error.to_string().replace('\n', " ")));
    }
    Ok(Condition { subject, inverted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read() {
        let plan = |text: &str| parse_plan(PlanLevel::Api, "p", text);
        let limit = |amount, unit, seconds| Some(Limit { amount, unit, window: Duration::from_secs(seconds) });
        let read = plan("100/1m burst 10/1s soft; header X-Tier=gold and not ip ::1/128: 5MiB/2h; user bob: unlimited");
        let read = read.unwrap();
        assert_eq!((read.limit, read.burst), (limit(100, LimitUnit::Requests, 60), limit(10, LimitUnit::Requests, 1)));
        assert!(!read.stop_on_quota);
        assert_eq!(read.groups[0].limit, limit(5 << 20, LimitUnit::Bytes, 7200));
        assert_eq!((read.groups[0].conditions.len(), read.groups[0].conditions[1].inverted), (2, true));
        assert_eq!(read.groups[1].limit, None);
        assert_eq!(plan("unlimited").unwrap().limit, None);
        let of_queries = plan("unlimited depth 5 complexity 100").unwrap();
        assert_eq!((of_queries.query.depth, of_queries.query.complexity), (Some(5), Some(100)));
        assert_eq!(plan("5/1m subscribers 3").unwrap().subscribers, Some(3));
        for (bad, says) in [
            ("5/1m subscribers 0", "`subscribers` must have a number behind it"),
            ("", "must be an amount"),
            ("5", "must be an amount"),
            ("5/0s", "must be an amount"),
            ("5/1y", "must be an amount"),
            ("5/1m fast", "`fast` is not known"),
            ("5/1m depth 0", "`depth` must have a number behind it, not `0`"),
            ("5/1m complexity", "`complexity` must have a number behind it"),
            ("5/1m; gold", "must be `CONDITIONS: LIMIT`"),
            ("5/1m; ip x: 1/1m", "is not an address"),
            ("5/1m; header a=(: 1/1m", "regular expression"),
        ] {
            let message = plan(bad).unwrap_err();
            assert!(message.contains(says), "{bad}: {message}");
        }
    }

    #[test]
    fn deny_conditions_and_custom_limits_are_read() {
        let denial = parse_denial("not ip 10.0.0.0/8 and api /pets:1.0.0").unwrap();
        assert_eq!(denial.conditions.len(), 2);
        assert!(parse_denial("colour red").is_err());
        let custom = parse_custom("n", "$userId:$apiContext 10/1m").unwrap();
        assert_eq!((&*custom.key, custom.limit.amount), ("$userId:$apiContext", 10));
        assert!(parse_custom("n", "10/1m").is_err());
    }
}
