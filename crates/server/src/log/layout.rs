//! How a line looks: as the original writes it, or as JSON.

use std::fmt::Write;
use std::time::SystemTime;

use penstock_engine::ports::{Level, Record};

use super::date::Moment;

/// `[2026-11-21 12:00:00,123]  INFO {LogMediator} - {api:Name} text`.
pub(super) fn text(record: &Record<'_>, now: SystemTime) -> String {
    let mut line = String::with_capacity(record.text.len() + record.service.len() + 80);
    let Moment { year, month, day, hour, minute, second, milli } = Moment::of(now);
    let level = name(record.level);
    // Writing to a `String` cannot fail.
    let _ = write!(
        line,
        "[{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{milli:03}] {level:>5} {{{}}} - ",
        record.logger
    );
    if !record.service.is_empty() {
        line.push_str(record.service);
        line.push(' ');
    }
    line.push_str(record.text);
    line.push('\n');
    line
}

/// One JSON object.
pub(super) fn json(record: &Record<'_>, now: SystemTime) -> String {
    let mut line = String::with_capacity(record.text.len() + 200);
    let Moment { year, month, day, hour, minute, second, milli } = Moment::of(now);
    let _ = write!(
        line,
        "{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z\",\"level\":\"{}\",\"logger\":",
        name(record.level)
    );
    push_json(&mut line, record.logger);
    let service = record.service.trim_start_matches('{').trim_end_matches('}');
    for (key, value) in [("service", service), ("correlation_id", record.correlation)] {
        if !value.is_empty() {
            let _ = write!(line, ",\"{key}\":");
            push_json(&mut line, value);
        }
    }
    line.push_str(",\"message\":");
    push_json(&mut line, record.text);
    line.push_str("}\n");
    line
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Trace => "TRACE",
        Level::Debug => "DEBUG",
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
        Level::Fatal => "FATAL",
    }
}

fn push_json(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn lines_look_as_the_original_writes_them() {
        let now = UNIX_EPOCH + Duration::from_millis(20_778 * 86_400_000 + 43_200_123);
        let mut record = Record {
            level: Level::Info,
            logger: "LogMediator",
            service: "{api:A}",
            correlation: "c-1",
            text: "a \"b\"\n",
        };
        assert_eq!(text(&record, now), "[2026-11-21 12:00:00,123]  INFO {LogMediator} - {api:A} a \"b\"\n\n");
        assert_eq!(
            json(&record, now),
            "{\"time\":\"2026-11-21T12:00:00.123Z\",\"level\":\"INFO\",\"logger\":\"LogMediator\",\"service\":\"api:A\",\
             \"correlation_id\":\"c-1\",\"message\":\"a \\\"b\\\"\\n\"}\n"
        );
        record = Record { level: Level::Error, service: "", correlation: "", ..record };
        assert!(text(&record, now).contains("] ERROR {LogMediator} - a "));
        assert!(!json(&record, now).contains("service"));
    }
}
