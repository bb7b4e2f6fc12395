//! Plans: what to measure, on which targets, over which matrix. A plan is a small TOML file.
//!
//! [`Plan::parse`] turns the text into types or reports every mistake with its place; [`builtin`] holds the plans that
//! ship with the program.
pub mod builtin;
mod read;
mod toml_cursor;

use crate::echo::arrivals::ArrivalRule;
use crate::error::Error;
use crate::load::expect::Expect;
use crate::payload::Shape;
use std::time::Duration;

/// A plan as its file states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Short name, also that of the directory results go to.
    pub name: String,
    /// One line for the head of reports.
    pub title: String,
    /// Name of the published report whose figures are laid beside these.
    pub published: Option<String>,
    /// How long and how often.
    pub timing: Timing,
    /// The backend the kit starts itself.
    pub backend: Option<Backend>,
    /// What is measured.
    pub targets: Vec<Target>,
    /// Their requests.
    pub scenarios: Vec<Scenario>,
    /// The combinations.
    pub matrix: Matrix,
    /// What `--quick` changes.
    quick: Option<Quick>,
}

/// How long and how often a combination is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Whole time of one run, ramp-up and warm-up included.
    pub duration: Duration,
    /// First part of the time, which is not measured.
    pub warm_up: Duration,
    /// Time over which the users start.
    pub ramp_up: Duration,
    /// Runs of each combination; with several targets they take turns.
    pub rounds: u32,
    /// Requests per second of an open loop.
    pub rate: Option<f64>,
    /// Longest a response may take.
    pub response_timeout: Duration,
}

/// The embedded echo backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Port; the configurations of the targets name it.
    pub port: u16,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// A gateway to measure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Name in tables and charts.
    pub name: String,
    /// Program and arguments; empty for a gateway that runs already.
    pub start: Vec<String>,
    /// Port the program listens on, for `{port}`.
    pub port: u16,
    /// Address without path.
    pub url: String,
    /// Process to measure, for a gateway that runs already.
    pub pid: Option<u32>,
    /// Scenarios it can do; `None` is all.
    pub scenarios: Option<Vec<String>>,
    /// Whether a run goes on without it when its program is not installed.
    pub optional: bool,
    /// How long it may take to listen.
    pub start_timeout: Duration,
}

/// A request and what must come back.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name, as published where it was published.
    pub name: String,
    /// One line for the tables.
    pub description: String,
    /// Path of the request.
    pub path: String,
    /// Method.
    pub method: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The file of values for `${token}`, relative to the plan; those of the whole run when absent.
    pub tokens: Option<String>,
    /// Where the body comes from.
    pub body: BodySource,
    /// What must come back.
    pub expect: Expect,
    /// Status that the gateway must return when the headers with `${token}` are missing: the proof that it checks them.
    pub without_token: Option<u16>,
    /// What must reach the embedded backend: every request matches one of the rules, and every rule is matched.
    /// `None` if the scenario needs no backend.
    pub arrivals: Option<Vec<ArrivalRule>>,
    /// Whether to speak HTTP/2.
    pub http2: bool,
}

/// Where a request body comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodySource {
    /// No body.
    None,
    /// Made to the message size of the matrix.
    Generated(Shape),
    /// A file, relative to the plan; the message size of the matrix does not apply.
    File(String),
}

/// The combinations: every scenario with every number of users, message size and delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Numbers of concurrent users.
    pub users: Vec<usize>,
    /// Message sizes in bytes.
    pub message_bytes: Vec<usize>,
    /// Delays of the backend in milliseconds.
    pub backend_delay_ms: Vec<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Quick {
    duration: Option<Duration>,
    warm_up: Option<Duration>,
    ramp_up: Option<Duration>,
    rounds: Option<u32>,
    users: Option<Vec<usize>>,
    message_bytes: Option<Vec<usize>>,
    backend_delay_ms: Option<Vec<u64>>,
}

impl Timing {
    /// The ramp-up as the same share of the duration that it was of the planned one, and never longer than the
    /// warm-up: all users of a row run when its measurement begins.
    pub fn scaled_ramp_up(&self, planned_duration: Duration) -> Duration {
        let share = self.duration.as_secs_f64() / planned_duration.as_secs_f64().max(f64::MIN_POSITIVE);
        self.ramp_up.mul_f64(share.min(1.0)).min(self.warm_up)
    }
}

impl Plan {
    /// Reads a plan; `name` is what messages call the file.
    pub fn parse(name: &str, text: &str) -> Result<Plan, Error> {
        let (plan, mistakes) = read::file(name, text, |root| {
            let plan = read::plan(root);
            if plan.targets.is_empty() {
                root.mistake("a plan needs at least one `[[target]]`");
            }
            if plan.scenarios.is_empty() {
                root.mistake("a plan needs at least one `[[scenario]]`");
            }
            plan
        })?;
        if mistakes.is_empty() { Ok(plan) } else { Err(Error::Input(mistakes.join("\n"))) }
    }

