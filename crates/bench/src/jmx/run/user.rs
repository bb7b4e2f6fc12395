//! One user of a plan: goes through the steps of its group, sends requests, and keeps variables, cookies and connections.
mod control;
mod send;
mod timer;

use super::{Thread, start_of};
use crate::jmx::context::Context;
use crate::jmx::cookies::Jar;
use crate::jmx::patterns::Patterns;
use crate::jmx::script::{BeforePass, Block, CounterConfig, Group, Skip, Step, UserParameters};
use crate::jmx::text::Text;
use crate::jmx::time;
use crate::jtl::Names;
use crate::load::connection::Connection;
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a user looks whether it is its group's turn.
const TURN_CHECK: Duration = Duration::from_millis(5);
/// A loop that sends nothing gives way after this many passes: it would hold up all users of its thread.
const IDLE_PASSES_MAX: u32 = 100;

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// The next pass through the innermost loop.
    LoopPass,
    /// What follows the innermost loop.
    LeaveLoop,
    /// The next iteration of the thread group.
    ThreadLoop,
    StopUser,
    StopTest,
}

type Steps<'a> = Pin<Box<dyn Future<Output = Flow> + 'a>>;

struct User<'a> {
    thread: &'a Thread,
    group: &'a Group,
    group_index: usize,
    /// Number in the group, from 0.
    number: usize,
    /// Place among the users of the thread.
    place: usize,
    context: Context,
    /// State of controllers, counters and timers.
    states: Vec<u64>,
    /// Passes and runs of throughput controllers.
    passes: HashMap<usize, (u64, u64)>,
    connections: HashMap<(bool, String, u16), Connection>,
    jar: Jar,
    cookies_given: bool,
    patterns: Patterns,
    deadline: Option<Instant>,
    last_ok: bool,
    failed_requests: u64,
    /// Transactions that stand for their requests in the result file.
    covered: usize,
    /// Time spent in timers and pauses.
    paused: Duration,
    idle_passes: u32,
}

/// Runs a user to its end.
pub async fn run(thread: Rc<Thread>, group_index: usize, number: usize, place: usize) {
    let plan = thread.plan.clone();
    let group = &plan.script.groups[group_index];
    wait_for_turn(&thread, group_index).await;
    let begin = Instant::now().max(plan.span.start) + group.delay;
    tokio::time::sleep_until((begin + start_of(group.ramp_up, number, group.users)).into()).await;
    if !thread.is_over() {
        plan.active[group_index].fetch_add(1, Ordering::Relaxed);
        let mut context = Context::new(plan.options.properties.clone());
        context.variables = plan.script.variables.iter().cloned().collect();
        for (name, format) in [("TESTSTART.MS", ""), ("START.MS", ""), ("START.YMD", "YMD"), ("START.HMS", "HMS")] {
            if let Ok(format) = time::TimeFormat::parse(format) {
                context.variables.insert(name.to_owned(), format.now());
            }
        }
        (context.plan, context.group) = (plan.script.name.as_str().into(), group.name.clone());
        context.user = number + 1;
        let mut user = User {
            thread: &thread,
            group,
            group_index,
            number,
            place,
            context,
            states: vec![0; plan.script.states],
            passes: HashMap::new(),
            connections: HashMap::new(),
            jar: Jar::default(),
            cookies_given: false,
            patterns: Patterns::default(),
            deadline: group.duration.map(|duration| begin + duration),
            last_ok: true,
            failed_requests: 0,
            covered: 0,
            paused: Duration::ZERO,
            idle_passes: 0,
        };
        if user.iterations().await == Flow::StopTest {
            plan.span.finished.store(true, Ordering::Relaxed);
        }
        plan.active[group_index].fetch_sub(1, Ordering::Relaxed);
    }
    thread.users_left.set(thread.users_left.get() - 1);
    plan.left_of_group[group_index].fetch_sub(1, Ordering::Relaxed);
    if plan.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        plan.span.finished.store(true, Ordering::Relaxed);
    }
}

/// In a plan whose groups run one after another, waits until all users of the groups before have ended.
async fn wait_for_turn(thread: &Thread, group_index: usize) {
    let plan = &thread.plan;
    let before = || plan.groups.iter().take_while(|index| **index < group_index);
    let busy = || before().any(|index| plan.left_of_group[*index].load(Ordering::Relaxed) > 0);
    while plan.script.serial && busy() && !thread.is_over() {
        tokio::time::sleep(TURN_CHECK).await;
    }
}

