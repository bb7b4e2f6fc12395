//! `Cache-Control` and the dates of HTTP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_engine::clock;
use penstock_message::Headers;

/// The directives of the header that are implemented.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) no_cache: bool,
    pub(super) no_store: bool,
    pub(super) max_age_seconds: Option<u64>,
}

impl Control {
    pub(super) fn from_headers(headers: &Headers) -> Control {
        let mut control = Control::default();
        for value in headers.get_all("Cache-Control") {
            let value = String::from_utf8_lossy(value);
            for directive in value.split(',') {
                let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    "no-cache" => control.no_cache = true,
                    "no-store" => control.no_store = true,
                    "max-age" => control.max_age_seconds = value.trim().trim_matches('"').parse().ok(),
                    _ => {}
                }
            }
        }
        control
    }

    pub(super) fn is_expired(&self, fetched: SystemTime) -> bool {
        let age = SystemTime::now().duration_since(fetched).unwrap_or_default();
        self.max_age_seconds.is_some_and(|max| age > Duration::from_secs(max))
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
pub(super) fn http_date(text: &str) -> Option<SystemTime> {
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: u32 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = parts.next()?;
    let month = clock::MONTHS.iter().position(|name| name[..3] == *month)? as u32 + 1;
    let year: i64 = parts.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let time: Vec<u64> = parts.next()?.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = time[..] else { return None };
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = u64::try_from(clock::days_of(year, month, day)).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http() {
        let seconds = |text| http_date(text).and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(|at| at.as_secs());
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:37 GMT"), None);
    }

    #[test]
    fn directives() {
        let mut headers = Headers::new();
        headers.set("cache-control", "No-Cache, max-age=60");
        let control = Control::from_headers(&headers);
        assert_eq!(control, Control { no_cache: true, no_store: false, max_age_seconds: Some(60) });
        assert!(!control.is_expired(SystemTime::now()));
        assert!(control.is_expired(SystemTime::now() - Duration::from_secs(61)));
    }
}
