//! When a processor takes messages: at an interval, or when a cron expression fires.

use std::time::Duration;

use penstock_compile::{Compiler, Element, Parameters};
use penstock_engine::background::Control;

use crate::task::Cron;

/// The interval of a processor that names none.
const DEFAULT_INTERVAL_MS: u64 = 1000;

/// Jobs of one processor: more than this is a mistake.
const MEMBERS_MAX: usize = 1000;

/// When a processor takes messages.
pub(super) struct Rhythm {
    /// `interval`: between two messages.
    pub(super) interval: Duration,
    /// `cronExpression`: each firing empties the store.
    cron: Option<Cron>,
    /// `member.count`: jobs side by side.
    pub(super) members: usize,
}

impl Rhythm {
    /// Reads the parameters; `None` after an error.
    pub(super) fn compile(parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Rhythm> {
        let interval = parameters.millis("interval", DEFAULT_INTERVAL_MS, el, cx);
        let members = parameters.number("member.count", el, cx).unwrap_or(1);
        if members == 0 || members > MEMBERS_MAX {
            let text = format!("`member.count` is {members}, not between 1 and {MEMBERS_MAX}");
            cx.error(parameters.place("member.count", el), text);
            return None;
        }
        let cron = match parameters.get("cronExpression") {
            None => None,
            Some(text) => match Cron::parse(text) {
                Ok(cron) => Some(cron),
                Err(why) => {
                    cx.error(parameters.place("cronExpression", el), why);
                    return None;
                }
            },
        };
        // With a cron expression the interval is the pause between the messages of one firing.
        let interval = match (&cron, parameters.get("throttle.interval").or(parameters.get("interval"))) {
            (Some(_), None) => Duration::ZERO,
            (Some(_), Some(_)) if parameters.get("throttle.interval").is_some() => {
                parameters.millis("throttle.interval", 0, el, cx)
            }
            _ => interval,
        };
        // `throttle` says what an interval below a second says by itself.
        parameters.get("throttle");
        Some(Rhythm { interval, cron, members })
    }

    /// Waits before the next message. `was_empty`: the store had none the last time. `false` when the processor must stop.
    pub(super) async fn wait(&self, control: &mut Control, was_empty: bool) -> bool {
        match &self.cron {
            Some(cron) if was_empty => match cron.next_pause() {
                Some(pause) => control.sleep(pause).await,
                // It never fires again: wait for the end, or for a pause and an activation.
                None => {
                    control.until(std::future::pending::<()>()).await;
                    control.next().await
                }
            },
            _ => control.sleep(self.interval).await,
        }
    }
}
