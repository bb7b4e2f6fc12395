//! Thread groups.
use super::super::script::{Block, Group, OnError, Phase};
use super::super::tree::Element;
use super::Reading;
use std::time::Duration;

/// More users than this need more file descriptors than a system gives.
const USERS_MAX: i64 = 100_000;
/// A year is longer than any test.
const SECONDS_MAX: i64 = 31_536_000;

pub(super) fn is_group(element: &Element) -> bool {
    element.name.ends_with("ThreadGroup")
}

impl Reading<'_> {
    pub(super) fn group(&self, element: &Element, body: Block) -> Option<Group> {
        let phase = match element.name.as_str() {
            "ThreadGroup" => Phase::Main,
            "SetupThreadGroup" => Phase::SetUp,
            "PostThreadGroup" => Phase::TearDown,
            other => {
                self.refuse(element, &format!("the thread group `{other}` is not supported"));
                return None;
            }
        };
        let on_error = match self.setting(element, "ThreadGroup.on_sample_error").as_str() {
            "" | "continue" => OnError::Continue,
            "startnextloop" => OnError::NextLoop,
            "stopthread" => OnError::StopUser,
            "stoptest" | "stoptestnow" => OnError::StopTest,
            other => {
                self.refuse(element, &format!("`{other}` after an error is not supported"));
                OnError::Continue
            }
        };
        let users = self.number(element, "ThreadGroup.num_threads", 1);
        if !(0..=USERS_MAX).contains(&users) {
            self.refuse(element, &format!("{users} users are not supported, at most {USERS_MAX} are"));
        }
        let scheduled = self.flag(element, "ThreadGroup.scheduler");
        let duration = self.seconds(element, "ThreadGroup.duration");
        if scheduled && duration.is_zero() {
            self.refuse(element, "the scheduler needs a duration");
        }
        let same_user = "ThreadGroup.same_user_on_next_iteration";
        Some(Group {
            name: element.title().into(),
            phase,
            users: usize::try_from(users).unwrap_or(0),
            ramp_up: self.seconds(element, "ThreadGroup.ramp_time"),
            delay: if scheduled { self.seconds(element, "ThreadGroup.delay") } else { Duration::ZERO },
            loops: self.loops(element),
            duration: scheduled.then_some(duration),
            on_error,
            same_user: element.property(same_user).is_none() || self.flag(element, same_user),
            body,
        })
    }

    fn seconds(&self, element: &Element, name: &str) -> Duration {
        let seconds = self.number(element, name, 0);
        if !(0..=SECONDS_MAX).contains(&seconds) {
            self.refuse(element, &format!("{seconds} seconds in `{name}` are not supported"));
        }
        Duration::from_secs(u64::try_from(seconds.min(SECONDS_MAX)).unwrap_or(0))
    }

    /// Iterations of a thread group; `None` is no limit.
    fn loops(&self, element: &Element) -> Option<u64> {
        let Some(controller) = element.property("ThreadGroup.main_controller") else { return Some(1) };
        let forever = self.flag(controller, "LoopController.continue_forever");
        let loops = self.number(controller, "LoopController.loops", -1);
        if forever { None } else { u64::try_from(loops).ok() }
    }
}
