//! From the tables of a plan's file to types. Mistakes are noted, not thrown: one reading reports all.
use super::toml_cursor::{Cursor, TomlSource};
use super::{Backend, BodySource, Matrix, Plan, Quick, Scenario, Target, Timing};
use crate::echo::arrivals::ArrivalRule;
use crate::error::Error;
use crate::http::request::check_header;
use crate::load::expect::{Expect, Field, TextRule};
use crate::payload::Shape;
use std::time::Duration;

/// More users than this need more file descriptors than a system gives.
const USERS_MAX: u64 = 100_000;
/// A plan with more runs of one combination is a mistake.
const ROUNDS_MAX: u64 = 1000;

/// Reads a file and answers what was read with the mistakes in it.
pub fn file<T>(name: &str, text: &str, read: impl FnOnce(&Cursor<'_>) -> T) -> Result<(T, Vec<String>), Error> {
    let source = TomlSource::new(name, text);
    let table = toml::de::DeTable::parse(text).map_err(|error| Error::Input(position_of(name, text, &error)))?;
    let root = Cursor::new(&source, name, 0, table.get_ref());
    let read = read(&root);
    root.finish();
    Ok((read, source.into_mistakes()))
}

fn position_of(name: &str, text: &str, error: &toml::de::Error) -> String {
    let source = TomlSource::new(name, text);
    source.mistake(error.span().map_or(0, |span| span.start), error.message().trim());
    source.into_mistakes().join("\n")
}

pub fn plan(root: &Cursor<'_>) -> Plan {
    Plan {
        name: root.required_text("name"),
        title: root.required_text("title"),
        published: root.text("published"),
        timing: timing(root),
        backend: root.table("backend").map(backend),
        targets: root.tables("target").into_iter().map(target).collect(),
        scenarios: root.tables("scenario").into_iter().map(scenario).collect(),
        matrix: root.table("matrix").map_or_else(
            || Matrix { users: vec![100], message_bytes: vec![1000], backend_delay_ms: vec![0] },
            |matrix| {
                let read = Matrix {
                    users: users(&matrix).unwrap_or_else(|| vec![100]),
                    message_bytes: sizes(&matrix).unwrap_or_else(|| vec![1000]),
                    backend_delay_ms: matrix.numbers("backend_delay_ms").unwrap_or_else(|| vec![0]),
                };
                matrix.finish();
                read
            },
        ),
        quick: root.table("quick").map(quick),
    }
}

fn timing(root: &Cursor<'_>) -> Timing {
    let timing = Timing {
        duration: root.duration("duration").unwrap_or(Duration::from_secs(60)),
        warm_up: root.duration("warm_up").unwrap_or_default(),
        ramp_up: root.duration("ramp_up").unwrap_or_default(),
        rounds: rounds(root).unwrap_or(1),
        rate: root.decimal("rate"),
        response_timeout: root.duration("response_timeout").unwrap_or(Duration::from_secs(120)),
    };
    if timing.warm_up >= timing.duration {
        root.mistake_at("warm_up", "`warm_up` must be shorter than `duration`, which includes it");
    }
    if timing.ramp_up > timing.warm_up {
        root.mistake_at(
            "ramp_up",
            "`ramp_up` must not be longer than `warm_up`: users would be missing from the measured time",
        );
    }
    if timing.rate.is_some_and(|rate| rate <= 0.0) {
        root.mistake_at("rate", "`rate` must be more than 0 requests per second");
    }
    timing
}

fn quick(cursor: Cursor<'_>) -> Quick {
    let quick = Quick {
        duration: cursor.duration("duration"),
        warm_up: cursor.duration("warm_up"),
        ramp_up: cursor.duration("ramp_up"),
        rounds: rounds(&cursor),
        users: users(&cursor),
        message_bytes: sizes(&cursor),
        backend_delay_ms: cursor.numbers("backend_delay_ms"),
    };
    cursor.finish();
    quick
}

fn rounds(cursor: &Cursor<'_>) -> Option<u32> {
    let rounds = cursor.number("rounds")?;
    if rounds == 0 || rounds > ROUNDS_MAX {
        cursor.mistake_at("rounds", &format!("`rounds` must be from 1 to {ROUNDS_MAX}"));
    }
    u32::try_from(rounds).ok()
}

fn users(cursor: &Cursor<'_>) -> Option<Vec<usize>> {
    let users = cursor.numbers("users")?;
    if users.iter().any(|count| *count == 0 || *count > USERS_MAX) {
        cursor.mistake_at("users", &format!("numbers of users must be from 1 to {USERS_MAX}"));
    }
    users.into_iter().map(|count| usize::try_from(count).ok()).collect()
}

fn sizes(cursor: &Cursor<'_>) -> Option<Vec<usize>> {
    cursor.numbers("message_bytes")?.into_iter().map(|bytes| usize::try_from(bytes).ok()).collect()
}

fn port(cursor: &Cursor<'_>, default: u16) -> u16 {
    match cursor.number("port").map(u16::try_from) {
        None => default,
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            cursor.mistake_at("port", "`port` must be at most 65535");
            default
        }
    }
}

