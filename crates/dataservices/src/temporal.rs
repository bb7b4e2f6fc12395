//! Dates and times between databases and XML Schema.

/// A date, time or timestamp of a database as XML Schema writes it, in UTC. What is none is left as it is.
pub fn to_schema(text: &str) -> String {
    let text = text.trim();
    match (text.split_once([' ', 'T']), is_date(text), is_time(text)) {
        (Some((date, time)), _, _) if is_date(date) => {
            let (time, zone) = divide_zone(time);
            format!("{date}T{}{zone}", with_millis(time))
        }
        (None, true, _) => format!("{text}+00:00"),
        (None, _, true) => {
            let (time, zone) = divide_zone(text);
            format!("{}{zone}", with_millis(time))
        }
        _ => text.to_owned(),
    }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut is_number = |length: usize| {
        parts.next().is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_number(4) && is_number(2) && is_number(2)
}

fn is_time(text: &str) -> bool {
    text.len() >= 8
        && text.bytes().enumerate().take(8).all(|(index, byte)| match index {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

fn divide_zone(time: &str) -> (&str, String) {
    let time = time.trim();
    match time.find(['Z', '+', '-']) {
        Some(at) if time[at..].len() == 3 => (&time[..at], format!("{}:00", &time[at..])),
        Some(at) if !time[at..].starts_with('Z') => (&time[..at], time[at..].to_owned()),
        Some(at) => (&time[..at], "+00:00".to_owned()),
        None => (time, "+00:00".to_owned()),
    }
}

fn with_millis(time: &str) -> String {
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let whole = if whole.len() == 5 { format!("{whole}:00") } else { whole.to_owned() };
    format!("{whole}.{:0<3.3}", fraction)
}

/// A date or time of a request as databases take it: without `T`, fractions and zone as they are given.
pub fn to_database(text: &str, has_time: bool) -> String {
    let text = text.trim();
    match (text.split_once('T'), has_time) {
        (Some((date, time)), true) => {
            let (time, zone) = match time.find(['Z', '+', '-']) {
                Some(at) => (&time[..at], &time[at..]),
                None => (time, ""),
            };
            match zone {
                "" | "Z" | "+00:00" | "-00:00" => format!("{date} {time}"),
                zone => format!("{date} {time}{zone}"),
            }
        }
        (Some((date, _)), false) => date.to_owned(),
        // `2024-01-01+05:30` is a day there, and the day is what a column of dates keeps.
        (None, false) if text.get(..10).is_some_and(is_date) => text[..10].to_owned(),
        (None, false) => text.strip_suffix('Z').unwrap_or(text).to_owned(),
        (None, true) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_schema_has_them() {
        for (text, expected) in [
            ("2024-02-29", "2024-02-29+00:00"),
            ("2024-02-29 10:11:12.5", "2024-02-29T10:11:12.500+00:00"),
            ("2024-02-29 10:11:12", "2024-02-29T10:11:12.000+00:00"),
            ("2024-02-29T10:11:12.123456Z", "2024-02-29T10:11:12.123+00:00"),
            ("2024-02-29 10:11:12+02", "2024-02-29T10:11:12.000+02:00"),
            ("10:11:12", "10:11:12.000+00:00"),
            ("tomorrow", "tomorrow"),
        ] {
            assert_eq!(to_schema(text), expected);
        }
    }

    #[test]
    fn times_of_requests_become_those_of_databases() {
        for (text, has_time, expected) in [
            ("2024-02-29T10:11:12.5Z", true, "2024-02-29 10:11:12.5"),
            ("2024-02-29T10:11:12+02:00", true, "2024-02-29 10:11:12+02:00"),
            ("2024-02-29 10:11:12", true, "2024-02-29 10:11:12"),
            ("2024-02-29+05:30", false, "2024-02-29"),
            ("2024-02-29", false, "2024-02-29"),
            ("2024-02-29T00:00:00Z", false, "2024-02-29"),
            ("é", false, "é"),
        ] {
            assert_eq!(to_database(text, has_time), expected);
        }
    }
}
