//! `penstock bench plans` and `penstock bench payload`: what ships with the program.
use super::arguments::{option, text};
use super::{Outcome, print};
use crate::error::Error;
use crate::payload::{Shape, parse_size};
use crate::plan::{Plan, builtin};
use crate::progress::clock;
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub fn command() -> clap::Command {
    clap::Command::new("plans").about("Lists the plans that ship with the program, and how long each takes")
}

pub fn run(_: &ArgMatches) -> Result<Outcome, Error> {
    for name in builtin::names() {
        let Some(plan) = builtin::plan(name) else { continue };
        let mut quick = plan.clone();
        quick.make_quick();
        let scenarios: Vec<&str> = plan.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        print(&format!(
            "{name:<16} {}\n{:16} {}\n{:16} takes {}, with --quick {} (hours:minutes:seconds)\n",
            plan.title,
            "",
            scenarios.join(", "),
            "",
            clock(whole_time(&plan)),
            clock(whole_time(&quick)),
        ));
    }
    Ok(Outcome::Done)
}

/// How long a plan takes for one gateway.
fn whole_time(plan: &Plan) -> Duration {
    let matrix = &plan.matrix;
    let cells = plan.scenarios.len() * matrix.users.len() * matrix.message_bytes.len() * matrix.backend_delay_ms.len();
    plan.timing.duration * plan.timing.rounds * u32::try_from(cells).unwrap_or(u32::MAX)
}

pub fn payload_command() -> clap::Command {
    clap::Command::new("payload")
        .about("Writes a message of a published shape and size")
        .arg(Arg::new("SHAPE").required(true).help("soap, xml, json, record or text"))
        .arg(Arg::new("SIZE").required(true).help("Such as 500, 10KB or 10KiB"))
        .arg(option("out", "FILE", "File to write [default: standard output]").short('o'))
}

pub fn run_payload(matches: &ArgMatches) -> Result<Outcome, Error> {
    let (shape, size) = (text(matches, "SHAPE").unwrap_or_default(), text(matches, "SIZE").unwrap_or_default());
    let unknown = || Error::Usage(format!("unknown shape `{shape}`; there are soap, xml, json, record and text"));
    let bytes = parse_size(size).ok_or_else(|| Error::Usage(format!("`{size}` is not a size like `500` or `10KB`")))?;
    let body = Shape::parse(shape).ok_or_else(unknown)?.generate(bytes)?;
    match text(matches, "out") {
        Some(file) => std::fs::write(file, body).map_err(|error| Error::file(Path::new(file), &error))?,
        None => {
            let _ = std::io::stdout().write_all(&body);
        }
    }
    Ok(Outcome::Done)
}