/// Whether the steps of a block are gone through for the first time since the loop around them began; `None` if no loop
/// is directly around them.
type FirstPass = Option<bool>;

impl<'a> User<'a> {
    async fn iterations(&mut self) -> Flow {
        let mut iteration = 0;
        while self.group.loops.is_none_or(|loops| iteration < loops) && !self.is_over() {
            iteration += 1;
            self.context.iteration = iteration;
            if iteration > 1 && !self.group.same_user {
                self.connections.clear();
            }
            let flow = self.block(&self.group.body, Some(iteration == 1)).await;
            if matches!(flow, Flow::StopUser | Flow::StopTest) {
                return flow;
            }
            self.forget_cookies();
            self.give_way().await;
        }
        Flow::StopUser
    }

    fn is_over(&self) -> bool {
        self.thread.is_over() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Lets other users run in a loop that sends nothing.
    async fn give_way(&mut self) {
        self.idle_passes += 1;
        if self.idle_passes > IDLE_PASSES_MAX {
            self.idle_passes = 0;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// One pass through a block.
    fn block<'s>(&'s mut self, block: &'s Block, first: FirstPass) -> Steps<'s> {
        Box::pin(async move {
            if !self.before_pass(block) {
                return Flow::StopUser;
            }
            for step in &block.steps {
                let flow = self.step(step, first).await;
                if flow != Flow::Next {
                    return flow;
                }
            }
            Flow::Next
        })
    }

    fn before_pass(&mut self, block: &Block) -> bool {
        for act in &block.before_pass {
            match act {
                BeforePass::Csv(data) => {
                    if !data.next_record(&mut self.context, &mut self.states[data.state]) {
                        return false;
                    }
                }
                BeforePass::Counter(counter) => self.count(counter),
                BeforePass::RandomVariable { name, least, greatest, digits } => {
                    let (least, greatest) = (self.whole(least), self.whole(greatest));
                    let number = self.context.random.between(least, greatest);
                    self.context.variables.insert(name.clone(), format!("{number:0digits$}"));
                }
                BeforePass::UserParameters(parameters) => self.give_parameters(parameters),
            }
        }
        true
    }

    fn count(&mut self, counter: &CounterConfig) {
        let number = match &counter.shared {
            Some(shared) => shared.fetch_add(1, Ordering::Relaxed),
            None => {
                self.states[counter.state] += 1;
                self.states[counter.state] - 1
            }
        };
        // After the end the counter starts again.
        let values = (counter.end.saturating_sub(counter.start) / counter.step).saturating_add(1);
        let step = i64::try_from(number).unwrap_or(i64::MAX) % values;
        let value = counter.start.saturating_add(step.saturating_mul(counter.step));
        self.context.variables.insert(counter.name.clone(), format!("{value:0width$}", width = counter.digits));
    }

    fn give_parameters(&mut self, parameters: &UserParameters) {
        let Some(values) = parameters.values.get(self.number % parameters.values.len().max(1)) else { return };
        for (name, value) in parameters.names.iter().zip(values) {
            let value = value.evaluate(&mut self.context);
            self.context.variables.insert(name.clone(), value);
        }
    }

    fn whole(&mut self, text: &Text) -> i64 {
        self.decimal(text) as i64
    }

    fn decimal(&mut self, text: &Text) -> f64 {
        let text = text.evaluate(&mut self.context);
        match text.trim() {
            "" => 0.0,
            number => number.parse().unwrap_or_else(|_| {
                self.context.fail(format!("`{number}` is not a number"));
                0.0
            }),
        }
    }

    async fn step(&mut self, step: &Step, first: FirstPass) -> Flow {
        if self.is_over() {
            return Flow::StopUser;
        }
        match step {
            Step::Request(sampler) => self.request(sampler).await,
            Step::Control { kind, state, name, body } => self.control(kind, *state, name, body, first).await,
            Step::Pause { time_ms, timers, .. } => {
                let pause_ms = self.decimal(time_ms) + self.delay_ms(timers);
                self.pause(pause_ms).await;
                Flow::Next
            }
            Step::Stop { whole_test: true } => Flow::StopTest,
            Step::Stop { whole_test: false } => Flow::StopUser,
            Step::Skip(Skip::ThreadLoop) => Flow::ThreadLoop,
            Step::Skip(Skip::LoopPass) => Flow::LoopPass,
            Step::Skip(Skip::Loop) => Flow::LeaveLoop,
        }
    }

    fn names<'n>(&'n self, label: &'n str, url: &'n str) -> Names<'n> {
        Names { label, group: &self.group.name, group_number: self.group_index + 1, url }
    }
}
