//! Timers: how long a user waits.
use super::User;
use crate::jmx::context::Random;
use crate::jmx::script::{PaceMode, Timer};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl User<'_> {
    pub(super) fn delay_ms(&mut self, timers: &[Timer]) -> f64 {
        let mut sum_ms = 0.0;
        for timer in timers {
            sum_ms += match timer {
                Timer::Constant(delay) => self.decimal(delay),
                Timer::Uniform { offset, range } => {
                    self.decimal(offset) + self.decimal(range).abs() * self.context.random.fraction()
                }
                Timer::Gaussian { offset, deviation } => {
                    (self.decimal(offset) + self.decimal(deviation) * self.context.random.gaussian()).abs()
                }
                Timer::Poisson { offset, mean } => {
                    let mean = self.decimal(mean);
                    self.decimal(offset) + poisson(&mut self.context.random, mean)
                }
                Timer::Throughput { per_minute, mode, state, shared } => {
                    let per_minute = self.decimal(per_minute);
                    self.pace_ms(per_minute, *mode, *state, shared)
                }
            };
        }
        sum_ms
    }

    /// How long to wait so that the rate is kept. A user that is late catches up without a wait.
    pub(super) fn pace_ms(
        &mut self,
        per_minute: f64,
        mode: PaceMode,
        state: usize,
        shared: &std::sync::atomic::AtomicU64,
    ) -> f64 {
        if per_minute <= 0.0 {
            return 0.0;
        }
        let plan = &self.thread.plan;
        let users = match mode {
            PaceMode::User | PaceMode::AllShared => 1,
            PaceMode::All => plan.active_users(),
            PaceMode::Group => plan.active[self.group_index].load(Ordering::Relaxed),
        };
        let period_us = (60e6 / per_minute * users.max(1) as f64) as u64;
        // One more than the time since the start: 0 is no time.
        let now_us = u64::try_from(plan.span.start.elapsed().as_micros()).unwrap_or(u64::MAX - 1) + 1;
        let target = |last: u64| if last == 0 { now_us } else { (last + period_us).max(now_us) };
        let due_us = if mode == PaceMode::AllShared {
            let last = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(target(last)));
            target(last.unwrap_or(0))
        } else {
            self.states[state] = target(self.states[state]);
            self.states[state]
        };
        (due_us - now_us) as f64 / 1e3
    }

    /// Waits, but not longer than the group runs.
    pub(super) async fn pause(&mut self, milliseconds: f64) {
        let wait = Duration::from_secs_f64(milliseconds.clamp(0.0, 1e9) / 1e3);
        if wait.is_zero() {
            return;
        }
        let begun = Instant::now();
        let end = begun + wait;
        let end = self.deadline.map_or(end, |deadline| end.min(deadline)).min(self.thread.plan.span.window_closes);
        tokio::time::sleep_until(end.into()).await;
        self.paused += begun.elapsed();
    }
}

/// A number of the Poisson distribution. Around large means it is close to the normal distribution.
fn poisson(random: &mut Random, mean: f64) -> f64 {
    const EXACT_MEAN_MAX: f64 = 500.0;
    if mean <= 0.0 {
        return 0.0;
    }
    if mean > EXACT_MEAN_MAX {
        return (mean + mean.sqrt() * random.gaussian()).max(0.0).round();
    }
    let limit = (-mean).exp();
    let (mut number, mut product) = (0.0, random.fraction());
    while product > limit {
        number += 1.0;
        product *= random.fraction();
    }
    number
}
