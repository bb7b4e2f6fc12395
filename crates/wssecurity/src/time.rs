//! `xsd:dateTime` of Timestamp and UsernameToken.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use der::DateTime;

/// Reads `2026-11-21T13:00:00.000Z` or one with an offset. A time without either is UTC.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.trim().split_once('T')?;
    let (time, offset) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(time, ':')?;
    let whole = DateTime::new(
        u16::try_from(year).ok()?,
        u8::try_from(month).ok()?,
        u8::try_from(day).ok()?,
        u8::try_from(hour).ok()?,
        u8::try_from(minute).ok()?,
        u8::try_from(second).ok()?,
    );
    let local = UNIX_EPOCH + whole.ok()?.unix_duration() + Duration::from_millis(millis(fraction)?);
    let sign = offset.chars().next()?;
    if sign == 'Z' {
        return (offset.len() == 1).then_some(local);
    }
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let shift = Duration::from_secs(hours * 3_600 + minutes * 60);
    if sign == '+' { local.checked_sub(shift) } else { local.checked_add(shift) }
}

/// Writes a time with milliseconds, in UTC.
pub(crate) fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = since.subsec_millis();
    // Beyond the year 9999 there is no such date.
    let Ok(at) = DateTime::from_unix_duration(Duration::from_secs(since.as_secs())) else { return String::new() };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minutes(),
        at.seconds()
    )
}

fn numbers(text: &str, separator: char) -> Option<[u32; 3]> {
    let mut parts = text.split(separator);
    let mut next = || {
        let part = parts.next()?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let found = [next()?, next()?, next()?];
    parts.next().is_none().then_some(found)
}

fn millis(fraction: &str) -> Option<u64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.000Z", Some(951_825_600_000)),
            ("2026-11-21T13:00:00.25Z", Some(1_795_266_000_250)),
            ("2026-11-21T14:00:00+01:00", Some(1_795_266_000_000)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-21T13:00:00+99:00", None),
            ("2026-11-21T13:00:+1Z", None),
            ("2026-11-21", None),
            ("", None),
        ] {
            let found = parse(text).map(|time| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis());
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(parse("2026-11-21T13:00:00.250Z").map(format).as_deref(), Some("2026-11-21T13:00:00.250Z"));
    }
}
