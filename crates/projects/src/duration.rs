//! Times as Go writes them.

use std::time::Duration;

/// `1h30m`, `1.5h`, `500ms`; `None` when it is none, negative, or longer than can be counted.
pub fn go_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, behind) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let end = behind.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = behind;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, millis) in [
            ("1s", Some(1_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("500ms", Some(500)),
            (".5s", Some(500)),
            ("0", Some(0)),
            ("+2m", Some(120_000)),
            ("", None),
            ("5", None),
            ("-1s", None),
            ("1x", None),
            ("s", None),
            ("1..2s", None),
            ("99999999999999999999999h", None),
        ] {
            assert_eq!(go_duration(text).map(|duration| duration.as_millis()), millis, "{text}");
        }
    }
}
