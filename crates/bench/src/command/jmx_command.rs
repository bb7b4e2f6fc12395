//! `penstock bench jmx`: an unmodified JMeter plan.
use super::arguments::{default_threads, duration, flag, number, option, text, texts};
use super::{Outcome, print, stop_on_interrupt};
use crate::error::Error;
use crate::figures::Figures;
use crate::jmx::run::{LabelCount, RunOptions, ScriptOutcome};
use crate::jmx::script::{Phase, Script};
use crate::jmx::{Plan, Properties, dry_run, read_file, run as run_script};
use crate::jtl::JtlSink;
use crate::load::Moment;
use crate::observe::watch::Watch;
use crate::progress::Progress;
use crate::report::terminal;
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn command() -> clap::Command {
    clap::Command::new("jmx")
        .about("Runs an unmodified JMeter plan, or reports what in it is not supported")
        .arg(Arg::new("PLAN").required(true).help("The .jmx file"))
        .arg(
            Arg::new("property")
                .short('J')
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Value of a property, as for JMeter"),
        )
        .arg(flag("dry-run", "Print the groups and every request of the first user, and send nothing"))
        .arg(option("jtl", "FILE", "Write one line per sample, as JMeter's -l does").short('l'))
        .arg(option("duration", "TIME", "Longest time of the plan [default: as the plan says]").short('d'))
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
    let properties = Arc::new(properties);
    let path = Path::new(text(matches, "PLAN").unwrap_or_default());
    let Plan { script, notes } = read_file(path, properties.clone())?;
    for note in notes {
        let _ = writeln!(std::io::stderr(), "{note}");
    }
    if matches.get_flag("dry-run") {
        print(&dry_run::describe(&script, &properties));
        return Ok(Outcome::Done);
    }
    let longest = duration(matches, "duration")?;
    let options = RunOptions {
        properties,
        threads: number(matches, "threads")?.unwrap_or_else(default_threads),
        warm_up: duration(matches, "warm-up")?.unwrap_or_default(),
        duration: longest,
        jtl: text(matches, "jtl").map(|file| JtlSink::create(Path::new(file), "", "", "")).transpose()?.map(Arc::new),
        stop: stop_on_interrupt(),
    };
    let planned = planned_duration(&script, longest);
    if planned.is_some_and(|planned| options.warm_up >= planned) {
        return Err(Error::Usage("the warm-up must be shorter than the plan's duration, which includes it".to_owned()));
    }
    let pid = number(matches, "pid")?.and_then(|pid| u32::try_from(pid).ok());
    let mut watch = pid.map(Watch::new);
    let mut progress = Progress::start(planned.unwrap_or_default());
    let script = Arc::new(script);
    let outcome = run_script::run(&script, &options, &mut |moment| {
        if let Some(watch) = &mut watch {
            watch.at(moment);
        }
        if let Moment::Tick(elapsed) = moment {
            progress.show(&script.name, elapsed);
        }
    });
    progress.clear();
    let outcome = outcome?;
    let mut figures = Figures::of_load(&outcome.load);
    if let Some(watch) = watch {
        let gone = || Error::Environment("the process to measure does not exist".to_owned());
        figures.add_target(&watch.finish().ok_or_else(gone)?);
    }
    let users: usize = script.groups.iter().filter(|group| group.phase == Phase::Main).map(|group| group.users).sum();
    // With timers, several groups or a limited number of iterations, users are not always inside of a request.
    print(&terminal::single(&figures, &outcome.load.tally, users, false));
    print(&tables(&outcome));
    let failed = outcome.load.tally.errors + outcome.around.errors > 0 || outcome.load.tally.samples() == 0;
    Ok(if failed { Outcome::Failures } else { Outcome::Done })
}

/// How long the main groups run; `None` if their iterations decide.
fn planned_duration(script: &Script, longest: Option<Duration>) -> Option<Duration> {
    let groups = script.groups.iter().filter(|group| group.phase == Phase::Main);
    let ends: Option<Vec<Duration>> = groups.map(|group| Some(group.delay + group.duration?)).collect();
    let planned = ends.and_then(|ends| ends.into_iter().max());
    match (planned, longest) {
        (Some(planned), Some(longest)) => Some(planned.min(longest)),
        (planned, longest) => planned.or(longest),
    }
}

/// Requests and transactions by name.
fn tables(outcome: &ScriptOutcome) -> String {
    let mut text = String::new();
    for (title, counts) in [("Request", &outcome.requests), ("Transaction", &outcome.transactions)] {
        if !counts.is_empty() {
            text.push('\n');
            text.push_str(&terminal::counts(title, &rows(counts)));
        }
    }
    let around = &outcome.around;
    if around.samples() > 0 {
        text.push_str(&format!(
            "\nsetUp and tearDown groups: {} samples, {} errors\n",
            around.samples(),
            around.errors
        ));
        for (reason, count) in &around.reasons {
            text.push_str(&format!("  {count} × {reason}\n"));
        }
    }
    text
}

fn rows(counts: &[(String, LabelCount)]) -> Vec<[String; 5]> {
    let row = |(name, count): &(String, LabelCount)| {
        [
            name.clone(),
            count.samples.to_string(),
            count.errors.to_string(),
            format!("{:.2}", count.average_ms()),
            format!("{:.2}", count.maximum_ms),
        ]
    };
    counts.iter().map(row).collect()
}
