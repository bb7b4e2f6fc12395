//! `penstock bench url`: one load on one address.
use super::arguments::{default_threads, duration, flag, number, option, repeated, text, texts};
use super::{Outcome, print, stop_on_interrupt};
use crate::error::Error;
use crate::figures::Figures;
use crate::http::request::Request;
use crate::http::url::Url;
use crate::jtl::JtlSink;
use crate::load::expect::{Expect, Field, TextRule};
use crate::load::{self, LoadOutcome, LoadSpec, Moment, Protocol};
use crate::observe::watch::Watch;
use crate::payload::{Shape, parse_size};
use crate::progress::Progress;
use crate::report::terminal;
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn command() -> clap::Command {
    clap::Command::new("url")
        .about("One load on one address: closed loop with N users, or open loop with --rate")
        .arg(Arg::new("URL").required(true).help("Address to send requests to"))
        .arg(option("users", "N", "Concurrent users").short('u').default_value("100"))
        .arg(option("duration", "TIME", "Whole time, ramp-up and warm-up included").short('d').default_value("10s"))
        .arg(option("warm-up", "TIME", "First part of the time, which is not measured").default_value("2s"))
        .arg(option("ramp-up", "TIME", "Time over which the users start").default_value("0s"))
        .arg(option("rate", "N", "Requests per second; response times then count from when a request was due"))
        .arg(option("threads", "N", "Load threads [default: half the processors]"))
        .arg(option("method", "METHOD", "Method [default: POST with a body, GET without]").short('X'))
        .arg(
            Arg::new("header")
                .short('H')
                .long("header")
                .value_name("NAME: VALUE")
                .action(ArgAction::Append)
                .help("Header to send; `${token}` in it takes the next token"),
        )
        .arg(option("body", "FILE", "File to send as the body").conflicts_with("payload"))
        .arg(option("payload", "SHAPE:SIZE", "Generated body: soap, xml, json, record or text, such as soap:10KB"))
        .arg(option("tokens", "FILE", "CSV file whose first column holds the values for `${token}`"))
        .arg(flag("http2", "Speak HTTP/2"))
        .arg(option("streams", "N", "Users that share one HTTP/2 connection").default_value("1"))
        .arg(flag("no-keep-alive", "Open a connection for every request"))
        .arg(option("expect-status", "CODE", "Status a response must have [default: 200 to 399]"))
        .arg(repeated("expect-text", "TEXT", "Text a response body must contain"))
        .arg(flag("expect-same-size", "The response body must be as long as the request body"))
        .arg(flag("expect-same-body", "The response body must be the request body, byte for byte"))
        .arg(option("timeout", "TIME", "Longest a response may take").default_value("120s"))
        .arg(option("pid", "PID", "Process whose CPU time and memory to measure, with its children"))
        .arg(option("jtl", "FILE", "Write one line per sample, as JMeter does"))
        .arg(flag("csv", "Print one line of column names and one of figures"))
}

pub fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let spec = load_spec(matches)?;
    let pid = number(matches, "pid")?;
    let pid = pid.map(|pid| u32::try_from(pid).map_err(|_| Error::Usage(format!("`--pid {pid}`: no such process"))));
    let (outcome, figures) = measure(&spec, pid.transpose()?, &spec.request.url.to_string())?;
    if matches.get_flag("csv") {
        print(&terminal::csv(&figures));
    } else {
        print(&terminal::single(&figures, &outcome.tally, spec.users, spec.rate.is_none()));
    }
    Ok(if outcome.tally.errors > 0 || outcome.tally.unsent > 0 || outcome.tally.samples() == 0 {
        Outcome::Failures
    } else {
        Outcome::Done
    })
}

/// Runs one load with progress on the terminal, watching a process if one is given.
pub fn measure(spec: &LoadSpec, pid: Option<u32>, what: &str) -> Result<(LoadOutcome, Figures), Error> {
    let mut watch = pid.map(Watch::new);
    let mut progress = Progress::start(spec.duration);
    let outcome = load::run(spec, &mut |moment| {
        if let Some(watch) = &mut watch {
            watch.at(moment);
        }
        if let Moment::Tick(elapsed) = moment {
            progress.show(what, elapsed);
        }
    });
    progress.clear();
    let outcome = outcome?;
    let mut figures = Figures::of_load(&outcome);
    if let (Some(watch), Some(pid)) = (watch, pid) {
        let gone = || Error::Environment(format!("there is no process {pid}"));
        figures.add_target(&watch.finish().ok_or_else(gone)?);
    }
    Ok((outcome, figures))
}

