//! How a line looks: as Micro Integrator writes it, or as JSON. One record is one line.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::SystemTime;

use penstock_engine::ports::{Level, Record};

use super::date::Moment;

/// `[2026-11-21 12:00:00,123]  INFO {LogMediator} - {api:Name} text`.
pub(super) fn text(record: &Record<'_>, now: SystemTime) -> String {
    let mut line = String::with_capacity(record.text.len() + record.service.len() + 80);
    let Moment { year, month, day, hour, minute, second, milli } = Moment::from_time(now);
    let level = name(record.level);
    // Writing to a `String` cannot fail.
    let _ = write!(line, "[{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{milli:03}] {level:>5} {{",);
    push_escaped(&mut line, record.logger);
    line.push_str("} - ");
    if !record.service.is_empty() {
        push_escaped(&mut line, record.service);
        line.push(' ');
    }
    push_escaped(&mut line, record.text);
    line.push('\n');
    line
}

/// Whether a character could end a line, direct a terminal or reorder what is shown: control characters, the separators of
/// lines and paragraphs, and the marks that change the direction of text (CWE-117).
fn is_unsafe(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends a text with such characters escaped as in JSON. Other characters, `\\` among them, stay as they are.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    let mut kept = 0;
    for (at, letter) in text.char_indices().filter(|(_, letter)| is_unsafe(*letter)) {
        out.push_str(&text[kept..at]);
        push_escape(out, letter);
        kept = at + letter.len_utf8();
    }
    out.push_str(&text[kept..]);
}

/// A text with such characters escaped.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    push_escaped(&mut out, text);
    Cow::Owned(out)
}

fn push_escape(out: &mut String, letter: char) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        other => {
            // Writing to a `String` cannot fail; all of them are in the basic plane.
            let _ = write!(out, "\\u{:04x}", u32::from(other));
        }
    }
}

/// One JSON object.
pub(super) fn json(record: &Record<'_>, now: SystemTime) -> String {
    let mut line = String::with_capacity(record.text.len() + 200);
    let Moment { year, month, day, hour, minute, second, milli } = Moment::from_time(now);
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
            letter if is_unsafe(letter) => push_escape(out, letter),
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
    fn lines_look_as_micro_integrator_writes_them() {
        let now = UNIX_EPOCH + Duration::from_millis(20_778 * 86_400_000 + 43_200_123);
        let mut record = Record {
            level: Level::Info,
            logger: "LogMediator",
            service: "{api:A}",
            correlation: "c-1",
            text: "a \"b\"\n",
        };
        assert_eq!(text(&record, now), "[2026-11-21 12:00:00,123]  INFO {LogMediator} - {api:A} a \"b\"\\n\n");
        assert_eq!(
            json(&record, now),
            "{\"time\":\"2026-11-21T12:00:00.123Z\",\"level\":\"INFO\",\"logger\":\"LogMediator\",\"service\":\"api:A\",\
             \"correlation_id\":\"c-1\",\"message\":\"a \\\"b\\\"\\n\"}\n"
        );
        record = Record { level: Level::Error, service: "", correlation: "", ..record };
        assert!(text(&record, now).contains("] ERROR {LogMediator} - a "));
        assert!(!json(&record, now).contains("service"));
    }

    #[test]
    fn no_text_makes_a_second_line_or_directs_a_terminal() {
        for (text, expected) in [
            ("plain ü \\n", "plain ü \\n"),
            ("a\r\n[x] ERROR forged", "a\\r\\n[x] ERROR forged"),
            ("\u{1b}[2Jx\t\0\u{7f}", "\\u001b[2Jx\\t\\u0000\\u007f"),
            ("\u{9b}2J\u{85}\u{2028}\u{2029}\u{202e}", "\\u009b2J\\u0085\\u2028\\u2029\\u202e"),
        ] {
            assert_eq!(escaped(text), expected);
            let record = Record { level: Level::Info, logger: text, service: text, correlation: text, text };
            let line = super::text(&record, UNIX_EPOCH);
            assert!(line.ends_with(&format!("{{{expected}}} - {expected} {expected}\n")), "{line}");
            let line = json(&record, UNIX_EPOCH);
            assert!(!line.trim_end_matches('\n').contains(is_unsafe), "{line}");
        }
    }
}
