//! Formats of strings. Those that are not here are not checked, as the specification allows.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What is wrong with a text of that format; `None` when nothing is.
pub(super) fn check(format: &str, text: &str) -> Option<String> {
    let (good, what) = match format {
        "date-time" => (date_time(text), "date-time"),
        "date" => (date(text), "date"),
        "time" => (time(text), "time"),
        "email" => (email(text), "email address"),
        "hostname" | "host-name" => (hostname(text), "hostname"),
        "ipv4" | "ip-address" => (text.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => (text.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        "uri" => (uri(text), "URI"),
        "uuid" => (uuid(text), "UUID"),
        "regex" => (regex::Regex::new(text).is_ok(), "ECMA 262 regular expression"),
        _ => return None,
    };
    (!good).then(|| format!("string \"{text}\" is not a valid {what}"))
}

fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=length).contains(&day)
}

/// RFC 3339 §5.6: a zone is part of it.
fn time(text: &str) -> bool {
    let Some(zone_at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = text.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let fits = |text: &str, max: u32| number(text, 2).is_some_and(|number| number <= max);
    let offset = match zone {
        "Z" | "z" => true,
        _ => zone[1..].split_once(':').is_some_and(|(hour, minute)| fits(hour, 23) && fits(minute, 59)),
    };
    let fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    fits(hour, 23) && fits(minute, 59) && fits(second, 60) && fraction && offset
}

fn date_time(text: &str) -> bool {
    let Some(at) = text.find(['T', 't']) else { return false };
    date(&text[..at]) && time(&text[at + 1..])
}

fn email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~-.".contains(letter);
    let atoms = !local.is_empty() && local.split('.').all(|atom| !atom.is_empty()) && local.chars().all(letter);
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    let host = match literal {
        Some(address) => {
            address.parse::<Ipv4Addr>().is_ok()
                || address.strip_prefix("IPv6:").is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
        }
        None => hostname(domain),
    };
    (quoted || atoms) && host
}

fn hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    let letters = rest.chars().all(|letter| letter.is_ascii_graphic() && !"\"<>\\^`{|}".contains(letter));
    scheme && letters
}

fn uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]);
    lengths && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