fn load_spec(matches: &ArgMatches) -> Result<LoadSpec, Error> {
    let address = text(matches, "URL").unwrap_or_default();
    let url = Url::parse(address).map_err(|error| Error::Usage(error.to_string()))?;
    let (body, content_type) = body(matches)?;
    let mut headers = headers(matches)?;
    if let Some(content_type) = content_type
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("Content-Type".to_owned(), content_type.to_owned()));
    }
    let method = text(matches, "method").unwrap_or(if body.is_empty() { "GET" } else { "POST" }).to_owned();
    let request = Request { method, url, headers, body, keep_alive: !matches.get_flag("no-keep-alive") };
    let tokens = match text(matches, "tokens") {
        Some(file) => crate::csv::first_column(Path::new(file))?,
        None => Vec::new(),
    };
    let jtl = text(matches, "jtl").map(|file| JtlSink::create(Path::new(file), "HTTP Request", "Users", address));
    let (ramp_up, warm_up) =
        (duration(matches, "ramp-up")?.unwrap_or_default(), duration(matches, "warm-up")?.unwrap_or_default());
    super::arguments::check_ramp_up(ramp_up, warm_up)?;
    let users_per_connection = number(matches, "streams")?.unwrap_or(1);
    Ok(LoadSpec {
        request,
        expect: expect(matches)?,
        tokens: tokens.into(),
        users: number(matches, "users")?.unwrap_or(1).max(1),
        ramp_up,
        duration: duration(matches, "duration")?.unwrap_or_default(),
        warm_up,
        requests_per_user_max: None,
        rate: rate(matches)?,
        protocol: if matches.get_flag("http2") { Protocol::Http2 { users_per_connection } } else { Protocol::Http1 },
        threads: number(matches, "threads")?.unwrap_or_else(default_threads),
        connect_timeout: Duration::from_secs(10),
        response_timeout: duration(matches, "timeout")?.unwrap_or(Duration::from_secs(120)),
        jtl: jtl.transpose()?.map(Arc::new),
        stop: stop_on_interrupt(),
    })
}

fn rate(matches: &ArgMatches) -> Result<Option<f64>, Error> {
    let parse = |text: &str| match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err(Error::Usage(format!("`--rate {text}`: `{text}` is not a rate in requests per second"))),
    };
    text(matches, "rate").map(parse).transpose()
}

fn body(matches: &ArgMatches) -> Result<(Bytes, Option<&'static str>), Error> {
    if let Some(file) = text(matches, "body") {
        let path = Path::new(file);
        return Ok((std::fs::read(path).map_err(|error| Error::file(path, &error))?.into(), None));
    }
    let Some(payload) = text(matches, "payload") else { return Ok((Bytes::new(), None)) };
    let parsed = payload.split_once(':').and_then(|(shape, size)| Some((Shape::parse(shape)?, parse_size(size)?)));
    let Some((shape, bytes)) = parsed else {
        return Err(Error::Usage(format!("`--payload {payload}`: expected a shape and a size, such as `soap:10KB`")));
    };
    let body = shape.generate(bytes).map_err(|error| Error::Usage(error.to_string()))?;
    Ok((body.into(), Some(shape.content_type())))
}

fn headers(matches: &ArgMatches) -> Result<Vec<(String, String)>, Error> {
    let split = |header: &str| match header.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(Error::Usage(format!("`--header {header}`: expected `Name: value`"))),
    };
    texts(matches, "header").into_iter().map(split).collect()
}

fn expect(matches: &ArgMatches) -> Result<Expect, Error> {
    let status = number(matches, "expect-status")?;
    let status = status.map(|code| match u16::try_from(code) {
        Ok(code @ 100..=599) => Ok(code),
        _ => Err(Error::Usage(format!("`--expect-status {code}`: `{code}` is not a status code"))),
    });
    let rule =
        |pattern: &str| TextRule { field: Field::Body, pattern: pattern.to_owned(), equals: false, negated: false };
    Ok(Expect {
        status: status.transpose()?,
        any_status: false,
        same_size: matches.get_flag("expect-same-size"),
        same_body: matches.get_flag("expect-same-body"),
        rules: texts(matches, "expect-text").into_iter().map(rule).collect(),
    })
}
