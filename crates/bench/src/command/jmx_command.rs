//! `penstock bench jmx`: an unmodified JMeter plan.
use super::arguments::{default_threads, duration, number, option, text, texts};
use super::{Outcome, print, stop_on_interrupt, url};
use crate::error::Error;
use crate::jmx::{JmxPlan, Properties};
use crate::jtl::JtlSink;
use crate::report::terminal;
use clap::{Arg, ArgAction, ArgMatches};
use std::path::Path;
use std::sync::Arc;

pub fn command() -> clap::Command {
    clap::Command::new("jmx")
        .about("Runs an unmodified JMeter plan: one thread group, one HTTP request")
        .arg(Arg::new("PLAN").required(true).help("The .jmx file"))
        .arg(
            Arg::new("property")
                .short('J')
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Value of a property, as for JMeter"),
        )
        .arg(option("jtl", "FILE", "Write one line per sample, as JMeter's -l does").short('l'))
        .arg(option("warm-up", "TIME", "First part of the time to leave out of the figures (the JTL file holds all)"))
        .arg(option("threads", "N", "Load threads [default: half the processors]"))
        .arg(option("pid", "PID", "Process whose CPU time and memory to measure, with its children"))
        .after_help(
            "For load from many machines run the same plan on JMeter itself, and sum up its JTL files with `penstock bench report`.",
        )
}

pub fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let mut properties = Properties::default();
    for property in texts(matches, "property") {
        if !properties.add(property) {
            return Err(Error::Usage(format!("`-J{property}`: expected a name, `=` and a value")));
        }
    }
    let threads = number(matches, "threads")?.unwrap_or_else(default_threads);
    let path = Path::new(text(matches, "PLAN").unwrap_or_default());
    let mut plan = JmxPlan::read(path, &properties, threads, stop_on_interrupt())?;
    let address = plan.load.request.url.to_string();
    if let Some(file) = text(matches, "jtl") {
        plan.load.jtl = Some(Arc::new(JtlSink::create(Path::new(file), &plan.label, &plan.group, &address)?));
    }
    plan.load.warm_up = duration(matches, "warm-up")?.unwrap_or_default();
    if plan.load.warm_up >= plan.load.duration {
        return Err(Error::Usage("the warm-up must be shorter than the plan's duration, which includes it".to_owned()));
    }
    let pid = number(matches, "pid")?.and_then(|pid| u32::try_from(pid).ok());
    let (outcome, figures) = url::measure(&plan.load, pid, &address)?;
    print(&terminal::single(&figures, &outcome.tally, plan.load.users, None));
    Ok(if outcome.tally.errors > 0 || outcome.tally.samples() == 0 { Outcome::Failures } else { Outcome::Done })
}
