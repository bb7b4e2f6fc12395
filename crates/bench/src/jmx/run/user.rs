//! One user of a plan: goes through the steps of its group, sends requests, and keeps variables, cookies and connections.
use super::super::context::Context;
use super::super::cookies::{Cookie, CookieSettings, Jar};
use super::super::patterns::Patterns;
use super::super::response::{self, Response, SEARCHED_BYTES_MAX};
use super::super::script::{
    BeforePass, Block, Control, CounterConfig, Group, OnError, PaceMode, Redirects, Sampler, Skip, Step, Timer,
    UserParameters,
};
use super::super::text::Text;
use super::super::{condition, request, time};
use super::{Thread, UnderWay, start_of};
use crate::http::request::Request;
use crate::http::url::Url;
use crate::jtl::Names;
use crate::load::connection::{Broken, Connection, Patience, open};
use crate::load::recorder::Finished;
use crate::load::user::KNOCK_PAUSE;
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// JMeter waits without a limit; a load must end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// JMeter's own limit on redirects of one request.
const REDIRECTS_MAX: usize = 20;
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

    async fn control(&mut self, kind: &Control, state: usize, name: &str, body: &Block, first: FirstPass) -> Flow {
        match kind {
            Control::Simple => self.block(body, None).await,
            Control::Transaction { label, with_timers, parent } => {
                self.transaction(body, (name, *label), *with_timers, *parent).await
            }
            Control::OnceOnly => {
                let due = first.unwrap_or(self.states[state] == 0);
                self.states[state] = 1;
                if due { self.block(body, None).await } else { Flow::Next }
            }
            Control::If { condition, expression, before_each } => {
                self.when(body, condition, *expression, *before_each).await
            }
            Control::Loop { count } => {
                let count = self.whole(count);
                let mut passes = 0;
                self.passes_while(body, |_| {
                    passes += 1;
                    count < 0 || passes <= count
                })
                .await
            }
            Control::While { condition } => {
                let mut passes = 0;
                self.passes_while(body, |user| {
                    passes += 1;
                    let condition = condition.evaluate(&mut user.context);
                    match condition.trim() {
                        "" => passes == 1 || user.last_ok,
                        "LAST" => user.last_ok,
                        other => !other.eq_ignore_ascii_case("false"),
                    }
                })
                .await
            }
            Control::ForEach { input, output, separator, start, end } => {
                let (input, output) = (input.evaluate(&mut self.context), output.evaluate(&mut self.context));
                let mut index = self.whole(start);
                let end = if end.is_empty() { i64::MAX } else { self.whole(end) };
                let separator = if *separator { "_" } else { "" };
                self.passes_while(body, |user| {
                    index += 1;
                    let value = user.context.variables.get(&format!("{input}{separator}{index}")).cloned();
                    let Some(value) = value.filter(|_| index <= end) else { return false };
                    user.context.variables.insert(output.clone(), value);
                    true
                })
                .await
            }
            Control::Runtime { seconds } => {
                let end = Instant::now() + Duration::from_secs(u64::try_from(self.whole(seconds)).unwrap_or(0));
                self.passes_while(body, |_| Instant::now() < end).await
            }
            Control::Interleave => {
                let next = usize::try_from(self.states[state]).unwrap_or(0);
                self.states[state] += 1;
                self.one_of(body, next % body.steps.len().max(1)).await
            }
            Control::Random => {
                let any = self.context.random.below(body.steps.len());
                self.one_of(body, any).await
            }
            Control::RandomOrder => self.in_random_order(body).await,
            Control::Throughput { percent, amount, shared } => {
                let amount = self.decimal(amount);
                let due = match shared {
                    Some(shared) => {
                        let passes = shared.passes.fetch_add(1, Ordering::Relaxed);
                        let due = is_due(passes, shared.runs.load(Ordering::Relaxed), amount, *percent);
                        shared.runs.fetch_add(u64::from(due), Ordering::Relaxed);
                        due
                    }
                    None => {
                        let (passes, runs) = self.passes.entry(state).or_default();
                        let due = is_due(*passes, *runs, amount, *percent);
                        *passes += 1;
                        *runs += u64::from(due);
                        due
                    }
                };
                if due { self.block(body, None).await } else { Flow::Next }
            }
            Control::Switch { choice } => {
                let choice = choice.evaluate(&mut self.context);
                match chosen(body, choice.trim()) {
                    Some(index) => self.one_of(body, index).await,
                    None => Flow::Next,
                }
            }
        }
    }

    /// Passes through a block as long as there is to be another one.
    async fn passes_while(&mut self, body: &Block, mut another: impl FnMut(&mut User<'a>) -> bool) -> Flow {
        let mut first = true;
        while !self.is_over() && another(self) {
            match self.block(body, Some(first)).await {
                Flow::Next | Flow::LoopPass => {}
                Flow::LeaveLoop => break,
                other => return other,
            }
            first = false;
            self.give_way().await;
        }
        Flow::Next
    }

    async fn one_of(&mut self, body: &Block, index: usize) -> Flow {
        if !self.before_pass(body) {
            return Flow::StopUser;
        }
        match body.steps.get(index) {
            Some(step) => Box::pin(self.step(step, None)).await,
            None => Flow::Next,
        }
    }

    async fn in_random_order(&mut self, body: &Block) -> Flow {
        if !self.before_pass(body) {
            return Flow::StopUser;
        }
        let mut order: Vec<&Step> = body.steps.iter().collect();
        while !order.is_empty() {
            let step = order.swap_remove(self.context.random.below(order.len()));
            let flow = Box::pin(self.step(step, None)).await;
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    async fn when(&mut self, body: &Block, condition: &Text, expression: bool, before_each: bool) -> Flow {
        if !self.holds(condition, expression) {
            return Flow::Next;
        }
        if !before_each {
            return self.block(body, None).await;
        }
        if !self.before_pass(body) {
            return Flow::StopUser;
        }
        for (index, step) in body.steps.iter().enumerate() {
            if index > 0 && !self.holds(condition, expression) {
                break;
            }
            let flow = Box::pin(self.step(step, None)).await;
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn holds(&mut self, condition: &Text, expression: bool) -> bool {
        let text = condition.evaluate(&mut self.context);
        if !expression {
            return text.trim().eq_ignore_ascii_case("true");
        }
        match condition::evaluate(&text) {
            Ok(value) => value == condition::Value::Truth(true),
            Err(why) => {
                self.context.fail(format!("the condition `{text}` cannot be evaluated: {why}"));
                false
            }
        }
    }

    async fn transaction(&mut self, body: &Block, (name, label): (&str, usize), timers: bool, parent: bool) -> Flow {
        let (start, paused, failed) = (Instant::now(), self.paused, self.failed_requests);
        self.covered += usize::from(parent);
        let flow = self.block(body, None).await;
        self.covered -= usize::from(parent);
        let waited = if timers { Duration::ZERO } else { self.paused - paused };
        let end = Instant::now() - waited;
        let failed = self.failed_requests - failed;
        let reason = format!("{failed} requests of the transaction failed");
        let mut exchange = Finished::empty(start, end.max(start), self.number);
        exchange.status = 200;
        exchange.failure = (failed > 0).then_some(reason.as_str());
        let names = self.names(name, "");
        self.thread.record_transaction(&exchange, self.group_index, label, names);
        flow
    }

    fn names<'n>(&'n self, label: &'n str, url: &'n str) -> Names<'n> {
        Names { label, group: &self.group.name, group_number: self.group_index + 1, url }
    }

    fn delay_ms(&mut self, timers: &[Timer]) -> f64 {
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
    fn pace_ms(&mut self, per_minute: f64, mode: PaceMode, state: usize, shared: &std::sync::atomic::AtomicU64) -> f64 {
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
    async fn pause(&mut self, milliseconds: f64) {
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

    fn forget_cookies(&mut self) {
        let settings = self.group_cookies();
        let forget = settings.is_some_and(|settings| {
            settings.clear_each_iteration || (settings.clear_with_user && !self.group.same_user)
        });
        if forget {
            self.jar.clear();
            self.cookies_given = false;
        }
    }

    fn group_cookies(&self) -> Option<&'a CookieSettings> {
        first_cookies(&self.group.body)
    }

    async fn request(&mut self, sampler: &Sampler) -> Flow {
        for parameters in &sampler.before {
            self.give_parameters(parameters);
        }
        let delay_ms = self.delay_ms(&sampler.timers);
        self.pause(delay_ms).await;
        if self.is_over() {
            return Flow::StopUser;
        }
        self.idle_passes = 0;
        let name = sampler.name.evaluate(&mut self.context);
        self.context.request.clone_from(&name);
        self.give_cookies(sampler);
        let sent = self.send(sampler, &name).await;
        self.last_ok = sent;
        self.context.variables.insert("JMeterThread.last_sample_ok".to_owned(), sent.to_string());
        if sent {
            return Flow::Next;
        }
        self.failed_requests += 1;
        match self.group.on_error {
            OnError::Continue => Flow::Next,
            OnError::NextLoop => Flow::ThreadLoop,
            OnError::StopUser => Flow::StopUser,
            OnError::StopTest => Flow::StopTest,
        }
    }

    fn give_cookies(&mut self, sampler: &Sampler) {
        let Some(settings) = &sampler.request.cookies else { return };
        if std::mem::replace(&mut self.cookies_given, true) {
            return;
        }
        for cookie in &settings.initial {
            let domain = cookie.domain.evaluate(&mut self.context).trim().to_ascii_lowercase();
            let path = cookie.path.evaluate(&mut self.context);
            let cookie = Cookie {
                name: cookie.name.evaluate(&mut self.context),
                value: cookie.value.evaluate(&mut self.context),
                below_domain: domain.starts_with('.'),
                domain: domain.trim_start_matches('.').to_owned(),
                path: if path.is_empty() { "/".to_owned() } else { path },
                secure: cookie.secure,
            };
            self.jar.add(cookie);
        }
    }

    /// Sends a request with its redirects, extracts, checks, and records the sample; whether it succeeded.
    async fn send(&mut self, sampler: &Sampler, name: &str) -> bool {
        let jar = std::mem::take(&mut self.jar);
        let empty = Jar::default();
        let used = if sampler.request.cookies.is_some() { &jar } else { &empty };
        let filled = request::fill(&sampler.request, &mut self.context, used);
        self.jar = jar;
        let filled = match (self.context.take_failure(), filled) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(filled)) => Ok(filled),
        };
        let start = Instant::now();
        let under_way = UnderWay { start, user: self.number, label: sampler.label };
        self.thread.under_way.borrow_mut()[self.place] = Some(under_way);
        let mut attempt = Attempt::default();
        let (url, outcome) = match filled {
            Ok(filled) => {
                let url = filled.url.to_string();
                (url, self.exchanges(sampler, filled, &mut attempt).await)
            }
            Err(why) => (String::new(), Err(Failure::Unsent(why))),
        };
        let end = Instant::now();
        self.thread.under_way.borrow_mut()[self.place] = None;
        let failure = match &outcome {
            Ok(exchanged) => self.judge(sampler, exchanged, &mut attempt, end.duration_since(start)),
            Err(failure) => Some(failure.to_string()),
        };
        let mut exchange = Finished::empty(start, end, self.number);
        exchange.status = outcome.as_ref().map_or(0, |status| *status);
        exchange.failure = failure.as_deref();
        exchange.request = &attempt.request;
        exchange.response_head = attempt.response.head.as_bytes();
        exchange.response_body = attempt.response.body.as_bytes();
        (exchange.sent_bytes, exchange.received_bytes) = (attempt.sent_bytes, attempt.received_bytes);
        (exchange.first_byte, exchange.connecting) = (attempt.first_byte, attempt.connecting);
        exchange.reconnected = attempt.reconnected;
        let names = (self.covered == 0).then(|| self.names(name, &url));
        self.thread.record(&exchange, self.group_index, sampler.label, names);
        if matches!(outcome, Err(Failure::Broken(Broken::Connect(_) | Broken::ConnectTimeout | Broken::Tls(_)))) {
            tokio::time::sleep(KNOCK_PAUSE).await;
        } else if matches!(outcome, Err(Failure::Unsent(_))) {
            // What cannot be sent takes no time; all users of the thread need some.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        failure.is_none()
    }

    /// The exchanges of a request: one, and one for each redirect that is followed. Gives the last status.
    async fn exchanges(&mut self, sampler: &Sampler, first: Request, attempt: &mut Attempt) -> Result<u16, Failure> {
        let parts = &sampler.request;
        let reads_body = !sampler.extractors.is_empty() || sampler.assertions.iter().any(|one| one.reads_body());
        let sample_bytes = if reads_body { SEARCHED_BYTES_MAX } else { 0 };
        let mut patience = Patience::new(parts.response_timeout.unwrap_or(RESPONSE_TIMEOUT));
        let mut request = first;
        for _ in 0..=REDIRECTS_MAX {
            let head = request.head().map_err(|error| Failure::Unsent(error.to_string()))?;
            let status = self.exchange(parts, &request, &head, sample_bytes, &mut patience, attempt).await?;
            if parts.cookies.is_some() {
                for field in attempt.response.fields("set-cookie") {
                    self.jar.take(field, &request.url);
                }
            }
            let reads = matches!(request.method.as_str(), "GET" | "HEAD");
            let followed = match (parts.redirects, status) {
                (Redirects::None, _) => false,
                (Redirects::Reads, 301 | 302 | 303 | 307 | 308) => reads,
                (Redirects::All, 301..=303) => true,
                (Redirects::All, 307 | 308) => reads,
                _ => false,
            };
            let location = attempt.response.fields("location").next().filter(|_| followed);
            let Some(location) = location else {
                attempt.response.request_body = String::from_utf8_lossy(&request.body).into_owned();
                return Ok(status);
            };
            let url = resolve(&request.url, location).map_err(Failure::Unsent)?;
            request = redirected(request, url, if parts.cookies.is_some() { Some(&self.jar) } else { None });
        }
        Err(Failure::Unsent(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// One exchange on the user's connection to the host.
    async fn exchange(
        &mut self,
        parts: &super::super::script::RequestParts,
        request: &Request,
        head: &str,
        sample_bytes: usize,
        patience: &mut Patience,
        attempt: &mut Attempt,
    ) -> Result<u16, Failure> {
        let url = &request.url;
        let key = (url.tls, url.host.clone(), url.port);
        let mut kept = self.connections.remove(&key);
        if let Some(connection) = &mut kept
            && connection.closed_while_idle(&self.thread.read_buffer).await?
        {
            kept = None;
            attempt.reconnected = true;
        }
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let begun = Instant::now();
                let timeout = parts.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
                let tls = url.tls.then_some(&self.thread.tls);
                let stream = open((url.host.as_str(), url.port), &url.host, tls, timeout).await?;
                attempt.connecting = Some(attempt.connecting.unwrap_or_default() + begun.elapsed());
                Connection::new(stream, SEARCHED_BYTES_MAX)
            }
        };
        connection.reader.set_head_request(request.method == "HEAD");
        connection.reader.set_sample_bytes(sample_bytes);
        let mut bytes = Vec::with_capacity(head.len() + request.body.len());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&request.body);
        patience.begin(Instant::now());
        let first_byte = self.thread.recorder.writes_lines().then_some(&mut attempt.first_byte);
        let outcome = connection.exchange(&bytes, &self.thread.read_buffer, patience, first_byte).await;
        attempt.sent_bytes += bytes.len() as u64;
        attempt.request = bytes;
        let reader = &connection.reader;
        attempt.received_bytes += reader.received_bytes;
        attempt.response = Response {
            status: reader.status,
            head: String::from_utf8_lossy(&reader.head).replace('\r', ""),
            body_bytes: reader.body_bytes,
            received_bytes: reader.received_bytes,
            url: url.to_string(),
            request_head: head
                .lines()
                .skip(1)
                .map(|line| format!("{line}\n"))
                .collect::<String>()
                .trim_end()
                .to_owned(),
            ..Response::default()
        };
        attempt.body.clear();
        attempt.body.extend_from_slice(&reader.sample);
        outcome?;
        let status = reader.status;
        if reader.keep_alive && request.keep_alive {
            self.connections.insert(key, connection);
        }
        Ok(status)
    }

    /// Extracts and checks; why the sample failed, if it did.
    fn judge(&mut self, sampler: &Sampler, status: &u16, attempt: &mut Attempt, elapsed: Duration) -> Option<String> {
        let ignore_status = sampler.assertions.iter().any(|assertion| assertion.ignores_status());
        let status_failure =
            (!(200..400).contains(status) && !ignore_status).then(|| format!("status {status} is not a success"));
        let decoded = response::decode(&attempt.body, attempt.response.fields("content-encoding").next());
        let checked = !sampler.extractors.is_empty() || !sampler.assertions.is_empty();
        match decoded {
            Ok(body) => attempt.response.body = body,
            Err(why) if checked => return Some(why),
            Err(_) => {}
        }
        attempt.response.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        for extractor in &sampler.extractors {
            if let Err(why) = extractor.run(&attempt.response, &mut self.context, &mut self.patterns) {
                return Some(why);
            }
        }
        let mut failures = sampler
            .assertions
            .iter()
            .filter_map(|assertion| assertion.failure(&attempt.response, &mut self.context, &mut self.patterns));
        let failure = failures.next();
        status_failure.or(failure)
    }
}

/// What is known about a request besides its outcome.
#[derive(Default)]
struct Attempt {
    request: Vec<u8>,
    response: Response,
    body: Vec<u8>,
    sent_bytes: u64,
    received_bytes: u64,
    first_byte: Option<Instant>,
    connecting: Option<Duration>,
    reconnected: bool,
}

/// Why a request has no complete response.
enum Failure {
    /// It could not be sent.
    Unsent(String),
    Broken(Broken),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Failure::Broken(broken)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Unsent(why) => f.write_str(why),
            Failure::Broken(broken) => broken.fmt(f),
        }
    }
}

/// The address that a `Location` field means.
fn resolve(base: &Url, location: &str) -> Result<Url, String> {
    let scheme = if base.tls { "https" } else { "http" };
    let absolute = if location.starts_with("http://") || location.starts_with("https://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{}{location}", base.authority())
    } else {
        let path = base.path.split('?').next().unwrap_or_default();
        let directory = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{scheme}://{}{directory}{location}", base.authority())
    };
    Url::parse(&absolute).map_err(|error| error.to_string())
}

