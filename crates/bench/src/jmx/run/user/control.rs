//! Controllers: which steps of a block run, how often and in which order.
use super::{FirstPass, Flow, User};
use crate::jmx::condition;
use crate::jmx::script::{Block, Control, Step};
use crate::jmx::text::Text;
use crate::load::recorder::Finished;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl<'a> User<'a> {
    pub(super) async fn control(
        &mut self,
        kind: &Control,
        state: usize,
        name: &str,
        body: &Block,
        first: FirstPass,
    ) -> Flow {
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

    pub(super) async fn transaction(
        &mut self,
        body: &Block,
        (name, label): (&str, usize),
        timers: bool,
        parent: bool,
    ) -> Flow {
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
