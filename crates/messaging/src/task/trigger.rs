//! `<trigger interval="…" count="…" once="…" cron="…"/>`.

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element};
use penstock_engine::background::Control;

use super::Cron;

/// When a task runs, and where.
pub(super) struct Trigger {
    schedule: Schedule,
    /// The servers it may run on; any when there is none.
    pinned: Vec<Arc<str>>,
}

enum Schedule {
    /// At the start, then at each interval; `runs_max` times if it is given.
    Interval {
        interval: Duration,
        runs_max: Option<u64>,
    },
    Cron(Box<Cron>),
}

impl Trigger {
    pub(super) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, pinned: Vec<Arc<str>>) -> Option<Trigger> {
        let Some(trigger) = el.child("trigger") else {
            let schedule = Schedule::Interval { interval: Duration::ZERO, runs_max: Some(1) };
            return Some(Trigger { schedule, pinned });
        };
        let schedule = schedule(cx, &trigger);
        trigger.finish(cx);
        Some(Trigger { schedule: schedule?, pinned })
    }

    /// Waits for the next run; `false` when there is none, or when the task must stop.
    pub(super) async fn wait(&self, control: &mut Control, runs: u64) -> bool {
        if !self.runs_here(control) {
            while control.next().await {
                control.until(std::future::pending::<()>()).await;
            }
            return false;
        }
        match &self.schedule {
            Schedule::Interval { runs_max: Some(most), .. } if runs >= *most => false,
            Schedule::Interval { .. } if runs == 0 => control.next().await,
            Schedule::Interval { interval, .. } => control.sleep(*interval).await,
            Schedule::Cron(cron) => match cron.next_pause() {
                Some(pause) => control.sleep(pause).await,
                None => false,
            },
        }
    }

    fn runs_here(&self, control: &Control) -> bool {
        let own = &control.core().environment.host;
        self.pinned.is_empty() || self.pinned.iter().any(|server| **server == **own || &**server == "localhost")
    }
}

fn schedule(cx: &mut Compiler<'_>, trigger: &Element<'_>) -> Option<Schedule> {
    let mut attribute = |name: &'static str| {
        let at = trigger.attribute_place(name);
        let text = trigger.attribute(name).filter(|text| !text.is_empty())?;
        Some((cx.configured(text, &at), at))
    };
    let (interval, count, once, cron) =
        (attribute("interval"), attribute("count"), attribute("once"), attribute("cron"));
    if let Some((text, at)) = cron {
        if interval.is_some() {
            cx.error(at, "a trigger has `cron` or `interval`, not both");
            return None;
        }
        return match Cron::parse(&text) {
            Ok(cron) => Some(Schedule::Cron(Box::new(cron))),
            Err(why) => {
                cx.error(at, why);
                None
            }
        };
    }
    let mut number = |given: &Option<(String, penstock_engine::Place)>, name: &str| match given {
        None => Some(None),
        Some((text, at)) => match text.trim().parse::<u64>() {
            Ok(number) => Some(Some(number)),
            Err(_) => {
                cx.error(at.clone(), format!("`{name}` is not a whole number: `{text}`"));
                None
            }
        },
    };
    let seconds = number(&interval, "interval")?;
    let count = number(&count, "count")?;
    let is_once = once.is_some_and(|(text, _)| text.eq_ignore_ascii_case("true"));
    let Some(seconds) = seconds.filter(|_| !is_once) else {
        if count.is_some_and(|count| count > 1) && !is_once {
            cx.error(trigger.place(), "a trigger with a `count` above 1 needs an `interval`");
            return None;
        }
        return Some(Schedule::Interval { interval: Duration::ZERO, runs_max: Some(1) });
    };
    if seconds == 0 && count != Some(1) {
        cx.error(trigger.attribute_place("interval"), "the interval of a trigger is at least 1 second");
        return None;
    }
    Some(Schedule::Interval { interval: Duration::from_secs(seconds), runs_max: count })
}