/// The request that follows a redirect: without a body, with the cookies of the new address.
fn redirected(request: Request, url: Url, jar: Option<&Jar>) -> Request {
    let method = if request.method == "HEAD" { "HEAD" } else { "GET" }.to_owned();
    let mut headers = request.headers;
    headers.retain(|(name, _)| !["content-type", "cookie", "host"].iter().any(|gone| name.eq_ignore_ascii_case(gone)));
    if let Some(cookies) = jar.and_then(|jar| jar.field(&url)) {
        headers.push(("Cookie".to_owned(), cookies));
    }
    Request { method, url, headers, body: bytes::Bytes::new(), keep_alive: request.keep_alive }
}

/// Whether a pass of a throughput controller runs.
fn is_due(passes: u64, runs: u64, amount: f64, percent: bool) -> bool {
    if !percent {
        return (runs as f64) < amount;
    }
    if runs == 0 && amount > 0.0 {
        return true;
    }
    (100.0 * runs as f64 + 50.0) / (passes as f64 + 1.0) < amount
}

/// The step that a switch controller names: by number from 0, by name, or the one called `default`.
fn chosen(body: &Block, choice: &str) -> Option<usize> {
    let named = |name: &str| body.steps.iter().position(|step| step_name(step).is_some_and(|other| other == name));
    if choice.is_empty() {
        return Some(0);
    }
    match choice.parse::<usize>() {
        Ok(number) if number < body.steps.len() => Some(number),
        Ok(_) => Some(0),
        Err(_) => named(choice).or_else(|| named("default")),
    }
}

fn step_name(step: &Step) -> Option<&str> {
    match step {
        Step::Request(sampler) => sampler.name.constant(),
        Step::Control { name, .. } | Step::Pause { name, .. } => Some(name),
        Step::Stop { .. } | Step::Skip(_) => None,
    }
}

/// The cookie manager of the requests of a block.
fn first_cookies(block: &Block) -> Option<&CookieSettings> {
    block.steps.iter().find_map(|step| match step {
        Step::Request(sampler) => sampler.request.cookies.as_deref(),
        Step::Control { body, .. } => first_cookies(body),
        _ => None,
    })
}

/// A number of the Poisson distribution. Around large means it is close to the normal distribution.
fn poisson(random: &mut super::super::context::Random, mean: f64) -> f64 {
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