fn backend(cursor: Cursor<'_>) -> Backend {
    let backend = Backend { port: port(&cursor, 8688), tls: cursor.flag("tls") };
    cursor.finish();
    backend
}

pub fn target(cursor: Cursor<'_>) -> Target {
    let target = Target {
        name: cursor.required_text("name"),
        start: cursor.texts("start").unwrap_or_default(),
        port: port(&cursor, 0),
        url: cursor.text("url").unwrap_or_else(|| "http://localhost:{port}".to_owned()),
        pid: cursor.number("pid").and_then(|pid| u32::try_from(pid).ok()),
        scenarios: cursor.texts("scenarios"),
        optional: cursor.flag("optional"),
        start_timeout: cursor.duration("start_timeout").unwrap_or(Duration::from_secs(60)),
    };
    if target.url.contains("{port}") && target.port == 0 {
        cursor.mistake("a target needs `port` or `url`");
    }
    cursor.finish();
    target
}

fn scenario(cursor: Cursor<'_>) -> Scenario {
    let body = match (cursor.text("payload"), cursor.text("body_file")) {
        (Some(_), Some(_)) => {
            cursor.mistake_at("body_file", "a scenario has either `payload` or `body_file`");
            BodySource::None
        }
        (None, Some(file)) => BodySource::File(file),
        (None, None) => BodySource::None,
        (Some(shape), None) => match Shape::parse(&shape) {
            Some(shape) => BodySource::Generated(shape),
            None => {
                cursor.mistake_at(
                    "payload",
                    &format!("unknown payload `{shape}`; there are soap, xml, json, record and text"),
                );
                BodySource::None
            }
        },
    };
    let mut headers = cursor.pairs("headers");
    for (name, value) in &headers {
        if let Err(error) = check_header(name, value) {
            cursor.mistake_at("headers", &error.to_string());
        }
    }
    if let BodySource::Generated(shape) = &body
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("Content-Type".to_owned(), shape.content_type().to_owned()));
    }
    let default_method = if body == BodySource::None { "GET" } else { "POST" };
    let scenario = Scenario {
        name: cursor.required_text("name"),
        description: cursor.text("description").unwrap_or_default(),
        path: cursor.required_text("path"),
        method: cursor.text("method").unwrap_or_else(|| default_method.to_owned()),
        headers,
        tokens: cursor.text("tokens"),
        body,
        expect: cursor.table("expect").map(expect).unwrap_or_default(),
        without_token: status(&cursor, "without_token"),
        arrivals: arrivals(&cursor),
        http2: cursor.flag("http2"),
    };
    cursor.finish();
    scenario
}

fn arrivals(cursor: &Cursor<'_>) -> Option<Vec<ArrivalRule>> {
    let mut rules = Vec::new();
    let mut nothing = false;
    for rule in cursor.table_or_tables("at_backend") {
        nothing |= rule.flag("nothing");
        rules.push(ArrivalRule {
            path: rule.text("path"),
            text: rule.texts("text").unwrap_or_default(),
            occurrences: rule.number("occurrences").and_then(|count| usize::try_from(count).ok()),
            times: rule.number("times").unwrap_or(0),
        });
        rule.finish();
    }
    if nothing && rules.iter().any(|rule| *rule != ArrivalRule::default()) {
        cursor.mistake_at("at_backend", "`nothing` stands alone");
    }
    (!nothing).then_some(rules)
}

fn status(cursor: &Cursor<'_>, key: &'static str) -> Option<u16> {
    let code = cursor.number(key)?;
    let status = u16::try_from(code).ok().filter(|code| (100..600).contains(code));
    if status.is_none() {
        cursor.mistake_at(key, &format!("`{key}` must be a status code from 100 to 599"));
    }
    status
}

fn expect(cursor: Cursor<'_>) -> Expect {
    let rule = |pattern| TextRule { field: Field::Body, pattern, equals: false, negated: false };
    let expect = Expect {
        status: status(&cursor, "status"),
        any_status: false,
        same_size: cursor.flag("same_size"),
        same_body: cursor.flag("same_body"),
        rules: cursor.texts("text").unwrap_or_default().into_iter().map(rule).collect(),
    };
    cursor.finish();
    expect
}