    /// Reads a file that holds only targets.
    pub fn parse_targets(name: &str, text: &str) -> Result<Vec<Target>, Error> {
        let (targets, mistakes) =
            read::file(name, text, |root| root.tables("target").into_iter().map(read::target).collect())?;
        if mistakes.is_empty() { Ok(targets) } else { Err(Error::Input(mistakes.join("\n"))) }
    }

    /// Applies the plan's short form, which ends within two minutes.
    pub fn make_quick(&mut self) {
        let Some(quick) = self.quick.clone() else { return };
        let timing = &mut self.timing;
        let planned = timing.duration;
        timing.duration = quick.duration.unwrap_or(timing.duration);
        timing.warm_up = quick.warm_up.unwrap_or(timing.warm_up);
        timing.ramp_up = quick.ramp_up.unwrap_or_else(|| timing.scaled_ramp_up(planned));
        timing.rounds = quick.rounds.unwrap_or(timing.rounds);
        let matrix = &mut self.matrix;
        matrix.users = quick.users.unwrap_or_else(|| matrix.users.clone());
        matrix.message_bytes = quick.message_bytes.unwrap_or_else(|| matrix.message_bytes.clone());
        matrix.backend_delay_ms = quick.backend_delay_ms.unwrap_or_else(|| matrix.backend_delay_ms.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
name = "small"
title = "A small plan"
duration = "10s"
warm_up = "2s"
[[target]]
name = "gateway"
url = "http://localhost:9"
[[scenario]]
name = "Direct"
path = "/direct"
payload = "soap"
headers = { SOAPAction = "urn:x", Accept = "*/*" }
tokens = "guests.csv"
expect = { status = 200, same_size = true }
[matrix]
users = [1, 1_000]
message_bytes = [500]
[quick]
duration = "2s"
warm_up = "500ms"
users = [10]
"#;

    #[test]
    fn a_plan_is_read_and_made_quick() {
        let mut plan = Plan::parse("small.toml", SMALL).unwrap();
        assert_eq!(plan.matrix, Matrix { users: vec![1, 1000], message_bytes: vec![500], backend_delay_ms: vec![0] });
        let scenario = &plan.scenarios[0];
        let names: Vec<&str> = scenario.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((scenario.method.as_str(), names), ("POST", vec!["SOAPAction", "Accept", "Content-Type"]));
        assert!(scenario.expect.same_size);
        assert_eq!(scenario.tokens.as_deref(), Some("guests.csv"));
        plan.make_quick();
        assert_eq!((plan.timing.duration, plan.matrix.users), (Duration::from_secs(2), vec![10]));
    }

    fn check(from: &str, to: &str, expected: &str) {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL, "`{from}` is in the plan");
        assert_eq!(Plan::parse("small.toml", &text), Err(Error::Input(expected.to_owned())));
    }

    #[test]
    fn mistakes_have_a_place_and_a_hint() {
        check(
            "users = [1, 1_000]",
            "user = [1]",
            "small.toml:17:1: unknown key `user` in `matrix`, did you mean `users`?",
        );
        check(
            "\"10s\"",
            "10",
            "small.toml:4:12: `duration` must be a time in quotes, such as \"500ms\", \"10s\" or \"15m\"",
        );
        check(
            "\"2s\"\n[[",
            "\"20s\"\n[[",
            "small.toml:5:11: `warm_up` must be shorter than `duration`, which includes it",
        );
        check(
            "\"soap\"",
            "\"soup\"",
            "small.toml:12:11: unknown payload `soup`; there are soap, xml, json, record and text",
        );
        check("path = \"/direct\"\n", "", "small.toml:9:1: scenario needs the key `path`");
        check("[1, 1_000]", "[0]", "small.toml:17:9: numbers of users must be from 1 to 100000");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = SMALL.replace("same_size = true", "same_size = 1").replace("1_000", "\"x\"");
        let Err(Error::Input(message)) = Plan::parse("p", &text) else { panic!("the plan is wrong") };
        assert_eq!(message.lines().count(), 2, "{message}");
        assert!(Plan::parse("p", "name = ").is_err());
    }

    #[test]
    fn the_plans_that_ship_are_right_and_quick_ones_are_short() {
        for name in builtin::names() {
            let mut plan = builtin::plan(name).unwrap();
            assert_eq!(plan.name, name);
            plan.make_quick();
            let matrix = &plan.matrix;
            let cells =
                plan.scenarios.len() * matrix.users.len() * matrix.message_bytes.len() * matrix.backend_delay_ms.len();
            let runs = u32::try_from(cells).unwrap() * plan.timing.rounds;
            let whole = plan.timing.duration * runs;
            assert!(whole <= Duration::from_secs(110), "{name} takes {whole:?}");
        }
        assert!(!builtin::peers().unwrap().is_empty());
    }

    #[test]
    fn no_text_can_break_the_reader() {
        crate::mutations::each(&[SMALL], |bytes, _| {
            let _ = Plan::parse("p", &String::from_utf8_lossy(bytes));
        });
    }
}
